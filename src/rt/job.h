/* SPDX-License-Identifier: MIT */
/*
 * The inside of job queues and their scheduler, for the files job_*.c and for the loop's turn.
 *
 *     push ---> inbox of the queue ---(was resting)---> run queue of the pushing worker
 *                                                   \-> shared queue (any other thread)
 *     worker: run queue, shared queue, half of another's run queue --> one batch --> tail, or rest
 *
 * job_state.h   S1-S5: where a queue is, and who holds it
 * job_idle.c    I1-I5: parking and waking
 * job_queue.c   creation, push, end
 * job_worker.c  finding work, running it, parking: threads and loops
 * job_scheduler.c  creation, attaching, end, figures
 * job_clock.c   timers, and the watch over jobs that do not end
 *
 * Locks, and in which order they are taken: clock.monitor, scheduler.lock; then idle.lock or a
 * sleeper's monitor, which are always last.  No callback runs under any of them.
 */
#ifndef GI_RT_JOB_H
#define GI_RT_JOB_H

#include <gori/job_queue.h>
#include <gori/job_scheduler.h>
#include <gori/timer.h>

#include "base/atomic.h"
#include "base/mailbox.h"
#include "base/run_queue.h"
#include "base/wheel.h"
#include "os/os.h"
#include "rt/job_idle.h"
#include "rt/job_state.h"

#define GI_JOB_WORKERS_MAX 255

/** How long a queue may wait at a busy worker before a parked one comes for it. */
#define GI_JOB_PATIENCE GORI_MILLISECONDS

struct gori_job_queue {
    struct gi_job_state state;
    struct gi_mailbox inbox;
    struct gori_job_scheduler *scheduler; /* holds a reference on its memory */
    struct gori_job_queue_config config;
    struct gori_link place; /* in scheduler->shared, while it is there */
    struct gori_link known; /* in scheduler->queues until it has ended */
    struct {
        struct gori_mailbox_node *batch; /* taken and not yet run */
        uint32_t report_at;              /* waiting jobs at which the next report is due */
    } owner_only;
};

/** Figures that the worker alone writes and anybody reads; all relaxed: they are no signals. */
struct gi_job_figures {
    struct gi_atomic_u64 jobs;
    struct gi_atomic_u64 slices;
    struct gi_atomic_u64 injected;
    struct gi_atomic_u64 stolen;
    struct gi_atomic_u64 parks;
    struct gi_atomic_u64 wakes;
    struct gi_atomic_u64 longest_slice;
};

struct gi_job_worker {
    struct gori_job_scheduler *scheduler;
    struct gori_loop *loop; /* NULL: a thread of the scheduler */
    uint32_t index;
    uint32_t stride;       /* jobs between two looks at the clock */
    uint32_t unpaced;      /* jobs since the last one */
    uint32_t victim;       /* where the next search for backlog begins */
    gori_time now;         /* of the last look at the clock */
    gori_time shared_seen; /* `now` of the last look into the shared queue */
    bool is_searching;     /* counted in idle->searching */
    bool has_seen_backlog; /* when it was about to lie down: it must search, whoever else does */
    bool is_sentinel;      /* holds scheduler->sentinel */
    bool is_impatient;     /* a sentinel's time is up: queues that wait alone may be taken */
    bool is_parked;        /* of a loop: lies in idle->sleepers, or was woken from it */
    bool is_in_use;        /* a thread, or attached; under scheduler->lock */
    struct gi_os_thread thread;
    struct gori_timer patience;  /* of a loop that is the sentinel */
    struct gori_timer alarm;     /* of the loop that drives the clock */
    struct gori_link clock_link; /* in clock->loops */
    struct gi_job_sleeper sleeper;
    struct gi_run_queue queue;
    struct {
        struct gi_job_figures figures;
        struct gi_atomic_bool is_running; /* a queue has its slice; with release after `user` */
        struct gi_atomic_pointer user;    /* of that queue, for reports */
        struct gi_atomic_bool clock_news; /* it drives the clock, and a deadline has changed */
    } shared;
};

/** What the watch saw of a worker when it looked last. */
struct gi_job_watch {
    uint64_t jobs;
    uint64_t slices;
    gori_time since;     /* no progress since then; 0: it was not running */
    gori_time report_at; /* running time at which the next report is due */
};

