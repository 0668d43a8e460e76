/* SPDX-License-Identifier: MIT */
/*
 * Goal: workers share an address, each with its own loop and state; a stop is graceful, a second
 * one immediate; a start that fails is reported and leaves nothing behind.
 * Method: a runtime on one thread, clients on another with plain sockets.
 */
#include <gori/error.h>
#include <gori/file_op.h>
#include <gori/runtime.h>
#include <pthread.h>
#include <signal.h>

#include "base/atomic.h"
#include "base/fault_alloc.h"
#include "lib/client.h"
#include "lib/test.h"
#include "os/os.h"

struct stage {
    struct gi_fault_alloc memory;
    struct gori_runtime *runtime;
    struct gori_addr addr;
    pthread_t thread;
    int result; /* that the run is to have */
    struct gi_atomic_u32 opened;
    struct gi_atomic_u32 closed;
    struct gi_atomic_u32 started;
    struct gi_atomic_u32 ended;
    uint32_t ready;               /* times it was said; of the runtime's thread */
    struct gi_atomic_u32 drained; /* closed with GORI_CLOSE_SHUTDOWN */
    uint32_t per_worker[8];       /* sessions; each written by its worker only */
    uint32_t worker_of_user[8];   /* what on_listen puts into `user` points here */
};

static struct stage *g_stage;

static void opened(struct gori_session *session)
{
    uint32_t *worker = gori_session_user(session);
    g_stage->per_worker[*worker]++;
    gi_atomic_u32_add(&g_stage->opened, 1, GI_RELAXED);
}

/* What a client says to be sent FLOOD_BYTES. */
#define FLOOD       'f'
#define FLOOD_BYTES (12u << 20)

static size_t echoed(struct gori_session *session, struct gori_slice bytes)
{
    static char flood[FLOOD_BYTES];
    if (*(const char *)bytes.data == FLOOD) {
        GT_CHECK(gori_session_send(session, flood, sizeof(flood)) >= 0);
        return bytes.size;
    }
    GT_CHECK(gori_session_send(session, bytes.data, bytes.size) >= 0);
    return bytes.size;
}

static void closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    (void)session;
    (void)error;
    if (reason == GORI_CLOSE_SHUTDOWN) {
        gi_atomic_u32_add(&g_stage->drained, 1, GI_RELAXED);
    }
    gi_atomic_u32_add(&g_stage->closed, 1, GI_RELAXED);
}

static const struct gori_session_events events = {
    .on_open = opened, .on_recv = echoed, .on_close = closed};

static int started(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    struct stage *stage = gori_runtime_user(runtime);
    GT_CHECK(gori_runtime_loop(runtime, worker) == loop);
    stage->worker_of_user[worker] = worker;
    gi_atomic_u32_add(&stage->started, 1, GI_RELAXED);
    return 0;
}

static void listening(struct gori_runtime *runtime, uint32_t worker,
                      struct gori_listener_config *config)
{
    struct stage *stage = gori_runtime_user(runtime);
    config->user = &stage->worker_of_user[worker];
}

static void ended(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    struct stage *stage = gori_runtime_user(runtime);
    struct gori_loop_stats stats;
    gori_loop_read_stats(loop, &stats);
    GT_EQUAL(stats.sessions_now, 0);
    GT_CHECK(worker < gori_runtime_workers(runtime));
    gi_atomic_u32_add(&stage->ended, 1, GI_RELAXED);
}

static void ready(struct gori_runtime *runtime)
{
    struct stage *stage = gori_runtime_user(runtime);
    struct gori_addr addr;
    GT_EQUAL(gi_atomic_u32_load(&stage->started, GI_RELAXED), gori_runtime_workers(runtime));
    GT_EQUAL(gori_runtime_addr(runtime, 0, &addr), 0);
    GT_EQUAL_BYTES(addr.as.native, addr.size, stage->addr.as.native, stage->addr.size);
    GT_EQUAL(gori_runtime_addr(runtime, 1, &addr), GORI_ENOTFOUND);
    stage->ready++;
}

