/* SPDX-License-Identifier: MIT */
/*
 * The runtime: N workers, each a thread with its own loop.  It starts them, tells them to stop, and
 * collects how they ended.  Nothing here is on a hot path.
 *
 *  1. Ports (port.h) are bound by gori_runtime_listen, before any worker exists: errors reach the
 *     caller, and the system queues connections from then on.  A worker adopts one socket per
 *     address; of a port that is kept, a duplicate, so that the queue outlives the run.
 *  2. A loop is created, run and destroyed by its worker's thread.
 *  3. `shared` is touched under the monitor only, but for a worker's `stop_level`, which is atomic:
 *     0 run, 1 drain until the deadline, 2 close at once.  It only grows.
 *  4. worker.loop is not NULL exactly while the loop exists, and changes under the monitor: a stop
 *     can reach it without fear of its end.  The stop sets the level first and then stops the loop,
 *     whose sleep looks at that; a wake alone could come before the sleep, and be lost.
 *  5. A worker ends when its level is over 0, its listeners are closed and its last session is
 *     gone.
 *  6. Whoever sends or posts by the number of a worker, or to a session by its id, does so behind
 *     the worker's door, which closes, and waits for him, before the loop is destroyed.
 */
#include "rt/runtime.h"

#include <gori/error.h>
#include <gori/file_op.h>
#include <gori/pool.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/list.h"
#include "os/os.h"
#include "rt/accept_policy.h"
#include "rt/door.h"
#include "rt/listener.h"
#include "rt/loop.h"
#include "rt/port.h"

enum {
    WORKERS_MAX = 255,
    LEVEL_RUN = 0,
    LEVEL_DRAIN = 1,
    LEVEL_NOW = 2,
};

#define DRAIN_TIMEOUT (10 * GORI_SECONDS)

struct worker {
    struct gori_runtime *runtime;
    uint32_t index;
    struct gi_os_thread thread;
    struct gi_atomic_u32 stop_level;
    struct gori_loop *loop;     /* 4 */
    struct gori_timer deadline; /* of the drain */
    bool draining;              /* the worker's own: level 1 was acted on */
};

struct gori_runtime {
    const struct gori_allocator *allocator;
    struct gori_runtime_config config;
    struct gori_link ports;
    struct gori_pool *pool; /* for the files of all loops, unless the configuration has one */
    struct worker *workers;
    struct gi_door *doors; /* one per worker, open while others may use its loop: 6 */
    struct gi_os_signals signals;
    struct gi_os_monitor monitor;
    struct {
        uint32_t started; /* workers whose start was decided, well or badly */
        uint32_t ended;
        int error;           /* the first */
        uint32_t stop_level; /* what the workers are told, also those that come yet */
    } shared;
};

static int read_config(const struct gori_runtime_config *given,
                       struct gori_runtime_config *ret_config)
{
    struct gori_runtime_config config = *given;
    if (config.workers == 0) {
        config.workers = gi_min_u32(gi_os_cpu_count(), WORKERS_MAX);
    }
    if (config.workers > WORKERS_MAX) {
        return GORI_EINVAL;
    }
    if (config.drain_timeout == 0) {
        config.drain_timeout = DRAIN_TIMEOUT;
    }
    if (config.loop.allocator == NULL) {
        config.loop.allocator = gori_allocator_default();
    }
    *ret_config = config;
    return 0;
}

/* The first `count` doors were made. */
static void destroy_doors(struct gori_runtime *runtime, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        gi_door_fini(&runtime->doors[i]);
    }
    gi_free(runtime->allocator, runtime->doors, runtime->config.workers * sizeof(*runtime->doors));
}

static int create_doors(struct gori_runtime *runtime)
{
    uint32_t workers = runtime->config.workers;
    runtime->doors = gi_alloc_array(runtime->allocator, workers, sizeof(*runtime->doors));
    if (runtime->doors == NULL) {
        return GORI_ENOMEM;
    }
    for (uint32_t i = 0; i < workers; i++) {
        int result = gi_door_init(&runtime->doors[i]);
        if (result < 0) {
            destroy_doors(runtime, i);
            return result;
        }
    }
    return 0;
}

/* One for all loops; it starts no thread before it is needed.  Each loop has its part of it. */
static int create_pool(struct gori_runtime *runtime)
{
    struct gori_loop_config *config = &runtime->config.loop;
    if (config->pool != NULL) {
        return 0;
    }
    const struct gori_pool_config pool_config = {
        .allocator = runtime->allocator,
        .works_max = runtime->config.workers * GORI_FILE_WORKS_MAX,
    };
    int result = gori_pool_create(&pool_config, &runtime->pool);
    config->pool = result < 0 ? NULL : runtime->pool;
    return result;
}

