/* SPDX-License-Identifier: MIT */
/*
 * Timers of queues, loops as workers, and the order of what jobs post to a loop.  Simulated loops
 * where time matters, threads where the order between them does.
 */
#include <gori/error.h>
#include <gori/job_queue.h>
#include <gori/job_scheduler.h>
#include <gori/loop.h>
#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "engine/sim/sim.h"
#include "lib/test.h"
#include "os/os.h"
#include "rt/loop.h"

/* A simulated world of loops without threads: every step follows from the seed. */
enum { LOOPS = 3 };

struct world {
    struct gi_sim *sim;
    struct gori_job_scheduler *scheduler;
    struct {
        struct gi_sim_actor actor;
        struct gori_loop *loop;
    } nodes[LOOPS];
};

static void run_turn(struct gi_sim_actor *actor)
{
    struct gori_loop *loop = actor->user;
    GT_CHECK(gori_loop_turn(loop, GORI_NEVER) >= 0);
}

static void open_world(struct world *world, uint64_t seed)
{
    const struct gi_sim_config sim_config = {.seed = seed, .turn_cost = 1000};
    const struct gori_job_scheduler_config config = {.no_threads = true};
    GT_EQUAL(gi_sim_create(NULL, &sim_config, &world->sim), 0);
    GT_EQUAL(gori_job_scheduler_create(&config, &world->scheduler), 0);
    for (int i = 0; i < LOOPS; i++) {
        const struct gori_loop_config loop_config = {
            .engine = "sim", .simulation = world->sim, .id_tag = (uint8_t)i};
        GT_EQUAL(gori_loop_create(&loop_config, &world->nodes[i].loop), 0);
        world->nodes[i].actor =
            (struct gi_sim_actor){.run = run_turn, .user = world->nodes[i].loop};
        gi_sim_add(world->sim, &world->nodes[i].actor);
        GT_EQUAL(gori_job_scheduler_attach(world->scheduler, world->nodes[i].loop), 0);
    }
}

static void close_world(struct world *world)
{
    for (int i = 0; i < LOOPS; i++) {
        gi_sim_remove(world->sim, &world->nodes[i].actor);
        gori_loop_destroy(world->nodes[i].loop);
    }
    gori_job_scheduler_destroy(world->scheduler);
    gi_sim_destroy(world->sim);
}

#define WORLD_UNTIL(world, condition)                                                              \
    while (!(condition)) {                                                                         \
        GT_CHECK(gi_sim_step((world)->sim));                                                       \
    }

/* What a timer did. */
struct ticking {
    struct world *world;
    uint64_t calls;
    uint64_t ticks;
    gori_time at; /* of the last call */
    struct gori_job_timer *timer;
    uint64_t stop_after;    /* calls */
    uint64_t destroy_after; /* calls */
};

static void note_tick(struct gori_job_timer *timer, uint64_t ticks)
{
    struct ticking *ticking = gori_job_timer_user(timer);
    ticking->calls++;
    ticking->ticks += ticks;
    ticking->at = gi_sim_now(ticking->world->sim);
    if (ticking->calls == ticking->stop_after) {
        gori_job_timer_stop(timer);
    }
    if (ticking->calls == ticking->destroy_after) {
        gori_job_timer_destroy(timer);
    }
}

GT_TEST(job_timer_fires_once_and_not_early)
{
    struct world world;
    struct gori_job_queue *queue;
    open_world(&world, 1);
    struct ticking ticking = {.world = &world};
    GT_EQUAL(gori_job_queue_create(world.scheduler, NULL, &queue), 0);
    GT_EQUAL(gori_job_timer_create(queue, NULL, NULL, &ticking.timer), GORI_EINVAL);
    GT_EQUAL(gori_job_timer_create(queue, note_tick, &ticking, &ticking.timer), 0);
    gori_time due = gi_sim_now(world.sim) + 5 * GORI_MILLISECONDS;
    gori_job_timer_start(ticking.timer, GORI_SECONDS);
    gori_job_timer_start(ticking.timer, 5 * GORI_MILLISECONDS);
    WORLD_UNTIL(&world, ticking.calls == 1);
    GT_CHECK(ticking.at >= due);
    GT_CHECK(ticking.at < due + GORI_MILLISECONDS);
    GT_EQUAL(ticking.ticks, 1);
    GT_CHECK(!gi_sim_step(world.sim) || ticking.calls == 1);
    gori_job_timer_destroy(ticking.timer);
    gori_job_queue_destroy(queue);
    close_world(&world);
}

