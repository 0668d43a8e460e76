/* SPDX-License-Identifier: MIT */
/*
 * The clock of a scheduler: the timers of its queues, and the watch over jobs that do not end.
 *
 *  1. One wheel under one monitor.  It is driven by a thread of its own, or, in a scheduler without
 *     threads, by one of the attached loops, whose alarm is set to the next deadline.
 *  2. An expiry adds a tick to its timer.  The first tick pushes the timer's job, for which there
 *     is always room; ticks that come before that job runs are merged into it.  So a queue that is
 *     behind gets one call, however many ticks it missed.
 *  3. Stop and start forget ticks that were not delivered.  A job that is on its way then finds no
 *     tick and does nothing; it may be used for the next one.
 *  4. A timer's memory goes when it was destroyed, its job is not on its way, and its function does
 *     not run: whoever ends the last of the three frees.
 *  5. The watch reads two counters of each worker that has a queue in its hands; when neither has
 *     moved for `stall_threshold`, one job has been running for so long.  It looks four times in
 *     that span, only while somebody is not parked, and only when there is somebody to tell.  In a
 *     scheduler without threads the clock's thread is there for it alone, since a loop that is
 *     stuck cannot report itself; it touches no timer, whose time is that of the loops.
 *
 * Thread: any, under clock->monitor; the watch, the clock's thread.
 */
#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "rt/job.h"
#include "rt/loop.h"

struct gori_job_timer {
    struct gori_job_queue *queue; /* holds a reference */
    gori_job_timer_fn *on_expire;
    void *user;
    struct gori_job job;
    /* under clock->monitor */
    struct gori_wheel_entry entry;
    gori_time period;   /* 0: once */
    uint64_t ticks;     /* expired and not delivered */
    bool is_pushed;     /* the job is on its way */
    bool is_delivering; /* on_expire runs */
    bool is_destroyed;
};

static struct gi_job_clock *clock_of(const struct gori_job_timer *timer)
{
    return &timer->queue->scheduler->clock;
}

/* Expiry ----------------------------------------------------------------------------------- */

static void restart_periodic(struct gi_job_clock *clock, struct gori_job_timer *timer,
                             gori_time now)
{
    gori_time missed = (now - timer->entry.deadline) / timer->period;
    timer->ticks += missed;
    gori_time next = gi_add_saturated_u64(timer->entry.deadline, missed * timer->period);
    gi_wheel_start(&clock->wheel, &timer->entry, gi_add_saturated_u64(next, timer->period));
}

static void expire(struct gi_job_clock *clock, struct gori_job_timer *timer, gori_time now)
{
    timer->ticks++;
    if (timer->period != 0) {
        restart_periodic(clock, timer, now);
    }
    if (timer->is_pushed) {
        return;
    }
    if (gi_job_queue_push_owed(timer->queue, &timer->job) < 0) {
        gi_wheel_stop(&clock->wheel, &timer->entry); /* the queue has ended */
        return;
    }
    timer->is_pushed = true;
}

/* Under the monitor. */
static void fire_due(struct gi_job_clock *clock, gori_time now)
{
    struct gori_link expired;
    gi_list_init(&expired);
    gi_wheel_advance(&clock->wheel, now, &expired);
    for (struct gori_link *link; (link = gi_list_pop_front(&expired)) != NULL;) {
        struct gori_wheel_entry *entry = gori_container_of(link, struct gori_wheel_entry, link);
        expire(clock, gori_container_of(entry, struct gori_job_timer, entry), now);
    }
}

static void free_timer(struct gori_job_timer *timer)
{
    struct gori_job_queue *queue = timer->queue;
    gi_free(queue->scheduler->allocator, timer, sizeof(*timer));
    gori_job_queue_unref(queue);
}

/* Under the monitor, which it gives up: frees the timer if this was the last that held it. */
static void unlock_and_settle(struct gi_job_clock *clock, struct gori_job_timer *timer)
{
    bool is_over = timer->is_destroyed && !timer->is_pushed && !timer->is_delivering;
    gi_os_monitor_unlock(&clock->monitor);
    if (is_over) {
        free_timer(timer);
    }
}

