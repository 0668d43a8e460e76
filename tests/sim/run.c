/* SPDX-License-Identifier: MIT */
/*
 * Runs of scenarios.  Contract: run.h.
 */
#include "sim/run.h"

#include <gori/error.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "rt/job.h"
#include "rt/loop.h"

#define STEPS_MAX 3000000

struct sim_sweep sim_sweep;

void sim_check_failed(const struct sim_run *run, const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    gi_sim_fail(run->sim, what);
}

uint32_t sim_below(struct sim_run *run, uint32_t bound)
{
    return (uint32_t)gi_random_below(&run->random, bound);
}

bool sim_once_in(struct sim_run *run, uint32_t times)
{
    return gi_random_below(&run->random, times) == 0;
}

void sim_stream_fill(uint32_t number, uint64_t at, uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = sim_stream_byte(number, at + i);
    }
}

bool sim_stream_matches(uint32_t number, uint64_t at, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != sim_stream_byte(number, at + i)) {
            return false;
        }
    }
    return true;
}

/* Configurations --------------------------------------------------------------------------- */

/* A fault that is off half of the time, and else seldom or often, up to `most` in 1000. */
static uint16_t random_fault(struct gi_random *random, uint16_t most)
{
    static const uint16_t parts[] = {100, 30, 8, 2, 1};
    if (gi_random_chance(random, 1, 2)) {
        return 0;
    }
    uint16_t part = parts[gi_random_below(random, GI_ARRAY_COUNT(parts))];
    return (uint16_t)gi_max_u32(1, most / part);
}

static void random_faults(struct gi_random *random, struct gi_sim_faults *faults)
{
    faults->short_recv = random_fault(random, 500);
    faults->short_send = random_fault(random, 500);
    faults->segment = random_fault(random, 800);
    faults->shuffle = random_fault(random, 900);
    faults->late = random_fault(random, 500);
    faults->late_submit = random_fault(random, 500);
    faults->cancel_lost = random_fault(random, 900);
    faults->cancel_late = random_fault(random, 900);
    faults->stale = random_fault(random, 900);
    faults->starve = random_fault(random, 300);
    faults->spurious = random_fault(random, 300);
    faults->jump = random_fault(random, 100);
    faults->submit_error = random_fault(random, 30);
    faults->open_error = random_fault(random, 200);
    faults->accept_error = random_fault(random, 300);
    faults->abort = random_fault(random, 900);
    faults->refuse = random_fault(random, 200);
    faults->reset = random_fault(random, 60);
    faults->slow = random_fault(random, 300);
    faults->file_error = random_fault(random, 100);
    faults->discard = random_fault(random, 900);
}

static uint32_t random_size(struct gi_random *random)
{
    static const uint32_t sizes[] = {1, 64, 700, 5000, 64 * 1024};
    return sizes[gi_random_below(random, GI_ARRAY_COUNT(sizes))];
}

static void random_range(struct gi_random *random, uint32_t *ret_min, uint32_t *ret_max)
{
    uint32_t one = random_size(random);
    uint32_t two = random_size(random);
    *ret_min = gi_min_u32(one, two);
    *ret_max = gi_max_u32(one, two);
}

void sim_random_config(struct gi_random *random, struct gi_sim_config *ret_config)
{
    static const uint32_t completions[] = {1, 2, 8, 64, 512};
    static const gori_time delays[] = {0, 10 * GORI_MICROSECONDS, GORI_MILLISECONDS,
                                       40 * GORI_MILLISECONDS};
    struct gi_sim_config config = {0};
    config.completions_max = completions[gi_random_below(random, GI_ARRAY_COUNT(completions))];
    config.burst_max = 1 + (uint32_t)gi_random_below(random, 16);
    random_range(random, &config.send_bytes_min, &config.send_bytes_max);
    random_range(random, &config.recv_bytes_min, &config.recv_bytes_max);
    config.delay_max = delays[gi_random_below(random, GI_ARRAY_COUNT(delays))];
    config.turn_cost = gi_random_below(random, 20 * GORI_MICROSECONDS);
    if (!gi_random_chance(random, 1, 8)) {
        random_faults(random, &config.faults);
    }
    *ret_config = config;
}

