/* SPDX-License-Identifier: MIT */
/*
 * The blocking pool: answers on the loop that asked, bounded, cancelled in every state, with loops
 * and pools that end while work is under way.
 */
#include <gori/error.h>
#include <gori/pool.h>

#include "base/atomic.h"
#include "base/fault_alloc.h"
#include "lib/test.h"
#include "os/os.h"

/* A work that can be held, and what became of it. */
struct probe {
    struct gori_work work;
    struct gi_atomic_bool is_running;
    struct gi_atomic_bool may_end; /* false: it waits for this, or for its cancel */
    struct gi_atomic_u32 orphaned;
    bool heeds_cancel;
    uintptr_t ran_on;
    uintptr_t done_on;
    unsigned done;
    int result;
};

static void run_probe(struct gori_work *work)
{
    struct probe *probe = work->user;
    probe->ran_on = gi_os_thread_self();
    gi_atomic_bool_store(&probe->is_running, true, GI_RELEASE);
    while (!gi_atomic_bool_load(&probe->may_end, GI_ACQUIRE) &&
           !(probe->heeds_cancel && gori_work_is_canceled(work))) {
        gi_atomic_relax();
    }
}

static void note_done(struct gori_work *work, int result)
{
    struct probe *probe = work->user;
    probe->done_on = gi_os_thread_self();
    probe->result = result;
    probe->done++;
}

static void note_orphan(struct gori_work *work)
{
    struct probe *probe = work->user;
    (void)gi_atomic_u32_add(&probe->orphaned, 1, GI_RELEASE);
}

static void probe_init(struct probe *probe, bool may_end)
{
    *probe = (struct probe){.work = {.run = run_probe, .on_done = note_done, .user = probe}};
    gi_atomic_bool_init(&probe->may_end, may_end);
}

static void probe_let_end(struct probe *probe)
{
    gi_atomic_bool_store(&probe->may_end, true, GI_RELEASE);
}

static void probe_wait_until_running(struct probe *probe)
{
    while (!gi_atomic_bool_load(&probe->is_running, GI_ACQUIRE)) {
        gi_atomic_relax();
    }
}

static void turn_until_done(struct gori_loop *loop, struct probe *probe)
{
    while (probe->done == 0) {
        GT_CHECK(gori_loop_turn(loop, GORI_NEVER) >= 0);
    }
}

static void open_both(uint32_t threads_max, uint32_t works_max, struct gori_loop **ret_loop,
                      struct gori_pool **ret_pool)
{
    const struct gori_pool_config config = {.threads_max = threads_max, .works_max = works_max};
    GT_EQUAL(gori_loop_create(NULL, ret_loop), 0);
    GT_EQUAL(gori_pool_create(&config, ret_pool), 0);
}

GT_TEST(pool_answers_on_the_loop_that_asked)
{
    struct gori_loop *loop;
    struct gori_pool *pool;
    struct probe probe;
    open_both(2, 0, &loop, &pool);
    for (int i = 0; i < 100; i++) {
        probe_init(&probe, true);
        GT_EQUAL(gori_pool_submit(pool, loop, &probe.work), 0);
        GT_EQUAL(probe.done, 0);
        turn_until_done(loop, &probe);
        GT_EQUAL(probe.done, 1);
        GT_EQUAL(probe.result, 0);
        GT_EQUAL(probe.done_on, gi_os_thread_self());
        GT_CHECK(probe.ran_on != gi_os_thread_self());
    }
    struct gori_pool_stats stats;
    gori_pool_read_stats(pool, &stats);
    GT_CHECK(stats.threads <= 2);
    GT_EQUAL(stats.running + stats.waiting, 0);
    probe.work.run = NULL;
    GT_EQUAL(gori_pool_submit(pool, loop, &probe.work), GORI_EINVAL);
    gori_pool_destroy(pool);
    gori_loop_destroy(loop);
}

