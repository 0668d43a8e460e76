/* SPDX-License-Identifier: MIT */
/*
 * Goal: each policy gives connections to whom it says, nothing is lost when it stops, and the
 * counts are right.  And: sending and posting to the workers of a runtime, also to those that have
 * ended. Method: a runtime on one thread, clients with plain sockets on another.
 */
#include <gori/error.h>
#include <gori/runtime.h>
#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/fault_alloc.h"
#include "lib/client.h"
#include "lib/test.h"
#include "rt/loop.h"

enum { WORKERS = 3, CLIENTS = 30 };

struct ready {
    struct gori_task task;
    struct gi_atomic_bool ran;
};

struct stage {
    struct gi_fault_alloc memory;
    struct gori_runtime *runtime;
    struct gori_addr addr;
    pthread_t thread;
    int result;
    struct ready ready[WORKERS];
    struct gi_atomic_bool holds;  /* a close of a session waits while this is set */
    struct gi_atomic_bool held;   /* and one does */
    struct gi_atomic_u64 last_id; /* of the session that opened last */
    struct gi_atomic_u32 closed;
};

static void opened(struct gori_session *session)
{
    struct stage *stage = gori_session_user(session);
    gi_atomic_u64_store(&stage->last_id, gori_session_id(session), GI_RELEASE);
}

static size_t echoed(struct gori_session *session, struct gori_slice bytes)
{
    GT_CHECK(gori_session_send(session, bytes.data, bytes.size) >= 0);
    return bytes.size;
}

static void closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    struct stage *stage = gori_session_user(session);
    (void)error;
    while (reason == GORI_CLOSE_SHUTDOWN && gi_atomic_bool_load(&stage->holds, GI_ACQUIRE)) {
        gi_atomic_bool_store(&stage->held, true, GI_RELEASE);
        (void)sched_yield();
    }
    (void)gi_atomic_u32_add(&stage->closed, 1, GI_RELEASE);
}

static void *run(void *argument)
{
    struct stage *stage = argument;
    stage->result = gori_runtime_run(stage->runtime);
    return NULL;
}

static void note_ready(struct gori_task *task)
{
    struct ready *ready = task->user;
    gi_atomic_bool_store(&ready->ran, true, GI_RELEASE);
}

/* A worker that runs a task has opened its listeners. */
static void wait_for_worker(struct stage *stage, uint32_t worker)
{
    struct ready *ready = &stage->ready[worker];
    ready->task = (struct gori_task){.run = note_ready, .user = ready};
    int result;
    while ((result = gori_runtime_post(stage->runtime, worker, &ready->task)) == GORI_ECLOSED) {
        (void)sched_yield();
    }
    GT_EQUAL(result, 0);
    while (!gi_atomic_bool_load(&ready->ran, GI_ACQUIRE)) {
        (void)sched_yield();
    }
}

static void stage_open(struct stage *stage, enum gori_accept_policy policy, uint32_t sessions_max)
{
    static const struct gori_session_events events = {
        .on_open = opened, .on_recv = echoed, .on_close = closed};
    gi_fault_alloc_init(&stage->memory, NULL);
    const struct gori_runtime_config config = {.loop.allocator = &stage->memory.allocator,
                                               .workers = WORKERS};
    struct gori_listener_config listener = {
        .events = &events, .user = stage, .sessions_max = sessions_max, .accept_policy = policy};
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &listener.addr), 0);
    GT_EQUAL(gori_runtime_create(&config, &stage->runtime), 0);
    GT_EQUAL(gori_runtime_listen(stage->runtime, &listener, &stage->addr), 0);
    GT_EQUAL(pthread_create(&stage->thread, NULL, run, stage), 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        wait_for_worker(stage, i);
    }
}

static void stage_close(struct stage *stage)
{
    gori_runtime_stop(stage->runtime);
    GT_EQUAL(pthread_join(stage->thread, NULL), 0);
    GT_EQUAL(stage->result, 0);
    gori_runtime_destroy(stage->runtime);
    gi_fault_alloc_fini(&stage->memory);
}

static int dial(const struct stage *stage)
{
    return gt_dial(&stage->addr);
}

static void ask(int client)
{
    char byte = 'q';
    GT_EQUAL(gt_client_send(client, &byte, 1), 1);
    byte = 0;
    GT_EQUAL(gt_client_recv(client, &byte, 1), 1);
    GT_EQUAL(byte, 'q');
}

