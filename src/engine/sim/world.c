/* SPDX-License-Identifier: MIT */
/*
 * The simulated world without its network: clock, events, whose turn it is, trace, violations.
 * Contract: sim.h.  Thread: one.
 */
#include "engine/sim/world.h"

#include <gori/error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"

#define HASH_BASIS 0xcbf29ce484222325U /* FNV-1a */
#define HASH_PRIME 0x100000001b3U

/* Life ------------------------------------------------------------------------------------- */

static void fill_range(uint32_t *min, uint32_t *max, uint32_t value)
{
    if (*max == 0) {
        *max = *min > value ? *min : value;
    }
    if (*min == 0) {
        *min = *max < value ? *max : value;
    }
}

static void fill_defaults(struct gi_sim_config *config)
{
    config->descriptors_max = config->descriptors_max > 0 ? config->descriptors_max : 65536;
    config->completions_max = config->completions_max > 0 ? config->completions_max : 4096;
    config->changes_max = config->changes_max > 0 ? config->changes_max : 16384;
    config->burst_max = config->burst_max > 0 ? config->burst_max : 16;
    config->file_bytes_max = config->file_bytes_max > 0 ? config->file_bytes_max : 1 << 30;
    config->jump_max = config->jump_max > 0 ? config->jump_max : GORI_SECONDS;
    fill_range(&config->send_bytes_min, &config->send_bytes_max, 64 * 1024);
    fill_range(&config->recv_bytes_min, &config->recv_bytes_max, 64 * 1024);
}

int gi_sim_create(const struct gori_allocator *allocator, const struct gi_sim_config *config,
                  struct gi_sim **ret_sim)
{
    struct gi_sim_config filled = *config;
    fill_defaults(&filled);
    if (filled.send_bytes_min > filled.send_bytes_max ||
        filled.recv_bytes_min > filled.recv_bytes_max || filled.delay_min > filled.delay_max) {
        return GORI_EINVAL;
    }
    struct gi_sim *sim = gi_alloc_zero(allocator, sizeof(*sim));
    if (sim == NULL) {
        return GORI_ENOMEM;
    }
    sim->allocator = allocator;
    sim->config = filled;
    gi_random_init(&sim->random, filled.seed);
    /* Not zero: a program that takes 0 for "no time" is to be found out elsewhere. */
    sim->now = GORI_SECONDS;
    sim->hash = HASH_BASIS;
    sim->next_port = 20000;
    gi_list_init(&sim->connections);
    gi_list_init(&sim->paths);
    gi_list_init(&sim->files);
    gi_list_init(&sim->watchers);
    gi_list_init(&sim->nodes);
    gi_list_init(&sim->engines);
    gi_list_init(&sim->actors);
    gi_list_init(&sim->signal_watches);
    gi_list_init(&sim->children);
    int status = gori_addr_parse("0.0.0.0:0", &sim->any_ipv4);
    GI_ASSERT(status == 0);
    status = gori_addr_parse("[::]:0", &sim->any_ipv6);
    GI_ASSERT(status == 0);
    *ret_sim = sim;
    return 0;
}

void gi_sim_destroy(struct gi_sim *sim)
{
    if (sim == NULL) {
        return;
    }
    if (!gi_list_is_empty(&sim->engines)) {
        gi_sim_fail(sim, "the world ends before its loops");
    }
    if (sim->stats.descriptors_now > 0) {
        gi_sim_fail(sim, "a loop has leaked a socket");
    }
    if (sim->stats.peers_now > 0) {
        gi_sim_fail(sim, "a scripted peer was not closed");
    }
    if (sim->stats.files_now > 0) {
        gi_sim_fail(sim, "a loop has leaked a file");
    }
    gi_sim_files_fini(sim);
    if (!gi_list_is_empty(&sim->children)) {
        gi_sim_fail(sim, "a loop has forgotten a child");
    }
    gi_sim_disk_fini(sim);
    gi_sim_network_fini(sim);
    gi_free(sim->allocator, sim->events, sim->event_capacity * sizeof(struct gi_sim_event *));
    gi_free(sim->allocator, sim, sizeof(*sim));
}

gori_time gi_sim_now(const struct gi_sim *sim)
{
    return sim->now;
}

void gi_sim_stats(const struct gi_sim *sim, struct gi_sim_stats *ret_stats)
{
    *ret_stats = sim->stats;
}

