/* SPDX-License-Identifier: MIT */
/*
 * What POSIX leaves open, as macOS has it.
 *
 * A socket gets its properties one call after it was made.  It never blocks, whatever is asked: no
 * engine here wants that, and send knows no MSG_DONTWAIT.  SIGPIPE is switched off for each, since
 * older systems have no MSG_NOSIGNAL.
 * Thread: any.  Reading: socket(2), setsockopt(2), connect(2), poll(2).
 */
#include "os/posix/native.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Also answers -1 with errno where `fd` is that. */
static int prepare(int fd)
{
    int on = 1;
    if (fd < 0) {
        return -1;
    }
    bool ready = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && ioctl(fd, FIONBIO, &on) == 0;
    if (ready) {
        /* Refused for a connection that its peer has reset already: it says so when it is used. */
        (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
        return fd;
    }
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

int gi_os_native_socket(int domain, uint32_t flags)
{
    (void)flags;
    return prepare(socket(domain, SOCK_STREAM, 0));
}

int gi_os_native_accept(int listener_fd, uint32_t flags)
{
    (void)flags;
    return prepare(accept(listener_fd, NULL, NULL));
}

/*
 * A second connect would begin anew after a failure, and says "is connected" after a success: the
 * failure is asked for first, and the success is taken at its word.
 */
int gi_os_connect(int fd, const struct gori_addr *addr)
{
    int failure = 0;
    socklen_t size = sizeof(failure);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure != 0) {
        return gi_os_error(failure);
    }
    if (connect(fd, (const struct sockaddr *)addr->as.native, addr->size) == 0 ||
        errno == EISCONN) {
        return 0;
    }
    bool under_way = errno == EINPROGRESS || errno == EALREADY || errno == EINTR;
    return under_way ? 1 : gi_os_error(errno);
}

/* Milliseconds, rounded up: a wait that ends early would be followed by one of no length. */
int gi_os_poll(struct pollfd *entries, uint32_t count, gori_time timeout)
{
    int milliseconds = -1;
    if (timeout != GORI_NEVER) {
        gori_time rounded = timeout / GORI_MILLISECONDS + (timeout % GORI_MILLISECONDS != 0);
        milliseconds = rounded > INT_MAX ? INT_MAX : (int)rounded;
    }
    int ready = poll(entries, count, milliseconds);
    if (ready < 0) {
        return errno == EINTR ? 0 : gi_os_error(errno);
    }
    return ready;
}

int gi_os_native_condition_init(pthread_cond_t *condition)
{
    return pthread_cond_init(condition, NULL);
}

int gi_os_native_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                gori_time deadline)
{
    gori_time now = gi_os_now();
    gori_time left = deadline > now ? deadline - now : 0;
    struct timespec length = {.tv_sec = (time_t)(left / GORI_SECONDS),
                              .tv_nsec = (long)(left % GORI_SECONDS)};
    return pthread_cond_timedwait_relative_np(condition, mutex, &length);
}

void gi_os_thread_set_name(const char *name)
{
    (void)pthread_setname_np(name);
}

/* fsync leaves the bytes in the device's own cache; F_FULLFSYNC is not for every file system. */
int gi_os_native_sync(int fd, bool data_only)
{
    (void)data_only;
    return fcntl(fd, F_FULLFSYNC) == 0 ? 0 : fsync(fd);
}
