/* SPDX-License-Identifier: MIT */
/*
 * Fails every allocation in turn in simulated worlds: of an echo server and its clients, of signals
 * and children, of the web server and its clients.
 * Method: the scenarios of tests/sim, over and over with the same seed and another failure, until a
 * run makes fewer allocations.  They check what has to hold (run.h); here only the count is kept.
 */
#include <lib/test.h>

#include "sim/run.h"

#define SEEDS 3

static void sweep(const struct sim_scenario *scenario)
{
    uint64_t runs = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        sim_sweep.number = 0;
        do {
            sim_sweep.number++;
            (void)scenario->play(seed);
            runs++;
        } while (sim_sweep.failed > 0);
    }
    printf("%s: %llu runs\n", scenario->name, (unsigned long long)runs);
    GT_CHECK(runs > 10 * SEEDS);
}

GT_TEST(echo_fails_each_allocation)
{
    sweep(&sim_echo);
}

GT_TEST(events_fail_each_allocation)
{
    sweep(&sim_events);
}

GT_TEST(web_fails_each_allocation)
{
    sweep(&sim_web);
}

GT_MAIN()