static void *run(void *argument)
{
    struct stage *stage = argument;
    /* Here, not at the end: a client would wait for a server that has failed. */
    GT_EQUAL(gori_runtime_run(stage->runtime), stage->result);
    return NULL;
}

static void stage_open(struct stage *stage, struct gori_runtime_config config, const char *where)
{
    gi_fault_alloc_init(&stage->memory, NULL);
    g_stage = stage;
    config.loop.allocator = &stage->memory.allocator;
    config.on_start = config.on_start == NULL ? started : config.on_start;
    config.on_listen = listening;
    config.on_end = ended;
    config.on_ready = ready;
    config.user = stage;
    GT_EQUAL(gori_runtime_create(&config, &stage->runtime), 0);
    struct gori_listener_config listener = {.events = &events};
    GT_EQUAL(gori_addr_parse(where, &listener.addr), 0);
    GT_EQUAL(gori_runtime_listen(stage->runtime, &listener, &stage->addr), 0);
    GT_EQUAL(pthread_create(&stage->thread, NULL, run, stage), 0);
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

static void serve_all(const char *where, uint32_t workers)
{
    enum { CLIENTS = 64 };
    static struct stage stage;
    int clients[CLIENTS];
    struct gori_runtime_config config = {.workers = workers};
    stage_open(&stage, config, where);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial(&stage);
        ask(clients[i]);
    }
    uint32_t sum = 0;
    GT_CHECK(gori_runtime_loop(stage.runtime, workers) == NULL);
    gori_runtime_stop(stage.runtime);
    for (int i = 0; i < CLIENTS; i++) {
        char byte;
        GT_EQUAL(gt_client_recv(clients[i], &byte, 1), 0); /* an orderly end for each */
        gt_hang_up(clients[i]);
    }
    stage_close(&stage);
    for (uint32_t i = 0; i < workers; i++) {
        sum += stage.per_worker[i];
    }
    GT_EQUAL(sum, CLIENTS);
    GT_EQUAL(stage.ready, 1);
    GT_EQUAL(gi_atomic_u32_load(&stage.started, GI_RELAXED), workers);
    GT_EQUAL(gi_atomic_u32_load(&stage.ended, GI_RELAXED), workers);
    GT_EQUAL(gi_atomic_u32_load(&stage.closed, GI_RELAXED), CLIENTS);
    GT_EQUAL(gi_atomic_u32_load(&stage.drained, GI_RELAXED), 0);
}

GT_TEST(workers_share_a_port)
{
    serve_all("127.0.0.1:0", 3);
}

GT_TEST(workers_share_a_unix_path)
{
    char where[80];
    if (!gt_has_unix_sockets()) {
        GT_SKIP("no UNIX paths as addresses");
    }
    snprintf(where, sizeof(where), "unix:/tmp/gori-runtime-%d.sock", (int)getpid());
    serve_all(where, 2);
    GT_CHECK(access(where + 5, F_OK) != 0);
}

GT_TEST(one_worker_is_enough)
{
    serve_all("127.0.0.1:0", 1);
}

/* The client is sent more than the systems of both keep, and reads one byte of it: its session
 * cannot drain, and only a deadline ends it. */
static int flood(const struct stage *stage)
{
    int client = dial(stage);
    char byte = FLOOD;
    GT_EQUAL(gt_client_send(client, &byte, 1), 1);
    GT_EQUAL(gt_client_recv(client, &byte, 1), 1);
    return client;
}

GT_TEST(a_drain_ends_at_its_deadline)
{
    static struct stage stage;
    struct gori_runtime_config config = {.workers = 2, .drain_timeout = 20 * GORI_MILLISECONDS};
    stage_open(&stage, config, "127.0.0.1:0");
    int client = flood(&stage);
    gori_runtime_stop(stage.runtime);
    stage_close(&stage);
    GT_EQUAL(gi_atomic_u32_load(&stage.closed, GI_RELAXED), 1);
    gt_hang_up(client);
}

