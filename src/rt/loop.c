/* SPDX-License-Identifier: MIT */
/*
 * The loop: creation, the turn, posting, the end.  The order of a turn and its invariants stand in
 * rt/loop.h.
 *
 * Posting from any thread and sleeping: a poster pushes to the mailbox, and then interrupts the
 * sleep when it was the first to push, or when it saw before that the loop sleeps: whoever was the
 * first may not have come to it yet.  The loop begins to sleep before it looks at the mailbox for
 * the last time.  Why no wake is lost stands in rt/sleep.h.
 * Thread: the loop's, but for gori_loop_post, gori_loop_stop and gi_loop_wake.
 */
#include "rt/loop.h"

#include <gori/error.h>
#include <gori/pool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "os/os.h"
#include "rt/job.h"
#include "rt/signal.h"

enum {
    BUFFER_BYTES = 4096,
    BUFFER_BYTES_MIN = 512,
    BUFFER_BYTES_MAX = 1 << 20,
    BUFFERS = 4096,
    BUFFERS_MAX = 32768,
    SESSIONS = 1000000,
    OPS = 4000000,
    TASKS = 65536,
    MESSAGES = 4096,
    COMPLETIONS = 1024,
};

static void set_default(uint32_t *value, uint32_t fallback)
{
    if (*value == 0) {
        *value = fallback;
    }
}

static int read_config(const struct gori_loop_config *given, struct gori_loop_config *ret_config)
{
    struct gori_loop_config config = {0};
    if (given != NULL) {
        config = *given;
    }
    if (config.allocator == NULL) {
        config.allocator = gori_allocator_default();
    }
    set_default(&config.buffer_bytes, BUFFER_BYTES);
    set_default(&config.buffers_max, BUFFERS);
    set_default(&config.sessions_max, SESSIONS);
    set_default(&config.ops_max, OPS);
    set_default(&config.tasks_max, TASKS);
    set_default(&config.messages_max, MESSAGES);
    set_default(&config.completions_max, COMPLETIONS);
    if (config.buffer_bytes < BUFFER_BYTES_MIN || config.buffer_bytes > BUFFER_BYTES_MAX ||
        config.buffers_max > BUFFERS_MAX || config.sessions_max > GI_ID_COUNT_MAX) {
        return GORI_EINVAL;
    }
    *ret_config = config;
    return 0;
}

static void init_lists(struct gori_loop *loop)
{
    gi_list_init(&loop->all_listeners);
    gi_list_init(&loop->all_handles);
    gi_list_init(&loop->works);
    gi_list_init(&loop->file_ops);
    gi_list_init(&loop->file_waiting);
    gi_list_init(&loop->starved_listeners);
}

/* The parts of a loop that allocate, in order; undone in reverse. */
static int init_parts(struct gori_loop *loop)
{
    const struct gori_loop_config *config = &loop->config;
    int result =
        gi_id_table_init(&loop->sessions, loop->allocator, config->id_tag, config->sessions_max);
    if (result < 0) {
        return result;
    }
    result = gi_session_store_init(&loop->session_store, loop->allocator);
    if (result < 0) {
        goto err_sessions;
    }
    result =
        gi_buffers_init(&loop->buffers, loop->allocator, config->buffer_bytes, config->buffers_max);
    if (result < 0) {
        goto err_store;
    }
    const struct gi_engine_config engine_config = {
        .allocator = loop->allocator,
        .buffers = &loop->buffers,
        .ops_max = config->ops_max,
        .simulation = config->simulation,
    };
    struct gi_engine_choice choice = {0};
    result = gi_engine_choose(config->engine, &engine_config, &choice);
    if (result < 0) {
        goto err_buffers;
    }
    loop->engine = choice.engine;
    loop->fallback_reason = choice.fallback_reason;
    return 0;

err_buffers:
    gi_buffers_fini(&loop->buffers);
err_store:
    gi_session_store_fini(&loop->session_store);
err_sessions:
    gi_id_table_fini(&loop->sessions);
    return result;
}

int gori_loop_create(const struct gori_loop_config *given, struct gori_loop **ret_loop)
{
    struct gori_loop_config config;
    int result = read_config(given, &config);
    if (result < 0) {
        return result;
    }
    /* The allocator aligns for any object of C; the mailbox wants lines of the cache. */
    size_t bytes = sizeof(struct gori_loop) + GI_CACHE_LINE;
    char *memory = gi_alloc_zero(config.allocator, bytes);
    if (memory == NULL) {
        return GORI_ENOMEM;
    }
    size_t misaligned = (uintptr_t)memory % GI_CACHE_LINE;
    struct gori_loop *loop =
        (struct gori_loop *)(void *)(memory + (misaligned == 0 ? 0 : GI_CACHE_LINE - misaligned));
    loop->memory = memory;
    loop->allocator = config.allocator;
    loop->config = config;
    init_lists(loop);
    gi_mailbox_init(&loop->shared.mailbox, config.tasks_max);
    gi_callers_init(&loop->shared.callers);
    gi_message_store_init(&loop->shared.messages, config.allocator, config.messages_max);
    result = init_parts(loop);
    if (result < 0) {
        gi_free(config.allocator, memory, bytes);
        return result;
    }
    loop->now = loop->engine->impl->now(loop->engine);
    gi_wheel_init(&loop->wheel, loop->now);
    *ret_loop = loop;
    return 0;
}

