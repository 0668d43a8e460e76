/* SPDX-License-Identifier: MIT */
/*
 * Fails every allocation in turn, on every engine.
 * Method: the scenario is run with the n-th allocation failing, for n from 1 until a run takes
 * fewer; then the same with all from the n-th on failing.  Right is GORI_ENOMEM, clients that end,
 * a server that serves afterwards, and nothing left; the scenario checks all but the first.
 */
#include <gori/error.h>
#include <lib/engines.h>

#include "fault/has_engine.h"
#include "fault/scenario.h"

struct armed {
    struct gi_fault_alloc memory;
    uint64_t failed; /* allocations, on purpose */
};

static void calm(void *user)
{
    struct armed *armed = user;
    armed->failed += gi_fault_alloc_failed_count(&armed->memory);
    gi_fault_alloc_fail_never(&armed->memory);
}

static void sweep(const char *engine, void (*arm)(struct gi_fault_alloc *memory, uint64_t number))
{
    if (!fault_has_engine(engine)) {
        GT_SKIP("no such engine here");
    }
    bool any_failed = true;
    uint64_t runs = 0;
    for (uint64_t number = 1; any_failed; number++) {
        struct armed armed = {.failed = 0};
        gi_fault_alloc_init(&armed.memory, NULL);
        arm(&armed.memory, number);
        struct scenario_result result = scenario_play(engine, &armed.memory, calm, &armed);
        any_failed = armed.failed > 0;
        GT_CHECK(result.error == 0 || result.error == GORI_ENOMEM);
        GT_CHECK(any_failed || result.completed == SCENARIO_CLIENTS);
        gi_fault_alloc_fini(&armed.memory);
        runs++;
    }
    printf("%s: %llu runs\n", engine, (unsigned long long)runs);
    GT_CHECK(runs > 10);
}

GT_TEST_ON_ALL(fails_each_allocation_once)
{
    sweep(engine, gi_fault_alloc_fail_once);
}

GT_TEST_ON_ALL(fails_all_allocations_from_each)
{
    sweep(engine, gi_fault_alloc_fail_from);
}

GT_MAIN()