GT_TEST(a_second_stop_ends_at_once)
{
    static struct stage stage;
    struct gori_runtime_config config = {.workers = 2, .drain_timeout = GORI_NEVER};
    stage_open(&stage, config, "127.0.0.1:0");
    int client = flood(&stage);
    gori_runtime_stop(stage.runtime);
    gori_runtime_stop(stage.runtime);
    stage_close(&stage);
    GT_EQUAL(gi_atomic_u32_load(&stage.closed, GI_RELAXED), 1);
    gt_hang_up(client);
}

static int refuse(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    (void)runtime;
    (void)loop;
    return worker == 1 ? GORI_EACCESS : 0;
}

GT_TEST(a_worker_that_cannot_start_ends_the_run_with_its_error)
{
    static struct stage stage = {.result = GORI_EACCESS};
    struct gori_runtime_config config = {.workers = 3, .on_start = refuse};
    stage_open(&stage, config, "127.0.0.1:0");
    stage_close(&stage);
    GT_EQUAL(stage.ready, 0);
}

GT_TEST(an_unknown_engine_is_an_error_of_the_run)
{
    static struct stage stage = {.result = GORI_EINVAL};
    struct gori_runtime_config config = {.workers = 2, .loop = {.engine = "steam"}};
    stage_open(&stage, config, "127.0.0.1:0");
    stage_close(&stage);
}

/* Goal: two servers do not share a port by accident, because both have several workers. */
GT_TEST(a_port_that_is_taken_is_an_error_unless_it_is_to_be_shared)
{
    struct gori_runtime *first;
    struct gori_runtime *second;
    struct gori_runtime_config config = {.workers = 2};
    struct gori_listener_config listener = {.events = &events};
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &listener.addr), 0);
    GT_EQUAL(gori_runtime_create(&config, &first), 0);
    GT_EQUAL(gori_runtime_create(&config, &second), 0);
    GT_EQUAL(gori_runtime_listen(first, &listener, &listener.addr), 0);
    GT_EQUAL(gori_runtime_listen(second, &listener, NULL), GORI_EADDRINUSE);
    listener.reuse_port = true;
    int result = gori_runtime_listen(second, &listener, NULL);
    GT_CHECK(result == 0 || (result == GORI_ENOTSUP && !gi_os_balances_ports()));
    gori_runtime_destroy(second);
    gori_runtime_destroy(first);
}

GT_TEST(what_cannot_be_listened_on_is_an_error_at_once)
{
    struct gori_runtime *runtime;
    struct gori_runtime_config config = {.workers = 2};
    struct gori_listener_config listener = {.events = &events};
    struct gori_addr addr;
    GT_EQUAL(gori_runtime_create(&config, &runtime), 0);
    GT_EQUAL(gori_runtime_listen(runtime, &listener, NULL), GORI_EINVAL);
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &listener.addr), 0);
    GT_EQUAL(gori_runtime_listen(runtime, &listener, &addr), 0);
    GT_EQUAL(gori_addr_parse("192.0.2.1:80", &listener.addr), 0);
    GT_EQUAL(gori_runtime_listen(runtime, &listener, NULL), GORI_EADDRNOTAVAIL);
    gori_runtime_destroy(runtime); /* never ran: closes what is bound */
    config.workers = 256;
    GT_EQUAL(gori_runtime_create(&config, &runtime), GORI_EINVAL);
    gori_runtime_destroy(NULL);
}

/* Elsewhere the system says it otherwise: tests/wine/echo.py. */
#if __has_include(<sys/wait.h>)
GT_TEST(sigterm_drains_and_a_second_one_ends_at_once)
{
    static struct stage stage;
    struct gori_runtime_config config = {
        .workers = 2, .handle_signals = true, .drain_timeout = GORI_NEVER};
    stage_open(&stage, config, "127.0.0.1:0");
    int client = flood(&stage);
    /* A client was served, so the handlers are in place. */
    GT_EQUAL(pthread_kill(stage.thread, SIGTERM), 0);
    /* The listeners end: from then on connects are refused, and the drain has begun. */
    for (int quick; (quick = gt_dial_if_open(&stage.addr)) >= 0; gt_hang_up(quick)) {
        char byte;
        (void)gt_client_recv(quick, &byte, 1);
    }
    GT_EQUAL(pthread_kill(stage.thread, SIGINT), 0);
    stage_close(&stage);
    gt_hang_up(client);
}

