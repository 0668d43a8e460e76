/* SPDX-License-Identifier: MIT */
/*
 * Goal: what accept_policy_test.c asks of the policies, on each engine, also of UNIX paths and of
 * sockets from outside, when it is crowded, before all workers have started, and when one cannot
 * start.
 * Method: a runtime on one thread, clients on another with plain sockets.
 */
#include <gori/error.h>
#include <gori/runtime.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fault_alloc.h"
#include "lib/client.h"
#include "lib/engines.h"
#include "os/os.h"

enum { WORKERS = 4, CLIENTS = 64 };

struct stage {
    struct gi_fault_alloc memory;
    struct gori_runtime *runtime;
    struct gori_addr addr;
    pthread_t thread;
    int result;
    uint32_t workers;
    uint32_t tasks_max;
    uint32_t sessions_max;
    bool fails;
    enum gori_accept_policy policy;
    const char *engine;
    struct gi_atomic_u32 opened;
    struct gi_atomic_u32 closed;
    uint32_t per_worker[WORKERS]; /* opened; each written by its worker only */
    uint32_t numbers[WORKERS];    /* the session's user points to its worker's */
};

static struct stage *g_stage;

static void opened(struct gori_session *session)
{
    uint32_t *worker = gori_session_user(session);
    g_stage->per_worker[*worker]++;
    gi_atomic_u32_add(&g_stage->opened, 1, GI_RELAXED);
}

static size_t echoed(struct gori_session *session, struct gori_slice bytes)
{
    GT_CHECK(gori_session_send(session, bytes.data, bytes.size) >= 0);
    return bytes.size;
}

static void closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    (void)session;
    (void)reason;
    (void)error;
    gi_atomic_u32_add(&g_stage->closed, 1, GI_RELAXED);
}

static const struct gori_session_events events = {
    .on_open = opened, .on_recv = echoed, .on_close = closed};

static void listening(struct gori_runtime *runtime, uint32_t worker,
                      struct gori_listener_config *config)
{
    struct stage *stage = gori_runtime_user(runtime);
    stage->numbers[worker] = worker;
    config->user = &stage->numbers[worker];
}

static int starting(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    struct stage *stage = gori_runtime_user(runtime);
    (void)loop;
    return stage->fails && worker + 1 == stage->workers ? GORI_EACCESS : 0;
}

static void *run(void *argument)
{
    struct stage *stage = argument;
    stage->result = gori_runtime_run(stage->runtime);
    return NULL;
}

/* As a supervisor makes it. */
static int socket_from_outside(void)
{
    struct gori_addr addr;
    int listener;
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &addr), 0);
    GT_EQUAL(gi_os_listen(&addr, CLIENTS, GI_OS_BLOCKING, &listener), 0);
    return listener;
}

/* Without `where` it takes a socket from outside. */
static void stage_listen(struct stage *stage, const char *where)
{
    gi_fault_alloc_init(&stage->memory, NULL);
    g_stage = stage;
    const struct gori_runtime_config config = {
        .loop = {.engine = stage->engine,
                 .allocator = &stage->memory.allocator,
                 .tasks_max = stage->tasks_max},
        .workers = stage->workers,
        .on_start = starting,
        .on_listen = listening,
        .user = stage,
    };
    GT_EQUAL(gori_runtime_create(&config, &stage->runtime), 0);
    struct gori_listener_config listener = {
        .events = &events, .accept_policy = stage->policy, .sessions_max = stage->sessions_max};
    if (where == NULL) {
        GT_EQUAL(gori_runtime_adopt(stage->runtime, socket_from_outside(), &listener, &stage->addr),
                 0);
        return;
    }
    GT_EQUAL(gori_addr_parse(where, &listener.addr), 0);
    GT_EQUAL(gori_runtime_listen(stage->runtime, &listener, &stage->addr), 0);
}

static void stage_run(struct stage *stage)
{
    GT_EQUAL(pthread_create(&stage->thread, NULL, run, stage), 0);
}

