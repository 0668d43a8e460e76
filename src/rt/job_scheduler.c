/* SPDX-License-Identifier: MIT */
/*
 * Schedulers: creation, threads, attached loops, the end, figures.
 *
 *  1. A worker's place in `workers` is never taken away while the scheduler has memory: thieves and
 *     the watch may look at any of them at any time.  A place that a loop has left is used again.
 *  2. A scheduler without threads has a worker all the same, which does not run until destroy: it
 *     then ends the queues that are left.
 *  3. The end: no new queues; every queue is closed and so placed once more; the workers go on
 *     until the last one has ended, and leave.  The memory stays until the last queue's has gone,
 *     because a thread that pushed may still be on its way out.
 */
#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "rt/job.h"
#include "rt/loop.h"

#define SLICE           (8 * GORI_MILLISECONDS)
#define LOOP_SLICE      GORI_MILLISECONDS
#define STALL_THRESHOLD GORI_SECONDS

static gori_time time_or(gori_time value, gori_time fallback)
{
    return value != 0 ? value : fallback;
}

static int read_config(const struct gori_job_scheduler_config *given,
                       struct gori_job_scheduler_config *ret_config)
{
    struct gori_job_scheduler_config config = {0};
    if (given != NULL) {
        config = *given;
    }
    if (config.no_threads ? config.threads != 0 : config.threads > GI_JOB_WORKERS_MAX) {
        return GORI_EINVAL;
    }
    if (config.threads == 0 && !config.no_threads) {
        config.threads = gi_min_u32(gi_os_cpu_count(), GI_JOB_WORKERS_MAX);
    }
    if (config.allocator == NULL) {
        config.allocator = gori_allocator_default();
    }
    config.slice_jobs = config.slice_jobs != 0 ? config.slice_jobs : UINT32_MAX;
    config.slice = time_or(config.slice, SLICE);
    config.loop_slice = time_or(config.loop_slice, LOOP_SLICE);
    config.stall_threshold = time_or(config.stall_threshold, STALL_THRESHOLD);
    *ret_config = config;
    return 0;
}

/* Workers ---------------------------------------------------------------------------------- */

/* A new worker at the end of the table; under the lock, or before anybody else knows it. */
static int add_worker(struct gori_job_scheduler *scheduler, struct gi_job_worker **ret_worker)
{
    uint32_t index = gi_atomic_u32_load(&scheduler->worker_count, GI_RELAXED);
    if (index == GI_JOB_WORKERS_MAX) {
        return GORI_ELIMIT;
    }
    struct gi_job_worker *worker = gi_alloc_zero(scheduler->allocator, sizeof(*worker));
    if (worker == NULL) {
        return GORI_ENOMEM;
    }
    int result = gi_job_sleeper_init(&worker->sleeper, NULL);
    if (result < 0) {
        gi_free(scheduler->allocator, worker, sizeof(*worker));
        return result;
    }
    worker->scheduler = scheduler;
    worker->index = index;
    worker->stride = 1;
    gi_run_queue_init(&worker->queue);
    gi_atomic_pointer_store(&scheduler->workers[index], worker, GI_RELEASE);
    gi_atomic_u32_store(&scheduler->worker_count, index + 1, GI_RELEASE);
    *ret_worker = worker;
    return 0;
}

static void free_workers(struct gori_job_scheduler *scheduler)
{
    uint32_t count = gi_atomic_u32_load(&scheduler->worker_count, GI_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        struct gi_job_worker *worker = gi_job_worker_at(scheduler, i);
        gi_job_sleeper_fini(&worker->sleeper);
        gi_free(scheduler->allocator, worker, sizeof(*worker));
    }
}

static void set_in_use(struct gi_job_worker *worker, bool on)
{
    worker->is_in_use = on;
    if (on) {
        (void)gi_atomic_u32_add(&worker->scheduler->workers_in_use, 1, GI_SEQ_CST);
    } else {
        (void)gi_atomic_u32_sub(&worker->scheduler->workers_in_use, 1, GI_SEQ_CST);
    }
}

static int add_workers(struct gori_job_scheduler *scheduler)
{
    uint32_t count = scheduler->config.no_threads ? 1 : scheduler->config.threads;
    int result = 0;
    for (uint32_t i = 0; i < count && result >= 0; i++) {
        struct gi_job_worker *worker;
        result = add_worker(scheduler, &worker);
        if (result >= 0 && !scheduler->config.no_threads) {
            set_in_use(worker, true);
        }
    }
    return result;
}

/* Creation --------------------------------------------------------------------------------- */

