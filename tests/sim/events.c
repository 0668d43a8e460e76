/* SPDX-License-Identifier: MIT */
/*
 * The scenario "events": what a loop waits for beside sockets and timers.  On some loops of one
 * process watchers of signals start and stop, sources are waited for, children are started, killed
 * and detached, also inside of callbacks, while signals come, sources change and children end.
 *
 * What must hold, whatever happens: a wait completes once, with 0 only when its source was ready; a
 * started watcher hears of the last signal, a stopped one of none; a child that was started is told
 * of once, as it ended or as detached; nothing runs inside of a call.
 */
#include <gori/error.h>
#include <gori/op.h>
#include <gori/process.h>
#include <gori/signal.h>
#include <gori/timer.h>
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/list.h"
#include "sim/run.h"

#define ACTORS_MAX   3 /* on a loop each */
#define WATCHERS     3 /* of an actor, as the next ones */
#define SOURCES      3
#define CHILDREN     4
#define TICKS_MAX    60
#define NUMBERS      2 /* signals */
#define CHILD_STATUS 77

struct events;
struct actor;

struct watcher {
    struct actor *actor;
    struct gori_signal signal;
    uint64_t heard; /* signals of its number raised when it was called, or started */
};

struct source {
    struct actor *actor;
    gori_native native;
    struct gori_handle handle;
    struct gori_op wait;
    bool is_open; /* the handle */
    bool is_ready;
    bool was_ready; /* since the wait was submitted */
};

struct child {
    struct actor *actor;
    struct gori_process *process;
    bool is_killed;
    bool is_detached;
};

struct actor {
    struct events *events;
    struct sim_loop *on;
    struct gori_timer timer;
    uint32_t ticks;
    struct watcher watchers[WATCHERS];
    struct source sources[SOURCES];
    struct child children[CHILDREN];
};

/* A program that runs in the world: ends by itself after a time, whoever cares. */
struct played {
    struct gi_sim_event event;
    struct events *events;
    int64_t id;
    gori_native stdio[GORI_STDIO_COUNT];
};

struct events {
    struct sim_run run;
    struct actor actors[ACTORS_MAX];
    uint32_t actor_count;
    uint64_t raised[NUMBERS];
    uint32_t played_count;
    uint64_t spawned;
    uint64_t exited;
    bool in_call;
    bool is_over; /* nothing new is begun */
};

static struct events events_run;
static const int numbers[NUMBERS] = {SIGTERM, SIGINT};

static void check_callback(const struct events *events)
{
    SIM_CHECK(&events->run, !events->in_call);
}

static uint32_t index_of(int number)
{
    return number == numbers[0] ? 0 : 1;
}

static void act(struct actor *actor);

/* Signals ---------------------------------------------------------------------------------- */

static void heard(struct gori_signal *signal)
{
    struct watcher *watcher = signal->user;
    struct events *events = watcher->actor->events;
    check_callback(events);
    SIM_CHECK(&events->run, gori_signal_is_active(signal));
    SIM_CHECK(&events->run, events->raised[index_of(signal->number)] > 0);
    watcher->heard = events->raised[index_of(signal->number)];
    if (sim_once_in(&events->run, 4)) {
        act(watcher->actor);
    }
}

static void toggle_watcher(struct actor *actor)
{
    struct events *events = actor->events;
    struct watcher *watcher = &actor->watchers[sim_below(&events->run, WATCHERS)];
    if (gori_signal_is_active(&watcher->signal)) {
        gori_signal_stop(&watcher->signal);
        return;
    }
    int number = numbers[sim_below(&events->run, NUMBERS)];
    events->in_call = true;
    int status = gori_signal_start(actor->on->loop, &watcher->signal, number);
    events->in_call = false;
    SIM_CHECK(&events->run, gori_signal_is_active(&watcher->signal) == (status == 0));
    watcher->heard = events->raised[index_of(number)];
}

