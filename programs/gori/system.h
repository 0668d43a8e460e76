/* SPDX-License-Identifier: MIT */
/*
 * What the program itself asks of the operating system, beside what the library does for it: names
 * for `gori doctor`, limits, a file to append to.  One file for each system: system_posix.c,
 * system_windows.c.  Thread: any.
 */
#ifndef GORI_PROGRAM_SYSTEM_H
#define GORI_PROGRAM_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define SYSTEM_NAME_BYTES 96

/**
 * Makes the arguments of main what they are everywhere else: UTF-8, one for each that was given.
 * Windows gives main those that fit its code page, and puts file names in the place of patterns.
 * False when one is no text, or without memory.
 */
bool system_read_arguments(int *argc, char ***argv);

/** What this machine is. */
struct system_description {
    char name[SYSTEM_NAME_BYTES];
    char release[SYSTEM_NAME_BYTES];
    char machine[SYSTEM_NAME_BYTES];
    long cpus;
};

struct system_limit {
    const char *name;
    const char *text; /* what it bounds */
    uint64_t soft;    /* UINT64_MAX: none */
    uint64_t hard;
};

#define SYSTEM_LIMITS 2

/** How many descriptors a process may come to have; UINT64_MAX when nobody counts. */
uint64_t system_descriptors_max(void);

void system_describe(struct system_description *ret_description);
void system_limits(struct system_limit ret_limits[SYSTEM_LIMITS]);

/**
 * Opens a file for appending, without waiting for whoever reads a FIFO: ENXIO when nobody does. No
 * child process inherits it.  Result: a descriptor, or -1, errno.
 */
int system_open_append(const char *name);

/** A file that may not become larger is an error of the write from now on, not the end of us. */
void system_expect_full_files(void);

/** The first of the sockets that a supervisor gives to a process it starts: sd_listen_fds(3). */
#define SYSTEM_SOCKETS_FIRST 3

/**
 * The signals that stop a server do nothing from now on: one more that comes while the process ends
 * anyway must not change its exit status.  Before the runtime that has them is destroyed: what it
 * finds changed it leaves so, and there is no moment between.
 */
void system_ignore_stops(void);

/**
 * How many sockets a supervisor gave (LISTEN_FDS, if LISTEN_PID is this process); -1 when that is
 * no number of open descriptors.  Takes them out of the environment, and child processes do not
 * inherit them.  Thread: the only one.
 */
int system_take_sockets(void);

/** The parts of a time since 1970, in UTC.  False when it has none. */
bool system_split_time(time_t seconds, struct tm *ret_parts);

#endif
