/* SPDX-License-Identifier: MIT */
/*
 * Parking and waking.
 *
 *  I1  Work is made known first (a run queue's tail, the shared queue's count) and `parked` and
 *      `searching` are read then; a worker ends its search and counts itself in `parked` first, and
 *      looks for work then.  All of it is sequentially consistent, so either the one who makes work
 *      known sees the parked worker, or the worker sees the work: no wake is lost.
 *  I2  Whoever finds `searching` at 0 and makes it 1 may wake one worker, and that one inherits the
 *      search.  So a burst wakes one worker and not a herd.  A searcher that finds work wakes the
 *      next when there is more (job_worker.c).
 *  I3  Who sees somebody search wakes nobody: that one either finds the work, or looks again after
 *      it has ended its search (I1).
 *  I4  A worker is taken out of `sleepers` exactly once for each time that it parks: by whoever
 *      wakes it, or by itself.
 *  I5  A loop is woken under its sleeper's monitor, where it says good-bye: no wake touches a loop
 *      that has ended.  It does so after it has left `sleepers`: those in it may be looked at.
 *  I6  Of those that would come at once the one that parked last is woken.  A parked loop may have
 *      its hands full with connections; it is woken when all that are parked have.
 *
 * Locks: idle->lock, then nothing; sleeper->monitor, then nothing.
 */
#include "rt/job_idle.h"

#include "base/list.h"
#include "rt/loop.h"

int gi_job_idle_init(struct gi_job_idle *idle)
{
    gi_atomic_u32_init(&idle->parked, 0);
    gi_atomic_u32_init(&idle->searching, 0);
    gi_list_init(&idle->sleepers);
    return gi_os_monitor_init(&idle->lock);
}

void gi_job_idle_fini(struct gi_job_idle *idle)
{
    GI_ASSERT(gi_list_is_empty(&idle->sleepers));
    gi_os_monitor_fini(&idle->lock);
}

int gi_job_sleeper_init(struct gi_job_sleeper *sleeper, struct gori_loop *loop)
{
    *sleeper = (struct gi_job_sleeper){.loop = loop};
    gi_atomic_bool_init(&sleeper->woken, false);
    return gi_os_monitor_init(&sleeper->monitor);
}

void gi_job_sleeper_fini(struct gi_job_sleeper *sleeper)
{
    gi_os_monitor_fini(&sleeper->monitor);
}

bool gi_job_idle_begin_search(struct gi_job_idle *idle, uint32_t workers)
{
    /* More than half of the workers searching would only get into each other's way. */
    if (2 * gi_atomic_u32_load(&idle->searching, GI_RELAXED) >= workers) {
        return false;
    }
    (void)gi_atomic_u32_add(&idle->searching, 1, GI_SEQ_CST);
    return true;
}

void gi_job_idle_end_search(struct gi_job_idle *idle)
{
    uint32_t before = gi_atomic_u32_sub(&idle->searching, 1, GI_SEQ_CST);
    GI_ASSERT(before > 0);
}

void gi_job_idle_park(struct gi_job_idle *idle, struct gi_job_sleeper *sleeper)
{
    gi_os_monitor_lock(&idle->lock);
    gi_list_push_front(&idle->sleepers, &sleeper->link);
    (void)gi_atomic_u32_add(&idle->parked, 1, GI_SEQ_CST);
    gi_os_monitor_unlock(&idle->lock);
}

bool gi_job_idle_unpark(struct gi_job_idle *idle, struct gi_job_sleeper *sleeper)
{
    gi_os_monitor_lock(&idle->lock);
    bool is_parked = gi_link_is_linked(&sleeper->link);
    if (is_parked) {
        gi_list_remove(&sleeper->link);
        (void)gi_atomic_u32_sub(&idle->parked, 1, GI_SEQ_CST);
    }
    gi_os_monitor_unlock(&idle->lock);
    return is_parked;
}

bool gi_job_idle_wait(struct gi_job_sleeper *sleeper, gori_time deadline)
{
    gi_os_monitor_lock(&sleeper->monitor);
    bool in_time = true;
    while (in_time && !gi_atomic_bool_load(&sleeper->woken, GI_RELAXED)) {
        in_time = gi_os_monitor_wait_until(&sleeper->monitor, deadline);
    }
    bool woken = gi_atomic_bool_load(&sleeper->woken, GI_RELAXED);
    gi_atomic_bool_store(&sleeper->woken, false, GI_RELAXED);
    gi_os_monitor_unlock(&sleeper->monitor);
    return woken;
}

bool gi_job_idle_take_wake(struct gi_job_sleeper *sleeper)
{
    /* Pairs with wake: it also sees what was done before the wake. */
    return gi_atomic_bool_load(&sleeper->woken, GI_ACQUIRE) &&
           gi_atomic_bool_exchange(&sleeper->woken, false, GI_ACQ_REL);
}

static void wake(struct gi_job_sleeper *sleeper)
{
    gi_os_monitor_lock(&sleeper->monitor);
    gi_atomic_bool_store(&sleeper->woken, true, GI_SEQ_CST);
    if (sleeper->loop != NULL) {
        gi_loop_wake(sleeper->loop);
    } else {
        gi_os_monitor_notify(&sleeper->monitor);
    }
    gi_os_monitor_unlock(&sleeper->monitor);
}

/* Under idle->lock, of one that is parked (I5). */
static bool comes_at_once(const struct gi_job_sleeper *sleeper)
{
    return sleeper->loop == NULL || gi_sleep_is_asleep(&sleeper->loop->shared.sleep);
}

/* Under idle->lock.  NULL when nobody is parked. */
static struct gi_job_sleeper *choose_sleeper(struct gi_job_idle *idle)
{
    GI_LIST_FOREACH (link, &idle->sleepers) {
        struct gi_job_sleeper *sleeper = gori_container_of(link, struct gi_job_sleeper, link);
        if (comes_at_once(sleeper)) {
            return sleeper;
        }
    }
    struct gori_link *first = gi_list_first(&idle->sleepers);
    return first == NULL ? NULL : gori_container_of(first, struct gi_job_sleeper, link);
}

static struct gi_job_sleeper *take_sleeper(struct gi_job_idle *idle)
{
    gi_os_monitor_lock(&idle->lock);
    struct gi_job_sleeper *sleeper = choose_sleeper(idle);
    if (sleeper != NULL) {
        gi_list_remove(&sleeper->link);
        (void)gi_atomic_u32_sub(&idle->parked, 1, GI_SEQ_CST);
    }
    gi_os_monitor_unlock(&idle->lock);
    return sleeper;
}

bool gi_job_idle_wake_one(struct gi_job_idle *idle)
{
    while (gi_atomic_u32_load(&idle->parked, GI_SEQ_CST) != 0) {
        uint32_t searching = gi_atomic_u32_load(&idle->searching, GI_SEQ_CST);
        do {
            if (searching != 0) {
                return false;
            }
        } while (!gi_atomic_u32_compare_exchange(&idle->searching, &searching, 1, GI_SEQ_CST));
        struct gi_job_sleeper *sleeper = take_sleeper(idle);
        if (sleeper != NULL) {
            wake(sleeper);
            return true;
        }
        /* All have got up.  Whoever saw us search meanwhile has woken nobody: look again (I3). */
        gi_job_idle_end_search(idle);
    }
    return false;
}

void gi_job_idle_wake_all(struct gi_job_idle *idle)
{
    for (struct gi_job_sleeper *sleeper; (sleeper = take_sleeper(idle)) != NULL;) {
        (void)gi_atomic_u32_add(&idle->searching, 1, GI_SEQ_CST);
        wake(sleeper);
    }
}
