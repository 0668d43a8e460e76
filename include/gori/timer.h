/* SPDX-License-Identifier: MIT */
/*
 * Timers of a loop.  Time is monotonic; a timer never fires early; starting, stopping and
 * restarting are O(1) and allocate nothing; all timers of a loop share one kernel wait.
 * Stability: unstable until 1.0.
 */
#ifndef GORI_TIMER_H
#define GORI_TIMER_H

#include <gori/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_loop;
struct gori_timer;

typedef void gori_timer_fn(struct gori_timer *timer);

/** A timer.  Embed it; zero it before its first use. */
struct gori_timer {
    /* public: set by the caller before start */
    gori_timer_fn *on_expire;
    void *user;
    /* private */
    struct gori_loop *loop;
    gori_time period;
    struct gori_wheel_entry entry;
};

/**
 * Starts a timer, or restarts it: `on_expire` runs once, when `delay` has passed since this call
 * (not since the turn began: the clock is read).  A delay of 0 fires in the next turn; one that
 * reaches beyond the end of time, GORI_NEVER included, never fires. Thread: the loop's.  Memory:
 * `timer` must live until it fired or was stopped. Callback: on the loop, never inside this call;
 * it may start, stop or free its timer.
 */
GORI_API void gori_timer_start(struct gori_loop *loop, struct gori_timer *timer, gori_time delay);

/**
 * Starts a timer that fires every `period`, at a fixed rate counted from now: a late turn does not
 * shift the later ones, and expiries that were missed altogether are merged into one.
 * A period of 0 is taken as 1 ns.  Otherwise as gori_timer_start.
 */
GORI_API void gori_timer_start_periodic(struct gori_loop *loop, struct gori_timer *timer,
                                        gori_time period);

/** Stops a timer; its callback does not run after this.  A stopped timer stays stopped. */
GORI_API void gori_timer_stop(struct gori_timer *timer);

/** Whether a timer is started and has not fired its last. */
GORI_API bool gori_timer_is_active(const struct gori_timer *timer);

#ifdef __cplusplus
}
#endif

#endif