GT_TEST(pool_refuses_beyond_its_bound)
{
    struct gori_loop *loop;
    struct gori_pool *pool;
    struct probe probes[4];
    open_both(1, 2, &loop, &pool);
    for (int i = 0; i < 4; i++) {
        probe_init(&probes[i], false);
    }
    GT_EQUAL(gori_pool_submit(pool, loop, &probes[0].work), 0);
    GT_EQUAL(gori_pool_submit(pool, loop, &probes[0].work), GORI_EBUSY);
    probe_wait_until_running(&probes[0]);
    GT_EQUAL(gori_pool_submit(pool, loop, &probes[1].work), 0);
    GT_EQUAL(gori_pool_submit(pool, loop, &probes[2].work), 0);
    GT_EQUAL(gori_pool_submit(pool, loop, &probes[3].work), GORI_ELIMIT);
    for (int i = 0; i < 3; i++) {
        probe_let_end(&probes[i]);
    }
    for (int i = 0; i < 3; i++) {
        turn_until_done(loop, &probes[i]);
        GT_EQUAL(probes[i].result, 0);
    }
    GT_EQUAL(probes[3].done, 0);
    gori_pool_destroy(pool);
    gori_loop_destroy(loop);
}

GT_TEST(pool_work_cancelled_while_it_waits_does_not_run)
{
    struct gori_loop *loop;
    struct gori_pool *pool;
    struct probe busy;
    struct probe probe;
    open_both(1, 0, &loop, &pool);
    probe_init(&busy, false);
    probe_init(&probe, true);
    GT_EQUAL(gori_pool_submit(pool, loop, &busy.work), 0);
    probe_wait_until_running(&busy);
    GT_EQUAL(gori_pool_submit(pool, loop, &probe.work), 0);
    gori_work_cancel(&probe.work);
    gori_work_cancel(&probe.work);
    GT_EQUAL(probe.done, 0);
    turn_until_done(loop, &probe);
    GT_EQUAL(probe.result, GORI_ECANCELED);
    GT_EQUAL(probe.ran_on, 0);
    gori_work_cancel(&probe.work);
    probe_let_end(&busy);
    turn_until_done(loop, &busy);
    GT_EQUAL(probe.done, 1);
    gori_pool_destroy(pool);
    gori_loop_destroy(loop);
}

GT_TEST(pool_work_cancelled_while_it_runs_says_so)
{
    struct gori_loop *loop;
    struct gori_pool *pool;
    struct probe probe;
    open_both(1, 0, &loop, &pool);
    probe_init(&probe, false);
    probe.heeds_cancel = true;
    GT_EQUAL(gori_pool_submit(pool, loop, &probe.work), 0);
    probe_wait_until_running(&probe);
    gori_work_cancel(&probe.work);
    turn_until_done(loop, &probe);
    GT_EQUAL(probe.result, GORI_ECANCELED);
    gori_pool_destroy(pool);
    gori_loop_destroy(loop);
}

/* One has run, one runs and heeds its cancel, one waits: all are done when the loop is gone. */
GT_TEST(pool_work_of_a_loop_that_ends)
{
    struct gori_loop *loop;
    struct gori_pool *pool;
    struct probe first;
    struct probe running;
    struct probe waiting;
    open_both(1, 0, &loop, &pool);
    probe_init(&first, true);
    probe_init(&running, false);
    probe_init(&waiting, true);
    running.heeds_cancel = true;
    GT_EQUAL(gori_pool_submit(pool, loop, &first.work), 0);
    GT_EQUAL(gori_pool_submit(pool, loop, &running.work), 0);
    probe_wait_until_running(&running);
    GT_EQUAL(gori_pool_submit(pool, loop, &waiting.work), 0);
    gori_loop_destroy(loop);
    GT_EQUAL(first.done, 1);
    GT_EQUAL(first.result, 0);
    GT_EQUAL(running.done, 1);
    GT_EQUAL(running.result, GORI_ECANCELED);
    GT_EQUAL(waiting.done, 1);
    GT_EQUAL(waiting.result, GORI_ECANCELED);
    GT_EQUAL(waiting.ran_on, 0);
    gori_pool_destroy(pool);
}

/* The loop does not wait for a work that can be left alone. */
GT_TEST(pool_work_outlives_its_loop_as_an_orphan)
{
    struct gori_loop *loop;
    struct gori_pool *pool;
    struct probe probe;
    open_both(1, 0, &loop, &pool);
    probe_init(&probe, false);
    probe.work.on_orphan = note_orphan;
    GT_EQUAL(gori_pool_submit(pool, loop, &probe.work), 0);
    probe_wait_until_running(&probe);
    gori_loop_destroy(loop);
    GT_EQUAL(probe.done, 0);
    GT_EQUAL(gi_atomic_u32_load(&probe.orphaned, GI_ACQUIRE), 0);
    probe_let_end(&probe);
    gori_pool_destroy(pool);
    GT_EQUAL(gi_atomic_u32_load(&probe.orphaned, GI_ACQUIRE), 1);
    GT_EQUAL(probe.done, 0);
}