GT_TEST(job_timer_ticks_at_a_fixed_rate_until_it_stops)
{
    struct world world;
    struct gori_job_queue *queue;
    open_world(&world, 2);
    struct ticking ticking = {.world = &world, .stop_after = 10};
    GT_EQUAL(gori_job_queue_create(world.scheduler, NULL, &queue), 0);
    GT_EQUAL(gori_job_timer_create(queue, note_tick, &ticking, &ticking.timer), 0);
    gori_time begin = gi_sim_now(world.sim);
    gori_job_timer_start_periodic(ticking.timer, 3 * GORI_MILLISECONDS);
    WORLD_UNTIL(&world, ticking.calls == 10);
    GT_EQUAL(ticking.ticks, 10);
    GT_CHECK(ticking.at >= begin + 30 * GORI_MILLISECONDS);
    GT_CHECK(ticking.at < begin + 31 * GORI_MILLISECONDS);
    while (gi_sim_now(world.sim) < begin + GORI_SECONDS && gi_sim_step(world.sim)) {
    }
    GT_EQUAL(ticking.calls, 10);
    gori_job_timer_destroy(ticking.timer);
    gori_job_queue_destroy(queue);
    close_world(&world);
}

GT_TEST(job_timer_destroyed_by_itself_and_by_its_queue)
{
    struct world world;
    struct gori_job_queue *queue;
    open_world(&world, 3);
    struct ticking ticking = {.world = &world, .destroy_after = 2};
    struct ticking orphan = {.world = &world};
    GT_EQUAL(gori_job_queue_create(world.scheduler, NULL, &queue), 0);
    GT_EQUAL(gori_job_timer_create(queue, note_tick, &ticking, &ticking.timer), 0);
    GT_EQUAL(gori_job_timer_create(queue, note_tick, &orphan, &orphan.timer), 0);
    gori_job_timer_start_periodic(ticking.timer, GORI_MILLISECONDS);
    WORLD_UNTIL(&world, ticking.calls == 2);
    gori_job_timer_start_periodic(orphan.timer, GORI_MILLISECONDS);
    gori_job_queue_destroy(queue);
    gori_time end = gi_sim_now(world.sim) + 100 * GORI_MILLISECONDS;
    while (gi_sim_now(world.sim) < end && gi_sim_step(world.sim)) {
    }
    GT_EQUAL(ticking.calls, 2);
    GT_CHECK(orphan.calls <= 1);
    gori_job_timer_start(orphan.timer, 0);
    gori_job_timer_destroy(orphan.timer);
    close_world(&world);
}

/* A queue that is behind gets one call for all the ticks that it missed. */
struct laggard {
    struct gori_job job;
    struct gi_atomic_u64 calls;
    struct gi_atomic_u64 ticks;
};

static void count_ticks(struct gori_job_timer *timer, uint64_t ticks)
{
    struct laggard *laggard = gori_job_timer_user(timer);
    (void)gi_atomic_u64_add(&laggard->calls, 1, GI_RELAXED);
    (void)gi_atomic_u64_add(&laggard->ticks, ticks, GI_RELEASE);
}

static void lag(struct gori_job *job)
{
    (void)job;
    gori_time until = gi_os_now() + 10 * GORI_MILLISECONDS;
    while (gi_os_now() < until) {
    }
}

