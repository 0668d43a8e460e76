/* SPDX-License-Identifier: MIT */
/*
 * What POSIX leaves open, as Linux has it: flags in the call that makes a socket, poll to the
 * nanosecond, conditions on the monotonic clock, names of threads, syncing files.
 * Thread: any.  Reading: socket(2), accept4(2), connect(2), ppoll(2).
 */
#include "os/posix/native.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int mode_of(uint32_t flags)
{
    return SOCK_CLOEXEC | ((flags & GI_OS_BLOCKING) ? 0 : SOCK_NONBLOCK);
}

int gi_os_native_socket(int domain, uint32_t flags)
{
    return socket(domain, SOCK_STREAM | mode_of(flags), 0);
}

int gi_os_native_accept(int listener_fd, uint32_t flags)
{
    return accept4(listener_fd, NULL, NULL, mode_of(flags));
}

int gi_os_connect(int fd, const struct gori_addr *addr)
{
    if (connect(fd, (const struct sockaddr *)addr->as.native, addr->size) == 0) {
        return 0;
    }
    /* An interrupted connect goes on by itself, like one that would have to wait. */
    bool under_way = errno == EINPROGRESS || errno == EALREADY || errno == EINTR;
    return under_way ? 1 : gi_os_error(errno);
}

int gi_os_poll(struct pollfd *entries, uint32_t count, gori_time timeout)
{
    struct timespec length = {.tv_sec = (time_t)(timeout / GORI_SECONDS),
                              .tv_nsec = (long)(timeout % GORI_SECONDS)};
    int ready = ppoll(entries, count, timeout == GORI_NEVER ? NULL : &length, NULL);
    if (ready < 0) {
        return errno == EINTR ? 0 : gi_os_error(errno);
    }
    return ready;
}

int gi_os_native_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    if (failed != 0) {
        return failed;
    }
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (failed == 0) {
        failed = pthread_cond_init(condition, &attributes);
    }
    (void)pthread_condattr_destroy(&attributes);
    return failed;
}

int gi_os_native_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                gori_time deadline)
{
    struct timespec until = {.tv_sec = (time_t)(deadline / GORI_SECONDS),
                             .tv_nsec = (long)(deadline % GORI_SECONDS)};
    return pthread_cond_timedwait(condition, mutex, &until);
}

int gi_os_native_sync(int fd, bool data_only)
{
    return data_only ? fdatasync(fd) : fsync(fd);
}

void gi_os_thread_set_name(const char *name)
{
    char cut[16]; /* what Linux allows, terminator included */
    size_t size = strnlen(name, sizeof(cut) - 1);
    memcpy(cut, name, size);
    cut[size] = '\0';
    (void)pthread_setname_np(pthread_self(), cut);
}