static int init_parts(struct gori_job_scheduler *scheduler)
{
    int result = gi_os_monitor_init(&scheduler->lock);
    if (result < 0) {
        return result;
    }
    result = gi_job_idle_init(&scheduler->idle);
    if (result < 0) {
        goto err_lock;
    }
    result = gi_job_clock_init(scheduler);
    if (result < 0) {
        goto err_idle;
    }
    result = add_workers(scheduler);
    if (result < 0) {
        goto err_workers;
    }
    return 0;

err_workers:
    free_workers(scheduler);
    gi_job_clock_fini(scheduler);
err_idle:
    gi_job_idle_fini(&scheduler->idle);
err_lock:
    gi_os_monitor_fini(&scheduler->lock);
    return result;
}

void gi_job_scheduler_unref(struct gori_job_scheduler *scheduler)
{
    if (gi_atomic_u32_sub(&scheduler->references, 1, GI_ACQ_REL) > 1) {
        return;
    }
    GI_ASSERT(gi_list_is_empty(&scheduler->queues));
    GI_ASSERT(gi_list_is_empty(&scheduler->shared));
    free_workers(scheduler);
    gi_job_clock_fini(scheduler);
    gi_job_idle_fini(&scheduler->idle);
    gi_os_monitor_fini(&scheduler->lock);
    gi_free(scheduler->allocator, scheduler, sizeof(*scheduler));
}

/* The first `count` threads leave, and then the clock's. */
static void join_threads(struct gori_job_scheduler *scheduler, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        gi_os_thread_join(&gi_job_worker_at(scheduler, i)->thread);
    }
    gi_job_clock_stop(scheduler);
}

static int start_threads(struct gori_job_scheduler *scheduler)
{
    int result = gi_job_clock_start(scheduler);
    if (result < 0) {
        return result;
    }
    for (uint32_t i = 0; i < scheduler->config.threads; i++) {
        struct gi_job_worker *worker = gi_job_worker_at(scheduler, i);
        result = gi_os_thread_start(&worker->thread, gi_job_worker_main, worker);
        if (result < 0) {
            gi_atomic_bool_store(&scheduler->is_ending, true, GI_RELEASE);
            gi_job_idle_wake_all(&scheduler->idle);
            join_threads(scheduler, i);
            return result;
        }
    }
    return 0;
}

int gori_job_scheduler_create(const struct gori_job_scheduler_config *given,
                              struct gori_job_scheduler **ret_scheduler)
{
    struct gori_job_scheduler_config config;
    int result = read_config(given, &config);
    if (result < 0) {
        return result;
    }
    struct gori_job_scheduler *scheduler = gi_alloc_zero(config.allocator, sizeof(*scheduler));
    if (scheduler == NULL) {
        return GORI_ENOMEM;
    }
    scheduler->allocator = config.allocator;
    scheduler->config = config;
    gi_atomic_u32_init(&scheduler->references, 1);
    gi_list_init(&scheduler->shared);
    gi_list_init(&scheduler->queues);
    result = init_parts(scheduler);
    if (result < 0) {
        gi_free(config.allocator, scheduler, sizeof(*scheduler));
        return result;
    }
    result = start_threads(scheduler);
    if (result < 0) {
        gi_job_scheduler_unref(scheduler);
        return result;
    }
    *ret_scheduler = scheduler;
    return 0;
}

/* The end ---------------------------------------------------------------------------------- */

static void close_queues(struct gori_job_scheduler *scheduler)
{
    gi_os_monitor_lock(&scheduler->lock);
    gi_atomic_bool_store(&scheduler->is_ending, true, GI_RELEASE);
    GI_LIST_FOREACH (link, &scheduler->queues) {
        struct gori_job_queue *queue = gori_container_of(link, struct gori_job_queue, known);
        if (gi_job_state_close(&queue->state)) {
            gi_list_push_back(&scheduler->shared, &queue->place);
            (void)gi_atomic_u32_add(&scheduler->shared_count, 1, GI_SEQ_CST);
        }
    }
    gi_os_monitor_unlock(&scheduler->lock);
    gi_job_idle_wake_all(&scheduler->idle);
}

void gori_job_scheduler_destroy(struct gori_job_scheduler *scheduler)
{
    if (scheduler == NULL) {
        return;
    }
    GI_ASSERT(gi_atomic_u32_load(&scheduler->workers_in_use, GI_ACQUIRE) ==
              scheduler->config.threads); /* all loops are detached */
    close_queues(scheduler);
    if (scheduler->config.no_threads) {
        struct gi_job_worker *worker = gi_job_worker_at(scheduler, 0);
        struct gi_job_worker *outer = gi_job_worker_self();
        set_in_use(worker, true);
        gi_job_worker_main(worker);
        set_in_use(worker, false);
        gi_job_worker_set_self(outer);
    }
    join_threads(scheduler, scheduler->config.threads);
    gi_job_scheduler_unref(scheduler);
}