int gori_runtime_create(const struct gori_runtime_config *given, struct gori_runtime **ret_runtime)
{
    struct gori_runtime_config config;
    int result = read_config(given, &config);
    if (result < 0) {
        return result;
    }
    const struct gori_allocator *allocator = config.loop.allocator;
    struct gori_runtime *runtime = gi_alloc_zero(allocator, sizeof(*runtime));
    if (runtime == NULL) {
        return GORI_ENOMEM;
    }
    runtime->allocator = allocator;
    runtime->config = config;
    gi_list_init(&runtime->ports);
    runtime->workers = gi_alloc_array(allocator, config.workers, sizeof(*runtime->workers));
    if (runtime->workers == NULL) {
        result = GORI_ENOMEM;
        goto err_runtime;
    }
    result = create_doors(runtime);
    if (result < 0) {
        goto err_workers;
    }
    result = gi_os_monitor_init(&runtime->monitor);
    if (result < 0) {
        goto err_doors;
    }
    result = create_pool(runtime);
    if (result < 0) {
        goto err_monitor;
    }
    /* From now on, not from the run on: who said "listening" may be told to stop at once. */
    result = config.handle_signals ? gi_os_signals_open(&runtime->signals) : 0;
    if (result < 0) {
        goto err_pool;
    }
    *ret_runtime = runtime;
    return 0;

err_pool:
    gori_pool_destroy(runtime->pool);
err_monitor:
    gi_os_monitor_fini(&runtime->monitor);
err_doors:
    destroy_doors(runtime, config.workers);
err_workers:
    gi_free(allocator, runtime->workers, config.workers * sizeof(*runtime->workers));
err_runtime:
    gi_free(allocator, runtime, sizeof(*runtime));
    return result;
}

/* Ports ------------------------------------------------------------------------------------ */

static int add_port(struct gori_runtime *runtime, const struct gori_listener_config *config,
                    gori_native native, struct gori_addr *ret_addr)
{
    bool has_events = config->events != NULL || runtime->config.on_listen != NULL;
    if (!has_events) {
        return GORI_EINVAL;
    }
    struct gi_port *port;
    int result = native == GORI_NATIVE_NONE
                     ? gi_port_bind(runtime->allocator, runtime, config, &port)
                     : gi_port_adopt(runtime->allocator, runtime, config, native, &port);
    if (result < 0) {
        return result;
    }
    gi_list_push_back(&runtime->ports, &port->link);
    if (ret_addr != NULL) {
        *ret_addr = port->config.addr;
    }
    return 0;
}

int gori_runtime_listen(struct gori_runtime *runtime, const struct gori_listener_config *config,
                        struct gori_addr *ret_addr)
{
    return add_port(runtime, config, GORI_NATIVE_NONE, ret_addr);
}

int gori_runtime_adopt(struct gori_runtime *runtime, gori_native native,
                       const struct gori_listener_config *config, struct gori_addr *ret_addr)
{
    return native == GORI_NATIVE_NONE ? GORI_EINVAL : add_port(runtime, config, native, ret_addr);
}

int gori_runtime_addr(const struct gori_runtime *runtime, uint32_t index,
                      struct gori_addr *ret_addr)
{
    GI_LIST_FOREACH (link, &runtime->ports) {
        if (index == 0) {
            *ret_addr = gori_container_of(link, struct gi_port, link)->config.addr;
            return 0;
        }
        index--;
    }
    return GORI_ENOTFOUND;
}

gori_native gori_runtime_socket(const struct gori_runtime *runtime, uint32_t index)
{
    GI_LIST_FOREACH (link, &runtime->ports) {
        const struct gi_port *port = gori_container_of(link, struct gi_port, link);
        uint32_t count = port->config.keep_socket ? port->socket_count : 0;
        if (index < count) {
            return port->natives[index];
        }
        index -= count;
    }
    return GORI_NATIVE_NONE;
}

/* One worker ------------------------------------------------------------------------------- */

static int open_listener(struct worker *worker, struct gi_port *port)
{
    struct gori_runtime *runtime = worker->runtime;
    struct gori_listener_config config = port->config;
    if (runtime->config.on_listen != NULL) {
        runtime->config.on_listen(runtime, worker->index, &config);
    }
    if (config.events == NULL) {
        return GORI_EINVAL;
    }
    config.keep_socket = port->config.keep_socket; /* the port's, not the worker's, to decide */
    gori_native native;
    int result = gi_port_take(port, worker->index, &native);
    if (result < 0) {
        return result;
    }
    const struct gi_accept_role role = {.accept = port->accept, .worker = worker->index};
    struct gori_listener *listener;
    result = gi_listener_adopt(worker->loop, &config, native, &role, &listener);
    if (result < 0 && native != GORI_NATIVE_NONE) {
        gori_native_close(worker->loop, native);
    }
    return result;
}

