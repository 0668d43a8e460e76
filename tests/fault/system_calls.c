/* SPDX-License-Identifier: MIT */
/*
 * The wrapped system calls.  Contract: system_calls.h.  The list of names stands in CMakeLists.txt
 * too, where the linker gets it.
 */
#include "fault/system_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "fault/submissions.h"

/* Newer than the headers of Debian 12. */
#define RESIZE_RINGS 33

static struct {
    enum fault_call call;
    int error;
    uint64_t number; /* 0: not armed */
    uint64_t count;
    bool is_hit;
} armed;

void fault_calls_arm(enum fault_call call, uint64_t number, int error)
{
    armed.call = call;
    armed.error = error;
    armed.number = number;
    armed.count = 0;
    armed.is_hit = false;
}

bool fault_calls_disarm(void)
{
    armed.number = 0;
    return armed.is_hit;
}

static bool fails(enum fault_call call)
{
    if (armed.number == 0 || call != armed.call || ++armed.count != armed.number) {
        return false;
    }
    armed.is_hit = true;
    errno = armed.error;
    return true;
}

/* Defines __wrap_NAME, which fails on demand and else is the real one. */
#define WRAP(call, type, name, parameters, arguments)                                              \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails(call) ? (type)-1 : __real_##name arguments;                                   \
    }

WRAP(FAULT_ACCEPT, int, accept4, (int fd, struct sockaddr *addr, socklen_t *size, int flags),
     (fd, addr, size, flags))
WRAP(FAULT_BIND, int, bind, (int fd, const struct sockaddr *addr, socklen_t size), (fd, addr, size))
WRAP(FAULT_CONNECT, int, connect, (int fd, const struct sockaddr *addr, socklen_t size),
     (fd, addr, size))
WRAP(FAULT_EPOLL_CREATE, int, epoll_create1, (int flags), (flags))
WRAP(FAULT_EPOLL_CTL, int, epoll_ctl, (int epoll, int what, int fd, struct epoll_event *event),
     (epoll, what, fd, event))
WRAP(FAULT_EPOLL_WAIT, int, epoll_wait,
     (int epoll, struct epoll_event *events, int count, int timeout_ms),
     (epoll, events, count, timeout_ms))
WRAP(FAULT_EVENTFD, int, eventfd, (unsigned value, int flags), (value, flags))
WRAP(FAULT_INOTIFY_ADD, int, inotify_add_watch, (int fd, const char *path, uint32_t mask),
     (fd, path, mask))
WRAP(FAULT_INOTIFY_INIT, int, inotify_init1, (int flags), (flags))
WRAP(FAULT_INOTIFY_REMOVE, int, inotify_rm_watch, (int fd, int number), (fd, number))
WRAP(FAULT_LISTEN, int, listen, (int fd, int backlog), (fd, backlog))
WRAP(FAULT_READ, ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))
WRAP(FAULT_READ_AT, ssize_t, pread, (int fd, void *data, size_t size, off_t offset),
     (fd, data, size, offset))
WRAP(FAULT_RECV, ssize_t, recv, (int fd, void *data, size_t size, int flags),
     (fd, data, size, flags))
WRAP(FAULT_SEND, ssize_t, send, (int fd, const void *data, size_t size, int flags),
     (fd, data, size, flags))
WRAP(FAULT_SEND, ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
     (fd, message, flags))
WRAP(FAULT_SENDFILE, ssize_t, sendfile, (int fd, int file, off_t *offset, size_t size),
     (fd, file, offset, size))
WRAP(FAULT_SETSOCKOPT, int, setsockopt,
     (int fd, int level, int name, const void *value, socklen_t size),
     (fd, level, name, value, size))
WRAP(FAULT_READ_AT, ssize_t, preadv, (int fd, const struct iovec *pieces, int count, off_t offset),
     (fd, pieces, count, offset))
WRAP(FAULT_WRITE_AT, ssize_t, pwrite, (int fd, const void *data, size_t size, off_t offset),
     (fd, data, size, offset))
WRAP(FAULT_WRITE_AT, ssize_t, pwritev,
     (int fd, const struct iovec *pieces, int count, off_t offset), (fd, pieces, count, offset))
WRAP(FAULT_SYNC, int, fsync, (int fd), (fd))
WRAP(FAULT_SYNC, int, fdatasync, (int fd), (fd))
WRAP(FAULT_TRUNCATE, int, ftruncate, (int fd, off_t size), (fd, size))
WRAP(FAULT_STAT, int, stat, (const char *path, struct stat *status), (path, status))
WRAP(FAULT_STAT, int, fstat, (int fd, struct stat *status), (fd, status))
WRAP(FAULT_SOCKET, int, socket, (int family, int type, int protocol), (family, type, protocol))
WRAP(FAULT_SOCKET_PAIR, int, socketpair, (int family, int type, int protocol, int fds[2]),
     (family, type, protocol, fds))
WRAP(FAULT_WAIT_CHILD, int, waitid, (idtype_t type, id_t id, siginfo_t *info, int options),
     (type, id, info, options))

/* It answers its error. */
int __real_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[],
                        char *const environment[]);
int __wrap_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[],
                        char *const environment[]);
int __wrap_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[],
                        char *const environment[])
{
    return fails(FAULT_SPAWN)
               ? armed.error
               : __real_posix_spawnp(pid, file, actions, attributes, arguments, environment);
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
    va_list list;
    va_start(list, what);
    long argument = va_arg(list, long);
    va_end(list);
    if (what == F_DUPFD_CLOEXEC && fails(FAULT_DUPLICATE)) {
        return -1;
    }
    return __real_fcntl(fd, what, argument);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    unsigned mode = va_arg(list, unsigned); /* of no meaning when none was given */
    va_end(list);
    return fails(FAULT_OPEN_BY_PATH) ? -1 : __real_open(path, flags, mode);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    int result = __real_close(fd);
    return fails(FAULT_CLOSE) ? -1 : result;
}

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fails(FAULT_MMAP)) {
        return (void *)-1;
    }
    void *memory = __real_mmap(at, size, protection, flags, fd, offset);
    fault_submissions_saw_mapping(fd, (uint64_t)offset, memory);
    return memory;
}

static bool numbered_fails(long number)
{
    switch (number) {
    case SYS_epoll_pwait2:
        return fails(FAULT_EPOLL_WAIT);
    case SYS_pidfd_open:
        return fails(FAULT_PIDFD);
    case SYS_openat2:
        return fails(FAULT_OPEN);
    case SYS_io_uring_setup:
        return fails(FAULT_URING_SETUP);
    case SYS_io_uring_enter:
        return fails(FAULT_URING_ENTER);
    case SYS_io_uring_register:
        return fails(FAULT_URING_REGISTER);
    default:
        return false;
    }
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    if (numbered_fails(number)) {
        return -1;
    }
    if (number == SYS_io_uring_enter) {
        fault_submissions_before_enter((uint32_t)a[1]);
    }
    long result = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_io_uring_setup && result >= 0) {
        fault_submissions_saw_params((int)result, (const void *)a[1]);
    } else if (number == SYS_io_uring_register && a[1] == RESIZE_RINGS && result >= 0) {
        fault_submissions_saw_params((int)a[0], (const void *)a[2]);
    }
    return result;
}
