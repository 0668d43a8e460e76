/* SPDX-License-Identifier: MIT */
/*
 * Signals and the interrupt end a wait; SIGPIPE does nothing; everybody hears of what he wants, and
 * dispositions are restored.
 */
#include "lib/test.h"

#include <signal.h>

#include <gori/error.h>

#include "os/event.h"
#include "os/os.h"

GT_TEST(os_signals_end_a_wait)
{
    struct gi_os_signals signals;
    GT_EQUAL(gi_os_signals_open(&signals), 0);
    GT_EQUAL(kill(getpid(), SIGTERM), 0);
    GT_EQUAL(gi_os_signals_wait(&signals), 1);
    GT_EQUAL(kill(getpid(), SIGINT), 0);
    GT_EQUAL(gi_os_signals_wait(&signals), 1);
    gi_os_signals_interrupt(&signals);
    gi_os_signals_interrupt(&signals);
    GT_EQUAL(gi_os_signals_wait(&signals), 0);
    GT_EQUAL(kill(getpid(), SIGPIPE), 0);
    GT_EQUAL(kill(getpid(), SIGTERM), 0);
    gi_os_signals_close(&signals);
}

static void interrupt(void *argument)
{
    gi_os_signals_interrupt(argument);
}

GT_TEST(os_interrupt_comes_from_any_thread)
{
    struct gi_os_signals signals;
    struct gi_os_thread thread;
    GT_EQUAL(gi_os_signals_open(&signals), 0);
    GT_EQUAL(gi_os_thread_start(&thread, interrupt, &signals), 0);
    GT_EQUAL(gi_os_signals_wait(&signals), 0);
    gi_os_thread_join(&thread);
    gi_os_signals_close(&signals);
}

static void (*disposition(int number))(int)
{
    struct sigaction now;
    GT_EQUAL(sigaction(number, NULL, &now), 0);
    return now.sa_handler;
}

/* Dispositions are as they were when nobody wants a signal any more. */
GT_TEST(os_signals_are_restored)
{
    struct gi_os_signals signals;
    struct gi_os_signals second;
    GT_CHECK(disposition(SIGTERM) == SIG_DFL);
    GT_EQUAL(gi_os_signals_open(&signals), 0);
    GT_EQUAL(gi_os_signals_open(&second), 0);
    gi_os_signals_close(&signals);
    GT_CHECK(disposition(SIGTERM) != SIG_DFL);
    GT_EQUAL(kill(getpid(), SIGTERM), 0);
    GT_EQUAL(gi_os_signals_wait(&second), 1);
    gi_os_signals_close(&second);
    GT_CHECK(disposition(SIGTERM) == SIG_DFL);
}

/* Two signals at once are two waits, in every one who waits. */
GT_TEST(os_signals_are_told_one_by_one_to_each)
{
    struct gi_os_signals signals;
    struct gi_os_signals second;
    GT_EQUAL(gi_os_signals_open(&signals), 0);
    GT_EQUAL(gi_os_signals_open(&second), 0);
    GT_EQUAL(kill(getpid(), SIGTERM), 0);
    GT_EQUAL(kill(getpid(), SIGINT), 0);
    gi_os_signals_interrupt(&signals);
    for (int i = 0; i < 2; i++) {
        GT_EQUAL(gi_os_signals_wait(&signals), 1);
        GT_EQUAL(gi_os_signals_wait(&second), 1);
    }
    GT_EQUAL(gi_os_signals_wait(&signals), 0);
    gi_os_signals_interrupt(&second);
    GT_EQUAL(gi_os_signals_wait(&second), 0);
    gi_os_signals_close(&signals);
    gi_os_signals_close(&second);
}

static void foreign(int number)
{
    (void)number;
}

/* Whoever takes a signal away from us keeps it. */
GT_TEST(os_signals_leave_a_foreign_handler)
{
    struct gi_os_signal_watch watch = {0};
    struct sigaction action = {.sa_handler = foreign};
    GT_EQUAL(gi_os_signal_watch_open(&watch), 0);
    GT_EQUAL(gi_os_signal_watch_add(&watch, SIGUSR1), 0);
    GT_EQUAL(gi_os_signal_watch_add(&watch, SIGUSR1), 0);
    GT_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
    gi_os_signal_watch_remove(&watch, SIGUSR1);
    GT_CHECK(disposition(SIGUSR1) == foreign);
    gi_os_signal_watch_remove(&watch, SIGUSR1);
    gi_os_signal_watch_close(&watch);
    gi_os_event_close((int)watch.source);
}

