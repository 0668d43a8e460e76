/* SPDX-License-Identifier: MIT */
/*
 * What child.c asks of its system.  One file for each: child_posix.c, child_windows.c.
 */
#ifndef TESTS_CONFORMANCE_CHILD_H
#define TESTS_CONFORMANCE_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/** Makes the streams those of bytes. */
void child_prepare(void);

/** Bytes, 0 at the end, or less than 0. */
int child_read(void *data, int size);
int child_write(int fd, const void *data, int size);

bool child_folder(char *ret_path, int size);

/** Waits until it is ended. */
void child_sleep(void);

/** Descriptors that it has; 3 where that cannot be known. */
int child_descriptors(void);

/** Signals that are blocked or ignored. */
int child_spoilt_signals(void);

#endif
