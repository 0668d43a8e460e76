/* SPDX-License-Identifier: MIT */
/*
 * Those who call into a loop from other threads, and the end of the loop: what a caller has posted
 * may run, and end the loop, before the call that posted it has returned.
 *
 *  1. A caller makes itself known by what the owner finds: a task in its mailbox, or a stop, which
 *     it counts before it says so.  The last that it does in the loop's memory is to leave.
 *  2. The owner knows how many it has found.  When as many have left, none of them touches the
 *     memory any more, and the owner sees all that they did.
 *  3. A caller that the owner has not found is nobody it could wait for: it must not be there.
 *
 * One addition for each caller, in a place that the loop looks at once, at its end.
 * Modelled in tests/model/callers_model.c.
 */
#ifndef GI_RT_CALLERS_H
#define GI_RT_CALLERS_H

#include <stdbool.h>

#include "base/atomic.h"

struct gi_callers {
    struct gi_atomic_u64 stops; /* that have begun */
    struct gi_atomic_u64 left;  /* of all */
};

static inline void gi_callers_init(struct gi_callers *callers)
{
    gi_atomic_u64_init(&callers->stops, 0);
    gi_atomic_u64_init(&callers->left, 0);
}

/** Before a stop is said; whoever sees the stop, with acquire, sees this.  Thread: any. */
static inline void gi_callers_stop(struct gi_callers *callers)
{
    (void)gi_atomic_u64_add(&callers->stops, 1, GI_RELAXED);
}

/** The end of a call.  Pairs with gi_callers_have_left.  Thread: any. */
static inline void gi_callers_leave(struct gi_callers *callers)
{
    (void)gi_atomic_u64_add(&callers->left, 1, GI_RELEASE);
}

/** Whether all are gone: those of `tasks` tasks that were taken, and of the stops that were seen.
 *  Thread: the owner's. */
static inline bool gi_callers_have_left(const struct gi_callers *callers, uint64_t tasks)
{
    uint64_t stops = gi_atomic_u64_load(&callers->stops, GI_RELAXED);
    return gi_atomic_u64_load(&callers->left, GI_ACQUIRE) == tasks + stops;
}

#endif
