/* SPDX-License-Identifier: MIT */
/*
 * Fails every allocation of file ops in turn, on every engine: as alloc_test.c, with the scenario
 * of files.  Right is GORI_ENOMEM, or nothing; the scenario checks the rest.
 */
#include <gori/error.h>
#include <lib/test.h>

#include "fault/file_scenario.h"
#include "fault/has_engine.h"

struct armed {
    struct gi_fault_alloc memory;
    void (*fail)(struct gi_fault_alloc *memory, uint64_t number);
    uint64_t number;
    uint64_t failed; /* allocations, on purpose */
};

static void arm(void *user)
{
    struct armed *armed = user;
    armed->fail(&armed->memory, armed->number);
}

static void calm(void *user)
{
    struct armed *armed = user;
    armed->failed += gi_fault_alloc_failed_count(&armed->memory);
    gi_fault_alloc_fail_never(&armed->memory);
}

static void sweep(const char *engine, void (*fail)(struct gi_fault_alloc *memory, uint64_t number))
{
    if (!fault_has_engine(engine)) {
        GT_SKIP("no such engine here");
    }
    bool any_failed = true;
    for (uint64_t number = 1; any_failed; number++) {
        struct armed armed = {.fail = fail, .number = number};
        const struct file_scenario_hooks hooks = {arm, calm, &armed};
        gi_fault_alloc_init(&armed.memory, NULL);
        int error = file_scenario_play(engine, &armed.memory, &hooks);
        any_failed = armed.failed > 0;
        GT_CHECK(error == 0 || (any_failed && error == GORI_ENOMEM));
        gi_fault_alloc_fini(&armed.memory);
    }
}

GT_TEST(sim_fails_each_allocation_of_file_ops)
{
    sweep("sim", gi_fault_alloc_fail_once);
    sweep("sim", gi_fault_alloc_fail_from);
}

GT_TEST(epoll_fails_each_allocation_of_file_ops)
{
    sweep("epoll", gi_fault_alloc_fail_once);
    sweep("epoll", gi_fault_alloc_fail_from);
}

GT_TEST(io_uring_fails_each_allocation_of_file_ops)
{
    sweep("io_uring", gi_fault_alloc_fail_once);
    sweep("io_uring", gi_fault_alloc_fail_from);
}

GT_MAIN()
