/* SPDX-License-Identifier: MIT */
/*
 * Waiting for SIGTERM and SIGINT on a kqueue, beside an interrupt of our own (EVFILT_USER).
 *
 * Both signals are blocked, and a kqueue tells attempts to deliver them all the same.  It does not
 * take them: they stay pending until sigwait does, which here never waits.
 * Thread: one opens and waits; any may interrupt.  Reading: kqueue(2), sigwait(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include <sys/event.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "os/os.h"

_Static_assert(sizeof(sigset_t) <= sizeof(((struct gi_os_signals *)0)->saved_mask), "mask");

#define INTERRUPT 0 /* its ident */

static void fill_set(sigset_t *ret_set)
{
    (void)sigemptyset(ret_set);
    (void)sigaddset(ret_set, SIGTERM);
    (void)sigaddset(ret_set, SIGINT);
}

int gi_os_signals_open(struct gi_os_signals *signals)
{
    struct kevent changes[3];
    int fd = kqueue();
    if (fd < 0) {
        return gi_os_error(errno);
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    EV_SET(&changes[0], SIGTERM, EVFILT_SIGNAL, EV_ADD | EV_CLEAR, 0, 0, NULL);
    EV_SET(&changes[1], SIGINT, EVFILT_SIGNAL, EV_ADD | EV_CLEAR, 0, 0, NULL);
    EV_SET(&changes[2], INTERRUPT, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0, NULL);
    if (kevent(fd, changes, GI_ARRAY_COUNT(changes), NULL, 0, NULL) < 0) {
        int error = gi_os_error(errno);
        gi_os_close(fd);
        return error;
    }
    sigset_t set;
    fill_set(&set);
    int failed = pthread_sigmask(SIG_BLOCK, &set, (sigset_t *)(void *)signals->saved_mask);
    GI_ASSERT(failed == 0);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    signals->signal_fd = fd;
    signals->interrupt_fd = -1;
    return 0;
}

/* One of the two that is pending. */
static bool take_signal(void)
{
    sigset_t set;
    sigset_t pending;
    fill_set(&set);
    bool is_there = sigpending(&pending) == 0 &&
                    (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
    int number;
    return is_there && sigwait(&set, &number) == 0;
}

void gi_os_signals_close(struct gi_os_signals *signals)
{
    /* A signal that came too late must not kill the process when the mask is given back. */
    while (take_signal()) {
    }
    (void)pthread_sigmask(SIG_SETMASK, (const sigset_t *)(void *)signals->saved_mask, NULL);
    gi_os_close(signals->signal_fd);
    signals->signal_fd = -1;
}

int gi_os_signals_wait(struct gi_os_signals *signals)
{
    for (;;) {
        if (take_signal()) {
            return 1;
        }
        struct kevent event;
        int count = kevent(signals->signal_fd, NULL, 0, &event, 1, NULL);
        if (count < 0 && errno != EINTR) {
            return gi_os_error(errno);
        }
        if (count > 0 && event.filter == EVFILT_USER) {
            return 0;
        }
    }
}

void gi_os_signals_interrupt(struct gi_os_signals *signals)
{
    int saved_errno = errno; /* we may be in a signal handler */
    struct kevent trigger;
    EV_SET(&trigger, INTERRUPT, EVFILT_USER, 0, NOTE_TRIGGER, 0, NULL);
    (void)kevent(signals->signal_fd, &trigger, 1, NULL, 0, NULL);
    errno = saved_errno;
}