static void raise_signal(struct actor *actor)
{
    struct events *events = actor->events;
    uint32_t index = sim_below(&events->run, NUMBERS);
    events->in_call = true;
    if (gi_sim_raise(events->run.sim, numbers[index])) {
        events->raised[index]++;
    }
    events->in_call = false;
}

/* Whether every watcher knows of the last signal that came since it was started. */
static bool all_have_heard(const struct events *events)
{
    for (uint32_t i = 0; i < events->actor_count; i++) {
        for (uint32_t j = 0; j < WATCHERS; j++) {
            const struct watcher *watcher = &events->actors[i].watchers[j];
            if (gori_signal_is_active(&watcher->signal) &&
                watcher->heard != events->raised[index_of(watcher->signal.number)]) {
                return false;
            }
        }
    }
    return true;
}

/* Sources ---------------------------------------------------------------------------------- */

static void set_ready(struct source *source, bool is_ready)
{
    source->is_ready = is_ready;
    source->was_ready |= is_ready;
    gi_sim_source_set(source->actor->events->run.sim, source->native, is_ready);
}

static void submit_wait(struct source *source)
{
    struct events *events = source->actor->events;
    events->in_call = true;
    int status = gori_op_wait(&source->wait, &source->handle);
    events->in_call = false;
    SIM_CHECK(&events->run, status == 0 || status == GORI_ENOMEM);
    source->was_ready = source->is_ready;
}

static void waited(struct gori_op *op, const struct gori_completion *completion)
{
    struct source *source = op->user;
    struct events *events = source->actor->events;
    check_callback(events);
    SIM_CHECK(&events->run, completion->is_last && !gori_op_is_active(op));
    SIM_CHECK(&events->run,
              completion->result == 0 ? source->was_ready : completion->result == GORI_ECANCELED);
    if (!events->is_over && sim_once_in(&events->run, 2)) {
        set_ready(source, false);
    }
    if (!events->is_over && source->is_open && sim_once_in(&events->run, 2)) {
        submit_wait(source);
    }
}

static void source_closed(struct gori_handle *handle)
{
    struct source *source = handle->user;
    check_callback(source->actor->events);
    SIM_CHECK(&source->actor->events->run, !gori_op_is_active(&source->wait));
    source->handle.user = NULL; /* may be opened again */
}

static void watch_source(struct source *source)
{
    struct events *events = source->actor->events;
    source->handle = (struct gori_handle){.on_close = source_closed, .user = source};
    events->in_call = true;
    int status = gori_handle_watch(source->actor->on->loop, source->native, &source->handle);
    events->in_call = false;
    source->is_open = status == 0;
    source->handle.user = status == 0 ? source : NULL;
}

static void touch_source(struct actor *actor)
{
    struct events *events = actor->events;
    struct source *source = &actor->sources[sim_below(&events->run, SOURCES)];
    if (!source->is_open) {
        if (source->handle.user == NULL) {
            watch_source(source);
        }
    } else if (sim_once_in(&events->run, 8)) {
        source->is_open = false;
        events->in_call = true;
        gori_handle_close(&source->handle);
        events->in_call = false;
    } else if (!gori_op_is_active(&source->wait)) {
        submit_wait(source);
    } else if (sim_once_in(&events->run, 3)) {
        events->in_call = true;
        gori_op_cancel(&source->wait);
        events->in_call = false;
    } else {
        set_ready(source, !source->is_ready);
    }
}

/* Children --------------------------------------------------------------------------------- */

static void program_ends(struct gi_sim *sim, struct gi_sim_event *event)
{
    struct played *played = gori_container_of(event, struct played, event);
    gi_sim_exit(sim, played->id, CHILD_STATUS, 0);
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        if (played->stdio[i] != GORI_NATIVE_NONE) {
            gi_sim_close(sim, played->stdio[i]);
        }
    }
    played->events->played_count--;
    gi_free(NULL, played, sizeof(*played));
}

