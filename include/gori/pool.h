/* SPDX-License-Identifier: MIT */
/*
 * A pool of threads for work that blocks: files, name resolution, a database client.  Work is done
 * on a thread of the pool and answered on the loop that asked.
 *
 *  1. Every accepted work ends in exactly one `on_done`, on its loop, never inside a call; unless
 *     its loop has ended first, see 3.
 *  2. Cancelling one that waits takes it out; one that runs is marked, and may ask
 *     gori_work_is_canceled to end sooner.  Either way `on_done` comes with GORI_ECANCELED, and
 *     what a running one did is to be thrown away.  One that has run already is done: it says 0.
 *  3. A loop that is destroyed cancels its works: those that wait are done at once, with
 *     GORI_ECANCELED.  For one that runs the loop waits, unless it has an `on_orphan`: then that is
 *     called, on the pool's thread, when it has run, and `on_done` never.
 *  4. The queue is bounded by `works_max`; beyond it a submit answers GORI_ELIMIT.
 *
 * Stability: unstable until 1.0.
 */
#ifndef GORI_POOL_H
#define GORI_POOL_H

#include <gori/allocator.h>
#include <gori/base.h>
#include <gori/loop.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_pool;
struct gori_work;

typedef void gori_work_fn(struct gori_work *work);
typedef void gori_work_done_fn(struct gori_work *work, int result);

/** One piece of work.  Embed it; zero it before its first use. */
struct gori_work {
    /* public: set by the caller before submit */
    gori_work_fn *run;          /* on a thread of the pool; may block */
    gori_work_done_fn *on_done; /* on the loop; it may submit the work again or free it */
    gori_work_fn *on_orphan;    /* see 3; may be NULL */
    void *user;
    /* private */
    struct gori_pool *pool;
    struct gori_loop *loop;
    struct gori_task task;
    struct gori_link queued;
    struct gori_link of_loop;
    uint8_t state;
    bool is_canceled;
};

/** How a pool is made.  Zero means the default for every field. */
struct gori_pool_config {
    const struct gori_allocator *allocator; /* default: the C library's */
    uint32_t threads_max;                   /* started when needed, kept; default 4, at most 1024 */
    uint32_t works_max;                     /* waiting at most; default 1024 */
};

/** Figures of a pool, of now. */
struct gori_pool_stats {
    uint32_t threads;
    uint32_t running;
    uint32_t waiting;
};

/** Creates a pool; no thread starts yet.  Thread: any.  Errors: GORI_EINVAL, GORI_ENOMEM. */
GORI_API GORI_MUST_USE int gori_pool_create(const struct gori_pool_config *config,
                                            struct gori_pool **ret_pool);

/**
 * Ends a pool: works that wait are cancelled, those that run are waited for, their loops are told
 * as always.  Thread: any but the pool's.  NULL does nothing.
 */
GORI_API void gori_pool_destroy(struct gori_pool *pool);

/**
 * Hands work to the pool.
 * Thread: the loop's.  Memory: the work is the pool's until `on_done` or `on_orphan` is called.
 * Errors: GORI_EINVAL (no `run` or no `on_done`), GORI_EBUSY (it is on its way already),
 * GORI_ELIMIT (`works_max` wait), GORI_ECLOSED (pool or loop ends), GORI_EAGAIN, GORI_ENOMEM (no
 * thread could be started, and there is none); the work is then still the caller's.
 */
GORI_API GORI_MUST_USE int gori_pool_submit(struct gori_pool *pool, struct gori_loop *loop,
                                            struct gori_work *work);

/** Cancels a work, see 2.  Does nothing when it is not on its way.  Thread: the loop's. */
GORI_API void gori_work_cancel(struct gori_work *work);

/** Whether somebody wants a running work to end.  Thread: the one that runs it. */
GORI_API bool gori_work_is_canceled(const struct gori_work *work);

/** Copies the pool's figures.  Thread: any. */
GORI_API void gori_pool_read_stats(struct gori_pool *pool, struct gori_pool_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
