/* SPDX-License-Identifier: MIT */
/*
 * Signals of POSIX systems, by a handler that writes to each watch.  Contract: signal.h.
 * Thread: any; the handler runs on any.
 */
#include "os/signal.h"

#include <errno.h>
#include <gori/error.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/list.h"
#include "os/os.h"

#define SPINS 100 /* before the processor is given to somebody else */

/* All under the lock, but the atomics. */
static struct {
    struct gi_atomic_bool is_locked;
    struct gori_link watches;
    uint32_t counts[GI_OS_SIGNAL_MAX + 1]; /* of watches that want a number */
    struct sigaction saved[GI_OS_SIGNAL_MAX + 1];
    struct gi_atomic_u32 process; /* whose signals these are (3) */
} g_signals = {.watches = {.next = &g_signals.watches, .prev = &g_signals.watches}};

/* Pairs with unlock: what was done under the lock is seen. */
static void lock(void)
{
    for (uint32_t i = 1; gi_atomic_bool_exchange(&g_signals.is_locked, true, GI_ACQUIRE); i++) {
        gi_atomic_relax();
        if (i % SPINS == 0) {
            (void)sched_yield();
        }
    }
}

static void unlock(void)
{
    gi_atomic_bool_store(&g_signals.is_locked, false, GI_RELEASE);
}

/* 2: a handler on this thread would wait for it for ever. */
static void block_and_lock(sigset_t *ret_mask)
{
    sigset_t all;
    (void)sigfillset(&all);
    int failed = pthread_sigmask(SIG_SETMASK, &all, ret_mask);
    GI_ASSERT(failed == 0);
    lock();
}

static void unlock_and_unblock(const sigset_t *mask)
{
    unlock();
    (void)pthread_sigmask(SIG_SETMASK, mask, NULL);
}

static struct gi_os_wake wake_of(const struct gi_os_signal_watch *watch)
{
    return (struct gi_os_wake){.read_fd = (int)watch->source, .write_fd = (int)watch->signal_end};
}

void gi_os_signal_watch_poke(struct gi_os_signal_watch *watch)
{
    int saved_errno = errno; /* we may be in a signal handler */
    const struct gi_os_wake wake = wake_of(watch);
    gi_os_wake_signal(&wake);
    errno = saved_errno;
}

static void tell(struct gi_os_signal_watch *watch, int number)
{
    uint64_t before = gi_atomic_u64_load(&watch->pending, GI_RELAXED);
    /* Pairs with the exchange in take, which comes after the source was cleared. */
    while (!gi_atomic_u64_compare_exchange(&watch->pending, &before,
                                           before | GI_OS_SIGNAL_BIT(number), GI_RELEASE)) {
    }
    gi_os_signal_watch_poke(watch);
}

static void on_signal(int number)
{
    int saved_errno = errno;
    /* Pairs with the store in want. */
    if ((uint32_t)getpid() == gi_atomic_u32_load(&g_signals.process, GI_ACQUIRE)) {
        lock();
        GI_LIST_FOREACH (link, &g_signals.watches) {
            struct gi_os_signal_watch *watch =
                gori_container_of(link, struct gi_os_signal_watch, link);
            if (watch->wanted & GI_OS_SIGNAL_BIT(number)) {
                tell(watch, number);
            }
        }
        unlock();
    }
    errno = saved_errno;
}

bool gi_os_signal_is_catchable(int number)
{
    switch (number) {
    case SIGKILL:
    case SIGSTOP:
    case SIGSEGV: /* after a fault the program cannot go on */
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
        return false;
    default:
        return number >= 1 && number <= GI_OS_SIGNAL_MAX;
    }
}

int gi_os_signal_watch_open(struct gi_os_signal_watch *watch)
{
    struct gi_os_wake wake;
    int error = gi_os_wake_open(&wake);
    if (error < 0) {
        return error;
    }
    watch->source = wake.read_fd;
    watch->signal_end = wake.write_fd;
    watch->wanted = 0;
    gi_atomic_u64_init(&watch->pending, 0);
    sigset_t mask;
    block_and_lock(&mask);
    gi_list_push_back(&g_signals.watches, &watch->link);
    unlock_and_unblock(&mask);
    return 0;
}

static int want(struct gi_os_signal_watch *watch, int number)
{
    if (watch->wanted & GI_OS_SIGNAL_BIT(number)) {
        return 0;
    }
    if (g_signals.counts[number] == 0) {
        gi_atomic_u32_store(&g_signals.process, (uint32_t)getpid(), GI_RELEASE);
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        (void)sigfillset(&action.sa_mask); /* 2: no handler interrupts it */
        if (sigaction(number, &action, &g_signals.saved[number]) != 0) {
            return gi_os_error(errno);
        }
    }
    g_signals.counts[number]++;
    watch->wanted |= GI_OS_SIGNAL_BIT(number);
    return 0;
}

/* 1. */
static void restore(int number)
{
    struct sigaction now;
    bool is_ours = sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
                   now.sa_handler == on_signal;
    if (is_ours) {
        (void)sigaction(number, &g_signals.saved[number], NULL);
    }
}

static void unwant(struct gi_os_signal_watch *watch, int number)
{
    if (!(watch->wanted & GI_OS_SIGNAL_BIT(number))) {
        return;
    }
    watch->wanted &= ~GI_OS_SIGNAL_BIT(number);
    GI_ASSERT(g_signals.counts[number] > 0);
    if (--g_signals.counts[number] == 0) {
        restore(number);
    }
}

int gi_os_signal_watch_add(struct gi_os_signal_watch *watch, int number)
{
    if (!gi_os_signal_is_catchable(number)) {
        return GORI_EINVAL;
    }
    sigset_t mask;
    block_and_lock(&mask);
    int error = want(watch, number);
    unlock_and_unblock(&mask);
    return error;
}

void gi_os_signal_watch_remove(struct gi_os_signal_watch *watch, int number)
{
    sigset_t mask;
    block_and_lock(&mask);
    unwant(watch, number);
    unlock_and_unblock(&mask);
}

void gi_os_signal_watch_close(struct gi_os_signal_watch *watch)
{
    sigset_t mask;
    block_and_lock(&mask);
    for (int number = 1; number <= GI_OS_SIGNAL_MAX; number++) {
        unwant(watch, number);
    }
    gi_list_remove(&watch->link);
    unlock_and_unblock(&mask);
    if (watch->signal_end != watch->source) {
        gi_os_close((int)watch->signal_end);
    }
}

uint64_t gi_os_signal_watch_take(struct gi_os_signal_watch *watch)
{
    const struct gi_os_wake wake = wake_of(watch);
    gi_os_wake_clear(&wake); /* first, or one that comes in between would be cleared too */
    return gi_atomic_u64_exchange(&watch->pending, 0, GI_ACQUIRE) & watch->wanted;
}

uint64_t gi_os_signal_stop_set(void)
{
    return GI_OS_SIGNAL_BIT(SIGTERM) | GI_OS_SIGNAL_BIT(SIGINT);
}

void gi_os_signal_ignore_pipe(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
}