GT_TEST(a_stop_before_the_run_is_not_lost)
{
    struct gori_listener_config listener = {.events = &events, .keep_socket = true};
    const struct gori_runtime_config config = {.workers = 2};
    struct gori_runtime *runtime;
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &listener.addr), 0);
    GT_EQUAL(gori_runtime_create(&config, &runtime), 0);
    GT_EQUAL(gori_runtime_listen(runtime, &listener, NULL), 0);
    for (int stops = 1; stops < 4; stops++) {
        for (int i = 0; i < stops; i++) {
            gori_runtime_stop(runtime);
        }
        GT_EQUAL(gori_runtime_run(runtime), 0);
    }
    gori_runtime_destroy(runtime);
}

GT_TEST(a_signal_before_the_run_is_not_lost)
{
    const struct gori_runtime_config config = {.workers = 1, .handle_signals = true};
    struct gori_runtime *runtime;
    GT_EQUAL(gori_runtime_create(&config, &runtime), 0);
    GT_EQUAL(raise(SIGTERM), 0);
    GT_EQUAL(gori_runtime_run(runtime), 0);
    gori_runtime_destroy(runtime);
}
#endif

/* File ops of all workers at once, on engines that need the pool too. */
#define FILE_WORKERS 3
#define FILE_OPS     200

struct asked {
    struct gori_runtime *runtime;
    struct gi_atomic_u32 left;
    struct gori_file_op ops[FILE_WORKERS][FILE_OPS];
};

static void told(struct gori_file_op *op, int64_t result)
{
    struct asked *asked = op->user;
    GT_EQUAL(result, 0);
    GT_CHECK(op->info.is_directory);
    if (gi_atomic_u32_sub(&asked->left, 1, GI_RELAXED) == 1) {
        gori_runtime_stop(asked->runtime);
    }
}

static int ask_of_files(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    struct asked *asked = gori_runtime_user(runtime);
    for (uint32_t i = 0; i < FILE_OPS; i++) {
        struct gori_file_op *op = &asked->ops[worker][i];
        *op = (struct gori_file_op){.on_complete = told, .user = asked};
        GT_EQUAL(gori_file_op_stat_path(op, loop, NULL, "."), 0);
    }
    return 0;
}

GT_TEST(workers_share_one_pool_for_files)
{
    static struct asked asked;
    static const char *const engines[] = {"auto", "poll"};
    for (size_t i = 0; i < GI_ARRAY_COUNT(engines); i++) {
        struct gi_fault_alloc memory;
        gi_fault_alloc_init(&memory, NULL);
        const struct gori_runtime_config config = {
            .loop = {.allocator = &memory.allocator, .engine = engines[i]},
            .workers = FILE_WORKERS,
            .on_start = ask_of_files,
            .user = &asked};
        int result = gori_runtime_create(&config, &asked.runtime);
        GT_EQUAL(result, 0);
        gi_atomic_u32_init(&asked.left, FILE_WORKERS * FILE_OPS);
        result = gori_runtime_run(asked.runtime);
        gori_runtime_destroy(asked.runtime);
        GT_EQUAL(gi_fault_alloc_live_blocks(&memory), 0);
        if ((result == GORI_EINVAL || result == GORI_ENOSYS) && i > 0) {
            continue; /* no such engine on this system */
        }
        GT_EQUAL(result, 0);
        GT_EQUAL(gi_atomic_u32_load(&asked.left, GI_RELAXED), 0);
    }
}

GT_MAIN()