/* A watch takes what it wants, once, and forgets what it does not want any more. */
GT_TEST(os_signal_watches_take_sets)
{
    struct gi_os_signal_watch watch = {0};
    GT_EQUAL(gi_os_signal_watch_open(&watch), 0);
    GT_EQUAL(gi_os_signal_watch_add(&watch, SIGUSR1), 0);
    GT_EQUAL(gi_os_signal_watch_add(&watch, SIGUSR2), 0);
    GT_EQUAL(gi_os_signal_watch_take(&watch), 0);
    for (int i = 0; i < 3; i++) {
        GT_EQUAL(kill(getpid(), SIGUSR1), 0);
    }
    GT_EQUAL(kill(getpid(), SIGUSR2), 0);
    GT_EQUAL(gi_os_event_wait((int)watch.source), 0);
    GT_EQUAL(gi_os_signal_watch_take(&watch),
             GI_OS_SIGNAL_BIT(SIGUSR1) | GI_OS_SIGNAL_BIT(SIGUSR2));
    GT_EQUAL(gi_os_signal_watch_take(&watch), 0);
    GT_EQUAL(kill(getpid(), SIGUSR1), 0);
    gi_os_signal_watch_remove(&watch, SIGUSR1);
    GT_EQUAL(gi_os_signal_watch_take(&watch), 0);
    gi_os_signal_watch_close(&watch);
    gi_os_event_close((int)watch.source);
}

/* A forked child does not wake its parent. */
GT_TEST(os_signals_of_a_child_are_not_ours)
{
    struct gi_os_signal_watch watch = {0};
    int status = 0;
    GT_EQUAL(gi_os_signal_watch_open(&watch), 0);
    GT_EQUAL(gi_os_signal_watch_add(&watch, SIGUSR1), 0);
    pid_t child = fork();
    if (child == 0) {
        _exit(kill(getpid(), SIGUSR1));
    }
    GT_EQUAL(waitpid(child, &status, 0), child);
    GT_EQUAL(status, 0);
    GT_EQUAL(gi_os_signal_watch_take(&watch), 0);
    gi_os_signal_watch_close(&watch);
    gi_os_event_close((int)watch.source);
}

GT_TEST(os_signals_that_cannot_be_caught)
{
    const int refused[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, 0, -1, 65, 32};
    struct gi_os_signal_watch watch = {0};
    GT_EQUAL(gi_os_signal_watch_open(&watch), 0);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        GT_EQUAL(gi_os_signal_watch_add(&watch, refused[i]), GORI_EINVAL);
    }
    GT_EQUAL(gi_os_signal_watch_add(&watch, SIGRTMAX), 0);
    gi_os_signal_watch_close(&watch);
    gi_os_event_close((int)watch.source);
}

#define STORM 2000

static void storm(void *argument)
{
    (void)argument;
    for (int i = 0; i < STORM; i++) {
        GT_EQUAL(kill(getpid(), SIGUSR1), 0);
    }
}

/* Watches come and go while signals do: nothing is written to what is closed, and nobody waits for
   a lock that his own handler holds. */
GT_TEST(os_signals_in_a_storm)
{
    struct gi_os_signal_watch keeper = {0};
    struct gi_os_thread threads[2];
    GT_EQUAL(gi_os_signal_watch_open(&keeper), 0);
    GT_EQUAL(gi_os_signal_watch_add(&keeper, SIGUSR1), 0);
    for (int i = 0; i < 2; i++) {
        GT_EQUAL(gi_os_thread_start(&threads[i], storm, NULL), 0);
    }
    for (int i = 0; i < STORM / 4; i++) {
        struct gi_os_signal_watch watch = {0};
        GT_EQUAL(gi_os_signal_watch_open(&watch), 0);
        GT_EQUAL(gi_os_signal_watch_add(&watch, SIGUSR1), 0);
        GT_EQUAL(gi_os_signal_watch_take(&watch) & ~GI_OS_SIGNAL_BIT(SIGUSR1), 0);
        gi_os_signal_watch_close(&watch);
        gi_os_event_close((int)watch.source);
    }
    for (int i = 0; i < 2; i++) {
        gi_os_thread_join(&threads[i]);
    }
    GT_EQUAL(gi_os_signal_watch_take(&keeper), GI_OS_SIGNAL_BIT(SIGUSR1));
    gi_os_signal_watch_close(&keeper);
    gi_os_event_close((int)keeper.source);
}

GT_MAIN()
