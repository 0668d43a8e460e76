/* SPDX-License-Identifier: MIT */
/*
 * Signals of the process as events of a loop.
 *
 *  1. Any number of watchers, on any loops, may watch one signal: each of them hears of it.  A
 *     watcher is called once for all signals of its number that came since it was last called.
 *  2. While there is a watcher of a number, the process does not do for it what it would do by
 *     itself.  With the last one the disposition is again what it was before the first, unless
 *     somebody has changed it meanwhile.
 *  3. No thread's mask is changed.  A signal that is blocked in every thread is not heard of, and
 *     system calls of the application may be interrupted as by any handler (SA_RESTART is set).
 *  4. After a stop a watcher is not called, also not for a signal that came before.
 *  5. KILL and STOP cannot be watched, nor can the signals of faults (SEGV, BUS, FPE, ILL).
 *  6. gori_runtime_config.handle_signals is one more who hears: it and watchers of SIGTERM and
 *     SIGINT do not disturb each other.
 *  7. On Windows there are SIGINT (Ctrl+C), SIGBREAK (Ctrl+Break), 1, which is SIGHUP elsewhere
 *     (the console is closed), and SIGTERM (the user logs off, the machine is shut down).  After
 *     the last two the system gives the process some seconds.
 *
 * The numbers are those of <signal.h>.  Stability: unstable until 1.0.
 */
#ifndef GORI_SIGNAL_H
#define GORI_SIGNAL_H

#include <gori/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_loop;
struct gori_signal;

typedef void gori_signal_fn(struct gori_signal *signal);

/** A watcher.  Embed it; zero it before its first use. */
struct gori_signal {
    /* public: set by the caller before start */
    gori_signal_fn *on_signal;
    void *user;
    /* read-only */
    int number;
    /* private */
    struct gori_loop *loop;
    struct gori_link link;
};

/**
 * Starts a watcher.  The first one of a loop takes one operation and one or two descriptors, which
 * the loop keeps until its end.
 * Thread: the loop's.  Memory: `signal` must live until it is stopped or its loop has ended.
 * Errors: GORI_EINVAL (a number that cannot be watched, no `on_signal`), GORI_EBUSY (it is started
 * already), GORI_ELIMIT, GORI_ENOMEM, GORI_EMFILE, GORI_ENFILE.
 * Callback: on the loop, never inside this call; it may stop, start or free its watcher.
 */
GORI_API GORI_MUST_USE int gori_signal_start(struct gori_loop *loop, struct gori_signal *signal,
                                             int number);

/** Stops a watcher; one that is stopped stays stopped.  Thread: the loop's. */
GORI_API void gori_signal_stop(struct gori_signal *signal);

/** Whether a watcher is started.  The end of its loop stops it. */
GORI_API bool gori_signal_is_active(const struct gori_signal *signal);

#ifdef __cplusplus
}
#endif

#endif