struct gi_job_clock {
    struct gi_os_monitor monitor; /* guards wheel, driver, is_ending, and what timers say there */
    struct gi_wheel wheel;
    struct gori_link loops;         /* attached; in a scheduler without threads */
    struct gi_job_worker *driver;   /* the one of them that drives it; NULL: the thread */
    struct gi_os_thread thread;     /* when the scheduler has threads, or reports */
    struct gi_atomic_bool is_awake; /* it watches the workers; false: it sleeps until a timer */
    bool is_ending;
    struct gi_job_watch watches[GI_JOB_WORKERS_MAX]; /* the thread's own */
};

struct gori_job_scheduler {
    const struct gori_allocator *allocator;
    struct gori_job_scheduler_config config; /* with the defaults filled in */
    struct gi_atomic_u32 references;         /* the creator, and every queue that has memory */
    struct gi_os_monitor lock;               /* guards shared, queues, workers_in_use */
    struct gori_link shared;                 /* queues that no worker has taken yet */
    struct gi_atomic_u32 shared_count;
    struct gori_link queues; /* all that have not ended */
    struct gi_job_idle idle;
    struct gi_atomic_u32 queues_alive; /* in `queues`; written under the lock */
    struct gi_atomic_u32 workers_in_use;
    struct gi_atomic_bool is_ending;          /* no new queues; workers leave after the last one */
    struct gi_atomic_bool sentinel;           /* a parked worker looks every GI_JOB_PATIENCE */
    uint64_t seen_slices[GI_JOB_WORKERS_MAX]; /* the sentinel's: of each worker, a look ago */
    struct gi_atomic_u32 worker_count;        /* of those below; only grows */
    struct gi_atomic_pointer workers[GI_JOB_WORKERS_MAX];
    struct gi_job_clock clock;
};

/** The worker with this number; it is below worker_count. */
static inline struct gi_job_worker *gi_job_worker_at(struct gori_job_scheduler *scheduler,
                                                     uint32_t index)
{
    return gi_atomic_pointer_load(&scheduler->workers[index], GI_ACQUIRE);
}

/* job_queue.c */

/** Puts a queue that the caller owns where a worker finds it, and wakes one if that is needed. */
void gi_job_place(struct gori_job_queue *queue);

/** The same, but into the shared queue in any case. */
void gi_job_share(struct gori_job_queue *queue);

/** Ends a queue that the caller owns: what waits is dropped. */
void gi_job_queue_end(struct gori_job_queue *queue);

/** Frees a scheduler that nobody refers to any more. */
void gi_job_scheduler_unref(struct gori_job_scheduler *scheduler);

/** Pushes a job for which there is always room: a timer's.  Errors: GORI_ECLOSED. */
GORI_MUST_USE int gi_job_queue_push_owed(struct gori_job_queue *queue, struct gori_job *job);

/* job_worker.c */

/** A thread's whole life: runs queues until the scheduler has ended and the last queue too. */
void gi_job_worker_main(void *worker);

/** The worker that the calling thread is, or NULL. */
struct gi_job_worker *gi_job_worker_self(void);
void gi_job_worker_set_self(struct gi_job_worker *worker);

/** A parked loop of the calling thread has got work in its run queue. */
void gi_job_worker_get_up(struct gi_job_worker *worker);

/** One turn of an attached loop.  Result: jobs run. */
uint32_t gi_job_worker_turn(struct gi_job_worker *worker);

/** Whether an attached loop must not wait; read after its sleep began (loop.h, L3). */
bool gi_job_worker_has_news(const struct gi_job_worker *worker);

/** Makes a loop's worker forget all that it holds: it is being detached. */
void gi_job_worker_retire(struct gi_job_worker *worker);

/** Whether a parked worker, if there is one, would find something. */
bool gi_job_has_backlog(struct gori_job_scheduler *scheduler);

/* job_clock.c */

GORI_MUST_USE int gi_job_clock_init(struct gori_job_scheduler *scheduler);
void gi_job_clock_fini(struct gori_job_scheduler *scheduler);

/** Starts the thread of a clock that has one: with threads, or with somebody to report to. */
GORI_MUST_USE int gi_job_clock_start(struct gori_job_scheduler *scheduler);
void gi_job_clock_stop(struct gori_job_scheduler *scheduler);

/** The time that the scheduler's timers go by. */
gori_time gi_job_clock_now(struct gori_job_scheduler *scheduler);

/** A worker has got up: somebody must watch it. */
void gi_job_clock_watch(struct gori_job_scheduler *scheduler);

/** An attached loop comes and goes: it may have to drive the clock. */
void gi_job_clock_attach(struct gi_job_worker *worker);
void gi_job_clock_detach(struct gi_job_worker *worker);

/** In a turn of the loop that drives it, after news: sets its alarm to the next timer. */
void gi_job_clock_turn(struct gi_job_worker *driver);

#endif