bool gi_loop_on_thread(struct gori_loop *loop)
{
    size_t self = gi_os_thread_self();
    size_t owner = gi_atomic_size_load(&loop->shared.thread, GI_RELAXED);
    if (GI_LIKELY(owner == self)) {
        return true;
    }
    if (owner != 0) {
        return false;
    }
    gi_atomic_size_store(&loop->shared.thread, self, GI_RELAXED);
    return true;
}

void gi_loop_wake(struct gori_loop *loop)
{
    if (gi_sleep_interrupt(&loop->shared.sleep)) {
        loop->engine->impl->wake(loop->engine);
    }
}

typedef int mailbox_push_fn(struct gi_mailbox *mailbox, struct gori_mailbox_node *node,
                            bool *ret_was_empty);

static int post(struct gori_loop *loop, struct gori_task *task, mailbox_push_fn *push)
{
    /* Once the task is pushed the loop may be gone (L4), unless it has this call to wait for. */
    bool was_asleep = gi_sleep_is_asleep(&loop->shared.sleep);
    if (was_asleep) {
        gi_callers_enter(&loop->shared.callers);
    }
    bool was_empty = false;
    int result = push(&loop->shared.mailbox, &task->node, &was_empty);
    if (was_empty || was_asleep) {
        gi_loop_wake(loop);
        gi_callers_leave(&loop->shared.callers, (uint64_t)was_empty + (uint64_t)was_asleep);
    }
    return result;
}

int gori_loop_post(struct gori_loop *loop, struct gori_task *task)
{
    return post(loop, task, gi_mailbox_push);
}

int gi_loop_post_owed(struct gori_loop *loop, struct gori_task *task)
{
    return post(loop, task, gi_mailbox_push_owed);
}

void gori_loop_stop(struct gori_loop *loop)
{
    gi_callers_enter(&loop->shared.callers);
    gi_atomic_bool_store(&loop->shared.stop, true, GI_RELEASE);
    gi_loop_wake(loop);
    gi_callers_leave(&loop->shared.callers, 1);
}

static uint32_t deliver_completions(struct gori_loop *loop)
{
    struct gi_engine *engine = loop->engine;
    bool (*next)(struct gi_engine *, struct gi_completion *) = engine->impl->next;
    struct gi_completion completion;
    uint32_t count = 0;
    while (count < loop->config.completions_max && next(engine, &completion)) {
        gi_op_dispatch(loop, &completion);
        count++;
    }
    return count;
}

static struct gori_mailbox_node *take_tasks(struct gori_loop *loop)
{
    struct gori_mailbox_node *tasks = gi_mailbox_take(&loop->shared.mailbox);
    loop->takes += tasks != NULL;
    return tasks;
}

static uint32_t run_tasks(struct gori_loop *loop)
{
    if (loop->tasks == NULL) {
        loop->tasks = take_tasks(loop);
    }
    uint32_t count = 0;
    while (loop->tasks != NULL && count < loop->config.completions_max) {
        struct gori_task *task = gori_container_of(loop->tasks, struct gori_task, node);
        loop->tasks = loop->tasks->next;
        task->run(task);
        count++;
    }
    if (count > 0) {
        gi_mailbox_done(&loop->shared.mailbox, count);
        loop->stats.tasks += count;
    }
    return count;
}

static bool has_news(const struct gori_loop *loop)
{
    return !gi_mailbox_is_empty(&loop->shared.mailbox) ||
           (loop->job_worker != NULL && gi_job_worker_has_news(loop->job_worker)) ||
           gi_atomic_bool_load(&loop->shared.stop, GI_ACQUIRE);
}

/* Whether the loop may wait; its sleep has then begun. */
static bool prepare_sleep(struct gori_loop *loop)
{
    /* Looks before it says so: a busy loop that seemed asleep for a moment would be woken in vain.
     */
    if (has_news(loop)) {
        return false;
    }
    gi_sleep_begin(&loop->shared.sleep);
    if (!has_news(loop)) {
        return true;
    }
    gi_sleep_end(&loop->shared.sleep);
    return false;
}

static int ask_engine(struct gori_loop *loop, gori_time wait)
{
    gori_time deadline = 0;
    bool sleeps = wait != 0 && !loop->work_left && loop->tasks == NULL && prepare_sleep(loop);
    if (sleeps) {
        deadline = gi_wheel_next(&loop->wheel);
        if (wait != GORI_NEVER) {
            gori_time now = loop->engine->impl->now(loop->engine);
            deadline = gi_min_u64(deadline, gi_add_saturated_u64(now, wait));
        }
    }
    int result = loop->engine->impl->turn(loop->engine, deadline);
    if (sleeps) {
        gi_sleep_end(&loop->shared.sleep);
    }
    loop->now = loop->engine->impl->now(loop->engine);
    loop->stats.turns++;
    return result;
}

