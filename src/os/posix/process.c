/* SPDX-License-Identifier: MIT */
/*
 * Children of POSIX systems, by posix_spawn: the system's way to start a program without a copy of
 * ours in between, whose failures it tells.  Contract: process.h.
 *
 *  1. What becomes a stream of the child is first a descriptor of ours above 2 that closes on exec:
 *     so no stream covers what another one needs, and whatever fails, nothing reaches the child.
 *  2. How the end of a child is told is the system's (gi_os_native_watch_child); where it has no
 *     way of its own, SIGCHLD tells that some child has ended, and each is asked.
 * Thread: any.  Reading: posix_spawn(3), waitid(2).
 */
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <gori/error.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/event.h"
#include "os/os.h"
#include "os/posix/native.h"

extern char **environ;

/* What a spawn holds. */
struct preparation {
    const struct gori_process_config *config;
    int streams[GORI_STDIO_COUNT]; /* the child's, above 2; or -1 */
    int pipes[GORI_STDIO_COUNT];   /* our ends, or -1 */
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
};

static void close_all(int fds[GORI_STDIO_COUNT])
{
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        if (fds[i] >= 0) {
            gi_os_close(fds[i]);
            fds[i] = -1;
        }
    }
}

/* A copy above 2. */
static int copy_above(int fd, int *ret_fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, GORI_STDIO_COUNT);
    if (copy < 0) {
        return errno == EBADF ? GORI_EINVAL : gi_os_error(errno);
    }
    *ret_fd = copy;
    return 0;
}

/* Moves a descriptor above 2. */
static int move_above(int *fd)
{
    if (*fd >= GORI_STDIO_COUNT) {
        return 0;
    }
    int copy;
    int error = copy_above(*fd, &copy);
    if (error == 0) {
        gi_os_close(*fd);
        *fd = copy;
    }
    return error;
}

static int open_null(int *ret_fd)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return gi_os_error(errno);
    }
    *ret_fd = fd;
    return move_above(ret_fd);
}

static int open_pipe(int *ret_stream, int *ret_ours)
{
    int pair[2];
    if (gi_os_native_socket_pair(pair) != 0) {
        return gi_os_error(errno);
    }
    *ret_stream = pair[0];
    *ret_ours = pair[1];
    int error = move_above(ret_stream);
    return error < 0 ? error : move_above(ret_ours);
}

static int open_stream(struct preparation *preparation, int index)
{
    const struct gori_stdio_config *stdio = &preparation->config->stdio[index];
    int *stream = &preparation->streams[index];
    switch (stdio->kind) {
    case GORI_STDIO_NULL:
        return open_null(stream);
    case GORI_STDIO_INHERIT:
        return copy_above(index, stream);
    case GORI_STDIO_NATIVE:
        return copy_above((int)stdio->native, stream);
    case GORI_STDIO_PIPE:
        return open_pipe(stream, &preparation->pipes[index]);
    default:
        return GORI_EINVAL;
    }
}

static int open_streams(struct preparation *preparation)
{
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        int error = open_stream(preparation, i);
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

/* 0 or an errno. */
static int fill_actions(struct preparation *preparation)
{
    posix_spawn_file_actions_t *actions = &preparation->actions;
    const char *directory = preparation->config->directory;
    int failed = 0;
    if (directory != NULL) {
        failed = posix_spawn_file_actions_addchdir_np(actions, directory);
    }
    for (int i = 0; i < GORI_STDIO_COUNT && failed == 0; i++) {
        failed = posix_spawn_file_actions_adddup2(actions, preparation->streams[i], i);
    }
    return failed;
}

/* 0 or an errno. */
static int fill_attributes(struct preparation *preparation)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGKILL);
    (void)sigdelset(&all, SIGSTOP);
    posix_spawnattr_t *attributes = &preparation->attributes;
    int failed = posix_spawnattr_setsigmask(attributes, &none);
    if (failed == 0) {
        failed = posix_spawnattr_setsigdefault(attributes, &all);
    }
    if (failed == 0) {
        failed =
            posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    return failed == 0 ? gi_os_native_close_others(&preparation->actions, attributes) : failed;
}

/* 0 or an errno. */
static int call_spawn(struct preparation *preparation, pid_t *ret_pid)
{
    const struct gori_process_config *config = preparation->config;
    const char *alone[] = {config->program, NULL};
    const char *const *arguments = config->arguments != NULL ? config->arguments : alone;
    char *const *environment =
        config->environment != NULL ? (char *const *)(uintptr_t)config->environment : environ;
    return posix_spawnp(ret_pid, config->program, &preparation->actions, &preparation->attributes,
                        (char *const *)(uintptr_t)arguments, environment);
}

