/* SPDX-License-Identifier: MIT */
/*
 * The blocking pool.  Nothing here is on a hot path: whoever blocks has microseconds to spare, so
 * one monitor guards it all.
 *
 *                submit            a thread takes it          run returns
 *         IDLE ---------> QUEUED -------------------> RUNNING -----------> DONE --> on_done, IDLE
 *                            |                           |                  ^
 *                            +------- cancel, end -------|------------------+
 *                                                        +--> loop ended: on_orphan, IDLE
 *
 *  1. state, is_canceled, loop and `queued` change under the monitor.  `of_loop` is the loop's own.
 *  2. A work that is DONE has a task on its way to the loop, for which there is always room: there
 *     are no more answers than accepted works.
 *  3. The answer is posted under the monitor, and a loop that ends takes its works from the pool
 *     under the monitor: no thread of the pool touches a loop that is gone.
 *  4. A pool's memory stays until the last accepted work has been answered.
 *
 * Thread: as <gori/pool.h> says.
 */
#include <gori/pool.h>

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "os/os.h"
#include "rt/loop.h"

enum {
    THREADS = 4,
    THREADS_MAX = 1024,
    WORKS = 1024,
};

enum work_state { WORK_IDLE, WORK_QUEUED, WORK_RUNNING, WORK_DONE };

struct gori_pool {
    const struct gori_allocator *allocator;
    uint32_t threads_max;
    uint32_t works_max;
    struct gi_os_monitor monitor;
    struct {
        struct gori_link queue;
        uint32_t waiting; /* works in `queue` */
        uint32_t running;
        uint32_t threads; /* started */
        uint32_t resting; /* threads that wait for work */
        uint32_t references;
        bool is_ending;
    } shared;
    struct gi_os_thread threads[];
};

static size_t pool_bytes(uint32_t threads_max)
{
    return sizeof(struct gori_pool) + threads_max * sizeof(struct gi_os_thread);
}

int gori_pool_create(const struct gori_pool_config *given, struct gori_pool **ret_pool)
{
    struct gori_pool_config config = {0};
    if (given != NULL) {
        config = *given;
    }
    config.threads_max = config.threads_max == 0 ? THREADS : config.threads_max;
    config.works_max = config.works_max == 0 ? WORKS : config.works_max;
    if (config.threads_max > THREADS_MAX) {
        return GORI_EINVAL;
    }
    struct gori_pool *pool = gi_alloc_zero(config.allocator, pool_bytes(config.threads_max));
    if (pool == NULL) {
        return GORI_ENOMEM;
    }
    pool->allocator = config.allocator;
    pool->threads_max = config.threads_max;
    pool->works_max = config.works_max;
    gi_list_init(&pool->shared.queue);
    pool->shared.references = 1;
    int result = gi_os_monitor_init(&pool->monitor);
    if (result < 0) {
        gi_free(config.allocator, pool, pool_bytes(config.threads_max));
        return result;
    }
    *ret_pool = pool;
    return 0;
}

/* Gives up the monitor and a reference. */
static void unlock_and_unref(struct gori_pool *pool)
{
    bool is_last = --pool->shared.references == 0;
    gi_os_monitor_unlock(&pool->monitor);
    if (is_last) {
        gi_os_monitor_fini(&pool->monitor);
        gi_free(pool->allocator, pool, pool_bytes(pool->threads_max));
    }
}

/* Answering -------------------------------------------------------------------------------- */

/* Ends a work on its loop. */
static void answer(struct gori_work *work)
{
    struct gori_pool *pool = work->pool;
    gi_list_remove(&work->of_loop);
    gi_os_monitor_lock(&pool->monitor);
    GI_ASSERT(work->state == WORK_DONE);
    int result = work->is_canceled ? GORI_ECANCELED : 0;
    work->state = WORK_IDLE;
    unlock_and_unref(pool);
    work->on_done(work, result);
}

static void answer_task(struct gori_task *task)
{
    answer(gori_container_of(task, struct gori_work, task));
}

/* Under the monitor.  A loop that has closed its mailbox finds the work in its own list. */
static void post_answer(struct gori_work *work)
{
    work->state = WORK_DONE;
    work->task = (struct gori_task){.run = answer_task};
    (void)gi_loop_post_owed(work->loop, &work->task);
}

/* Under the monitor: it will not run. */
static void withdraw(struct gori_pool *pool, struct gori_work *work)
{
    gi_list_remove(&work->queued);
    pool->shared.waiting--;
    work->is_canceled = true;
}

/* Threads ---------------------------------------------------------------------------------- */

static void run(struct gori_pool *pool, struct gori_work *work)
{
    work->state = WORK_RUNNING;
    pool->shared.running++;
    gi_os_monitor_unlock(&pool->monitor);
    work->run(work);
    gi_os_monitor_lock(&pool->monitor);
    pool->shared.running--;
    if (work->loop != NULL) {
        post_answer(work);
        gi_os_monitor_notify(&pool->monitor); /* a loop that ends may wait for it */
        return;
    }
    work->state = WORK_IDLE;
    pool->shared.references--; /* not the last one: the pool's owner waits for this thread */
    gi_os_monitor_unlock(&pool->monitor);
    work->on_orphan(work);
    gi_os_monitor_lock(&pool->monitor);
}

static void thread_main(void *argument)
{
    struct gori_pool *pool = argument;
    gi_os_thread_set_name("gori-pool");
    gi_os_monitor_lock(&pool->monitor);
    for (;;) {
        struct gori_link *link = gi_list_pop_front(&pool->shared.queue);
        if (link != NULL) {
            pool->shared.waiting--;
            run(pool, gori_container_of(link, struct gori_work, queued));
        } else if (pool->shared.is_ending) {
            break;
        } else {
            pool->shared.resting++;
            gi_os_monitor_wait(&pool->monitor);
            pool->shared.resting--;
        }
    }
    gi_os_monitor_unlock(&pool->monitor);
}