bool gi_sim_chance(struct gi_sim *sim, uint16_t per_mille)
{
    return per_mille > 0 && gi_random_chance(&sim->random, per_mille, 1000);
}

size_t gi_sim_cut_size(struct gi_sim *sim, size_t size)
{
    size_t bound = gi_random_chance(&sim->random, 1, 2) ? gi_min_size(size, 8) : size;
    return 1 + (size_t)gi_random_below(&sim->random, bound);
}

/* Events ----------------------------------------------------------------------------------- */

static bool is_before(const struct gi_sim_event *a, const struct gi_sim_event *b)
{
    return a->time != b->time ? a->time < b->time : a->sequence < b->sequence;
}

static void place_event(struct gi_sim *sim, struct gi_sim_event *event, uint32_t index)
{
    sim->events[index] = event;
    event->place = index + 1;
}

static void sift_up(struct gi_sim *sim, struct gi_sim_event *event, uint32_t index)
{
    while (index > 0 && is_before(event, sim->events[(index - 1) / 2])) {
        place_event(sim, sim->events[(index - 1) / 2], index);
        index = (index - 1) / 2;
    }
    place_event(sim, event, index);
}

static void sift_down(struct gi_sim *sim, struct gi_sim_event *event, uint32_t index)
{
    for (;;) {
        uint32_t child = 2 * index + 1;
        if (child >= sim->event_count) {
            break;
        }
        if (child + 1 < sim->event_count && is_before(sim->events[child + 1], sim->events[child])) {
            child++;
        }
        if (is_before(event, sim->events[child])) {
            break;
        }
        place_event(sim, sim->events[child], index);
        index = child;
    }
    place_event(sim, event, index);
}

void gi_sim_schedule(struct gi_sim *sim, struct gi_sim_event *event, gori_time delay,
                     gi_sim_event_fn *run)
{
    gi_sim_unschedule(sim, event);
    if (sim->event_count == sim->event_capacity) {
        uint32_t capacity = sim->event_capacity > 0 ? 2 * sim->event_capacity : 64;
        sim->events = gi_realloc(sim->allocator, sim->events,
                                 sim->event_capacity * sizeof(struct gi_sim_event *),
                                 capacity * sizeof(struct gi_sim_event *));
        GI_ASSERT(sim->events != NULL);
        sim->event_capacity = capacity;
    }
    event->time = gi_add_saturated_u64(sim->now, delay);
    event->sequence = sim->next_sequence++;
    event->run = run;
    sift_up(sim, event, sim->event_count++);
}

void gi_sim_unschedule(struct gi_sim *sim, struct gi_sim_event *event)
{
    if (event->place == 0) {
        return;
    }
    uint32_t index = event->place - 1;
    GI_ASSERT(sim->events[index] == event);
    event->place = 0;
    struct gi_sim_event *last = sim->events[--sim->event_count];
    if (last == event) {
        return;
    }
    if (index > 0 && is_before(last, sim->events[(index - 1) / 2])) {
        sift_up(sim, last, index);
    } else {
        sift_down(sim, last, index);
    }
}

gori_time gi_sim_next_event(const struct gi_sim *sim)
{
    return sim->event_count > 0 ? sim->events[0]->time : GORI_NEVER;
}

void gi_sim_run_due(struct gi_sim *sim)
{
    while (gi_sim_next_event(sim) <= sim->now) {
        struct gi_sim_event *event = sim->events[0];
        gi_sim_unschedule(sim, event);
        event->run(sim, event);
    }
}

void gi_sim_advance(struct gi_sim *sim, gori_time time)
{
    GI_ASSERT(time >= sim->now && time != GORI_NEVER);
    if (gi_sim_chance(sim, sim->config.faults.jump)) {
        time += gi_random_below(&sim->random, sim->config.jump_max + 1);
        gi_sim_trace(sim, "jump", 0, 0, 0);
    }
    /* Each event at its own time, so that what follows from it is counted from there. */
    while (gi_sim_next_event(sim) <= time) {
        sim->now = gi_max_u64(sim->now, gi_sim_next_event(sim));
        gi_sim_run_due(sim);
    }
    sim->now = time;
}

/* Actors ----------------------------------------------------------------------------------- */

void gi_sim_add(struct gi_sim *sim, struct gi_sim_actor *actor)
{
    actor->engine = NULL;
    actor->waits = false;
    gi_list_push_back(&sim->actors, &actor->link);
}

