/* SPDX-License-Identifier: MIT */
/*
 * The state of a job queue: whether it is placed, whether it ends, and who holds its memory.
 * Small and on its own, so that the model checker can go through it (tests/model).
 *
 *  S1  Whoever makes a resting queue PLACED owns it and puts it in one place; the owner hands it
 *      on, or rests it.  So it is in at most one place: a run queue, the shared queue, the hands of
 *      a worker.
 *  S2  A pusher pushes first and notifies then.  The owner looks for jobs after it began, which
 *      takes NOTIFIED away, and it cannot rest while it is there: no job is left behind.
 *  S3  The owner touches nothing after it has rested the queue: it may be gone.
 *  S4  A closing queue cannot rest.  Its owner ends it, and leaves it PLACED: nobody can own it
 *      again.
 *  S5  A queue that has not ended holds one reference on itself, which its last owner gives up.  So
 *      it is referenced wherever it is placed, without counting each placing.
 *
 * Thread: any, but begin and rest by the owner.
 */
#ifndef GI_RT_JOB_STATE_H
#define GI_RT_JOB_STATE_H

#include <gori/base.h>

#include "base/atomic.h"

#define GI_JOB_PLACED   0x1U
#define GI_JOB_NOTIFIED 0x2U /* jobs have come since the owner began */
#define GI_JOB_CLOSING  0x4U

struct gi_job_state {
    /* All by read-modify-write with acquire and release: each sees what all before it did, an owner
       what the last one left in the queue, and whoever takes NOTIFIED away the push before it. */
    struct gi_atomic_u32 flags;
    struct gi_atomic_u32 references; /* the last one, by acquire, sees what all others did */
};

/** Resting, with the queue's own reference (S5) and the creator's. */
static inline void gi_job_state_init(struct gi_job_state *state)
{
    gi_atomic_u32_init(&state->flags, 0);
    gi_atomic_u32_init(&state->references, 2);
}

/** After a push.  True: the caller owns the queue now and must place it. */
GORI_MUST_USE static inline bool gi_job_state_notify(struct gi_job_state *state)
{
    uint32_t before = gi_atomic_u32_load(&state->flags, GI_RELAXED);
    uint32_t flags;
    do {
        flags = before | GI_JOB_PLACED;
        if ((before & GI_JOB_PLACED) != 0) {
            flags |= GI_JOB_NOTIFIED;
        }
    } while (!gi_atomic_u32_compare_exchange(&state->flags, &before, flags, GI_ACQ_REL));
    return (before & GI_JOB_PLACED) == 0;
}

/** Asks for the end.  True: the caller owns the queue now and must place it. */
GORI_MUST_USE static inline bool gi_job_state_close(struct gi_job_state *state)
{
    uint32_t before = gi_atomic_u32_load(&state->flags, GI_RELAXED);
    while (!gi_atomic_u32_compare_exchange(&state->flags, &before,
                                           before | GI_JOB_PLACED | GI_JOB_CLOSING, GI_ACQ_REL)) {
    }
    return (before & GI_JOB_PLACED) == 0;
}

/** The owner is about to look for jobs.  False: the queue is closing, end it. */
GORI_MUST_USE static inline bool gi_job_state_begin(struct gi_job_state *state)
{
    uint32_t before = gi_atomic_u32_load(&state->flags, GI_RELAXED);
    while (before == (GI_JOB_PLACED | GI_JOB_NOTIFIED)) {
        (void)gi_atomic_u32_compare_exchange(&state->flags, &before, GI_JOB_PLACED, GI_ACQ_REL);
    }
    return (before & GI_JOB_CLOSING) == 0;
}

/** The owner has found no more jobs.  False: there is news, and it still owns the queue. */
GORI_MUST_USE static inline bool gi_job_state_rest(struct gi_job_state *state)
{
    uint32_t before = GI_JOB_PLACED;
    while (!gi_atomic_u32_compare_exchange(&state->flags, &before, 0, GI_ACQ_REL)) {
        if (before != GI_JOB_PLACED) {
            return false;
        }
    }
    return true;
}

/** A glance, for a pusher that was not the first: nobody may have come to notify yet. */
static inline bool gi_job_state_is_placed(const struct gi_job_state *state)
{
    return (gi_atomic_u32_load(&state->flags, GI_RELAXED) & GI_JOB_PLACED) != 0;
}

static inline bool gi_job_state_is_closing(const struct gi_job_state *state)
{
    return (gi_atomic_u32_load(&state->flags, GI_ACQUIRE) & GI_JOB_CLOSING) != 0;
}

static inline void gi_job_state_ref(struct gi_job_state *state)
{
    (void)gi_atomic_u32_add(&state->references, 1, GI_RELAXED);
}

/** True: it was the last one, and the caller frees. */
GORI_MUST_USE static inline bool gi_job_state_unref(struct gi_job_state *state)
{
    return gi_atomic_u32_sub(&state->references, 1, GI_ACQ_REL) == 1;
}

#endif
