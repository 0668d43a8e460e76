/* SPDX-License-Identifier: MIT */
/*
 * Job queues: creation, pushing, the end.  Who runs them is job_worker.c.
 *
 *  1. A push puts the job into the inbox and then notifies; whoever finds the queue resting places
 *     it (S1).  A pusher that was not the first since the last batch still looks, because the first
 *     one may have been stopped by the system between its two steps.
 *  2. A destroyed queue is placed once more, and the worker that gets it ends it: one path, whether
 *     it was resting, placed, running or being stolen.  A job that destroys its own queue is seen
 *     by its worker when it returns.
 *  3. Ending closes the inbox first: what was accepted before is dropped, what comes after is
 *     refused.  So an accepted job ends in exactly one call.  `on_end` comes after all of them, and
 *     before the scheduler may go.
 * Thread: any.
 */
#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "rt/job.h"

enum {
    JOBS = 65536,
    OVERLOAD_JOBS = 1024,
};

static void read_config(const struct gori_job_queue_config *given,
                        struct gori_job_queue_config *ret_config)
{
    *ret_config = given != NULL ? *given : (struct gori_job_queue_config){0};
    if (ret_config->jobs_max == 0) {
        ret_config->jobs_max = JOBS;
    }
    if (ret_config->overload_jobs == 0) {
        ret_config->overload_jobs = OVERLOAD_JOBS;
    }
}

int gori_job_queue_create(struct gori_job_scheduler *scheduler,
                          const struct gori_job_queue_config *config,
                          struct gori_job_queue **ret_queue)
{
    struct gori_job_queue *queue = gi_alloc_zero(scheduler->allocator, sizeof(*queue));
    if (queue == NULL) {
        return GORI_ENOMEM;
    }
    read_config(config, &queue->config);
    gi_job_state_init(&queue->state);
    gi_mailbox_init(&queue->inbox, queue->config.jobs_max);
    queue->scheduler = scheduler;
    queue->owner_only.report_at = queue->config.overload_jobs;
    gi_os_monitor_lock(&scheduler->lock);
    bool is_ending = gi_atomic_bool_load(&scheduler->is_ending, GI_RELAXED);
    if (!is_ending) {
        gi_list_push_back(&scheduler->queues, &queue->known);
        (void)gi_atomic_u32_add(&scheduler->queues_alive, 1, GI_RELAXED);
        (void)gi_atomic_u32_add(&scheduler->references, 1, GI_RELAXED);
    }
    gi_os_monitor_unlock(&scheduler->lock);
    if (is_ending) {
        gi_free(scheduler->allocator, queue, sizeof(*queue));
        return GORI_ECLOSED;
    }
    *ret_queue = queue;
    return 0;
}

void gi_job_share(struct gori_job_queue *queue)
{
    struct gori_job_scheduler *scheduler = queue->scheduler;
    gi_os_monitor_lock(&scheduler->lock);
    gi_list_push_back(&scheduler->shared, &queue->place);
    (void)gi_atomic_u32_add(&scheduler->shared_count, 1, GI_SEQ_CST); /* I1 */
    gi_os_monitor_unlock(&scheduler->lock);
    (void)gi_job_idle_wake_one(&scheduler->idle);
}

void gi_job_place(struct gori_job_queue *queue)
{
    struct gori_job_scheduler *scheduler = queue->scheduler;
    struct gi_job_worker *self = gi_job_worker_self();
    if (self == NULL || self->scheduler != scheduler || !gi_run_queue_push(&self->queue, queue)) {
        gi_job_share(queue);
        return;
    }
    /* After the push the queue may be anywhere, and gone. */
    if (self->is_parked) {
        gi_job_worker_get_up(self);
    }
    if (scheduler->config.no_stealing) {
        return;
    }
    /* One that waits alone is left to its worker, where it is warm, as long as somebody sees to it
       that it does not wait for too long. */
    if (gi_run_queue_count(&self->queue) > 1 ||
        !gi_atomic_bool_load(&scheduler->sentinel, GI_SEQ_CST)) {
        (void)gi_job_idle_wake_one(&scheduler->idle);
    }
}

/* After a push into the inbox. */
static void notify(struct gori_job_queue *queue, bool was_empty)
{
    if ((was_empty || !gi_job_state_is_placed(&queue->state)) &&
        gi_job_state_notify(&queue->state)) {
        gi_job_place(queue);
    }
}

int gori_job_queue_push(struct gori_job_queue *queue, struct gori_job *job)
{
    if (gi_job_state_is_closing(&queue->state)) {
        return GORI_ECLOSED;
    }
    bool was_empty = false;
    int result = gi_mailbox_push(&queue->inbox, &job->node, &was_empty);
    if (result < 0) {
        return result;
    }
    notify(queue, was_empty);
    return 0;
}

int gi_job_queue_push_owed(struct gori_job_queue *queue, struct gori_job *job)
{
    bool was_empty = false;
    int result = gi_mailbox_push_owed(&queue->inbox, &job->node, &was_empty);
    if (result < 0) {
        return result;
    }
    notify(queue, was_empty);
    return 0;
}

static uint32_t drop(struct gori_mailbox_node *node)
{
    uint32_t count = 0;
    while (node != NULL) {
        struct gori_job *job = gori_container_of(node, struct gori_job, node);
        node = node->next;
        count++;
        if (job->on_drop != NULL) {
            job->on_drop(job);
        }
    }
    return count;
}

void gi_job_queue_end(struct gori_job_queue *queue)
{
    struct gori_job_scheduler *scheduler = queue->scheduler;
    gi_mailbox_close(&queue->inbox);
    uint32_t count = drop(queue->owner_only.batch);
    queue->owner_only.batch = NULL;
    count += drop(gi_mailbox_take(&queue->inbox));
    gi_mailbox_done(&queue->inbox, count);
    if (queue->config.on_end != NULL) {
        queue->config.on_end(queue);
    }
    gi_os_monitor_lock(&scheduler->lock);
    gi_list_remove(&queue->known);
    bool is_last = gi_atomic_u32_sub(&scheduler->queues_alive, 1, GI_ACQ_REL) == 1 &&
                   gi_atomic_bool_load(&scheduler->is_ending, GI_RELAXED);
    gi_os_monitor_unlock(&scheduler->lock);
    if (is_last) {
        gi_job_idle_wake_all(&scheduler->idle);
    }
    gori_job_queue_unref(queue);
}

void gori_job_queue_destroy(struct gori_job_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    if (gi_job_state_close(&queue->state)) {
        gi_job_place(queue);
    }
    gori_job_queue_unref(queue);
}

struct gori_job_queue *gori_job_queue_ref(struct gori_job_queue *queue)
{
    gi_job_state_ref(&queue->state);
    return queue;
}

void gori_job_queue_unref(struct gori_job_queue *queue)
{
    if (queue != NULL && gi_job_state_unref(&queue->state)) {
        struct gori_job_scheduler *scheduler = queue->scheduler;
        gi_free(scheduler->allocator, queue, sizeof(*queue));
        gi_job_scheduler_unref(scheduler);
    }
}

uint32_t gori_job_queue_count(const struct gori_job_queue *queue)
{
    return (uint32_t)gi_atomic_size_load(&queue->inbox.shared.count, GI_RELAXED);
}

void *gori_job_queue_user(const struct gori_job_queue *queue)
{
    return queue->config.user;
}

struct gori_job_scheduler *gori_job_queue_scheduler(const struct gori_job_queue *queue)
{
    return queue->scheduler;
}