static struct gori_worker_stats stats_of(const struct stage *stage, uint32_t worker)
{
    struct gori_worker_stats stats;
    gori_runtime_read_stats(stage->runtime, worker, &stats);
    return stats;
}

static void dial_all(struct stage *stage, int *clients, int count)
{
    for (int i = 0; i < count; i++) {
        clients[i] = dial(stage);
        ask(clients[i]);
    }
}

static void hang_up(int *clients, int count)
{
    for (int i = 0; i < count; i++) {
        gt_hang_up(clients[i]);
    }
}

GT_TEST(round_robin_gives_to_each_in_turn)
{
    static struct stage stage;
    int clients[CLIENTS];
    stage_open(&stage, GORI_ACCEPT_ROUND_ROBIN, 0);
    dial_all(&stage, clients, CLIENTS);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct gori_worker_stats stats = stats_of(&stage, i);
        GT_EQUAL(stats.accepted, CLIENTS / WORKERS);
        GT_EQUAL(stats.sessions_now, CLIENTS / WORKERS);
        GT_EQUAL(stats.handed_over, i == 0 ? 0 : CLIENTS / WORKERS);
    }
    GT_EQUAL(stats_of(&stage, WORKERS).accepted, 0);
    hang_up(clients, CLIENTS);
    stage_close(&stage);
    GT_EQUAL(gi_atomic_u32_load(&stage.closed, GI_ACQUIRE), CLIENTS);
}

GT_TEST(single_acceptor_serves_none_itself)
{
    static struct stage stage;
    int clients[CLIENTS];
    stage_open(&stage, GORI_ACCEPT_SINGLE, 0);
    dial_all(&stage, clients, CLIENTS);
    GT_EQUAL(stats_of(&stage, 0).accepted, 0);
    for (uint32_t i = 1; i < WORKERS; i++) {
        GT_EQUAL(stats_of(&stage, i).handed_over, CLIENTS / (WORKERS - 1));
    }
    hang_up(clients, CLIENTS);
    stage_close(&stage);
    GT_EQUAL(gi_atomic_u32_load(&stage.closed, GI_ACQUIRE), CLIENTS);
}

/* Whoever hangs up, at the end nobody has more than one connection more than another. */
GT_TEST(least_connections_levels_what_is_left)
{
    static struct stage stage;
    int clients[CLIENTS];
    stage_open(&stage, GORI_ACCEPT_LEAST, 0);
    dial_all(&stage, clients, CLIENTS);
    uint32_t closed_count = 0;
    for (int i = 0; i < CLIENTS; i += WORKERS) {
        gt_hang_up(clients[i]); /* all of one worker's */
        closed_count++;
    }
    while (gi_atomic_u32_load(&stage.closed, GI_ACQUIRE) < closed_count) {
        (void)sched_yield();
    }
    for (int i = 0; i < CLIENTS; i += WORKERS) {
        clients[i] = dial(&stage);
        ask(clients[i]);
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        GT_EQUAL(stats_of(&stage, i).sessions_now, CLIENTS / WORKERS);
        sum += (uint32_t)stats_of(&stage, i).accepted;
    }
    GT_EQUAL(sum, CLIENTS + closed_count);
    hang_up(clients, CLIENTS);
    stage_close(&stage);
}

/* Room for one each: the next waits at the acceptor until somebody hangs up. */
GT_TEST(a_connection_waits_when_nobody_has_room)
{
    static struct stage stage;
    int clients[WORKERS + 1];
    stage_open(&stage, GORI_ACCEPT_LEAST, 1);
    dial_all(&stage, clients, WORKERS);
    clients[WORKERS] = dial(&stage);
    gt_hang_up(clients[1]);
    ask(clients[WORKERS]);
    clients[1] = clients[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        GT_EQUAL(stats_of(&stage, i).sessions_now, 1);
    }
    hang_up(clients, WORKERS);
    stage_close(&stage);
}

/* Connected before the stop: each is accepted, by whoever, and ends in order. */
static void stop_with_a_full_queue(enum gori_accept_policy policy)
{
    static struct stage stage;
    int clients[CLIENTS];
    stage_open(&stage, policy, 0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial(&stage);
    }
    gori_runtime_stop(stage.runtime);
    for (int i = 0; i < CLIENTS; i++) {
        char byte;
        GT_EQUAL(gt_client_recv(clients[i], &byte, 1), 0);
        gt_hang_up(clients[i]);
    }
    GT_EQUAL(pthread_join(stage.thread, NULL), 0);
    uint64_t accepted = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        accepted += stats_of(&stage, i).accepted;
        GT_EQUAL(stats_of(&stage, i).sessions_now, 0); /* also those that outlived its listener */
    }
    GT_EQUAL(accepted, CLIENTS);
    GT_EQUAL(gi_atomic_u32_load(&stage.closed, GI_ACQUIRE), CLIENTS);
    gori_runtime_destroy(stage.runtime);
    gi_fault_alloc_fini(&stage.memory);
}

