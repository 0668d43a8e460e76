/* SPDX-License-Identifier: MIT */
/*
 * Parking and waking under the model checker: job_idle.c as it is, with workers that do what
 * job_worker.c does around it.  Work is a number in the shared queue.  When a wake is lost
 * everybody waits for ever, which is a failure.
 */
#include "rt/job_idle.c"

#include "model/model.h"

static struct gi_job_idle idle;
static struct gi_job_sleeper sleepers[MODEL_THREADS_MAX];
static struct gi_atomic_u32 shared_count;
static struct gi_atomic_u32 left; /* items that nobody has taken yet */
static unsigned wakes;

void gi_loop_wake(struct gori_loop *loop)
{
    (void)loop;
}

static void set_up_with(unsigned items, unsigned shared)
{
    MODEL_CHECK(gi_job_idle_init(&idle) == 0);
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++) {
        MODEL_CHECK(gi_job_sleeper_init(&sleepers[i], NULL) == 0);
    }
    gi_atomic_u32_init(&shared_count, shared);
    gi_atomic_u32_init(&left, items);
    wakes = 0;
}

static void set_up_one(void)
{
    set_up_with(1, 0);
}

static void set_up_two(void)
{
    set_up_with(2, 0);
}

static void push(void)
{
    (void)gi_atomic_u32_add(&shared_count, 1, GI_SEQ_CST);
    wakes += gi_job_idle_wake_one(&idle);
}

static void push_twice(void)
{
    push();
    push();
}

static bool take(void)
{
    uint32_t count = gi_atomic_u32_load(&shared_count, GI_SEQ_CST);
    while (count > 0) {
        if (gi_atomic_u32_compare_exchange(&shared_count, &count, count - 1, GI_SEQ_CST)) {
            return true;
        }
    }
    return false;
}

static bool is_over(void)
{
    return gi_atomic_u32_load(&left, GI_ACQUIRE) == 0;
}

/* Found something: ends its search, and wakes the next when there is more. */
static void go_to_work(bool *is_searching)
{
    if (*is_searching) {
        *is_searching = false;
        gi_job_idle_end_search(&idle);
        if (gi_atomic_u32_load(&idle.parked, GI_SEQ_CST) != 0 &&
            gi_atomic_u32_load(&shared_count, GI_SEQ_CST) != 0) {
            wakes += gi_job_idle_wake_one(&idle);
        }
    }
    if (gi_atomic_u32_sub(&left, 1, GI_ACQ_REL) == 1) {
        gi_job_idle_wake_all(&idle);
    }
}

/* Lies down; true: it was woken, and searches. */
static bool lie_down(struct gi_job_sleeper *sleeper)
{
    gi_job_idle_park(&idle, sleeper);
    bool has_backlog = gi_atomic_u32_load(&shared_count, GI_SEQ_CST) != 0;
    if ((has_backlog || is_over()) && gi_job_idle_unpark(&idle, sleeper)) {
        return false;
    }
    return gi_job_idle_wait(sleeper, GORI_NEVER);
}

static void work(void)
{
    bool is_searching = false;
    while (!is_over()) {
        if (take()) {
            go_to_work(&is_searching);
            continue;
        }
        if (is_searching) {
            gi_job_idle_end_search(&idle);
        }
        is_searching = lie_down(&sleepers[model_self()]);
    }
    if (is_searching) {
        gi_job_idle_end_search(&idle);
    }
}

static void check(void)
{
    MODEL_CHECK(left.value == 0);
    MODEL_CHECK(shared_count.value == 0);
    MODEL_CHECK(idle.parked.value == 0);
    MODEL_CHECK(idle.searching.value == 0);
    MODEL_CHECK(wakes <= 3);
}

int main(int argc, char **argv)
{
    static const struct model_scenario scenarios[] = {
        {"one item, one worker", set_up_one, {push, work}, check, 3, 0},
        {"two items, one worker", set_up_two, {push_twice, work}, check, 1, 0},
        {"two pushers, one worker", set_up_two, {push, push, work}, check, 0, 3},
        {"one item, two workers", set_up_one, {push, work, work}, check, 1, 2},
        {"two items, two workers", set_up_two, {push_twice, work, work}, check, 1, 2},
        {.name = NULL},
    };
    return model_main(argc, argv, scenarios);
}
