/* SPDX-License-Identifier: MIT */
/*
 * System calls that fail on demand: the linker puts these in front of the C library's for one test
 * program (--wrap).  A failing call does nothing and answers its error, but for close, which closes
 * as the system does in that case.
 * Thread: one.
 */
#ifndef GT_FAULT_SYSTEM_CALLS_H
#define GT_FAULT_SYSTEM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum fault_call {
    FAULT_ACCEPT,
    FAULT_BIND,
    FAULT_CLOSE,
    FAULT_CONNECT,
    FAULT_DUPLICATE,
    FAULT_EPOLL_CREATE,
    FAULT_EPOLL_CTL,
    FAULT_EPOLL_WAIT,
    FAULT_EVENTFD,
    FAULT_INOTIFY_ADD,
    FAULT_INOTIFY_INIT,
    FAULT_INOTIFY_REMOVE,
    FAULT_LISTEN,
    FAULT_MMAP,
    FAULT_OPEN,         /* openat2 */
    FAULT_OPEN_BY_PATH, /* open */
    FAULT_PIDFD,
    FAULT_READ,
    FAULT_READ_AT,
    FAULT_RECV,
    FAULT_SEND,
    FAULT_SENDFILE,
    FAULT_SETSOCKOPT,
    FAULT_SOCKET,
    FAULT_SOCKET_PAIR,
    FAULT_SPAWN,
    FAULT_STAT,
    FAULT_SYNC,
    FAULT_TRUNCATE,
    FAULT_URING_ENTER,
    FAULT_URING_REGISTER,
    FAULT_URING_SETUP,
    FAULT_WAIT_CHILD,
    FAULT_WRITE_AT
};

/** Counts calls of a kind from now on, and fails the `number`-th (from 1) with an errno. */
void fault_calls_arm(enum fault_call call, uint64_t number, int error);

/** Fails nothing more.  Result: whether one was failed since it was armed. */
bool fault_calls_disarm(void);

#endif