/* The pool ends first: what waited is cancelled, what runs is waited for, the loop hears of both.
 */
GT_TEST(pool_that_ends_before_its_loop)
{
    struct gori_loop *loop;
    struct gori_pool *pool;
    struct probe running;
    struct probe waiting;
    open_both(1, 0, &loop, &pool);
    probe_init(&running, false);
    probe_init(&waiting, true);
    GT_EQUAL(gori_pool_submit(pool, loop, &running.work), 0);
    probe_wait_until_running(&running);
    GT_EQUAL(gori_pool_submit(pool, loop, &waiting.work), 0);
    probe_let_end(&running);
    gori_pool_destroy(pool);
    turn_until_done(loop, &running);
    turn_until_done(loop, &waiting);
    GT_EQUAL(running.result, 0);
    GT_CHECK(waiting.result == GORI_ECANCELED || waiting.ran_on != 0);
    gori_loop_destroy(loop);
}

/* Answers find room although the loop's own bound is reached. */
static void do_nothing(struct gori_task *task)
{
    (void)task;
}

GT_TEST(pool_answers_a_loop_that_is_full)
{
    const struct gori_loop_config config = {.tasks_max = 1};
    struct gori_task task = {.run = do_nothing};
    struct gori_task other = {.run = do_nothing};
    struct gori_loop *loop;
    struct gori_pool *pool;
    struct probe probe;
    probe_init(&probe, true);
    GT_EQUAL(gori_loop_create(&config, &loop), 0);
    GT_EQUAL(gori_pool_create(NULL, &pool), 0);
    GT_EQUAL(gori_loop_post(loop, &task), 0);
    GT_EQUAL(gori_loop_post(loop, &other), GORI_ELIMIT);
    GT_EQUAL(gori_pool_submit(pool, loop, &probe.work), 0);
    probe_wait_until_running(&probe);
    turn_until_done(loop, &probe);
    gori_pool_destroy(pool);
    gori_loop_destroy(loop);
}

/* A loop that belongs to another thread. */
struct stranger {
    struct gori_loop *loop;
    struct gori_pool *pool;
    struct probe probe;
    int submitted;
};

static void submit_elsewhere(void *argument)
{
    struct stranger *stranger = argument;
    stranger->submitted = gori_pool_submit(stranger->pool, stranger->loop, &stranger->probe.work);
}

GT_TEST(pool_refuses_another_threads_loop)
{
    struct stranger stranger;
    struct gi_os_thread thread;
    open_both(1, 0, &stranger.loop, &stranger.pool);
    probe_init(&stranger.probe, true);
    GT_CHECK(gori_loop_turn(stranger.loop, 0) >= 0);
    GT_EQUAL(gi_os_thread_start(&thread, submit_elsewhere, &stranger), 0);
    gi_os_thread_join(&thread);
    GT_EQUAL(stranger.submitted, GORI_EWRONGTHREAD);
    GT_EQUAL(stranger.probe.done, 0);
    gori_pool_destroy(stranger.pool);
    gori_loop_destroy(stranger.loop);
}

GT_TEST(pool_survives_every_failed_allocation)
{
    struct gi_fault_alloc memory;
    struct gori_pool *pool;
    gi_fault_alloc_init(&memory, NULL);
    const struct gori_pool_config config = {.allocator = &memory.allocator};
    const struct gori_pool_config too_many = {.threads_max = 100000};
    GT_EQUAL(gori_pool_create(&too_many, &pool), GORI_EINVAL);
    gi_fault_alloc_fail_once(&memory, 1);
    GT_EQUAL(gori_pool_create(&config, &pool), GORI_ENOMEM);
    GT_EQUAL(gori_pool_create(&config, &pool), 0);
    gori_pool_destroy(pool);
    gi_fault_alloc_fini(&memory);
}

GT_MAIN()
