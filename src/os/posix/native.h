/* SPDX-License-Identifier: MIT */
/*
 * What POSIX leaves open and its files here need: one answer each in the files of
 * linux/ and darwin/.
 * Not for anybody outside of src/os/posix.
 * Thread: any.
 */
#ifndef GI_OS_POSIX_NATIVE_H
#define GI_OS_POSIX_NATIVE_H

#include <pthread.h>
#include <spawn.h>

#include "os/os.h"

/** A stream socket, close-on-exec and never the cause of SIGPIPE; -1 with errno. */
int gi_os_native_socket(int domain, uint32_t flags);

/** One connection of a listener, the same way; -1 with errno. */
int gi_os_native_accept(int listener_fd, uint32_t flags);

/** A pair of connected stream sockets, the same way; -1 with errno. */
int gi_os_native_socket_pair(int ret_fds[2]);

/**
 * A descriptor that becomes readable when a child has ended, also when it has already.
 * Errors: GORI_ENOSYS, GORI_EPERM: there is no such thing here.
 */
int gi_os_native_watch_child(pid_t pid, int *ret_source);

/** Has a spawn close what nobody marked, if the system can; 0 or an errno. */
int gi_os_native_close_others(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes);

/** A condition for waits until a time of gi_os_now; 0 or an errno. */
int gi_os_native_condition_init(pthread_cond_t *condition);

/** 0, ETIMEDOUT, or another errno. */
int gi_os_native_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                gori_time deadline);

/** A file, or only what is needed to read its bytes again, to the device; -1 with errno. */
int gi_os_native_sync(int fd, bool data_only);

#endif