/* Life ------------------------------------------------------------------------------------- */

void sim_run_begin(struct sim_run *run, uint64_t seed)
{
    memset(run, 0, sizeof(*run));
    run->seed = seed;
    gi_random_init(&run->random, seed);
    gi_fault_alloc_init(&run->memory, NULL);
    sim_random_config(&run->random, &run->config);
    run->config.seed = seed;
}

static void run_turn(struct gi_sim_actor *actor)
{
    struct sim_loop *loop = gori_container_of(actor, struct sim_loop, actor);
    int status = gori_loop_turn(loop->loop, GORI_NEVER);
    SIM_CHECK(loop->run, status >= 0);
}

static bool has_tasks(const struct gi_sim_actor *actor)
{
    const struct sim_loop *loop = gori_container_of(actor, const struct sim_loop, actor);
    struct gi_job_worker *worker = loop->loop->job_worker;
    return !gi_mailbox_is_empty(&loop->loop->shared.mailbox) ||
           (worker != NULL && gi_job_worker_has_news(worker));
}

int sim_run_add_loop(struct sim_run *run, const struct gori_loop_config *config,
                     struct sim_loop **ret_loop)
{
    if (run->sim == NULL) {
        int status = gi_sim_create(gori_allocator_default(), &run->config, &run->sim);
        GI_ASSERT(status == 0);
    }
    struct gori_loop_config own = *config;
    own.allocator = &run->memory.allocator;
    own.engine = "sim";
    own.simulation = run->sim;
    own.id_tag = (uint8_t)(run->loop_count + 1);
    struct sim_loop *loop = &run->loops[run->loop_count];
    GI_ASSERT(run->loop_count < SIM_LOOPS_MAX);
    *loop = (struct sim_loop){
        .actor = {.run = run_turn, .has_work = has_tasks}, .run = run, .index = run->loop_count};
    int status = gori_loop_create(&own, &loop->loop);
    if (status < 0) {
        return status;
    }
    run->loop_count++;
    gi_sim_add(run->sim, &loop->actor);
    *ret_loop = loop;
    return 0;
}

bool sim_run_arm(struct sim_run *run)
{
    uint64_t number = sim_sweep.number;
    if (number == 0 && sim_once_in(run, 8)) {
        number = 1 + sim_below(run, 200);
    }
    if (number > 0) {
        gi_fault_alloc_fail_once(&run->memory, number);
    }
    return number > 0;
}

void sim_run_until(struct sim_run *run, bool (*is_done)(void *user), void *user)
{
    while (!is_done(user)) {
        if (!gi_sim_step(run->sim)) {
            gi_sim_fail(run->sim, "nothing can ever happen again, and the scenario is not done");
        }
        if (++run->steps > STEPS_MAX) {
            gi_sim_fail(run->sim, "the scenario does not come to an end");
        }
    }
}

static void check_figures(struct sim_run *run, const struct gori_loop *loop)
{
    struct gori_loop_stats stats;
    gori_loop_read_stats(loop, &stats);
    SIM_CHECK(run, stats.sessions_now + stats.sessions_closed >= stats.sessions_opened);
    SIM_CHECK(run, stats.buffers_held_now <= stats.buffers_now);
}

void sim_run_destroy_loop(struct sim_run *run, struct sim_loop *loop)
{
    check_figures(run, loop->loop);
    gi_sim_remove(run->sim, &loop->actor);
    gori_loop_destroy(loop->loop);
    loop->loop = NULL;
}

uint64_t sim_run_end(struct sim_run *run)
{
    for (uint32_t i = 0; i < run->loop_count; i++) {
        if (run->loops[i].loop != NULL) {
            sim_run_destroy_loop(run, &run->loops[i]);
        }
    }
    sim_sweep.failed = gi_fault_alloc_failed_count(&run->memory);
    if (gi_fault_alloc_live_blocks(&run->memory) > 0) {
        gi_sim_fail(run->sim, "memory of a loop was leaked");
    }
    gi_fault_alloc_fini(&run->memory);
    uint64_t hash = gi_sim_hash(run->sim);
    gi_sim_destroy(run->sim);
    return hash;
}
