/* SPDX-License-Identifier: MIT */
/*
 * Event sources of a simulated world, and of the one process in it the signals and the children.
 * Contract: sim.h, os/signal.h, os/process.h.  Thread: one.
 */
#include <gori/error.h>

#include "base/alloc.h"
#include "base/list.h"
#include "engine/sim/world.h"
#include "os/process.h"
#include "os/signal.h"

/* From its spawn until the runtime forgets it. */
struct sim_child {
    struct gori_link link;
    int64_t id;
    gori_native source;  /* the world's own name of it */
    gori_native watched; /* the loop's */
    struct gori_exit exit;
    bool is_over;
};

static int duplicate(struct gi_engine *engine, gori_native source, gori_native *ret_source)
{
    return gi_sim_source_duplicate(gi_sim_of(engine), engine, source, ret_source);
}

static void close_source(struct gi_engine *engine, gori_native source)
{
    gi_sim_close(gi_sim_of(engine), source);
}

static int signals_open(struct gi_engine *engine, struct gi_os_signal_watch *watch)
{
    struct gi_sim *sim = gi_sim_of(engine);
    int status = gi_sim_source_open(sim, engine, &watch->source);
    if (status < 0) {
        return status;
    }
    watch->wanted = 0;
    gi_atomic_u64_init(&watch->pending, 0);
    gi_list_push_back(&sim->signal_watches, &watch->link);
    return 0;
}

static void signals_close(struct gi_engine *engine, struct gi_os_signal_watch *watch)
{
    (void)engine;
    gi_list_remove(&watch->link);
}

static int signals_add(struct gi_engine *engine, struct gi_os_signal_watch *watch, int number)
{
    (void)engine;
    watch->wanted |= GI_OS_SIGNAL_BIT(number);
    return 0;
}

static void signals_remove(struct gi_engine *engine, struct gi_os_signal_watch *watch, int number)
{
    (void)engine;
    watch->wanted &= ~GI_OS_SIGNAL_BIT(number);
}

static uint64_t signals_take(struct gi_engine *engine, struct gi_os_signal_watch *watch)
{
    gi_sim_source_set(gi_sim_of(engine), watch->source, false);
    return gi_atomic_u64_exchange(&watch->pending, 0, GI_RELAXED) & watch->wanted;
}

bool gi_sim_raise(struct gi_sim *sim, int number)
{
    bool heard = false;
    gi_sim_trace(sim, "signal", number, 0, 0);
    GI_LIST_FOREACH (link, &sim->signal_watches) {
        struct gi_os_signal_watch *watch = gori_container_of(link, struct gi_os_signal_watch, link);
        if (watch->wanted & GI_OS_SIGNAL_BIT(number)) {
            uint64_t before = gi_atomic_u64_load(&watch->pending, GI_RELAXED);
            gi_atomic_u64_store(&watch->pending, before | GI_OS_SIGNAL_BIT(number), GI_RELAXED);
            gi_sim_source_set(sim, watch->source, true);
            heard = true;
        }
    }
    return heard;
}

/* Children --------------------------------------------------------------------------------- */

void gi_sim_set_programs(struct gi_sim *sim, gi_sim_program_fn *run, void *user)
{
    sim->run_program = run;
    sim->programs_user = user;
}

void *gi_sim_programs_user(const struct gi_sim *sim)
{
    return sim->programs_user;
}

static struct sim_child *child_of(struct gi_sim *sim, int64_t id)
{
    GI_LIST_FOREACH (link, &sim->children) {
        struct sim_child *child = gori_container_of(link, struct sim_child, link);
        if (child->id == id) {
            return child;
        }
    }
    return NULL;
}

void gi_sim_exit(struct gi_sim *sim, int64_t id, int status, int signal)
{
    struct sim_child *child = child_of(sim, id);
    gi_sim_trace(sim, "exit", id, status, signal);
    if (child != NULL && !child->is_over) {
        child->is_over = true;
        child->exit = (struct gori_exit){.status = status, .signal = signal};
        gi_sim_source_set(sim, child->source, true);
    }
}

static void close_streams(struct gi_sim *sim, const gori_native streams[GORI_STDIO_COUNT])
{
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        if (streams[i] != GORI_NATIVE_NONE) {
            gi_sim_close(sim, streams[i]);
        }
    }
}

