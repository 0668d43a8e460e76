/* SPDX-License-Identifier: MIT */
/*
 * One run of a scenario: a simulated world, some loops in it, and the checks that hold for every
 * scenario.  A scenario fills the world with servers and clients and says when it is done.
 *
 *  1. Everything random comes from the seed; a run twice is the same run.
 *  2. At the end all loops' memory is back, all sockets are closed, all buffers are free.
 *  3. A violation, a failed assertion and a hang print the seed, the world, and how to replay it.
 * Thread: one.  Reading list: engine/sim/README.md.
 */
#ifndef GT_SIM_RUN_H
#define GT_SIM_RUN_H

#include <gori/loop.h>
#include <stdbool.h>

#include "base/fault_alloc.h"
#include "base/random.h"
#include "engine/sim/sim.h"

#define SIM_LOOPS_MAX 4

struct sim_run;

/** One loop in the world. */
struct sim_loop {
    struct gi_sim_actor actor;
    struct sim_run *run;
    struct gori_loop *loop; /* NULL once it is destroyed */
    uint32_t index;
};

/** A run.  Keep it in static memory: it is large. */
struct sim_run {
    uint64_t seed;
    struct gi_random random; /* of the scenario; the world has its own */
    struct gi_fault_alloc memory;
    struct gi_sim *sim;
    struct gi_sim_config config;
    struct sim_loop loops[SIM_LOOPS_MAX];
    uint32_t loop_count;
    uint64_t steps;
};

/** What a sweep over allocations says to the scenarios, and what they answer. */
struct sim_sweep {
    uint64_t number; /* of the allocation to fail in each run; 0: as the seed has it */
    uint64_t failed; /* allocations that the last run has failed */
};

extern struct sim_sweep sim_sweep;

/** A scenario; `play` runs one seed and answers the world's hash. */
struct sim_scenario {
    const char *name;
    uint32_t seeds; /* how many an ordinary run takes */
    uint64_t (*play)(uint64_t seed);
};

/** A condition that must hold in this run. */
#define SIM_CHECK(run, condition)                                                                  \
    ((condition) ? (void)0 : sim_check_failed((run), __FILE__, __LINE__, #condition))

GI_NORETURN void sim_check_failed(const struct sim_run *run, const char *file, int line,
                                  const char *what);

/** A configuration from the seed: calm now and then, mostly some of the faults, seldom all. */
void sim_random_config(struct gi_random *random, struct gi_sim_config *ret_config);

/** Begins a run: `run->config` is filled in; the world exists afterwards, without loops. */
void sim_run_begin(struct sim_run *run, uint64_t seed);

/** Adds a loop with what is set in `config` (allocator, engine and simulation are set here). */
int sim_run_add_loop(struct sim_run *run, const struct gori_loop_config *config,
                     struct sim_loop **ret_loop);

/**
 * Arms the failure of an allocation, if there is to be one: after the loops are made, before
 * anything else.  Result: whether there is.
 */
bool sim_run_arm(struct sim_run *run);

/** Takes steps until `is_done`; a world in which nothing happens any more is a violation. */
void sim_run_until(struct sim_run *run, bool (*is_done)(void *user), void *user);

/** Destroys a loop, whatever is going on in it. */
void sim_run_destroy_loop(struct sim_run *run, struct sim_loop *loop);

/** Destroys what is left, checks, and answers the world's hash. */
uint64_t sim_run_end(struct sim_run *run);

/** A number below `bound`, from the run's randomness. */
uint32_t sim_below(struct sim_run *run, uint32_t bound);

/** True once in `times`. */
bool sim_once_in(struct sim_run *run, uint32_t times);

/** Byte `at` of the stream `number`: what a receiver checks bytes against. */
static inline uint8_t sim_stream_byte(uint32_t number, uint64_t at)
{
    return (uint8_t)((at * 167) ^ (at >> 8) ^ (at >> 15) ^ (number * 59));
}

/** Fills `size` bytes of the stream `number` from `at` on. */
void sim_stream_fill(uint32_t number, uint64_t at, uint8_t *data, size_t size);

/** Whether they are those. */
bool sim_stream_matches(uint32_t number, uint64_t at, const uint8_t *data, size_t size);

extern const struct sim_scenario sim_ops;
extern const struct sim_scenario sim_echo;
extern const struct sim_scenario sim_events;
extern const struct sim_scenario sim_files;
extern const struct sim_scenario sim_jobs;
extern const struct sim_scenario sim_web;

#endif