/* The job of a timer: delivers what has ticked. */
static void deliver(struct gori_job *job)
{
    struct gori_job_timer *timer = gori_container_of(job, struct gori_job_timer, job);
    struct gi_job_clock *clock = clock_of(timer);
    gi_os_monitor_lock(&clock->monitor);
    uint64_t ticks = timer->ticks;
    timer->ticks = 0;
    timer->is_pushed = false;
    if (ticks > 0) {
        timer->is_delivering = true;
        gi_os_monitor_unlock(&clock->monitor);
        timer->on_expire(timer, ticks);
        gi_os_monitor_lock(&clock->monitor);
        timer->is_delivering = false;
    }
    unlock_and_settle(clock, timer);
}

/* The same when the queue has ended. */
static void forget(struct gori_job *job)
{
    struct gori_job_timer *timer = gori_container_of(job, struct gori_job_timer, job);
    struct gi_job_clock *clock = clock_of(timer);
    gi_os_monitor_lock(&clock->monitor);
    timer->is_pushed = false;
    gi_wheel_stop(&clock->wheel, &timer->entry);
    unlock_and_settle(clock, timer);
}

/* Timers ----------------------------------------------------------------------------------- */

int gori_job_timer_create(struct gori_job_queue *queue, gori_job_timer_fn *on_expire, void *user,
                          struct gori_job_timer **ret_timer)
{
    if (on_expire == NULL) {
        return GORI_EINVAL;
    }
    struct gori_job_timer *timer = gi_alloc_zero(queue->scheduler->allocator, sizeof(*timer));
    if (timer == NULL) {
        return GORI_ENOMEM;
    }
    timer->queue = gori_job_queue_ref(queue);
    timer->on_expire = on_expire;
    timer->user = user;
    timer->job = (struct gori_job){.run = deliver, .on_drop = forget};
    *ret_timer = timer;
    return 0;
}

/* Tells whoever drives the clock that there is an earlier deadline.  Under the monitor. */
static void tell_driver(struct gi_job_clock *clock)
{
    if (clock->driver != NULL) {
        /* The loop looks at it after it said that it sleeps: loop.h, L3. */
        gi_atomic_bool_store(&clock->driver->shared.clock_news, true, GI_SEQ_CST);
        gi_loop_wake(clock->driver->loop);
    } else {
        gi_os_monitor_notify(&clock->monitor);
    }
}

static void start(struct gori_job_timer *timer, gori_time delay, gori_time period)
{
    struct gi_job_clock *clock = clock_of(timer);
    gi_os_monitor_lock(&clock->monitor);
    gori_time now = gi_job_clock_now(timer->queue->scheduler);
    gori_time before = gi_wheel_next(&clock->wheel);
    timer->ticks = 0;
    timer->period = period;
    gi_wheel_start(&clock->wheel, &timer->entry, gi_add_saturated_u64(now, delay));
    if (gi_wheel_next(&clock->wheel) < before) {
        tell_driver(clock);
    }
    gi_os_monitor_unlock(&clock->monitor);
}

void gori_job_timer_start(struct gori_job_timer *timer, gori_time delay)
{
    start(timer, delay, 0);
}

void gori_job_timer_start_periodic(struct gori_job_timer *timer, gori_time period)
{
    period = period == 0 ? 1 : period;
    start(timer, period, period);
}

void gori_job_timer_stop(struct gori_job_timer *timer)
{
    struct gi_job_clock *clock = clock_of(timer);
    gi_os_monitor_lock(&clock->monitor);
    gi_wheel_stop(&clock->wheel, &timer->entry);
    timer->ticks = 0;
    gi_os_monitor_unlock(&clock->monitor);
}

void gori_job_timer_destroy(struct gori_job_timer *timer)
{
    if (timer == NULL) {
        return;
    }
    struct gi_job_clock *clock = clock_of(timer);
    gi_os_monitor_lock(&clock->monitor);
    gi_wheel_stop(&clock->wheel, &timer->entry);
    timer->ticks = 0;
    timer->is_destroyed = true;
    unlock_and_settle(clock, timer);
}

void *gori_job_timer_user(const struct gori_job_timer *timer)
{
    return timer->user;
}

/* Watching --------------------------------------------------------------------------------- */

