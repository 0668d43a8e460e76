/* SPDX-License-Identifier: MIT */
/*
 * Who of a scheduler's workers is parked, and how one of them is woken: by backlog only, one at a
 * time.  It knows neither queues nor jobs.  Contract: job_idle.c.
 */
#ifndef GI_RT_JOB_IDLE_H
#define GI_RT_JOB_IDLE_H

#include <gori/base.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "os/os.h"

struct gori_loop;

/** Where a worker parks: of a thread, a monitor to wait in; of a loop, the loop itself. */
struct gi_job_sleeper {
    struct gi_os_monitor monitor;
    struct gi_atomic_bool woken; /* and searching; set under the monitor, read by a loop without */
    struct gori_loop *loop;      /* NULL for a thread, and once detached; changes under the monitor,
                                    and only while it is not parked */
    struct gori_link link;       /* in idle->sleepers while parked; under idle->lock */
};

struct gi_job_idle {
    struct gi_atomic_u32 parked;    /* workers in `sleepers` */
    struct gi_atomic_u32 searching; /* workers that look for work; 1 at most by waking */
    struct gi_os_monitor lock;
    struct gori_link sleepers; /* the one that parked last is first: its cache is warm */
};

GORI_MUST_USE int gi_job_idle_init(struct gi_job_idle *idle);
void gi_job_idle_fini(struct gi_job_idle *idle);

GORI_MUST_USE int gi_job_sleeper_init(struct gi_job_sleeper *sleeper, struct gori_loop *loop);
void gi_job_sleeper_fini(struct gi_job_sleeper *sleeper);

/** A worker has found nothing of its own.  True: it searches now; false: enough others do. */
bool gi_job_idle_begin_search(struct gi_job_idle *idle, uint32_t workers);

/** A searcher ends, with or without success. */
void gi_job_idle_end_search(struct gi_job_idle *idle);

/** Parks: from now on it may be woken.  The caller then looks for work once more (I1). */
void gi_job_idle_park(struct gi_job_idle *idle, struct gi_job_sleeper *sleeper);

/** Gets up without having been woken.  False: it was woken meanwhile, see `woken`. */
bool gi_job_idle_unpark(struct gi_job_idle *idle, struct gi_job_sleeper *sleeper);

/** A parked thread waits until it is woken (true: it searches now) or until the deadline (false).
 */
bool gi_job_idle_wait(struct gi_job_sleeper *sleeper, gori_time deadline);

/** A loop takes its wake.  True: it was woken and searches now. */
bool gi_job_idle_take_wake(struct gi_job_sleeper *sleeper);

/** After work was made known: wakes a parked worker unless somebody searches.  True: it did. */
bool gi_job_idle_wake_one(struct gi_job_idle *idle);

/** Wakes everybody: the scheduler ends. */
void gi_job_idle_wake_all(struct gi_job_idle *idle);

#endif