static int open_listeners(struct worker *worker)
{
    GI_LIST_FOREACH (link, &worker->runtime->ports) {
        int result = open_listener(worker, gori_container_of(link, struct gi_port, link));
        if (result < 0) {
            return result;
        }
    }
    return 0;
}

static int start_worker(struct worker *worker, struct gori_loop **ret_loop)
{
    struct gori_runtime *runtime = worker->runtime;
    struct gori_loop_config config = runtime->config.loop;
    config.id_tag = (uint8_t)worker->index;
    struct gori_loop *loop;
    int result = gori_loop_create(&config, &loop);
    if (result < 0) {
        return result;
    }
    gi_os_monitor_lock(&runtime->monitor);
    worker->loop = loop;
    gi_os_monitor_unlock(&runtime->monitor);
    gi_door_open(&runtime->doors[worker->index]);
    if (runtime->config.on_start != NULL) {
        result = runtime->config.on_start(runtime, worker->index, loop);
    }
    if (result >= 0) {
        result = open_listeners(worker);
    }
    *ret_loop = loop;
    return result;
}

static void drain_deadline_passed(struct gori_timer *timer)
{
    struct worker *worker = timer->user;
    gi_atomic_u32_store(&worker->stop_level, LEVEL_NOW, GI_RELAXED);
}

static void begin_drain(struct worker *worker)
{
    struct gori_runtime *runtime = worker->runtime;
    worker->draining = true;
    gi_listener_close_all(worker->loop);
    worker->deadline.on_expire = drain_deadline_passed;
    worker->deadline.user = worker;
    gori_timer_start(worker->loop, &worker->deadline, runtime->config.drain_timeout);
    if (runtime->config.on_stop != NULL) {
        runtime->config.on_stop(runtime, worker->index, worker->loop);
    }
}

/* Every turn anew: a listener that ends still opens what the system had queued for it. */
static void end_sessions(struct worker *worker, uint32_t level)
{
    if (level == LEVEL_NOW) {
        gi_session_close_all(worker->loop);
    } else if (worker->runtime->config.on_stop == NULL) {
        gi_session_close_idle(worker->loop);
    }
}

/* Acts on the level.  Result: whether the worker goes on. */
static bool keep_running(struct worker *worker)
{
    /* Cleared before the level is read: a stop that comes later is seen by the turn, which then
     * does not sleep. */
    (void)gi_atomic_bool_exchange(&worker->loop->shared.stop, false, GI_ACQ_REL);
    uint32_t level = gi_atomic_u32_load(&worker->stop_level, GI_ACQUIRE);
    if (level == LEVEL_RUN) {
        return true;
    }
    if (!worker->draining) {
        begin_drain(worker);
    }
    end_sessions(worker, level);
    return !gi_list_is_empty(&worker->loop->all_listeners) ||
           gi_id_table_count(&worker->loop->sessions) != 0;
}

static int run_worker(struct worker *worker)
{
    int result = 0;
    while (result >= 0 && keep_running(worker)) {
        result = gori_loop_turn(worker->loop, GORI_NEVER);
    }
    gori_timer_stop(&worker->deadline);
    return result;
}

static void note_start(struct gori_runtime *runtime, int result)
{
    gi_os_monitor_lock(&runtime->monitor);
    runtime->shared.started++;
    if (result < 0 && runtime->shared.error == 0) {
        runtime->shared.error = result;
    }
    gi_os_monitor_notify(&runtime->monitor);
    gi_os_monitor_unlock(&runtime->monitor);
}

/* Also for an acceptor that never opened: the others would wait for its end. */
static void end_accepting(struct worker *worker)
{
    if (worker->index != 0) {
        return;
    }
    GI_LIST_FOREACH (link, &worker->runtime->ports) {
        gi_accept_end(gori_container_of(link, struct gi_port, link)->accept);
    }
}