GT_TEST(a_stop_refuses_nothing_that_was_queued_kernel)
{
    stop_with_a_full_queue(GORI_ACCEPT_KERNEL);
}

GT_TEST(a_stop_refuses_nothing_that_was_queued_least)
{
    stop_with_a_full_queue(GORI_ACCEPT_LEAST);
}

GT_TEST(a_stop_refuses_nothing_that_was_queued_single)
{
    stop_with_a_full_queue(GORI_ACCEPT_SINGLE);
}

/* An engine whose next turn fails, as for want of memory, and no other. */
static const struct gi_engine_impl *g_sound;

static int fail_once(struct gi_engine *engine, gori_time deadline)
{
    (void)deadline;
    engine->impl = g_sound;
    return GORI_ENOMEM;
}

static void break_engine(struct gori_task *task)
{
    static struct gi_engine_impl broken;
    struct stage *stage = task->user;
    struct gi_engine *engine = gori_runtime_loop(stage->runtime, 1)->engine;
    g_sound = engine->impl;
    broken = *g_sound;
    broken.turn = fail_once;
    engine->impl = &broken;
}

/* Held in the close of its one session, so that it is on its end as long as the clients come. */
GT_TEST(what_comes_while_a_worker_ends_in_mid_run_is_served_by_the_others)
{
    static struct stage stage;
    int clients[CLIENTS];
    struct gori_task task = {.run = break_engine, .user = &stage};
    stage_open(&stage, GORI_ACCEPT_ROUND_ROBIN, 0);
    gi_atomic_bool_store(&stage.holds, true, GI_RELEASE);
    dial_all(&stage, clients, WORKERS);
    GT_EQUAL(gori_runtime_post(stage.runtime, 1, &task), 0);
    while (!gi_atomic_bool_load(&stage.held, GI_ACQUIRE)) {
        (void)sched_yield();
    }
    dial_all(&stage, &clients[WORKERS], CLIENTS - WORKERS);
    GT_EQUAL(stats_of(&stage, 1).accepted, 1);
    GT_EQUAL(stats_of(&stage, 0).accepted + stats_of(&stage, 2).accepted, CLIENTS - 1);
    gi_atomic_bool_store(&stage.holds, false, GI_RELEASE);
    hang_up(clients, CLIENTS);
    GT_EQUAL(pthread_join(stage.thread, NULL), 0);
    GT_EQUAL(stage.result, GORI_ENOMEM);
    GT_EQUAL(gi_atomic_u32_load(&stage.closed, GI_ACQUIRE), CLIENTS);
    gori_runtime_destroy(stage.runtime);
    gi_fault_alloc_fini(&stage.memory);
}

GT_TEST(a_policy_that_is_none_is_refused)
{
    struct gori_runtime *runtime;
    const struct gori_runtime_config config = {.workers = 2};
    const struct gori_session_events events = {0};
    struct gori_listener_config listener = {.events = &events,
                                            .accept_policy = (enum gori_accept_policy)99};
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &listener.addr), 0);
    GT_EQUAL(gori_runtime_create(&config, &runtime), 0);
    GT_EQUAL(gori_runtime_listen(runtime, &listener, NULL), GORI_EINVAL);
    gori_runtime_destroy(runtime);
}

/* Every allocation fails once, on whichever thread: the start fails or does without, and nothing is
   left behind (the allocator asserts it). */
static int stop_at_once(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    (void)worker;
    (void)loop;
    gori_runtime_stop(runtime);
    return 0;
}

static int open_and_stop(const struct gori_allocator *allocator)
{
    static const struct gori_session_events events = {.on_close = NULL};
    const struct gori_runtime_config config = {
        .loop.allocator = allocator, .workers = WORKERS, .on_start = stop_at_once};
    struct gori_listener_config listener = {.events = &events, .accept_policy = GORI_ACCEPT_LEAST};
    struct gori_runtime *runtime = NULL;
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &listener.addr), 0);
    int result = gori_runtime_create(&config, &runtime);
    if (result >= 0) {
        result = gori_runtime_listen(runtime, &listener, NULL);
    }
    if (result >= 0) {
        result = gori_runtime_run(runtime);
    }
    gori_runtime_destroy(runtime);
    return result;
}