/* The pipes, and the source.  On failure there is none of them. */
static int open_child(struct gi_engine *engine, const struct gori_process_config *config,
                      struct sim_child *child, gori_native ours[GORI_STDIO_COUNT],
                      gori_native theirs[GORI_STDIO_COUNT])
{
    struct gi_sim *sim = gi_sim_of(engine);
    int status = 0;
    for (int i = 0; i < GORI_STDIO_COUNT && status == 0; i++) {
        if (config->stdio[i].kind == GORI_STDIO_PIPE) {
            status = gi_sim_pair(sim, engine, &ours[i], &theirs[i]);
        }
    }
    if (status == 0) {
        status = gi_sim_source_open(sim, NULL, &child->source);
        GI_ASSERT(status == 0); /* nobody's loop suffers no fault */
        status = gi_sim_source_duplicate(sim, engine, child->source, &child->watched);
        if (status < 0) {
            gi_sim_close(sim, child->source);
        }
    }
    if (status < 0) {
        close_streams(sim, ours);
        close_streams(sim, theirs);
    }
    return status;
}

static int run_child(struct gi_engine *engine, const struct gori_process_config *config,
                     struct sim_child *child, gori_native ret_pipes[GORI_STDIO_COUNT])
{
    struct gi_sim *sim = gi_sim_of(engine);
    gori_native ours[] = {GORI_NATIVE_NONE, GORI_NATIVE_NONE, GORI_NATIVE_NONE};
    gori_native theirs[] = {GORI_NATIVE_NONE, GORI_NATIVE_NONE, GORI_NATIVE_NONE};
    int status = open_child(engine, config, child, ours, theirs);
    if (status < 0) {
        return status;
    }
    gi_list_push_back(&sim->children, &child->link);
    status = sim->run_program == NULL ? GORI_ENOTFOUND
                                      : sim->run_program(sim, config, child->id, theirs);
    if (status < 0) {
        gi_list_remove(&child->link);
        gi_sim_close(sim, child->source);
        gi_sim_close(sim, child->watched);
        close_streams(sim, ours);
        close_streams(sim, theirs);
        return status;
    }
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        ret_pipes[i] = ours[i];
    }
    return 0;
}

static int process_spawn(struct gi_engine *engine, const struct gori_process_config *config,
                         struct gi_os_process *process, gori_native ret_pipes[GORI_STDIO_COUNT])
{
    struct gi_sim *sim = gi_sim_of(engine);
    struct sim_child *child = gi_alloc_zero(sim->allocator, sizeof(*child));
    GI_ASSERT(child != NULL);
    child->id = ++sim->last_child;
    int status = run_child(engine, config, child, ret_pipes);
    gi_sim_trace(sim, "spawn", child->id, status, 0);
    if (status < 0) {
        gi_free(sim->allocator, child, sizeof(*child));
        return status;
    }
    process->id = child->id;
    process->source = child->watched;
    return 0;
}

static int process_take(struct gi_engine *engine, struct gi_os_process *process,
                        struct gori_exit *ret_exit)
{
    const struct sim_child *child = child_of(gi_sim_of(engine), process->id);
    if (!child->is_over) {
        return GORI_EAGAIN;
    }
    process->is_over = true;
    *ret_exit = child->exit;
    return 0;
}

/* Every signal ends a child; what it would do about it is not played. */
static int process_kill(struct gi_engine *engine, struct gi_os_process *process, int number)
{
    if (process->is_over) {
        return GORI_ECLOSED;
    }
    if (number != 0) {
        gi_sim_exit(gi_sim_of(engine), process->id, 0, number);
    }
    return 0;
}

static void process_end(struct gi_engine *engine, struct gi_os_process *process)
{
    gi_sim_exit(gi_sim_of(engine), process->id, 0, 9);
    process->is_over = true;
}

static void process_close(struct gi_engine *engine, struct gi_os_process *process)
{
    struct gi_sim *sim = gi_sim_of(engine);
    struct sim_child *child = child_of(sim, process->id);
    gi_list_remove(&child->link);
    gi_sim_close(sim, child->source);
    gi_free(sim->allocator, child, sizeof(*child));
}

const struct gi_event_calls gi_sim_events = {
    .duplicate = duplicate,
    .close = close_source,
    .signals_open = signals_open,
    .signals_close = signals_close,
    .signals_add = signals_add,
    .signals_remove = signals_remove,
    .signals_take = signals_take,
    .process_spawn = process_spawn,
    .process_take = process_take,
    .process_kill = process_kill,
    .process_end = process_end,
    .process_close = process_close,
};