static uint32_t sessions_of(const struct stage *stage, uint32_t worker)
{
    struct gori_worker_stats stats;
    gori_runtime_read_stats(stage->runtime, worker, &stats);
    return stats.sessions_now;
}

static void stage_close(struct stage *stage)
{
    GT_EQUAL(pthread_join(stage->thread, NULL), 0);
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

static void expect_end(int client)
{
    char byte;
    GT_EQUAL(gt_client_recv(client, &byte, 1), 0); /* an orderly one */
    gt_hang_up(client);
}

/* The difference between the worker that has most sessions and the one that has fewest. */
static uint32_t spread(const struct stage *stage)
{
    uint32_t most = 0;
    uint32_t fewest = UINT32_MAX;
    for (uint32_t i = 0; i < stage->workers; i++) {
        uint32_t count = sessions_of(stage, i);
        most = count > most ? count : most;
        fewest = count < fewest ? count : fewest;
    }
    GT_EQUAL(sessions_of(stage, stage->workers), 0);
    return most - fewest;
}

static void serve_long(const char *engine, enum gori_accept_policy policy, const char *where)
{
    static struct stage stage;
    int clients[CLIENTS];
    stage = (struct stage){.engine = engine, .policy = policy, .workers = WORKERS};
    stage_listen(&stage, where);
    stage_run(&stage);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial(&stage);
    }
    for (int i = 0; i < CLIENTS; i++) {
        ask(clients[i]);
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        sum += sessions_of(&stage, i);
    }
    GT_EQUAL(sum, CLIENTS);
    bool kernel_cannot = where == NULL || gori_addr_family(&stage.addr) == GORI_ADDR_UNIX;
    if (policy == GORI_ACCEPT_LEAST || policy == GORI_ACCEPT_ROUND_ROBIN ||
        (policy == GORI_ACCEPT_KERNEL && kernel_cannot)) {
        GT_EQUAL(spread(&stage), 0);
    }
    gori_runtime_stop(stage.runtime);
    for (int i = 0; i < CLIENTS; i++) {
        expect_end(clients[i]);
    }
    stage_close(&stage);
    GT_EQUAL(stage.result, 0);
    GT_EQUAL(gi_atomic_u32_load(&stage.closed, GI_RELAXED), CLIENTS);
    for (uint32_t i = 0; policy == GORI_ACCEPT_ROUND_ROBIN && i < WORKERS; i++) {
        GT_EQUAL(stage.per_worker[i], CLIENTS / WORKERS);
    }
}

GT_TEST_ON_SYSTEM(each_policy_serves_all_and_shares_out_evenly)
{
    char path[80];
    snprintf(path, sizeof(path), "unix:/tmp/gori-accept-%d.sock", (int)getpid());
    for (int policy = GORI_ACCEPT_KERNEL; policy <= GORI_ACCEPT_SINGLE; policy++) {
        serve_long(engine, (enum gori_accept_policy)policy, "127.0.0.1:0");
        serve_long(engine, (enum gori_accept_policy)policy, NULL);
        if (gt_has_unix_sockets()) {
            serve_long(engine, (enum gori_accept_policy)policy, path);
            GT_CHECK(access(path + 5, F_OK) != 0);
        }
    }
}

static void wait_for_sessions(const struct stage *stage, uint32_t worker, uint32_t count)
{
    while (sessions_of(stage, worker) != count) {
        sched_yield();
    }
}