static void end_worker(struct worker *worker, struct gori_loop *loop, int result)
{
    struct gori_runtime *runtime = worker->runtime;
    if (loop != NULL && runtime->config.on_end != NULL) {
        runtime->config.on_end(runtime, worker->index, loop);
    }
    if (worker->loop != NULL) {
        gi_door_close(&runtime->doors[worker->index]);
    }
    gi_os_monitor_lock(&runtime->monitor);
    worker->loop = NULL;
    gi_os_monitor_unlock(&runtime->monitor);
    gori_loop_destroy(loop);
    end_accepting(worker);
    gi_os_monitor_lock(&runtime->monitor);
    runtime->shared.ended++;
    if (result < 0 && runtime->shared.error == 0) {
        runtime->shared.error = result;
    }
    bool is_last = runtime->shared.ended == runtime->config.workers;
    gi_os_monitor_unlock(&runtime->monitor);
    if (result < 0) {
        /* A server that lost a worker answers a part of its clients only: better to end, and say
         * so. */
        gori_runtime_stop(runtime);
    }
    if (is_last && runtime->config.handle_signals) {
        gi_os_signals_interrupt(&runtime->signals);
    }
}

static void worker_main(void *argument)
{
    struct worker *worker = argument;
    struct gori_runtime *runtime = worker->runtime;
    gi_os_thread_set_name("gori-worker");
    if (runtime->config.pin) {
        /* A mask that the system refuses is no reason not to serve. */
        (void)gi_os_pin(worker->index);
    }
    struct gori_loop *loop = NULL;
    int result = start_worker(worker, &loop);
    note_start(runtime, result);
    if (result >= 0) {
        result = run_worker(worker);
    }
    end_worker(worker, loop, result);
}

/* All workers ------------------------------------------------------------------------------ */

void gori_runtime_stop(struct gori_runtime *runtime)
{
    gi_os_monitor_lock(&runtime->monitor);
    uint32_t level = runtime->shared.stop_level == LEVEL_RUN ? LEVEL_DRAIN : LEVEL_NOW;
    runtime->shared.stop_level = level;
    for (uint32_t i = 0; i < runtime->config.workers; i++) {
        struct worker *worker = &runtime->workers[i];
        gi_atomic_u32_store(&worker->stop_level, level, GI_RELEASE);
        if (worker->loop != NULL) {
            gori_loop_stop(worker->loop);
        }
    }
    gi_os_monitor_unlock(&runtime->monitor);
}

/* Before the first thread starts: one that fails stops all the others, started or not.  A stop that
 * came before the run is its. */
static void reset(struct gori_runtime *runtime)
{
    gi_os_monitor_lock(&runtime->monitor);
    runtime->shared.started = 0;
    runtime->shared.ended = 0;
    runtime->shared.error = 0;
    for (uint32_t i = 0; i < runtime->config.workers; i++) {
        struct worker *worker = &runtime->workers[i];
        *worker = (struct worker){.runtime = runtime, .index = i};
        gi_atomic_u32_init(&worker->stop_level, runtime->shared.stop_level);
    }
    gi_os_monitor_unlock(&runtime->monitor);
    GI_LIST_FOREACH (link, &runtime->ports) {
        gi_accept_begin(gori_container_of(link, struct gi_port, link)->accept);
    }
}

/* Starts up to all threads.  Result: how many run; fewer than all when the system refused one. */
static uint32_t start_threads(struct gori_runtime *runtime)
{
    for (uint32_t i = 0; i < runtime->config.workers; i++) {
        struct worker *worker = &runtime->workers[i];
        int result = gi_os_thread_start(&worker->thread, worker_main, worker);
        if (result < 0) {
            note_start(runtime, result);
            return i;
        }
    }
    return runtime->config.workers;
}

static int wait_for_start(struct gori_runtime *runtime, uint32_t threads)
{
    gi_os_monitor_lock(&runtime->monitor);
    while (runtime->shared.started < threads) {
        gi_os_monitor_wait(&runtime->monitor);
    }
    int error = runtime->shared.error;
    gi_os_monitor_unlock(&runtime->monitor);
    return error;
}

static bool all_ended(struct gori_runtime *runtime)
{
    gi_os_monitor_lock(&runtime->monitor);
    bool ended = runtime->shared.ended == runtime->config.workers;
    gi_os_monitor_unlock(&runtime->monitor);
    return ended;
}

static void serve_signals(struct gori_runtime *runtime)
{
    while (runtime->config.handle_signals && !all_ended(runtime)) {
        int result = gi_os_signals_wait(&runtime->signals);
        if (result < 0) {
            return;
        }
        if (result == 1) {
            gori_runtime_stop(runtime);
        }
    }
}

/* A stop that comes after this is the next run's. */
static int end_run(struct gori_runtime *runtime)
{
    gi_os_monitor_lock(&runtime->monitor);
    int error = runtime->shared.error;
    runtime->shared.stop_level = LEVEL_RUN;
    gi_os_monitor_unlock(&runtime->monitor);
    return error;
}