static int play_program(struct gi_sim *sim, const struct gori_process_config *config, int64_t id,
                        const gori_native stdio[GORI_STDIO_COUNT])
{
    struct events *events = gi_sim_programs_user(sim);
    if (config->program[0] == 'n') {
        return GORI_ENOTFOUND;
    }
    struct played *played = gi_alloc_zero(NULL, sizeof(*played));
    GI_ASSERT(played != NULL);
    played->events = events;
    played->id = id;
    memcpy(played->stdio, stdio, sizeof(played->stdio));
    events->played_count++;
    gori_time life = gi_random_below(&events->run.random, 20 * GORI_MILLISECONDS);
    gi_sim_schedule(sim, &played->event, sim_once_in(&events->run, 4) ? 0 : life, program_ends);
    return 0;
}

static void exited(struct gori_process *process, const struct gori_exit *exit)
{
    struct child *child = gori_process_user(process);
    struct events *events = child->actor->events;
    check_callback(events);
    SIM_CHECK(&events->run, child->process == process);
    bool is_known = exit->error == 0;
    SIM_CHECK(&events->run, is_known || exit->error == GORI_ECANCELED);
    if (is_known) {
        bool by_itself = exit->status == CHILD_STATUS && exit->signal == 0;
        bool by_signal = exit->status == 0 && exit->signal == SIGTERM && child->is_killed;
        SIM_CHECK(&events->run, by_itself || by_signal);
    }
    events->exited++;
    *child = (struct child){.actor = child->actor};
    if (sim_once_in(&events->run, 4)) {
        act(child->actor);
    }
}

static void spawn(struct actor *actor, struct child *child)
{
    struct events *events = actor->events;
    struct gori_process_config config = {
        .program = sim_once_in(&events->run, 10) ? "none" : "some",
        .on_exit = exited,
        .user = child,
    };
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        config.stdio[i].kind = sim_once_in(&events->run, 2) ? GORI_STDIO_PIPE : GORI_STDIO_NULL;
    }
    struct gori_process *process = NULL;
    events->in_call = true;
    int status = gori_process_spawn(actor->on->loop, &config, &process);
    events->in_call = false;
    SIM_CHECK(&events->run, (status == 0) == (process != NULL));
    if (status < 0) {
        return;
    }
    *child = (struct child){.actor = actor, .process = process};
    events->spawned++;
    gori_native pipe = gori_process_take_pipe(process, GORI_STDOUT);
    if (pipe != GORI_NATIVE_NONE) {
        gori_native_close(actor->on->loop, pipe);
    }
}

static void touch_child(struct actor *actor)
{
    struct events *events = actor->events;
    struct child *child = &actor->children[sim_below(&events->run, CHILDREN)];
    if (child->process == NULL) {
        spawn(actor, child);
    } else if (sim_once_in(&events->run, 3)) {
        events->in_call = true;
        gori_process_detach(child->process);
        events->in_call = false;
        child->is_detached = true;
    } else {
        int status = gori_process_kill(child->process, SIGTERM);
        SIM_CHECK(&events->run, status == 0 || status == GORI_ECLOSED);
        child->is_killed |= status == 0;
    }
}

/* The run ---------------------------------------------------------------------------------- */

static void act(struct actor *actor)
{
    if (actor->events->is_over) {
        return;
    }
    switch (sim_below(&actor->events->run, 6)) {
    case 0:
        toggle_watcher(actor);
        break;
    case 1:
        raise_signal(actor);
        break;
    case 2:
    case 3:
        touch_source(actor);
        break;
    default:
        touch_child(actor);
        break;
    }
}

static void on_tick(struct gori_timer *timer)
{
    struct actor *actor = timer->user;
    check_callback(actor->events);
    for (uint32_t i = sim_below(&actor->events->run, 4); i > 0; i--) {
        act(actor);
    }
    if (actor->ticks > 0 && --actor->ticks > 0) {
        gori_timer_start(actor->on->loop, timer,
                         gi_random_below(&actor->events->run.random, 2 * GORI_MILLISECONDS));
    }
}

