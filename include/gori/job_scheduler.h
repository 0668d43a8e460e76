/* SPDX-License-Identifier: MIT */
/*
 * A scheduler runs job queues (<gori/job_queue.h>) on its workers: threads of its own, loops that
 * were attached to it, or both.
 *
 *  1. A queue that has jobs is in one place: in the run queue of one worker, in the shared queue,
 *     or running.  A push from a worker goes to that worker's run queue; others to the shared one.
 *  2. A worker runs a queue for one batch or for its slice of time, whichever ends first; then
 *     the queue goes to the tail.  A worker without work takes half of what waits at another.
 *  3. Parked workers are woken by backlog only, one at a time; one that finds work wakes the next.
 *     No queue waits for more than a millisecond while a worker is parked; a loop that is woken
 *     comes when the callbacks of its turn have run, so those that sleep are woken first.
 *  4. A queue whose job does not end, and one that falls behind, are reported; nothing is killed.
 *
 * Stability: unstable until 1.0.
 */
#ifndef GORI_JOB_SCHEDULER_H
#define GORI_JOB_SCHEDULER_H

#include <gori/allocator.h>
#include <gori/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_job_scheduler;
struct gori_loop;

enum gori_job_report_kind {
    GORI_JOB_STALL = 1,   /* one job has been running for so long */
    GORI_JOB_OVERLOAD = 2 /* so many jobs wait in one queue */
};

/** What `on_report` is told.  Valid during the call only. */
struct gori_job_report {
    enum gori_job_report_kind kind;
    uint32_t worker;       /* who runs the queue */
    void *queue_user;      /* the `user` of the queue; of a STALL a name, not to be followed: the
                              job may end meanwhile, and the queue with it */
    gori_time running_for; /* STALL: at least; told at `stall_threshold` and at each doubling */
    uint32_t jobs;         /* OVERLOAD: waiting; told at `overload_jobs` and at each doubling */
};

/** How a scheduler is made.  Zero means the default for every field. */
struct gori_job_scheduler_config {
    const struct gori_allocator *allocator; /* default: the C library's */
    uint32_t threads;                       /* default: CPUs of this process; at most 255 */
    bool no_threads;           /* none of its own: attached loops do all the work and the timers;
                                  with `on_report` one thread that only watches for stalls */
    bool no_stealing;          /* a queue stays with the worker to whose run queue it came */
    gori_time slice;           /* of a queue on a thread, before others; default 8 ms */
    uint32_t slice_jobs;       /* jobs of a slice at most; default: as many as its time allows */
    gori_time loop_slice;      /* of all jobs in one turn of an attached loop; default 1 ms */
    gori_time stall_threshold; /* default 1 s */
    /**
     * On a thread of the scheduler, or an attached loop's.  May be NULL; must not call back into
     * the scheduler.
     */
    void (*on_report)(struct gori_job_scheduler *scheduler, const struct gori_job_report *report);
    void *user;
};

/** Figures of one worker since it began. */
struct gori_job_worker_stats {
    uint64_t jobs;           /* run */
    uint64_t slices;         /* turns given to a queue */
    uint64_t injected;       /* queues taken from the shared queue */
    uint64_t stolen;         /* queues taken from other workers */
    uint64_t parks;          /* times it had nothing to do and lay down */
    uint64_t wakes;          /* times another thread woke it */
    gori_time longest_slice; /* as far as it was looked at the clock */
};

/**
 * Creates a scheduler and starts its threads.
 * Thread: any.  Errors: GORI_EINVAL, GORI_ENOMEM, GORI_EAGAIN (the system has no more threads).
 */
GORI_API GORI_MUST_USE int gori_job_scheduler_create(const struct gori_job_scheduler_config *config,
                                                     struct gori_job_scheduler **ret_scheduler);

/**
 * Ends it: every queue ends (what waits is handed to `on_drop`, then `on_end` comes), and
 * then the threads.  A job that does not end is waited for.  Loops have been detached or destroyed
 * before.  Queues that somebody still holds answer GORI_ECLOSED; they must still be destroyed or
 * unreferenced.
 * Thread: any but one that is running a job.  NULL does nothing.
 */
GORI_API void gori_job_scheduler_destroy(struct gori_job_scheduler *scheduler);

/**
 * Makes a loop a worker: jobs run in its turns, after its tasks.  From then on it must go on
 * turning: jobs may wait for it, and timers if there are no threads.  Destroying the loop detaches
 * it.
 * Thread: the loop's.
 * Errors: GORI_EBUSY when the loop has a scheduler, GORI_ELIMIT (255 workers), GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_job_scheduler_attach(struct gori_job_scheduler *scheduler,
                                                     struct gori_loop *loop);

/** Ends that: what waits in its run queue goes to the others.  Thread: the loop's, not in a job. */
GORI_API void gori_job_scheduler_detach(struct gori_job_scheduler *scheduler,
                                        struct gori_loop *loop);

/** Workers so far, those of detached loops included: numbers for gori_job_scheduler_read_stats. */
GORI_API uint32_t gori_job_scheduler_workers(const struct gori_job_scheduler *scheduler);

/** Copies the figures of one worker, zeros when there is none.  Thread: any. */
GORI_API void gori_job_scheduler_read_stats(const struct gori_job_scheduler *scheduler,
                                            uint32_t worker,
                                            struct gori_job_worker_stats *ret_stats);

/** The pointer given in the config. */
GORI_API void *gori_job_scheduler_user(const struct gori_job_scheduler *scheduler);

#ifdef __cplusplus
}
#endif

#endif
