/* SPDX-License-Identifier: MIT */
/*
 * Job queues: serial, pushed to from any thread, run by whichever worker of a scheduler
 * (<gori/job_scheduler.h>) is free.  What belongs together (a room, an account, a match) gets a
 * queue, and its jobs need no lock: they run one after the other, each seeing what the ones before
 * it did, though not always on the same thread.
 *
 *  1. Jobs of a queue run one at a time, in the order of their pushes: what a thread pushes after
 *     it saw another push return runs after that.
 *  2. A push that is accepted ends in exactly one call: `run`, or `on_drop` when the queue is
 *     destroyed first.  None of them runs inside a call to this interface.  After all of them, and
 *     the last call of a timer, comes `on_end` of the queue, once: what the jobs share may go then.
 *  3. A job may push, post to a loop (<gori/loop.h>), send to a session id, start timers and
 *     destroy its own queue.  What jobs of one queue post to one loop arrives in the order of the
 *     jobs, whichever workers ran them.
 *  4. No queue is unbounded: it takes `jobs_max` jobs and answers GORI_ELIMIT beyond.
 *
 * Stability: unstable until 1.0.
 */
#ifndef GORI_JOB_QUEUE_H
#define GORI_JOB_QUEUE_H

#include <gori/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_job;
struct gori_job_queue;
struct gori_job_scheduler;
struct gori_job_timer;

typedef void gori_job_fn(struct gori_job *job);
typedef void gori_job_queue_fn(struct gori_job_queue *queue);

/** One piece of work.  Embed it; nothing is allocated to push it. */
struct gori_job {
    /* public: set by the caller before push */
    gori_job_fn *run;
    gori_job_fn *on_drop; /* instead of `run` when the queue ends first; may be NULL */
    void *user;
    /* private */
    struct gori_mailbox_node node;
};

/** How a queue is made.  Zero means the default for every field. */
struct gori_job_queue_config {
    uint32_t jobs_max;         /* pushed and not yet run at most; default 65,536 */
    uint32_t overload_jobs;    /* waiting jobs at which the scheduler's `on_report` is told, again
                               at each doubling; default 1024, UINT32_MAX for never */
    gori_job_queue_fn *on_end; /* the last callback of the queue, on a worker; may be NULL */
    void *user;
};

/**
 * Creates a queue.
 * Thread: any.  Memory: the caller holds one reference until gori_job_queue_destroy.
 * Errors: GORI_ENOMEM; GORI_ECLOSED when the scheduler ends.
 */
GORI_API GORI_MUST_USE int gori_job_queue_create(struct gori_job_scheduler *scheduler,
                                                 const struct gori_job_queue_config *config,
                                                 struct gori_job_queue **ret_queue);

/**
 * Ends a queue and gives up the creator's reference: no push is accepted any more, a job that runs
 * ends first, the others are handed to their `on_drop` on a worker, and `on_end` is called there.
 * Once, by whoever owns it.
 * Thread: any, also inside a job of the queue.  NULL does nothing.
 */
GORI_API void gori_job_queue_destroy(struct gori_job_queue *queue);

/** Keeps the memory of a queue beyond its end.  Thread: any that holds a reference. */
GORI_API struct gori_job_queue *gori_job_queue_ref(struct gori_job_queue *queue);

/** Gives that up.  Thread: any.  NULL does nothing. */
GORI_API void gori_job_queue_unref(struct gori_job_queue *queue);

/**
 * Pushes a job behind all others.
 * Thread: any whose reference lasts until this returns.  Memory: the job is the queue's until its
 * `run` or `on_drop` is called, which may free it.
 * Errors: GORI_ELIMIT when `jobs_max` wait already, GORI_ECLOSED when the queue ends; the job is
 * then still the caller's.
 */
GORI_API GORI_MUST_USE int gori_job_queue_push(struct gori_job_queue *queue, struct gori_job *job);

/** Jobs that wait or run; over when it arrives.  Thread: any. */
GORI_API uint32_t gori_job_queue_count(const struct gori_job_queue *queue);

/** The pointer given in the config. */
GORI_API void *gori_job_queue_user(const struct gori_job_queue *queue);

/** The scheduler that runs the queue. */
GORI_API struct gori_job_scheduler *gori_job_queue_scheduler(const struct gori_job_queue *queue);

/**
 * Called as a job of the timer's queue.  `ticks` is 1, or more when a queue that was behind has
 * missed some: they are merged into one call.
 */
typedef void gori_job_timer_fn(struct gori_job_timer *timer, uint64_t ticks);

/**
 * Creates a timer that fires into a queue: like a job, behind those that wait already, and beyond
 * `jobs_max` if it must: a full queue makes it late and does not lose it.
 * Thread: any.  Memory: the caller's until gori_job_timer_destroy; it holds a reference on the
 * queue.  Errors: GORI_EINVAL (no function), GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_job_timer_create(struct gori_job_queue *queue,
                                                 gori_job_timer_fn *on_expire, void *user,
                                                 struct gori_job_timer **ret_timer);

/**
 * Starts or restarts it: it fires once, `delay` after this call and never early; GORI_NEVER does
 * not fire.  What an earlier start has not delivered yet is forgotten.  On a queue that has ended
 * it never fires.  Thread: any.
 */
GORI_API void gori_job_timer_start(struct gori_job_timer *timer, gori_time delay);

/**
 * Starts or restarts it to fire every `period` (0 is taken as 1 ns), at a fixed rate counted from
 * now; otherwise as gori_job_timer_start.
 */
GORI_API void gori_job_timer_start_periodic(struct gori_job_timer *timer, gori_time period);

/**
 * Stops it.  Inside a job of its queue: `on_expire` does not run after this.  On another thread it
 * may be running just now.  Thread: any.
 */
GORI_API void gori_job_timer_stop(struct gori_job_timer *timer);

/** Stops it and gives it back, also from its own `on_expire`.  Thread: any.  NULL does nothing. */
GORI_API void gori_job_timer_destroy(struct gori_job_timer *timer);

/** The pointer given at creation. */
GORI_API void *gori_job_timer_user(const struct gori_job_timer *timer);

#ifdef __cplusplus
}
#endif

#endif
