/* SPDX-License-Identifier: MIT */
/*
 * Waiting for SIGTERM and SIGINT as a descriptor beside an interrupt of our own.
 * Thread: one opens and waits; any may interrupt.  Reading: signalfd(2), eventfd(2).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/os.h"

_Static_assert(sizeof(sigset_t) <= sizeof(((struct gi_os_signals *)0)->saved_mask), "mask");

int gi_os_signals_open(struct gi_os_signals *signals)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    int signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0) {
        return gi_os_error(errno);
    }
    int interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (interrupt_fd < 0) {
        int error = gi_os_error(errno);
        gi_os_close(signal_fd);
        return error;
    }
    int failed = pthread_sigmask(SIG_BLOCK, &set, (sigset_t *)(void *)signals->saved_mask);
    GI_ASSERT(failed == 0);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    signals->signal_fd = signal_fd;
    signals->interrupt_fd = interrupt_fd;
    return 0;
}

static bool take_signal(struct gi_os_signals *signals)
{
    struct signalfd_siginfo info;
    return read(signals->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

void gi_os_signals_close(struct gi_os_signals *signals)
{
    /* A signal that came too late must not kill the process when the mask is given back. */
    while (take_signal(signals)) {
    }
    (void)pthread_sigmask(SIG_SETMASK, (const sigset_t *)(void *)signals->saved_mask, NULL);
    gi_os_close(signals->signal_fd);
    gi_os_close(signals->interrupt_fd);
    signals->signal_fd = -1;
    signals->interrupt_fd = -1;
}

int gi_os_signals_wait(struct gi_os_signals *signals)
{
    struct pollfd poll_fds[] = {{.fd = signals->signal_fd, .events = POLLIN},
                                {.fd = signals->interrupt_fd, .events = POLLIN}};
    for (;;) {
        if (poll(poll_fds, 2, -1) < 0 && errno != EINTR) {
            return gi_os_error(errno);
        }
        if (take_signal(signals)) {
            return 1;
        }
        uint64_t count;
        if (read(signals->interrupt_fd, &count, sizeof(count)) == (ssize_t)sizeof(count)) {
            return 0;
        }
    }
}

void gi_os_signals_interrupt(struct gi_os_signals *signals)
{
    int saved_errno = errno; /* we may be in a signal handler */
    uint64_t one = 1;
    ssize_t written = write(signals->interrupt_fd, &one, sizeof(one));
    (void)written; /* it fails only when the counter is full, and then the wait returns anyway */
    errno = saved_errno;
}
