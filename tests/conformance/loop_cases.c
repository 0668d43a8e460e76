/* SPDX-License-Identifier: MIT */
/*
 * Conformance of the loop itself: timers, tasks, time, and what is asked on the wrong thread.
 */
#include <pthread.h>

#include "conformance/fixture.h"

struct alarm_clock {
    struct fixture *fixture;
    struct gori_timer timer;
    gori_time due;
    unsigned fired;
    struct gori_timer *stop;  /* stopped when this one fires */
    struct gori_timer *start; /* started when this one fires */
};

static void rang(struct gori_timer *timer)
{
    struct alarm_clock *alarm = timer->user;
    GT_CHECK(!alarm->fixture->in_call);
    GT_CHECK(gori_loop_now(alarm->fixture->loop) >= alarm->due); /* never early */
    alarm->fired++;
    if (alarm->stop != NULL) {
        gori_timer_stop(alarm->stop);
    }
    if (alarm->start != NULL) {
        gori_timer_start(alarm->fixture->loop, alarm->start, 0);
    }
}

static void alarm_init(struct fixture *fixture, struct alarm_clock *alarm)
{
    *alarm = (struct alarm_clock){.fixture = fixture};
    alarm->timer.on_expire = rang;
    alarm->timer.user = alarm;
}

static void alarm_start(struct alarm_clock *alarm, gori_time delay)
{
    alarm->due = gori_loop_now(alarm->fixture->loop) + delay;
    alarm->fixture->in_call = true;
    gori_timer_start(alarm->fixture->loop, &alarm->timer, delay);
    alarm->fixture->in_call = false;
}

GT_TEST(timers_fire_once_and_never_early)
{
    enum { COUNT = 200 };
    struct fixture fixture = {0};
    struct alarm_clock alarms[COUNT];
    fixture_open(&fixture);
    for (unsigned i = 0; i < COUNT; i++) {
        alarm_init(&fixture, &alarms[i]);
        alarm_start(&alarms[i], (gori_time)(i * 77777 % 8000000));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        FIXTURE_UNTIL(&fixture, alarms[i].fired == 1);
        GT_CHECK(!gori_timer_is_active(&alarms[i].timer));
    }
    fixture_settle(&fixture);
    for (unsigned i = 0; i < COUNT; i++) {
        GT_EQUAL(alarms[i].fired, 1);
    }
    fixture_close(&fixture);
}

GT_TEST(extreme_delays_are_defined)
{
    struct fixture fixture = {0};
    struct alarm_clock now;
    struct alarm_clock never;
    struct alarm_clock far;
    fixture_open(&fixture);
    alarm_init(&fixture, &now);
    alarm_init(&fixture, &never);
    alarm_init(&fixture, &far);
    alarm_start(&now, 0);
    gori_timer_start(fixture.loop, &never.timer, GORI_NEVER);
    gori_timer_start(fixture.loop, &far.timer, GORI_NEVER - 1);
    GT_EQUAL(now.fired, 0);
    FIXTURE_UNTIL(&fixture, now.fired == 1);
    fixture_settle(&fixture);
    GT_EQUAL(never.fired, 0);
    GT_EQUAL(far.fired, 0);
    GT_CHECK(!gori_timer_is_active(&never.timer));
    gori_timer_stop(&never.timer);
    gori_timer_stop(&far.timer);
    gori_timer_stop(&far.timer);
    fixture_close(&fixture);
}

GT_TEST(a_timer_stopped_by_another_does_not_fire)
{
    struct fixture fixture = {0};
    struct alarm_clock first;
    struct alarm_clock second;
    fixture_open(&fixture);
    alarm_init(&fixture, &first);
    alarm_init(&fixture, &second);
    first.stop = &second.timer;
    second.stop = &first.timer;
    alarm_start(&first, GORI_MILLISECONDS);
    alarm_start(&second, GORI_MILLISECONDS);
    FIXTURE_UNTIL(&fixture, first.fired + second.fired > 0);
    fixture_settle(&fixture);
    GT_EQUAL(first.fired + second.fired, 1);
    fixture_close(&fixture);
}

GT_TEST(a_timer_started_in_a_timer_fires_in_a_later_turn)
{
    struct fixture fixture = {0};
    struct alarm_clock alarm;
    fixture_open(&fixture);
    alarm_init(&fixture, &alarm);
    alarm.start = &alarm.timer;
    alarm_start(&alarm, 0);
    FIXTURE_UNTIL(&fixture, alarm.fired == 1);
    unsigned before = alarm.fired;
    GT_CHECK(gori_loop_turn(fixture.loop, GORI_SECONDS) >= 0);
    GT_CHECK(alarm.fired <= before + 1);
    FIXTURE_UNTIL(&fixture, alarm.fired >= 5);
    gori_timer_stop(&alarm.timer);
    fixture_close(&fixture);
}

GT_TEST(a_periodic_timer_keeps_its_rate_and_merges_what_it_missed)
{
    struct fixture fixture = {0};
    struct alarm_clock alarm;
    fixture_open(&fixture);
    alarm_init(&fixture, &alarm);
    gori_time start = gori_loop_now(fixture.loop);
    gori_timer_start_periodic(fixture.loop, &alarm.timer, 2 * GORI_MILLISECONDS);
    FIXTURE_UNTIL(&fixture, alarm.fired == 5);
    GT_CHECK(gori_loop_now(fixture.loop) >= start + 10 * GORI_MILLISECONDS);
    GT_CHECK(gori_timer_is_active(&alarm.timer));
    gori_timer_stop(&alarm.timer);
    gori_timer_start_periodic(fixture.loop, &alarm.timer, 1);
    unsigned before = alarm.fired;
    GT_CHECK(gori_loop_turn(fixture.loop, GORI_MILLISECONDS) >= 0);
    GT_CHECK(alarm.fired <= before + 1); /* thousands were due: one call */
    gori_timer_stop(&alarm.timer);
    fixture_close(&fixture);
}