/* Under the monitor: somebody will take what was queued just now. */
static int find_thread(struct gori_pool *pool)
{
    if (pool->shared.resting > 0) {
        gi_os_monitor_notify(&pool->monitor);
    }
    if (pool->shared.waiting <= pool->shared.resting || pool->shared.threads == pool->threads_max) {
        return 0;
    }
    int result = gi_os_thread_start(&pool->threads[pool->shared.threads], thread_main, pool);
    if (result >= 0) {
        pool->shared.threads++;
    }
    /* Fewer threads than wished for are slower, and no more than that. */
    return pool->shared.threads > 0 ? 0 : result;
}

/* Works ------------------------------------------------------------------------------------ */

static int enqueue(struct gori_pool *pool, struct gori_work *work)
{
    if (pool->shared.is_ending) {
        return GORI_ECLOSED;
    }
    if (pool->shared.waiting >= pool->works_max) {
        return GORI_ELIMIT;
    }
    gi_list_push_back(&pool->shared.queue, &work->queued);
    pool->shared.waiting++;
    int result = find_thread(pool);
    if (result < 0) {
        withdraw(pool, work);
        return result;
    }
    pool->shared.references++;
    work->state = WORK_QUEUED;
    return 0;
}

int gori_pool_submit(struct gori_pool *pool, struct gori_loop *loop, struct gori_work *work)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (work->run == NULL || work->on_done == NULL) {
        return GORI_EINVAL;
    }
    if (gi_link_is_linked(&work->of_loop)) {
        return GORI_EBUSY;
    }
    if (gi_mailbox_is_closed(&loop->shared.mailbox)) {
        return GORI_ECLOSED;
    }
    gi_os_monitor_lock(&pool->monitor);
    work->pool = pool;
    work->loop = loop;
    work->is_canceled = false;
    int result = enqueue(pool, work);
    gi_os_monitor_unlock(&pool->monitor);
    if (result >= 0) {
        gi_list_push_back(&loop->works, &work->of_loop);
    }
    return result;
}

void gori_work_cancel(struct gori_work *work)
{
    if (!gi_link_is_linked(&work->of_loop)) {
        return;
    }
    struct gori_pool *pool = work->pool;
    gi_os_monitor_lock(&pool->monitor);
    if (work->state == WORK_QUEUED) {
        withdraw(pool, work);
        post_answer(work);
    } else if (work->state == WORK_RUNNING) {
        work->is_canceled = true;
    }
    gi_os_monitor_unlock(&pool->monitor);
}

bool gori_work_is_canceled(const struct gori_work *work)
{
    gi_os_monitor_lock(&work->pool->monitor);
    bool is_canceled = work->is_canceled;
    gi_os_monitor_unlock(&work->pool->monitor);
    return is_canceled;
}

/* Ends ------------------------------------------------------------------------------------- */

/* The loop of a work ends.  An orphan may be gone when this returns. */
static void let_go(struct gori_work *work)
{
    struct gori_pool *pool = work->pool;
    bool is_orphan = false;
    gi_os_monitor_lock(&pool->monitor);
    if (work->state == WORK_QUEUED) {
        withdraw(pool, work);
        work->state = WORK_DONE;
    } else if (work->state == WORK_RUNNING) {
        work->is_canceled = true;
        is_orphan = work->on_orphan != NULL;
    }
    if (is_orphan) {
        gi_list_remove(&work->of_loop);
        work->loop = NULL;
    }
    gi_os_monitor_unlock(&pool->monitor);
}

static void wait_for(struct gori_work *work)
{
    struct gori_pool *pool = work->pool;
    gi_os_monitor_lock(&pool->monitor);
    while (work->state == WORK_RUNNING) {
        gi_os_monitor_wait(&pool->monitor);
    }
    gi_os_monitor_unlock(&pool->monitor);
}

void gi_work_end_all(struct gori_loop *loop)
{
    /* All are cancelled before the first is waited for, and the last of them first: none begins
     * because one before it heeds its cancel. */
    for (struct gori_link *link = loop->works.prev; link != &loop->works;) {
        struct gori_work *work = gori_container_of(link, struct gori_work, of_loop);
        link = link->prev;
        let_go(work);
    }
    for (struct gori_link *link; (link = gi_list_first(&loop->works)) != NULL;) {
        struct gori_work *work = gori_container_of(link, struct gori_work, of_loop);
        wait_for(work);
        answer(work);
    }
}

void gori_pool_destroy(struct gori_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    gi_os_monitor_lock(&pool->monitor);
    pool->shared.is_ending = true;
    for (struct gori_link *link; (link = gi_list_first(&pool->shared.queue)) != NULL;) {
        struct gori_work *work = gori_container_of(link, struct gori_work, queued);
        withdraw(pool, work);
        post_answer(work);
    }
    gi_os_monitor_notify(&pool->monitor);
    gi_os_monitor_unlock(&pool->monitor);
    for (uint32_t i = 0; i < pool->shared.threads; i++) {
        gi_os_thread_join(&pool->threads[i]);
    }
    gi_os_monitor_lock(&pool->monitor);
    unlock_and_unref(pool);
}

void gori_pool_read_stats(struct gori_pool *pool, struct gori_pool_stats *ret_stats)
{
    gi_os_monitor_lock(&pool->monitor);
    *ret_stats = (struct gori_pool_stats){
        .threads = pool->shared.threads,
        .running = pool->shared.running,
        .waiting = pool->shared.waiting,
    };
    gi_os_monitor_unlock(&pool->monitor);
}
