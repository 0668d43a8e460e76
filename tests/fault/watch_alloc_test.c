/* SPDX-License-Identifier: MIT */
/*
 * Fails every allocation in turn while files are watched.
 * Method: the scenario is run with the n-th allocation failing, for n from 1 until a run takes
 * fewer; then the same with all from the n-th on failing.  Right is GORI_ENOMEM, or LOST where a
 * listing could not be made; the scenario checks that watches work afterwards and nothing is left.
 */
#include <gori/error.h>
#include <lib/test.h>

#include "fault/has_engine.h"
#include "fault/watch_scenario.h"
#ifdef FAULT_WATCH_KQUEUE
#include "double/kqueue/kqueue.h"
#endif

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
        int error = watch_scenario_play(engine, &armed.memory, calm, &armed);
        any_failed = armed.failed > 0;
        GT_CHECK(error == 0 || (any_failed && error == GORI_ENOMEM));
        gi_fault_alloc_fini(&armed.memory);
        runs++;
    }
    printf("%s: %llu runs\n", engine, (unsigned long long)runs);
    GT_CHECK(runs > 10);
}

#ifdef FAULT_WATCH_KQUEUE

GT_TEST(kqueue_watches_fail_each_allocation_once)
{
    sweep("kqueue", gi_fault_alloc_fail_once);
}

GT_TEST(kqueue_watches_fail_all_allocations_from_each)
{
    sweep("kqueue", gi_fault_alloc_fail_from);
}

/* Which filter of a file cannot be made for want of memory, from 1; 0 for none. */
static uint64_t g_failing;
static uint64_t g_count;

static int fail_filter(const struct kevent *change)
{
    return change->filter == EVFILT_VNODE && ++g_count == g_failing ? ENOMEM : 0;
}

static void calm_filters(void *user)
{
    bool *is_hit = user;
    *is_hit = *is_hit || (g_failing > 0 && g_count >= g_failing);
    g_failing = 0;
}

GT_TEST(kqueue_watches_fail_each_filter_once)
{
    uint64_t number = 0;
    bool is_hit = true;
    kqueue_calls()->fail_change = fail_filter;
    while (is_hit) {
        struct gi_fault_alloc memory;
        gi_fault_alloc_init(&memory, NULL);
        g_count = 0;
        g_failing = ++number;
        is_hit = false;
        int error = watch_scenario_play("kqueue", &memory, calm_filters, &is_hit);
        GT_CHECK(error == 0 || (is_hit && error == GORI_ENOMEM));
        gi_fault_alloc_fini(&memory);
    }
    GT_CHECK(number > 3);
}

#else

GT_TEST(sim_watches_fail_each_allocation_once)
{
    sweep("sim", gi_fault_alloc_fail_once);
}

GT_TEST(sim_watches_fail_all_allocations_from_each)
{
    sweep("sim", gi_fault_alloc_fail_from);
}

GT_TEST(epoll_watches_fail_each_allocation_once)
{
    sweep("epoll", gi_fault_alloc_fail_once);
}

GT_TEST(epoll_watches_fail_all_allocations_from_each)
{
    sweep("epoll", gi_fault_alloc_fail_from);
}

GT_TEST(io_uring_watches_fail_each_allocation_once)
{
    sweep("io_uring", gi_fault_alloc_fail_once);
}

GT_TEST(io_uring_watches_fail_all_allocations_from_each)
{
    sweep("io_uring", gi_fault_alloc_fail_from);
}

#endif

GT_MAIN()
