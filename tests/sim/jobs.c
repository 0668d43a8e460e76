/* SPDX-License-Identifier: MIT */
/*
 * Job queues whose workers are simulated loops: the seed decides whose turn it is, and so who runs,
 * steals and parks; and what the jobs do: push to other queues, post to loops, start timers,
 * destroy queues.  Now and then a loop leaves in the middle.
 *
 *  1. Jobs of a queue run in the order in which they were pushed, never one inside another, and
 *     each accepted one runs or is dropped, once; drops come only after the queue was destroyed,
 *     and its end after all of them, once.
 *  2. What the jobs of a queue post to a loop arrives in their order.
 *  3. A timer does not fire early, nor after it was stopped, and a periodic one loses no tick while
 *     its queue lives.
 *  4. A queue with jobs does not wait for ever: the world would come to a stop.
 */
#include <gori/error.h>
#include <gori/job_queue.h>
#include <gori/job_scheduler.h>
#include <string.h>

#include "base/assert.h"
#include "sim/run.h"

enum { QUEUES_MAX = 6, JOBS_MAX = 400, PUSHERS = 3 };

struct scene;

struct line {
    struct scene *scene;
    struct gori_job_queue *queue;
    bool is_destroyed;
    bool is_running;
    bool has_ended;   /* on_end has run */
    uint32_t pushed;  /* accepted */
    uint32_t ended;   /* run or dropped: also the number of the next one */
    uint32_t posted;  /* tasks to the loop, sent */
    uint32_t arrived; /* tasks to the loop, run */
    struct gori_job_timer *timer;
    gori_time timer_due;
    gori_time timer_period; /* 0: once */
    bool timer_is_started;
};

struct work {
    struct gori_job job;
    struct gori_task task;
    struct line *line;
    uint32_t number;
    uint32_t post_number;
    bool is_used;
};

struct scene {
    struct sim_run run;
    struct gori_job_scheduler *scheduler;
    struct line lines[QUEUES_MAX];
    uint32_t line_count;
    struct work works[JOBS_MAX];
    uint32_t work_count; /* pushed, or tried to be */
    uint32_t budget;     /* of them, at most */
    struct gi_sim_event pushers[PUSHERS];
    uint32_t pushers_left;
};

static struct scene g_scene;

static gori_time now(const struct scene *scene)
{
    return gi_sim_now(scene->run.sim);
}

static void arrive(struct gori_task *task)
{
    struct work *work = gori_container_of(task, struct work, task);
    SIM_CHECK(&work->line->scene->run, work->line->arrived == work->post_number);
    work->line->arrived++;
}

/* All tasks of a queue go to the first loop, which stays to the end. */
static void post(struct scene *scene, struct work *work)
{
    struct line *line = work->line;
    work->task = (struct gori_task){.run = arrive};
    work->post_number = line->posted;
    if (gori_loop_post(scene->run.loops[0].loop, &work->task) == 0) {
        line->posted++;
    }
}

static void drop_job(struct gori_job *job)
{
    struct work *work = gori_container_of(job, struct work, job);
    struct line *line = work->line;
    SIM_CHECK(&line->scene->run, line->is_destroyed);
    SIM_CHECK(&line->scene->run, line->ended == work->number);
    line->ended++;
}

static void end_line(struct gori_job_queue *queue)
{
    struct line *line = gori_job_queue_user(queue);
    SIM_CHECK(&line->scene->run, line->is_destroyed && !line->is_running && !line->has_ended);
    SIM_CHECK(&line->scene->run, line->ended == line->pushed);
    line->has_ended = true;
}

static void run_job(struct gori_job *job);

static void push(struct scene *scene, struct line *line)
{
    if (scene->work_count == scene->budget) {
        return;
    }
    struct work *work = &scene->works[scene->work_count++];
    *work = (struct work){
        .job = {.run = run_job, .on_drop = drop_job}, .line = line, .number = line->pushed};
    int result = line->is_destroyed ? GORI_ECLOSED : gori_job_queue_push(line->queue, &work->job);
    SIM_CHECK(&scene->run, result == 0 || result == GORI_ELIMIT || line->is_destroyed);
    line->pushed += result == 0;
}