GT_TEST(job_timer_merges_ticks_that_were_missed)
{
    static struct laggard laggard;
    struct gori_job_scheduler *scheduler;
    struct gori_job_queue *queue;
    struct gori_job_timer *timer;
    const struct gori_job_scheduler_config config = {.threads = 1};
    GT_EQUAL(gori_job_scheduler_create(&config, &scheduler), 0);
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queue), 0);
    GT_EQUAL(gori_job_timer_create(queue, count_ticks, &laggard, &timer), 0);
    laggard.job.run = lag;
    gori_job_timer_start_periodic(timer, 100 * GORI_MICROSECONDS);
    GT_EQUAL(gori_job_queue_push(queue, &laggard.job), 0);
    while (gi_atomic_u64_load(&laggard.ticks, GI_ACQUIRE) < 100) {
        (void)sched_yield();
    }
    gori_job_timer_destroy(timer);
    gori_job_queue_destroy(queue);
    gori_job_scheduler_destroy(scheduler);
    GT_CHECK(gi_atomic_u64_load(&laggard.calls, GI_RELAXED) <
             gi_atomic_u64_load(&laggard.ticks, GI_RELAXED));
}

/* What jobs of one queue post to a loop arrives in the order of the jobs, across slices, steals and
   workers of both kinds. */
enum { POSTS = 3000, PAIRS = 4 };

struct post {
    struct gori_job job;
    struct gori_task task;
    struct line *line;
    uint32_t number;
};

struct line {
    struct gori_loop *loop;
    struct gori_job_queue *queue;
    uint32_t next;
    uint32_t *arrived;
    struct post posts[POSTS];
};

static void arrive(struct gori_task *task)
{
    struct post *post = gori_container_of(task, struct post, task);
    GT_EQUAL(post->line->next, post->number);
    post->line->next++;
    if (++*post->line->arrived == POSTS * PAIRS) {
        gori_loop_stop(post->line->loop);
    }
}

static void post_to_loop(struct gori_job *job)
{
    struct post *post = gori_container_of(job, struct post, job);
    post->task = (struct gori_task){.run = arrive};
    GT_EQUAL(gori_loop_post(post->line->loop, &post->task), 0);
}

static void *push_lines(void *argument)
{
    struct line *lines = argument;
    for (uint32_t i = 0; i < POSTS; i++) {
        for (uint32_t pair = 0; pair < PAIRS; pair++) {
            struct post *post = &lines[pair].posts[i];
            *post = (struct post){.job = {.run = post_to_loop}, .line = &lines[pair], .number = i};
            GT_EQUAL(gori_job_queue_push(lines[pair].queue, &post->job), 0);
        }
    }
    return NULL;
}

GT_TEST(jobs_post_to_a_loop_in_order)
{
    static struct line lines[PAIRS];
    struct gori_job_scheduler *scheduler;
    struct gori_loop *loop;
    pthread_t pusher;
    uint32_t arrived = 0;
    const struct gori_job_scheduler_config config = {.threads = 2, .slice = 20 * GORI_MICROSECONDS};
    GT_EQUAL(gori_loop_create(NULL, &loop), 0);
    GT_EQUAL(gori_job_scheduler_create(&config, &scheduler), 0);
    GT_EQUAL(gori_job_scheduler_attach(scheduler, loop), 0);
    GT_EQUAL(gori_job_scheduler_attach(scheduler, loop), GORI_EBUSY);
    for (int i = 0; i < PAIRS; i++) {
        lines[i].loop = loop;
        lines[i].arrived = &arrived;
        GT_EQUAL(gori_job_queue_create(scheduler, NULL, &lines[i].queue), 0);
    }
    GT_EQUAL(pthread_create(&pusher, NULL, push_lines, lines), 0);
    GT_EQUAL(gori_loop_run(loop), 0);
    GT_EQUAL(pthread_join(pusher, NULL), 0);
    for (int i = 0; i < PAIRS; i++) {
        GT_EQUAL(lines[i].next, POSTS);
        gori_job_queue_destroy(lines[i].queue);
    }
    gori_loop_destroy(loop);
    gori_job_scheduler_destroy(scheduler);
}

/* Loops alone do the work: on their own threads, asleep until there is some. */
struct helper {
    pthread_t thread;
    struct gori_job_scheduler *scheduler;
    struct gi_atomic_pointer loop;
    struct gi_atomic_bool may_end; /* nobody uses `loop` any more */
};