int gori_loop_turn(struct gori_loop *loop, gori_time wait)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    GI_ASSERT(!loop->running);
    loop->running = true;
    int result = ask_engine(loop, wait);
    uint32_t count = deliver_completions(loop);
    loop->work_left = count == loop->config.completions_max;
    count += gi_timer_fire_due(loop);
    count += run_tasks(loop);
    if (loop->job_worker != NULL) {
        count += gi_job_worker_turn(loop->job_worker);
    }
    gi_session_redeliver_all(loop);
    gi_session_flush_all(loop);
    gi_session_reap_all(loop);
    loop->running = false;
    return result < 0 ? result : (int)count;
}

int gori_loop_run(struct gori_loop *loop)
{
    int result = 0;
    while (result >= 0 && !gi_atomic_bool_load(&loop->shared.stop, GI_ACQUIRE)) {
        result = gori_loop_turn(loop, GORI_NEVER);
    }
    gi_atomic_bool_store(&loop->shared.stop, false, GI_RELAXED);
    return result < 0 ? result : 0;
}

static void close_handles(struct gori_loop *loop)
{
    /* Closing only changes a handle's state: the list stays as it is until `closed` comes. */
    GI_LIST_FOREACH (link, &loop->all_handles) {
        gori_handle_close(gori_container_of(link, struct gori_handle, open));
    }
}

/* Tasks of others are forgotten; our own messages hold something. */
static void drop_tasks(struct gori_loop *loop, struct gori_mailbox_node *node)
{
    while (node != NULL) {
        struct gori_task *task = gori_container_of(node, struct gori_task, node);
        node = node->next;
        struct gi_message *message = gi_message_of(&loop->shared.messages, task);
        if (message != NULL) {
            message->drop(message);
        }
    }
}

/* They are in the middle of a wake at most. */
static void wait_for_callers(const struct gori_loop *loop)
{
    while (!gi_callers_have_left(&loop->shared.callers, loop->takes)) {
        gi_os_thread_yield();
    }
}

/* Whether something is left that ends by turns only. */
static bool has_open(const struct gori_loop *loop)
{
    return !gi_list_is_empty(&loop->all_handles) || !gi_list_is_empty(&loop->file_ops) ||
           gi_id_table_count(&loop->sessions) != 0;
}

void gori_loop_destroy(struct gori_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    GI_ASSERT(gi_loop_on_thread(loop));
    GI_ASSERT(!loop->running);
    if (loop->job_worker != NULL) {
        gori_job_scheduler_detach(loop->job_worker->scheduler, loop);
    }
    gi_mailbox_close(&loop->shared.mailbox);
    drop_tasks(loop, loop->tasks);
    drop_tasks(loop, take_tasks(loop));
    loop->tasks = NULL;
    gi_file_op_end_all(loop);
    gi_work_end_all(loop);
    gi_watch_end_all(loop);
    gi_file_op_end_all(loop); /* closes that waited for them */
    gi_listener_end_all(loop);
    gi_session_close_all(loop);
    gi_signals_stop_all(loop);
    close_handles(loop);
    while (has_open(loop)) {
        /* An engine that fails here cannot promise that the kernel is done with our memory. */
        GI_ASSERT(gori_loop_turn(loop, GORI_NEVER) >= 0);
        close_handles(loop);
        gi_file_op_end_all(loop);
    }
    gori_pool_destroy(loop->own_pool);
    gi_session_reap_all(loop);
    gi_watch_fini(loop);
    wait_for_callers(loop);
    gi_signals_free(loop);
    loop->engine->impl->destroy(loop->engine);
    gi_buffers_fini(&loop->buffers);
    gi_session_store_fini(&loop->session_store);
    gi_id_table_fini(&loop->sessions);
    gi_message_store_fini(&loop->shared.messages);
    gi_free(loop->allocator, loop->memory, sizeof(struct gori_loop) + GI_CACHE_LINE);
}

gori_time gori_loop_now(const struct gori_loop *loop)
{
    return loop->now;
}

const char *gori_loop_engine(const struct gori_loop *loop)
{
    return loop->engine->impl->name;
}

const char *gori_loop_engine_reason(const struct gori_loop *loop)
{
    return loop->fallback_reason;
}

void gori_loop_read_stats(const struct gori_loop *loop, struct gori_loop_stats *ret_stats)
{
    struct gi_engine_stats engine = {0};
    loop->engine->impl->stats(loop->engine, &engine);
    struct gori_loop_stats stats = loop->stats;
    stats.stale_completions = engine.stale_completions;
    stats.buffer_starvations = loop->buffers.starved;
    stats.buffers_now = loop->buffers.made;
    stats.buffers_held_now = loop->buffers.held_count;
    *ret_stats = stats;
}