/* Half of the workers lose their sessions; the next ones go there, and nowhere else. */
GT_TEST_ON_SYSTEM(the_fewest_sessions_get_the_next)
{
    static struct stage stage;
    int clients[CLIENTS];
    stage = (struct stage){.engine = engine, .policy = GORI_ACCEPT_LEAST, .workers = WORKERS};
    stage_listen(&stage, "127.0.0.1:0");
    stage_run(&stage);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial(&stage);
        ask(clients[i]);
        GT_CHECK(spread(&stage) <= 1);
    }
    /* One after the other they went to each worker in turn. */
    for (int i = 0; i < CLIENTS; i++) {
        if (i % WORKERS < 2) {
            gt_hang_up(clients[i]);
        }
    }
    wait_for_sessions(&stage, 0, 0);
    wait_for_sessions(&stage, 1, 0);
    for (int i = 0; i < CLIENTS; i++) {
        if (i % WORKERS < 2) {
            clients[i] = dial(&stage);
            ask(clients[i]);
            GT_EQUAL(sessions_of(&stage, 2), CLIENTS / WORKERS);
            GT_EQUAL(sessions_of(&stage, 3), CLIENTS / WORKERS);
        }
    }
    GT_EQUAL(spread(&stage), 0);
    gori_runtime_stop(stage.runtime);
    for (int i = 0; i < CLIENTS; i++) {
        expect_end(clients[i]);
    }
    stage_close(&stage);
}

/* Everything is queued before a worker runs, and the stop is there before the first of them too. */
GT_TEST_ON_SYSTEM(a_stop_opens_what_was_queued)
{
    static struct stage stage;
    int clients[CLIENTS];
    stage = (struct stage){.engine = engine, .policy = GORI_ACCEPT_ROUND_ROBIN, .workers = WORKERS};
    stage_listen(&stage, "127.0.0.1:0");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial(&stage);
        GT_EQUAL(gt_client_send(clients[i], "q", 1), 1);
    }
    stage_run(&stage);
    while (gi_atomic_u32_load(&stage.opened, GI_RELAXED) == 0) {
        sched_yield();
    }
    gori_runtime_stop(stage.runtime);
    for (int i = 0; i < CLIENTS; i++) {
        char byte;
        int64_t result;
        do {
            result = gt_client_recv(clients[i], &byte, 1);
        } while (result > 0);
        GT_EQUAL(result, 0);
        gt_hang_up(clients[i]);
    }
    stage_close(&stage);
    GT_EQUAL(stage.result, 0);
    GT_EQUAL(gi_atomic_u32_load(&stage.opened, GI_RELAXED), CLIENTS);
}

/* Two at each worker, and mailboxes of one: most have to wait, in turn. */
GT_TEST_ON_SYSTEM(without_room_they_wait)
{
    static struct stage stage;
    int clients[CLIENTS];
    stage = (struct stage){.engine = engine,
                           .policy = GORI_ACCEPT_LEAST,
                           .workers = WORKERS,
                           .sessions_max = 2,
                           .tasks_max = 1};
    stage_listen(&stage, "127.0.0.1:0");
    stage_run(&stage);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial(&stage);
    }
    for (int i = 0; i < CLIENTS; i++) {
        ask(clients[i]); /* comes when those before have left */
        for (uint32_t worker = 0; worker < WORKERS; worker++) {
            GT_CHECK(sessions_of(&stage, worker) <= 2);
        }
        gt_hang_up(clients[i]);
    }
    gori_runtime_stop(stage.runtime);
    stage_close(&stage);
    GT_EQUAL(gi_atomic_u32_load(&stage.opened, GI_RELAXED), CLIENTS);
}

/* One cannot start: the run ends with its error, whatever is queued or under way. */
GT_TEST_ON_SYSTEM(a_worker_that_cannot_start_is_handed_nothing)
{
    static struct stage stage;
    int clients[WORKERS];
    for (uint32_t workers = 1; workers <= WORKERS; workers++) {
        stage = (struct stage){
            .engine = engine, .policy = GORI_ACCEPT_ROUND_ROBIN, .workers = workers, .fails = true};
        stage_listen(&stage, "127.0.0.1:0");
        for (int i = 0; i < WORKERS; i++) {
            clients[i] = dial(&stage);
        }
        stage_run(&stage);
        stage_close(&stage);
        GT_EQUAL(stage.result, GORI_EACCESS);
        for (int i = 0; i < WORKERS; i++) {
            gt_hang_up(clients[i]);
        }
    }
}

GT_MAIN()