static void *help(void *argument)
{
    struct helper *helper = argument;
    struct gori_loop *loop;
    GT_EQUAL(gori_loop_create(NULL, &loop), 0);
    GT_EQUAL(gori_job_scheduler_attach(helper->scheduler, loop), 0);
    gi_atomic_pointer_store(&helper->loop, loop, GI_RELEASE);
    GT_EQUAL(gori_loop_run(loop), 0);
    while (!gi_atomic_bool_load(&helper->may_end, GI_ACQUIRE)) {
        (void)sched_yield();
    }
    gori_loop_destroy(loop);
    return NULL;
}

static void helper_start(struct helper *helper, struct gori_job_scheduler *scheduler)
{
    helper->scheduler = scheduler;
    gi_atomic_pointer_init(&helper->loop, NULL);
    gi_atomic_bool_init(&helper->may_end, false);
    GT_EQUAL(pthread_create(&helper->thread, NULL, help, helper), 0);
}

static struct gori_loop *helper_loop(struct helper *helper)
{
    struct gori_loop *loop;
    while ((loop = gi_atomic_pointer_load(&helper->loop, GI_ACQUIRE)) == NULL) {
        (void)sched_yield();
    }
    return loop;
}

static void helper_end(struct helper *helper)
{
    gori_loop_stop(helper_loop(helper));
    gi_atomic_bool_store(&helper->may_end, true, GI_RELEASE);
    GT_EQUAL(pthread_join(helper->thread, NULL), 0);
}

struct pulse {
    struct gori_job job;
    struct gi_atomic_u32 count;
};

static void beat(struct gori_job *job)
{
    struct pulse *pulse = job->user;
    (void)gi_atomic_u32_add(&pulse->count, 1, GI_RELEASE);
}

GT_TEST(loops_run_jobs_and_wake_for_each)
{
    static struct helper helpers[2];
    static struct pulse pulse;
    struct gori_job_scheduler *scheduler;
    struct gori_job_queue *queue;
    const struct gori_job_scheduler_config config = {.no_threads = true};
    GT_EQUAL(gori_job_scheduler_create(&config, &scheduler), 0);
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queue), 0);
    for (int i = 0; i < 2; i++) {
        helper_start(&helpers[i], scheduler);
    }
    for (uint32_t i = 0; i < 300; i++) {
        pulse.job = (struct gori_job){.run = beat, .user = &pulse};
        GT_EQUAL(gori_job_queue_push(queue, &pulse.job), 0);
        while (gi_atomic_u32_load(&pulse.count, GI_ACQUIRE) <= i) {
            (void)sched_yield();
        }
    }
    for (int i = 0; i < 2; i++) {
        helper_end(&helpers[i]);
    }
    GT_EQUAL(gori_job_queue_push(queue, &pulse.job), 0); /* nobody is there: dropped at the end */
    gori_job_queue_destroy(queue);
    gori_job_scheduler_destroy(scheduler);
    GT_EQUAL(gi_atomic_u32_load(&pulse.count, GI_ACQUIRE), 300);
}

/* A task that keeps its loop until it may go. */
struct burden {
    struct gori_task task;
    struct gi_atomic_bool has_begun;
    struct gi_atomic_bool may_go;
};

static void carry(struct gori_task *task)
{
    struct burden *burden = task->user;
    gi_atomic_bool_store(&burden->has_begun, true, GI_RELEASE);
    while (!gi_atomic_bool_load(&burden->may_go, GI_ACQUIRE)) {
        (void)sched_yield();
    }
}

/* I6.  Both are parked, and the busy one was the last to park.  It is kept until the job has run,
 * so the job would never run if that one were woken for it. */