static void report_stall(struct gori_job_scheduler *scheduler, uint32_t index, gori_time now)
{
    struct gi_job_watch *watch = &scheduler->clock.watches[index];
    struct gi_job_worker *worker = gi_job_worker_at(scheduler, index);
    const struct gori_job_report report = {
        .kind = GORI_JOB_STALL,
        .worker = index,
        .queue_user = gi_atomic_pointer_load(&worker->shared.user, GI_RELAXED),
        .running_for = now - watch->since,
    };
    /* If it went on after all while we read, this is about somebody else: say nothing. */
    if (gi_atomic_u64_load(&worker->shared.figures.jobs, GI_ACQUIRE) == watch->jobs) {
        watch->report_at = gi_add_saturated_u64(watch->report_at, watch->report_at);
        scheduler->config.on_report(scheduler, &report);
    }
}

static void watch_worker(struct gori_job_scheduler *scheduler, uint32_t index, gori_time now)
{
    struct gi_job_watch *watch = &scheduler->clock.watches[index];
    const struct gi_job_worker *worker = gi_job_worker_at(scheduler, index);
    bool is_running = gi_atomic_bool_load(&worker->shared.is_running, GI_ACQUIRE);
    uint64_t jobs = gi_atomic_u64_load(&worker->shared.figures.jobs, GI_RELAXED);
    uint64_t slices = gi_atomic_u64_load(&worker->shared.figures.slices, GI_RELAXED);
    if (!is_running || watch->since == 0 || jobs != watch->jobs || slices != watch->slices) {
        *watch = (struct gi_job_watch){
            .jobs = jobs,
            .slices = slices,
            .since = is_running ? now : 0,
            .report_at = scheduler->config.stall_threshold,
        };
    } else if (now - watch->since >= watch->report_at) {
        report_stall(scheduler, index, now);
    }
}

static bool anybody_up(struct gori_job_scheduler *scheduler)
{
    return gi_atomic_u32_load(&scheduler->idle.parked, GI_SEQ_CST) <
           gi_atomic_u32_load(&scheduler->workers_in_use, GI_SEQ_CST);
}

/* Looks at every worker.  Result: when to look again, GORI_NEVER while all are parked. */
static gori_time watch_all(struct gori_job_scheduler *scheduler, gori_time now)
{
    struct gi_job_clock *clock = &scheduler->clock;
    if (scheduler->config.on_report == NULL) {
        return GORI_NEVER;
    }
    uint32_t workers = gi_atomic_u32_load(&scheduler->worker_count, GI_ACQUIRE);
    for (uint32_t i = 0; i < workers; i++) {
        watch_worker(scheduler, i, now);
    }
    if (!anybody_up(scheduler)) {
        /* Says that it sleeps, and looks again: as in I1. */
        (void)gi_atomic_bool_exchange(&clock->is_awake, false, GI_SEQ_CST);
        if (!anybody_up(scheduler)) {
            return GORI_NEVER;
        }
        (void)gi_atomic_bool_exchange(&clock->is_awake, true, GI_SEQ_CST);
    }
    return gi_add_saturated_u64(now, scheduler->config.stall_threshold / 4 + 1);
}

void gi_job_clock_watch(struct gori_job_scheduler *scheduler)
{
    struct gi_job_clock *clock = &scheduler->clock;
    if (scheduler->config.on_report == NULL || gi_atomic_bool_load(&clock->is_awake, GI_SEQ_CST) ||
        gi_atomic_bool_exchange(&clock->is_awake, true, GI_SEQ_CST)) {
        return;
    }
    gi_os_monitor_lock(&clock->monitor);
    gi_os_monitor_notify(&clock->monitor);
    gi_os_monitor_unlock(&clock->monitor);
}

/* Drivers ---------------------------------------------------------------------------------- */

static void clock_main(void *argument)
{
    struct gori_job_scheduler *scheduler = argument;
    struct gi_job_clock *clock = &scheduler->clock;
    bool has_timers = !scheduler->config.no_threads;
    gi_os_thread_set_name("gori-clock");
    gi_os_monitor_lock(&clock->monitor);
    while (!clock->is_ending) {
        gori_time now = gi_os_now();
        if (has_timers) {
            fire_due(clock, now);
        }
        /* The report hook runs without the monitor: it may take its time. */
        gi_os_monitor_unlock(&clock->monitor);
        gori_time look_at = watch_all(scheduler, now);
        gi_os_monitor_lock(&clock->monitor);
        gori_time deadline =
            has_timers ? gi_min_u64(gi_wheel_next(&clock->wheel), look_at) : look_at;
        bool is_news = look_at == GORI_NEVER && gi_atomic_bool_load(&clock->is_awake, GI_SEQ_CST) &&
                       scheduler->config.on_report != NULL;
        if (!clock->is_ending && !is_news) {
            (void)gi_os_monitor_wait_until(&clock->monitor, deadline);
        }
    }
    gi_os_monitor_unlock(&clock->monitor);
}