GT_TEST(accept_policies_survive_every_failed_allocation)
{
    for (uint64_t number = 1;; number++) {
        struct gi_fault_alloc memory;
        gi_fault_alloc_init(&memory, NULL);
        gi_fault_alloc_fail_once(&memory, number);
        int result = open_and_stop(&memory.allocator);
        bool has_failed = gi_fault_alloc_failed_count(&memory) > 0;
        gi_fault_alloc_fini(&memory);
        GT_CHECK(result == 0 || result == GORI_ENOMEM);
        if (!has_failed) {
            GT_EQUAL(result, 0);
            GT_CHECK(number > 10);
            return;
        }
    }
}

/* Sending and posting to workers ------------------------------------------------------------ */

GT_TEST(a_session_of_any_worker_is_reached_by_its_id)
{
    static struct stage stage;
    int clients[WORKERS];
    uint64_t ids[WORKERS];
    struct gori_block *block;
    stage_open(&stage, GORI_ACCEPT_ROUND_ROBIN, 0);
    GT_EQUAL(gori_block_create(NULL, "hello", 5, &block), 0);
    for (int i = 0; i < WORKERS; i++) {
        clients[i] = dial(&stage);
        ask(clients[i]);
        ids[i] = gi_atomic_u64_load(&stage.last_id, GI_ACQUIRE);
        GT_EQUAL(ids[i] >> 24 & 0xff, (uint64_t)i); /* the worker */
    }
    for (int i = 0; i < WORKERS; i++) {
        char text[5];
        GT_EQUAL(gori_runtime_send(stage.runtime, ids[i], block), 0);
        GT_EQUAL(gt_client_recv(clients[i], text, sizeof(text)), 5);
        GT_EQUAL_BYTES(text, 5, "hello", 5);
    }
    GT_EQUAL(gori_runtime_send(stage.runtime, ids[0] + (UINT64_C(1) << 32), block), GORI_ESTALE);
    GT_EQUAL(gori_runtime_send(stage.runtime, ids[0] | UINT64_C(0xff) << 24, block), GORI_ESTALE);
    GT_EQUAL(gori_runtime_post(stage.runtime, WORKERS, &stage.ready[0].task), GORI_EINVAL);
    hang_up(clients, WORKERS);
    gori_runtime_stop(stage.runtime);
    GT_EQUAL(pthread_join(stage.thread, NULL), 0);
    GT_EQUAL(gori_runtime_send(stage.runtime, ids[0], block), GORI_ECLOSED);
    GT_EQUAL(gori_runtime_post(stage.runtime, 0, &stage.ready[0].task), GORI_ECLOSED);
    gori_block_unref(block);
    gori_runtime_destroy(stage.runtime);
    gi_fault_alloc_fini(&stage.memory);
}

/* Senders that do not know that the workers end: no send touches a loop that is gone. */
struct spammer {
    pthread_t thread;
    struct stage *stage;
    uint64_t id;
};

static void *spam(void *argument)
{
    struct spammer *spammer = argument;
    struct gori_block *block;
    int result = 0;
    GT_EQUAL(gori_block_create(NULL, "x", 1, &block), 0);
    while (result != GORI_ECLOSED) {
        result = gori_runtime_send(spammer->stage->runtime, spammer->id, block);
        GT_CHECK(result == 0 || result == GORI_ELIMIT || result == GORI_ESTALE ||
                 result == GORI_ECLOSED);
    }
    gori_block_unref(block);
    return NULL;
}

GT_TEST(workers_end_while_others_send_to_them)
{
    static struct stage stage;
    struct spammer spammers[2];
    stage_open(&stage, GORI_ACCEPT_ROUND_ROBIN, 0);
    int client = dial(&stage);
    ask(client);
    for (int i = 0; i < 2; i++) {
        spammers[i] =
            (struct spammer){.stage = &stage, .id = gi_atomic_u64_load(&stage.last_id, GI_ACQUIRE)};
        GT_EQUAL(pthread_create(&spammers[i].thread, NULL, spam, &spammers[i]), 0);
    }
    for (int i = 0; i < 100; i++) {
        char byte;
        GT_EQUAL(gt_client_recv(client, &byte, 1), 1);
    }
    gt_hang_up(client);
    gori_runtime_stop(stage.runtime);
    for (int i = 0; i < 2; i++) {
        GT_EQUAL(pthread_join(spammers[i].thread, NULL), 0);
    }
    stage_close(&stage);
}

GT_MAIN()