/* Loops ------------------------------------------------------------------------------------ */

/* A worker that no loop uses; not the first of a scheduler without threads (2). */
static int acquire_worker(struct gori_job_scheduler *scheduler, struct gori_loop *loop,
                          struct gi_job_worker **ret_worker)
{
    uint32_t count = gi_atomic_u32_load(&scheduler->worker_count, GI_RELAXED);
    uint32_t first = scheduler->config.no_threads ? 1 : scheduler->config.threads;
    for (uint32_t i = first; i < count; i++) {
        struct gi_job_worker *worker = gi_job_worker_at(scheduler, i);
        if (!worker->is_in_use) {
            gi_os_monitor_lock(&worker->sleeper.monitor);
            worker->sleeper.loop = loop;
            gi_os_monitor_unlock(&worker->sleeper.monitor);
            *ret_worker = worker;
            return 0;
        }
    }
    int result = add_worker(scheduler, ret_worker);
    if (result >= 0) {
        (*ret_worker)->sleeper.loop = loop;
    }
    return result;
}

int gori_job_scheduler_attach(struct gori_job_scheduler *scheduler, struct gori_loop *loop)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (loop->job_worker != NULL) {
        return GORI_EBUSY;
    }
    struct gi_job_worker *worker;
    gi_os_monitor_lock(&scheduler->lock);
    int result = acquire_worker(scheduler, loop, &worker);
    if (result >= 0) {
        worker->loop = loop;
        set_in_use(worker, true);
    }
    gi_os_monitor_unlock(&scheduler->lock);
    if (result < 0) {
        return result;
    }
    loop->job_worker = worker;
    if (gi_job_worker_self() == NULL) {
        gi_job_worker_set_self(worker);
    }
    gi_job_clock_attach(worker);
    gi_job_clock_watch(scheduler); /* it begins on its feet */
    return 0;
}

void gori_job_scheduler_detach(struct gori_job_scheduler *scheduler, struct gori_loop *loop)
{
    struct gi_job_worker *worker = loop->job_worker;
    if (worker == NULL || worker->scheduler != scheduler) {
        return;
    }
    GI_ASSERT(gi_loop_on_thread(loop));
    if (gi_job_worker_self() == worker) {
        gi_job_worker_set_self(NULL);
    }
    gi_job_clock_detach(worker);
    gi_job_worker_retire(worker);
    loop->job_worker = NULL;
    gi_os_monitor_lock(&scheduler->lock);
    worker->loop = NULL;
    set_in_use(worker, false);
    gi_os_monitor_unlock(&scheduler->lock);
}

/* Figures ---------------------------------------------------------------------------------- */

uint32_t gori_job_scheduler_workers(const struct gori_job_scheduler *scheduler)
{
    return gi_atomic_u32_load(&scheduler->worker_count, GI_ACQUIRE);
}

void gori_job_scheduler_read_stats(const struct gori_job_scheduler *scheduler, uint32_t index,
                                   struct gori_job_worker_stats *ret_stats)
{
    if (index >= gori_job_scheduler_workers(scheduler)) {
        *ret_stats = (struct gori_job_worker_stats){0};
        return;
    }
    const struct gi_job_worker *worker =
        gi_atomic_pointer_load(&scheduler->workers[index], GI_ACQUIRE);
    const struct gi_job_figures *figures = &worker->shared.figures;
    *ret_stats = (struct gori_job_worker_stats){
        .jobs = gi_atomic_u64_load(&figures->jobs, GI_RELAXED),
        .slices = gi_atomic_u64_load(&figures->slices, GI_RELAXED),
        .injected = gi_atomic_u64_load(&figures->injected, GI_RELAXED),
        .stolen = gi_atomic_u64_load(&figures->stolen, GI_RELAXED),
        .parks = gi_atomic_u64_load(&figures->parks, GI_RELAXED),
        .wakes = gi_atomic_u64_load(&figures->wakes, GI_RELAXED),
        .longest_slice = gi_atomic_u64_load(&figures->longest_slice, GI_RELAXED),
    };
}

void *gori_job_scheduler_user(const struct gori_job_scheduler *scheduler)
{
    return scheduler->config.user;
}
