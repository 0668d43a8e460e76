/* SPDX-License-Identifier: MIT */
/*
 * What POSIX leaves open and its files here need: one answer each in linux/native.c and
 * darwin/native.c.
 * Not for anybody outside of src/os/posix.
 * Thread: any.
 */
#ifndef GI_OS_POSIX_NATIVE_H
#define GI_OS_POSIX_NATIVE_H

#include <pthread.h>

#include "os/os.h"

/** A stream socket, close-on-exec and never the cause of SIGPIPE; -1 with errno. */
int gi_os_native_socket(int domain, uint32_t flags);

/** One connection of a listener, the same way; -1 with errno. */
int gi_os_native_accept(int listener_fd, uint32_t flags);

/** A condition for waits until a time of gi_os_now; 0 or an errno. */
int gi_os_native_condition_init(pthread_cond_t *condition);

/** 0, ETIMEDOUT, or another errno. */
int gi_os_native_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                gori_time deadline);

#endif