GT_TEST(a_loop_that_sleeps_is_woken_for_a_job_rather_than_one_that_is_busy)
{
    static struct helper helpers[2];
    static struct burden burden;
    static struct pulse pulse;
    struct gori_job_scheduler *scheduler;
    struct gori_job_queue *queue;
    const struct gori_job_scheduler_config config = {.no_threads = true};
    GT_EQUAL(gori_job_scheduler_create(&config, &scheduler), 0);
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queue), 0);
    for (int i = 0; i < 2; i++) {
        helper_start(&helpers[i], scheduler);
        while (!gi_sleep_is_asleep(&helper_loop(&helpers[i])->shared.sleep)) {
            (void)sched_yield(); /* it sleeps when it has parked */
        }
    }
    burden.task = (struct gori_task){.run = carry, .user = &burden};
    GT_EQUAL(gori_loop_post(helper_loop(&helpers[1]), &burden.task), 0);
    while (!gi_atomic_bool_load(&burden.has_begun, GI_ACQUIRE)) {
        (void)sched_yield();
    }
    pulse.job = (struct gori_job){.run = beat, .user = &pulse};
    GT_EQUAL(gori_job_queue_push(queue, &pulse.job), 0);
    while (gi_atomic_u32_load(&pulse.count, GI_ACQUIRE) == 0) {
        (void)sched_yield();
    }
    gi_atomic_bool_store(&burden.may_go, true, GI_RELEASE);
    for (int i = 0; i < 2; i++) {
        helper_end(&helpers[i]);
    }
    gori_job_queue_destroy(queue);
    gori_job_scheduler_destroy(scheduler);
}

/* A job that does not end, on a loop, until that was reported. */
struct stuck {
    struct gori_job job;
    struct gi_atomic_u32 reports;
    struct gi_atomic_bool has_run;
    void *user;
};

static void note_stall(struct gori_job_scheduler *scheduler, const struct gori_job_report *report)
{
    struct stuck *stuck = gori_job_scheduler_user(scheduler);
    GT_EQUAL(report->kind, GORI_JOB_STALL);
    stuck->user = report->queue_user;
    (void)gi_atomic_u32_add(&stuck->reports, 1, GI_RELEASE);
}

static void stay(struct gori_job *job)
{
    struct stuck *stuck = gori_container_of(job, struct stuck, job);
    while (gi_atomic_u32_load(&stuck->reports, GI_ACQUIRE) < 2) {
        (void)sched_yield();
    }
    gi_atomic_bool_store(&stuck->has_run, true, GI_RELEASE);
}

static void get_stuck(struct gori_job_scheduler_config config)
{
    struct stuck stuck = {.job = {.run = stay}};
    struct gori_job_scheduler *scheduler;
    struct gori_job_queue *queue;
    struct gori_loop *loop;
    config.stall_threshold = 4 * GORI_MILLISECONDS;
    config.no_stealing = true;
    config.on_report = note_stall;
    config.user = &stuck;
    GT_EQUAL(gori_job_scheduler_create(&config, &scheduler), 0);
    GT_EQUAL(gori_loop_create(NULL, &loop), 0);
    GT_EQUAL(gori_job_scheduler_attach(scheduler, loop), 0);
    const struct gori_job_queue_config queue_config = {.user = loop};
    GT_EQUAL(gori_job_queue_create(scheduler, &queue_config, &queue), 0);
    for (int i = 0; i < 2; i++) {
        gi_atomic_u32_init(&stuck.reports, 0);
        gi_atomic_bool_init(&stuck.has_run, false);
        GT_EQUAL(gori_job_queue_push(queue, &stuck.job), 0);
        while (!gi_atomic_bool_load(&stuck.has_run, GI_ACQUIRE)) {
            GT_CHECK(gori_loop_turn(loop, GORI_MILLISECONDS) >= 0);
        }
        GT_CHECK(stuck.user == loop);
    }
    gori_job_queue_destroy(queue);
    gori_loop_destroy(loop);
    gori_job_scheduler_destroy(scheduler);
}

GT_TEST(job_that_does_not_end_on_a_loop_is_reported)
{
    get_stuck((struct gori_job_scheduler_config){.no_threads = true});
}

GT_TEST(job_that_does_not_end_on_a_loop_beside_threads_is_reported)
{
    get_stuck((struct gori_job_scheduler_config){.threads = 1});
}

GT_MAIN()