static void add_actor(struct events *events, struct sim_loop *on)
{
    struct actor *actor = &events->actors[events->actor_count++];
    actor->events = events;
    actor->on = on;
    actor->ticks = 1 + sim_below(&events->run, TICKS_MAX);
    gi_sim_set_programs(events->run.sim, play_program, events); /* the world is there now */
    actor->timer.on_expire = on_tick;
    actor->timer.user = actor;
    for (uint32_t i = 0; i < WATCHERS; i++) {
        struct watcher *watcher = &actor->watchers[i];
        watcher->actor = actor;
        watcher->signal.on_signal = heard;
        watcher->signal.user = watcher;
    }
    for (uint32_t i = 0; i < SOURCES; i++) {
        struct source *source = &actor->sources[i];
        source->actor = actor;
        source->wait.on_complete = waited;
        source->wait.user = source;
        int status = gi_sim_source_open(events->run.sim, NULL, &source->native);
        GI_ASSERT(status == 0);
    }
    for (uint32_t i = 0; i < CHILDREN; i++) {
        actor->children[i].actor = actor;
    }
    gori_timer_start(on->loop, &actor->timer, 0);
}

static bool actors_are_done(void *user)
{
    const struct events *events = user;
    for (uint32_t i = 0; i < events->actor_count; i++) {
        if (gori_timer_is_active(&events->actors[i].timer)) {
            return false;
        }
    }
    return true;
}

static bool all_is_told(void *user)
{
    const struct events *events = user;
    for (uint32_t i = 0; i < events->actor_count; i++) {
        for (uint32_t j = 0; j < SOURCES; j++) {
            if (gori_op_is_active(&events->actors[i].sources[j].wait)) {
                return false;
            }
        }
    }
    return events->exited == events->spawned && events->played_count == 0 && all_have_heard(events);
}

static bool enough_steps(void *user)
{
    const struct events *events = user;
    return events->run.steps > 100 || actors_are_done(user);
}

/* Loops are gone, programs go on: nobody hears of their end. */
static void end_programs(struct events *events)
{
    while (events->played_count > 0) {
        SIM_CHECK(&events->run, gi_sim_step(events->run.sim));
    }
    for (uint32_t i = 0; i < events->actor_count; i++) {
        for (uint32_t j = 0; j < SOURCES; j++) {
            gi_sim_close(events->run.sim, events->actors[i].sources[j].native);
        }
    }
}

static uint64_t play_events(uint64_t seed)
{
    struct events *events = &events_run;
    memset(events, 0, sizeof(*events));
    sim_run_begin(&events->run, seed);
    const struct gori_loop_config config = {0};
    for (uint32_t count = 1 + sim_below(&events->run, ACTORS_MAX); count > 0; count--) {
        struct sim_loop *on;
        if (sim_run_add_loop(&events->run, &config, &on) == 0) {
            add_actor(events, on);
        }
    }
    (void)sim_run_arm(&events->run); /* nothing here depends on it */
    bool is_abrupt = sim_once_in(&events->run, 4);
    if (events->actor_count > 0) {
        sim_run_until(&events->run, is_abrupt ? enough_steps : actors_are_done, events);
    }
    events->is_over = true;
    for (uint32_t i = 0; i < events->actor_count && !is_abrupt; i++) {
        for (uint32_t j = 0; j < SOURCES; j++) {
            set_ready(&events->actors[i].sources[j], true);
        }
    }
    if (!is_abrupt && events->actor_count > 0) {
        sim_run_until(&events->run, all_is_told, events);
    }
    for (uint32_t i = 0; i < events->run.loop_count; i++) {
        gori_timer_stop(&events->actors[i].timer);
        sim_run_destroy_loop(&events->run, &events->run.loops[i]);
    }
    SIM_CHECK(&events->run, events->exited == events->spawned);
    end_programs(events);
    return sim_run_end(&events->run);
}

const struct sim_scenario sim_events = {.name = "events", .seeds = 500, .play = play_events};