static struct line *any_line(struct scene *scene)
{
    return &scene->lines[sim_below(&scene->run, scene->line_count)];
}

static void destroy_queue(struct line *line)
{
    if (!line->is_destroyed) {
        line->is_destroyed = true;
        gori_job_queue_destroy(line->queue);
    }
}

static void expire(struct gori_job_timer *timer, uint64_t ticks)
{
    struct line *line = gori_job_timer_user(timer);
    struct scene *scene = line->scene;
    SIM_CHECK(&scene->run, line->timer_is_started);
    SIM_CHECK(&scene->run, !line->is_running && !line->has_ended);
    SIM_CHECK(&scene->run, ticks > 0);
    SIM_CHECK(&scene->run, ticks == 1 || line->timer_period > 0);
    gori_time last_due = line->timer_due + (ticks - 1) * line->timer_period;
    SIM_CHECK(&scene->run, now(scene) >= last_due);
    line->timer_due = last_due + line->timer_period;
    line->timer_is_started = line->timer_period > 0;
    if (sim_once_in(&scene->run, 3)) {
        gori_job_timer_stop(timer);
        line->timer_is_started = false;
    }
}

/* From a job of the queue itself, which is where stopping is exact. */
static void play_with_timer(struct scene *scene, struct line *line)
{
    gori_time delay = sim_below(&scene->run, 5 * GORI_MILLISECONDS);
    line->timer_is_started = true;
    line->timer_due = now(scene) + delay;
    line->timer_period = 0;
    if (sim_once_in(&scene->run, 2)) {
        gori_job_timer_start(line->timer, delay);
    } else {
        line->timer_period = delay == 0 ? 1000 : delay + 1000;
        line->timer_due = now(scene) + line->timer_period;
        gori_job_timer_start_periodic(line->timer, line->timer_period);
    }
    if (sim_once_in(&scene->run, 4)) {
        gori_job_timer_stop(line->timer);
        line->timer_is_started = false;
    }
}

static void run_job(struct gori_job *job)
{
    struct work *work = gori_container_of(job, struct work, job);
    struct line *line = work->line;
    struct scene *scene = line->scene;
    SIM_CHECK(&scene->run, !line->is_running && !line->has_ended);
    SIM_CHECK(&scene->run, line->ended == work->number);
    line->is_running = true;
    line->ended++;
    switch (sim_below(&scene->run, 8)) {
    case 0:
    case 1:
        push(scene, any_line(scene));
        push(scene, any_line(scene));
        break;
    case 2:
    case 3:
        post(scene, work);
        break;
    case 4:
        play_with_timer(scene, line);
        break;
    case 5:
        if (sim_once_in(&scene->run, 20)) {
            destroy_queue(any_line(scene));
        }
        break;
    default:
        break;
    }
    line->is_running = false;
}

/* Somebody outside: pushes now and then. */
static void push_later(struct gi_sim *sim, struct gi_sim_event *event)
{
    struct scene *scene = &g_scene;
    for (uint32_t i = sim_below(&scene->run, 6); i > 0; i--) {
        push(scene, any_line(scene));
    }
    if (scene->work_count < scene->budget) {
        gi_sim_schedule(sim, event, sim_below(&scene->run, 3 * GORI_MILLISECONDS), push_later);
    } else {
        scene->pushers_left--;
    }
}

static bool is_done(void *user)
{
    struct scene *scene = user;
    bool all_ended = scene->pushers_left == 0;
    for (uint32_t i = 0; i < scene->line_count; i++) {
        const struct line *line = &scene->lines[i];
        all_ended &= line->ended == line->pushed && line->arrived == line->posted;
    }
    return all_ended;
}