gori_time gi_job_clock_now(struct gori_job_scheduler *scheduler)
{
    /* An attached loop has its own idea of time, in the simulator; all others have the system's. */
    struct gi_job_worker *self = gi_job_worker_self();
    bool is_loop = self != NULL && self->scheduler == scheduler && self->loop != NULL;
    return is_loop ? self->loop->engine->impl->now(self->loop->engine) : gi_os_now();
}

static void alarm_rang(struct gori_timer *timer)
{
    struct gi_job_worker *worker = gori_container_of(timer, struct gi_job_worker, alarm);
    struct gi_job_clock *clock = &worker->scheduler->clock;
    gi_os_monitor_lock(&clock->monitor);
    fire_due(clock, worker->loop->now);
    gi_os_monitor_unlock(&clock->monitor);
    gi_job_clock_turn(worker);
}

void gi_job_clock_turn(struct gi_job_worker *driver)
{
    struct gi_job_clock *clock = &driver->scheduler->clock;
    gi_os_monitor_lock(&clock->monitor);
    gori_time next = gi_wheel_next(&clock->wheel);
    gi_os_monitor_unlock(&clock->monitor);
    driver->alarm.on_expire = alarm_rang;
    gi_timer_start_at(driver->loop, &driver->alarm, next);
}

/* Under the monitor. */
static void set_driver(struct gi_job_clock *clock, struct gi_job_worker *driver)
{
    clock->driver = driver;
    if (driver != NULL) {
        tell_driver(clock);
    }
}

void gi_job_clock_attach(struct gi_job_worker *worker)
{
    struct gi_job_clock *clock = &worker->scheduler->clock;
    if (!worker->scheduler->config.no_threads) {
        return;
    }
    gi_os_monitor_lock(&clock->monitor);
    gi_list_push_back(&clock->loops, &worker->clock_link);
    if (clock->driver == NULL) {
        set_driver(clock, worker);
    }
    gi_os_monitor_unlock(&clock->monitor);
}

void gi_job_clock_detach(struct gi_job_worker *worker)
{
    struct gi_job_clock *clock = &worker->scheduler->clock;
    if (!worker->scheduler->config.no_threads) {
        return;
    }
    gi_os_monitor_lock(&clock->monitor);
    gi_list_remove(&worker->clock_link);
    if (clock->driver == worker) {
        gi_atomic_bool_store(&worker->shared.clock_news, false, GI_RELAXED);
        struct gori_link *next = gi_list_first(&clock->loops);
        set_driver(clock,
                   next == NULL ? NULL : gori_container_of(next, struct gi_job_worker, clock_link));
    }
    gi_os_monitor_unlock(&clock->monitor);
    gori_timer_stop(&worker->alarm);
}

int gi_job_clock_init(struct gori_job_scheduler *scheduler)
{
    struct gi_job_clock *clock = &scheduler->clock;
    /* The time of loops may be a simulated one: then it begins anywhere. */
    gi_wheel_init(&clock->wheel, scheduler->config.no_threads ? 0 : gi_os_now());
    gi_list_init(&clock->loops);
    return gi_os_monitor_init(&clock->monitor);
}

void gi_job_clock_fini(struct gori_job_scheduler *scheduler)
{
    gi_os_monitor_fini(&scheduler->clock.monitor);
}

static bool has_thread(const struct gori_job_scheduler *scheduler)
{
    return !scheduler->config.no_threads || scheduler->config.on_report != NULL;
}

int gi_job_clock_start(struct gori_job_scheduler *scheduler)
{
    if (!has_thread(scheduler)) {
        return 0;
    }
    return gi_os_thread_start(&scheduler->clock.thread, clock_main, scheduler);
}

void gi_job_clock_stop(struct gori_job_scheduler *scheduler)
{
    struct gi_job_clock *clock = &scheduler->clock;
    if (!has_thread(scheduler)) {
        return;
    }
    gi_os_monitor_lock(&clock->monitor);
    clock->is_ending = true;
    gi_os_monitor_notify(&clock->monitor);
    gi_os_monitor_unlock(&clock->monitor);
    gi_os_thread_join(&clock->thread);
}
