/* SPDX-License-Identifier: MIT */
/*
 * A range of a file to a socket, from the page cache without a copy through user memory; with one
 * where the file system cannot do that.
 * The socket must not block; sendfile knows no flag for that, and none that keeps SIGPIPE away
 * either: where the program does not ignore it, the thread holds the signal back during the call.
 * Thread: any.  Reading: sendfile(2), signal(7).
 */
#include <errno.h>
#include <gori/op.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <time.h>

#include "base/compiler.h"
#include "os/os.h"

#define COPY_BYTES (16u << 10)

static int64_t send_copy(int fd, int file, uint64_t offset, size_t size)
{
    uint8_t copy[COPY_BYTES];
    int64_t result = gi_os_read_at(file, copy, gi_min_size(size, sizeof(copy)), offset);
    if (result <= 0) {
        return result;
    }
    struct gori_slice piece = {.data = copy, .size = (size_t)result};
    return gi_os_send(fd, &piece, 1, 0, false);
}

static bool is_pipe_signal_ignored(void)
{
    struct sigaction action;
    return sigaction(SIGPIPE, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
           action.sa_handler == SIG_IGN;
}

/* sendfile with SIGPIPE held back, and dropped if it came: one that waited before is not ours. */
static ssize_t send_quietly(int fd, int file, off_t *position, size_t size)
{
    sigset_t pipe_signal;
    sigset_t before;
    sigset_t waiting;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    (void)sigpending(&waiting);
    ssize_t result = sendfile(fd, file, position, size);
    int error = errno;
    if (result < 0 && error == EPIPE && !sigismember(&waiting, SIGPIPE)) {
        const struct timespec now = {0};
        (void)sigtimedwait(&pipe_signal, NULL, &now);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return result;
}

int64_t gi_os_send_file(int fd, int file, uint64_t offset, size_t size)
{
    bool is_quiet = is_pipe_signal_ignored();
    for (;;) {
        off_t position = (off_t)offset;
        ssize_t result = is_quiet ? sendfile(fd, file, &position, size)
                                  : send_quietly(fd, file, &position, size);
        if (result >= 0) {
            return result;
        }
        if (errno == EINVAL || errno == ENOSYS) {
            return send_copy(fd, file, offset, size);
        }
        if (errno != EINTR) {
            return gi_os_error(errno);
        }
    }
}