struct note {
    struct gori_task task;
    struct fixture *fixture;
    unsigned number;
};

static unsigned next_number;

static void noted(struct gori_task *task)
{
    struct note *note = task->user;
    GT_CHECK(!note->fixture->in_call);
    GT_EQUAL(note->number, next_number);
    next_number++;
}

GT_TEST(tasks_run_in_order_and_never_inside_post)
{
    enum { COUNT = 1000 };
    struct fixture fixture = {.config = {.tasks_max = COUNT, .completions_max = 7}};
    static struct note notes[COUNT + 1];
    fixture_open(&fixture);
    next_number = 0;
    fixture.in_call = true;
    for (unsigned i = 0; i <= COUNT; i++) {
        notes[i] = (struct note){.fixture = &fixture, .number = i};
        notes[i].task.run = noted;
        notes[i].task.user = &notes[i];
        GT_EQUAL(gori_loop_post(fixture.loop, &notes[i].task), i < COUNT ? 0 : GORI_ELIMIT);
    }
    fixture.in_call = false;
    FIXTURE_UNTIL(&fixture, next_number == COUNT);
    GT_EQUAL(gori_loop_post(fixture.loop, &notes[COUNT].task), 0);
    FIXTURE_UNTIL(&fixture, next_number == COUNT + 1);
    fixture_close(&fixture);
}

struct sender {
    struct gori_loop *loop;
    struct note *notes;
    unsigned count;
};

static void *post_all(void *argument)
{
    struct sender *sender = argument;
    for (unsigned i = 0; i < sender->count; i++) {
        while (gori_loop_post(sender->loop, &sender->notes[i].task) == GORI_ELIMIT) {
            sched_yield();
        }
    }
    return NULL;
}

/* A loop that waits without end is woken by a post of another thread, every time. */
GT_TEST(a_post_wakes_a_loop_that_sleeps)
{
    enum { COUNT = 20000 };
    struct fixture fixture = {0};
    static struct note notes[COUNT];
    fixture_open(&fixture);
    if (fixture.sim != NULL) {
        fixture_close(&fixture);
        GT_SKIP("a simulated loop has one thread");
    }
    next_number = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        notes[i] = (struct note){.fixture = &fixture, .number = i};
        notes[i].task.run = noted;
        notes[i].task.user = &notes[i];
    }
    struct sender sender = {.loop = fixture.loop, .notes = notes, .count = COUNT};
    pthread_t thread;
    GT_EQUAL(pthread_create(&thread, NULL, post_all, &sender), 0);
    while (next_number < COUNT) {
        GT_CHECK(gori_loop_turn(fixture.loop, GORI_NEVER) >= 0);
    }
    GT_EQUAL(pthread_join(thread, NULL), 0);
    fixture_close(&fixture);
}

static void *stop_loop(void *argument)
{
    gori_loop_stop(argument);
    return NULL;
}

GT_TEST(a_stop_ends_a_run)
{
    struct fixture fixture = {0};
    fixture_open(&fixture);
    gori_loop_stop(fixture.loop);
    GT_EQUAL(gori_loop_run(fixture.loop), 0);
    if (fixture.sim == NULL) {
        pthread_t thread;
        GT_EQUAL(pthread_create(&thread, NULL, stop_loop, fixture.loop), 0);
        GT_EQUAL(gori_loop_run(fixture.loop), 0);
        GT_EQUAL(pthread_join(thread, NULL), 0);
    }
    fixture_close(&fixture);
}

static void *ask_from_elsewhere(void *argument)
{
    struct fixture *fixture = argument;
    struct gori_handle handle = {0};
    GT_EQUAL(gori_handle_open(fixture->loop, GORI_ADDR_IPV4, &handle), GORI_EWRONGTHREAD);
    GT_EQUAL(gori_loop_turn(fixture->loop, 0), GORI_EWRONGTHREAD);
    return NULL;
}

GT_TEST(the_wrong_thread_is_refused)
{
    struct fixture fixture = {0};
    fixture_open(&fixture);
    fixture_turn(&fixture);
    pthread_t thread;
    GT_EQUAL(pthread_create(&thread, NULL, ask_from_elsewhere, &fixture), 0);
    GT_EQUAL(pthread_join(thread, NULL), 0);
    fixture_close(&fixture);
}

GT_TEST(a_loop_that_never_ran_can_be_destroyed)
{
    struct fixture fixture = {0};
    struct note note = {.fixture = &fixture};
    fixture_open(&fixture);
    note.task.run = noted;
    note.task.user = &note;
    GT_EQUAL(gori_loop_post(fixture.loop, &note.task), 0); /* not run, by contract */
    fixture_close(&fixture);
    gori_loop_destroy(NULL);
}

GT_TEST(a_configuration_out_of_range_is_refused)
{
    struct gori_loop *loop;
    const struct gori_loop_config wrong[] = {
        {.engine = "steam"},    {.buffer_bytes = 100},        {.buffer_bytes = 2 << 20},
        {.buffers_max = 40000}, {.sessions_max = UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        GT_EQUAL(gori_loop_create(&wrong[i], &loop), GORI_EINVAL);
    }
}