static int run_threads(struct gori_runtime *runtime)
{
    reset(runtime);
    uint32_t threads = start_threads(runtime);
    int error = wait_for_start(runtime, threads);
    if (error < 0) {
        gori_runtime_stop(runtime);
        gori_runtime_stop(runtime);
    } else {
        if (runtime->config.on_ready != NULL) {
            runtime->config.on_ready(runtime);
        }
        serve_signals(runtime);
    }
    for (uint32_t i = 0; i < threads; i++) {
        gi_os_thread_join(&runtime->workers[i].thread);
    }
    return end_run(runtime);
}

int gori_runtime_run(struct gori_runtime *runtime)
{
    GI_LIST_FOREACH (link, &runtime->ports) {
        if (!gi_port_is_open(gori_container_of(link, struct gi_port, link))) {
            return GORI_ECLOSED;
        }
    }
    gi_os_limits_raise();
    return run_threads(runtime);
}

void gori_runtime_destroy(struct gori_runtime *runtime)
{
    if (runtime == NULL) {
        return;
    }
    for (struct gori_link *link; (link = gi_list_pop_front(&runtime->ports)) != NULL;) {
        gi_port_destroy(gori_container_of(link, struct gi_port, link));
    }
    if (runtime->config.handle_signals) {
        gi_os_signals_close(&runtime->signals);
    }
    gori_pool_destroy(runtime->pool);
    gi_os_monitor_fini(&runtime->monitor);
    destroy_doors(runtime, runtime->config.workers);
    gi_free(runtime->allocator, runtime->workers,
            runtime->config.workers * sizeof(*runtime->workers));
    gi_free(runtime->allocator, runtime, sizeof(*runtime));
}

uint32_t gori_runtime_workers(const struct gori_runtime *runtime)
{
    return runtime->config.workers;
}

struct gori_loop *gori_runtime_loop(struct gori_runtime *runtime, uint32_t worker)
{
    if (worker >= runtime->config.workers) {
        return NULL;
    }
    gi_os_monitor_lock(&runtime->monitor);
    struct gori_loop *loop = runtime->workers[worker].loop;
    gi_os_monitor_unlock(&runtime->monitor);
    return loop;
}

struct gori_loop *gi_runtime_enter(struct gori_runtime *runtime, uint32_t worker)
{
    return gi_door_enter(&runtime->doors[worker]) ? runtime->workers[worker].loop : NULL;
}

void gi_runtime_leave(struct gori_runtime *runtime, uint32_t worker)
{
    gi_door_leave(&runtime->doors[worker]);
}

int gori_runtime_post(struct gori_runtime *runtime, uint32_t worker, struct gori_task *task)
{
    if (worker >= runtime->config.workers) {
        return GORI_EINVAL;
    }
    struct gori_loop *loop = gi_runtime_enter(runtime, worker);
    if (loop == NULL) {
        return GORI_ECLOSED;
    }
    int result = gori_loop_post(loop, task);
    gi_runtime_leave(runtime, worker);
    return result;
}

int gori_runtime_send(struct gori_runtime *runtime, uint64_t id, struct gori_block *block)
{
    uint32_t worker = gi_id_tag(id);
    if (worker >= runtime->config.workers) {
        return GORI_ESTALE;
    }
    struct gori_loop *loop = gi_runtime_enter(runtime, worker);
    if (loop == NULL) {
        return GORI_ECLOSED;
    }
    int result = gori_loop_send(loop, id, block);
    gi_runtime_leave(runtime, worker);
    return result;
}

void gori_runtime_read_stats(const struct gori_runtime *runtime, uint32_t worker,
                             struct gori_worker_stats *ret_stats)
{
    *ret_stats = (struct gori_worker_stats){0};
    if (worker >= runtime->config.workers) {
        return;
    }
    GI_LIST_FOREACH (link, &runtime->ports) {
        const struct gi_port *port = gori_container_of(link, struct gi_port, link);
        const struct gi_accept_seat *seat = &port->accept->seats[worker];
        ret_stats->sessions_now += gi_atomic_u32_load(&seat->sessions, GI_RELAXED);
        ret_stats->accepted += gi_atomic_u64_load(&seat->accepted, GI_RELAXED);
        ret_stats->handed_over += gi_atomic_u64_load(&seat->handed_over, GI_RELAXED);
    }
}

void *gori_runtime_user(const struct gori_runtime *runtime)
{
    return runtime->config.user;
}
