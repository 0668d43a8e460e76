/* SPDX-License-Identifier: MIT */
/*
 * Those who call into a loop from other threads, and the end of the loop: what a caller has posted
 * may run, and end the loop, before the call that posted it has returned.
 *
 *  1. A caller that will touch the loop's memory after the owner can know of it makes itself known:
 *     it enters before it pushes its task, or says its stop; or it is the one of all between two
 *     takes from the mailbox that is told that it was empty.  Others touch nothing after the push.
 *  2. The last that it does in the loop's memory is to leave, once for each way in which it is
 *     known.
 *  3. The owner knows how many there are: those that have entered, and one for each of its takes
 *     that found something.  When as many have left, none of them touches the memory any more, and
 *     the owner sees all that they did.
 *  4. A caller that the owner has not found is nobody it could wait for: it must not be there.
 *
 * So a message to a loop that is awake costs nothing for it, but for the first of each take.
 * Modelled in tests/model/callers_model.c.
 */
#ifndef GI_RT_CALLERS_H
#define GI_RT_CALLERS_H

#include <stdbool.h>

#include "base/atomic.h"

struct gi_callers {
    struct gi_atomic_u64 entered;
    struct gi_atomic_u64 left; /* of all */
};

static inline void gi_callers_init(struct gi_callers *callers)
{
    gi_atomic_u64_init(&callers->entered, 0);
    gi_atomic_u64_init(&callers->left, 0);
}

/** Before a task is pushed, or a stop said: whoever finds that, with acquire, sees this.
 *  Thread: any. */
static inline void gi_callers_enter(struct gi_callers *callers)
{
    (void)gi_atomic_u64_add(&callers->entered, 1, GI_RELAXED);
}

/** The end of a call that is known in `ways` ways.  Pairs with gi_callers_have_left.  Thread: any.
 */
static inline void gi_callers_leave(struct gi_callers *callers, uint64_t ways)
{
    (void)gi_atomic_u64_add(&callers->left, ways, GI_RELEASE);
}

/** Whether all are gone: those that have entered, and the first of each of `takes` takes that found
 *  something.  Thread: the owner's. */
static inline bool gi_callers_have_left(const struct gi_callers *callers, uint64_t takes)
{
    /* In this order: whose leave is seen, whose entry is seen too. */
    uint64_t left = gi_atomic_u64_load(&callers->left, GI_ACQUIRE);
    return left == takes + gi_atomic_u64_load(&callers->entered, GI_RELAXED);
}

#endif