/* 0 or an errno. */
static int spawn_prepared(struct preparation *preparation, pid_t *ret_pid)
{
    int failed = posix_spawn_file_actions_init(&preparation->actions);
    if (failed != 0) {
        return failed;
    }
    failed = posix_spawnattr_init(&preparation->attributes);
    if (failed != 0) {
        goto err_actions;
    }
    failed = fill_actions(preparation);
    if (failed == 0) {
        failed = fill_attributes(preparation);
    }
    if (failed == 0) {
        failed = call_spawn(preparation, ret_pid);
    }
    (void)posix_spawnattr_destroy(&preparation->attributes);
err_actions:
    (void)posix_spawn_file_actions_destroy(&preparation->actions);
    return failed;
}

/* 2.  It may have ended before anybody listened: the watch is made ready once for that. */
static int watch_signal(struct gi_os_process *process)
{
    int error = gi_os_signal_watch_open(&process->watch);
    if (error < 0) {
        return error;
    }
    error = gi_os_signal_watch_add(&process->watch, SIGCHLD);
    GI_ASSERT(error == 0);
    process->by_signal = true;
    process->source = process->watch.source;
    gi_os_signal_watch_poke(&process->watch);
    return 0;
}

static int watch_child(struct gi_os_process *process)
{
    int error = GORI_ENOSYS;
    int source = -1;
    if (!process->by_signal) {
        error = gi_os_native_watch_child((pid_t)process->id, &source);
    }
    if (error == GORI_ENOSYS || error == GORI_EPERM || error == GORI_ENOTFOUND) {
        return watch_signal(process); /* not found: it is waited for already, as for SIG_IGN */
    }
    process->source = source;
    return error;
}

int gi_os_process_spawn(const struct gori_process_config *config, struct gi_os_process *process,
                        gori_native ret_pipes[GORI_STDIO_COUNT])
{
    struct preparation preparation = {
        .config = config, .streams = {-1, -1, -1}, .pipes = {-1, -1, -1}};
    pid_t pid = 0;
    int error = open_streams(&preparation);
    if (error == 0) {
        error = gi_os_error(spawn_prepared(&preparation, &pid));
    }
    close_all(preparation.streams); /* which leaves room for the child's source */
    if (error == 0) {
        process->id = pid;
        process->is_over = false;
        error = watch_child(process);
        if (error < 0) {
            gi_os_process_end(process);
        }
    }
    if (error < 0) {
        close_all(preparation.pipes);
        return error;
    }
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        ret_pipes[i] = preparation.pipes[i] >= 0 ? preparation.pipes[i] : GORI_NATIVE_NONE;
    }
    return 0;
}

static void read_exit(const siginfo_t *info, struct gori_exit *ret_exit)
{
    *ret_exit = (struct gori_exit){0};
    if (info->si_code == CLD_EXITED) {
        ret_exit->status = info->si_status;
    } else {
        ret_exit->signal = info->si_status;
    }
}

int gi_os_process_take(struct gi_os_process *process, struct gori_exit *ret_exit)
{
    if (process->by_signal) {
        (void)gi_os_signal_watch_take(&process->watch); /* first: what comes then makes it ready */
    }
    siginfo_t info = {0};
    int result;
    do {
        result = waitid(P_PID, (id_t)process->id, &info, WEXITED | WNOHANG);
    } while (result != 0 && errno == EINTR);
    if (result == 0 && info.si_pid == 0) {
        return GORI_EAGAIN;
    }
    process->is_over = true;
    if (result == 0) {
        read_exit(&info, ret_exit);
    } else {
        *ret_exit = (struct gori_exit){.error = GORI_ENOTFOUND};
    }
    return 0;
}

int gi_os_process_kill(struct gi_os_process *process, int number)
{
    if (process->is_over) {
        return GORI_ECLOSED; /* its number may be somebody else's by now */
    }
    return kill((pid_t)process->id, number) == 0 ? 0 : gi_os_error(errno);
}

void gi_os_process_end(struct gi_os_process *process)
{
    siginfo_t info;
    (void)kill((pid_t)process->id, SIGKILL);
    while (waitid(P_PID, (id_t)process->id, &info, WEXITED) != 0 && errno == EINTR) {
    }
    process->is_over = true;
}

void gi_os_process_close(struct gi_os_process *process)
{
    if (process->by_signal) {
        gi_os_signal_watch_close(&process->watch);
    }
}