static void open_lines(struct scene *scene)
{
    scene->line_count = 1 + sim_below(&scene->run, QUEUES_MAX);
    for (uint32_t i = 0; i < scene->line_count; i++) {
        struct line *line = &scene->lines[i];
        line->scene = scene;
        const struct gori_job_queue_config config = {
            .jobs_max = sim_once_in(&scene->run, 3) ? 1 + sim_below(&scene->run, 5) : 0,
            .on_end = end_line,
            .user = line};
        int status = gori_job_queue_create(scene->scheduler, &config, &line->queue);
        SIM_CHECK(&scene->run, status == 0);
        status = gori_job_timer_create(line->queue, expire, line, &line->timer);
        SIM_CHECK(&scene->run, status == 0);
    }
}

static void open_loops(struct scene *scene)
{
    uint32_t count = 1 + sim_below(&scene->run, SIM_LOOPS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct gori_loop_config config = {.completions_max = 1 + sim_below(&scene->run, 64)};
        struct sim_loop *loop;
        int status = sim_run_add_loop(&scene->run, &config, &loop);
        SIM_CHECK(&scene->run, status == 0);
        status = gori_job_scheduler_attach(scene->scheduler, loop->loop);
        SIM_CHECK(&scene->run, status == 0);
    }
}

static void close_all(struct scene *scene)
{
    for (uint32_t i = 0; i < scene->line_count; i++) {
        gori_job_timer_destroy(scene->lines[i].timer);
        destroy_queue(&scene->lines[i]);
    }
    for (uint32_t i = 0; i < scene->run.loop_count; i++) {
        if (scene->run.loops[i].loop != NULL) {
            sim_run_destroy_loop(&scene->run, &scene->run.loops[i]);
        }
    }
    gori_job_scheduler_destroy(scene->scheduler);
}

static bool half_is_done(void *user)
{
    struct scene *scene = user;
    return scene->work_count >= scene->budget / 2 || is_done(user);
}

static uint64_t play(uint64_t seed)
{
    struct scene *scene = &g_scene;
    memset(scene, 0, sizeof(*scene));
    struct gi_random random;
    gi_random_init(&random, seed);
    sim_random_config(&random, &scene->run.config);
    sim_run_begin(&scene->run, seed);
    const struct gori_job_scheduler_config config = {
        .allocator = &scene->run.memory.allocator,
        .no_threads = true,
        .no_stealing = sim_once_in(&scene->run, 4),
        .slice_jobs = sim_below(&scene->run, 4),
        .slice = 1 + sim_below(&scene->run, 100 * GORI_MICROSECONDS),
        .loop_slice = 1 + sim_below(&scene->run, 100 * GORI_MICROSECONDS),
    };
    int status = gori_job_scheduler_create(&config, &scene->scheduler);
    GI_ASSERT(status == 0);
    open_loops(scene);
    open_lines(scene);
    scene->budget = 1 + sim_below(&scene->run, JOBS_MAX);
    scene->pushers_left = PUSHERS;
    for (uint32_t i = 0; i < PUSHERS; i++) {
        gi_sim_schedule(scene->run.sim, &scene->pushers[i],
                        sim_below(&scene->run, GORI_MILLISECONDS), push_later);
    }
    sim_run_until(&scene->run, half_is_done, scene);
    if (scene->run.loop_count > 1 && sim_once_in(&scene->run, 2)) {
        sim_run_destroy_loop(&scene->run, &scene->run.loops[scene->run.loop_count - 1]);
    }
    sim_run_until(&scene->run, is_done, scene);
    close_all(scene);
    for (uint32_t i = 0; i < scene->line_count; i++) {
        SIM_CHECK(&scene->run, scene->lines[i].ended == scene->lines[i].pushed);
        SIM_CHECK(&scene->run, scene->lines[i].has_ended);
    }
    return sim_run_end(&scene->run);
}

const struct sim_scenario sim_jobs = {.name = "jobs", .seeds = 600, .play = play};
