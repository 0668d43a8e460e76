/* SPDX-License-Identifier: MIT */
/*
 * Signals and the interrupt end a wait; SIGPIPE does nothing; what came too late kills nobody.
 */
#include "lib/test.h"

#include <signal.h>

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

/* The mask is given back as it was. */
GT_TEST(os_signals_restore_the_mask)
{
    struct gi_os_signals signals;
    sigset_t mask;
    GT_EQUAL(gi_os_signals_open(&signals), 0);
    GT_EQUAL(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    GT_CHECK(sigismember(&mask, SIGTERM));
    gi_os_signals_close(&signals);
    GT_EQUAL(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    GT_CHECK(!sigismember(&mask, SIGTERM));
}

GT_MAIN()