void gi_sim_remove(struct gi_sim *sim, struct gi_sim_actor *actor)
{
    GI_ASSERT(sim->running != actor);
    gi_list_remove(&actor->link);
}

static bool can_run(const struct gi_sim *sim, const struct gi_sim_actor *actor)
{
    return !actor->waits || actor->deadline <= sim->now ||
           (actor->has_work != NULL && actor->has_work(actor)) ||
           (actor->engine != NULL && gi_sim_engine_has_work(actor->engine));
}

static struct gi_sim_actor *choose_actor(struct gi_sim *sim)
{
    struct gi_sim_actor *chosen = NULL;
    uint64_t count = 0;
    GI_LIST_FOREACH (link, &sim->actors) {
        struct gi_sim_actor *actor = gori_container_of(link, struct gi_sim_actor, link);
        /* Each of those seen so far is the chosen one with the same chance. */
        if (can_run(sim, actor) && gi_random_below(&sim->random, ++count) == 0) {
            chosen = actor;
        }
    }
    return chosen;
}

static gori_time next_time(const struct gi_sim *sim)
{
    gori_time time = gi_sim_next_event(sim);
    GI_LIST_FOREACH (link, &sim->actors) {
        struct gi_sim_actor *actor = gori_container_of(link, struct gi_sim_actor, link);
        time = gi_min_u64(time, actor->deadline);
        if (actor->engine != NULL) {
            time = gi_min_u64(time, gi_sim_engine_next_time(actor->engine));
        }
    }
    return time;
}

bool gi_sim_step(struct gi_sim *sim)
{
    GI_ASSERT(sim->running == NULL);
    gi_sim_run_due(sim);
    struct gi_sim_actor *actor = choose_actor(sim);
    if (actor != NULL) {
        actor->waits = false;
        sim->running = actor;
        actor->run(actor);
        sim->running = NULL;
        return true;
    }
    gori_time time = next_time(sim);
    if (time == GORI_NEVER) {
        return false;
    }
    gi_sim_advance(sim, gi_max_u64(time, sim->now));
    return true;
}

/* Trace ------------------------------------------------------------------------------------ */

static void mix(struct gi_sim *sim, uint64_t value)
{
    sim->hash = (sim->hash ^ value) * HASH_PRIME;
    sim->hash ^= sim->hash >> 32;
}

void gi_sim_trace(struct gi_sim *sim, const char *what, int64_t a, int64_t b, int64_t c)
{
    uint64_t index = sim->stats.events++ % GI_SIM_TRACE_COUNT;
    sim->trace[index] =
        (struct gi_sim_trace_entry){.time = sim->now, .what = what, .values = {a, b, c}};
    for (const char *at = what; *at != '\0'; at++) {
        sim->hash = (sim->hash ^ (uint8_t)*at) * HASH_PRIME;
    }
    mix(sim, sim->now);
    mix(sim, (uint64_t)a);
    mix(sim, (uint64_t)b);
    mix(sim, (uint64_t)c);
}

uint64_t gi_sim_hash(const struct gi_sim *sim)
{
    return sim->hash;
}

void gi_sim_dump(const struct gi_sim *sim)
{
    fprintf(stderr, "simulation: seed %" PRIu64 ", time %" PRIu64 " ns, hash %016" PRIx64 "\n",
            sim->config.seed, sim->now, sim->hash);
    gi_sim_network_dump(sim);
    GI_LIST_FOREACH (link, &sim->engines) {
        gi_sim_engine_dump(link);
    }
    uint64_t count = gi_min_u64(sim->stats.events, GI_SIM_TRACE_COUNT);
    fprintf(stderr, "the last %" PRIu64 " of %" PRIu64 " events:\n", count, sim->stats.events);
    for (uint64_t i = sim->stats.events - count; i < sim->stats.events; i++) {
        const struct gi_sim_trace_entry *entry = &sim->trace[i % GI_SIM_TRACE_COUNT];
        fprintf(stderr, "%16" PRIu64 "  %-16s %" PRId64 " %" PRId64 " %" PRId64 "\n", entry->time,
                entry->what, entry->values[0], entry->values[1], entry->values[2]);
    }
}

void gi_sim_fail(const struct gi_sim *sim, const char *what)
{
    gi_sim_dump(sim);
    fprintf(stderr, "violation: %s (seed %" PRIu64 ")\n", what, sim->config.seed);
    fflush(stderr);
    abort();
}
