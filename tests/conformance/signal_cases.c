/* SPDX-License-Identifier: MIT */
/*
 * Conformance of signals as events of a loop: the rules of <gori/signal.h>.
 */
#include <gori/signal.h>
#include <signal.h>

#include "conformance/fixture.h"
#include "engine/sim/sim.h"
#include "lib/system.h"

struct watcher {
    struct fixture *fixture;
    struct gori_signal signal;
    unsigned heard;
    struct gori_signal *stop;    /* stopped when this one hears */
    struct gori_signal *restart; /* stopped and started again */
};

static void heard(struct gori_signal *signal)
{
    struct watcher *watcher = signal->user;
    GT_CHECK(!watcher->fixture->in_call);
    watcher->heard++;
    if (watcher->stop != NULL) {
        gori_signal_stop(watcher->stop);
    }
    if (watcher->restart != NULL) {
        gori_signal_stop(watcher->restart);
        GT_EQUAL(gori_signal_start(watcher->fixture->loop, watcher->restart, signal->number), 0);
    }
}

static void watcher_init(struct fixture *fixture, struct watcher *watcher)
{
    *watcher = (struct watcher){.fixture = fixture};
    watcher->signal.on_signal = heard;
    watcher->signal.user = watcher;
}

static void watcher_start(struct fixture *fixture, struct watcher *watcher, int number)
{
    watcher_init(fixture, watcher);
    fixture->in_call = true;
    GT_EQUAL(gori_signal_start(fixture->loop, &watcher->signal, number), 0);
    fixture->in_call = false;
    GT_CHECK(gori_signal_is_active(&watcher->signal));
}

/* Has the process of the fixture get a signal. */
static void raise_signal(struct fixture *fixture, int number)
{
    fixture->in_call = true;
    if (fixture->sim != NULL) {
        GT_CHECK(gi_sim_raise(fixture->sim, number));
    } else if (!gt_raise(number)) {
        GT_SKIP("a process of this system cannot send itself such a thing alone");
    }
    fixture->in_call = false;
}

GT_TEST(a_watcher_hears_of_its_signal)
{
    struct fixture fixture = {0};
    struct watcher watcher;
    struct watcher other;
    fixture_open(&fixture);
    watcher_start(&fixture, &watcher, SIGTERM);
    watcher_start(&fixture, &other, SIGINT);
    GT_EQUAL(watcher.signal.number, SIGTERM);
    fixture_settle(&fixture);
    GT_EQUAL(watcher.heard, 0);
    for (unsigned i = 1; i <= 3; i++) {
        raise_signal(&fixture, SIGTERM);
        FIXTURE_UNTIL(&fixture, watcher.heard == i);
        fixture_settle(&fixture);
        GT_EQUAL(watcher.heard, i);
    }
    GT_EQUAL(other.heard, 0);
    raise_signal(&fixture, SIGINT);
    FIXTURE_UNTIL(&fixture, other.heard == 1);
    GT_EQUAL(watcher.heard, 3);
    fixture_close(&fixture);
    GT_CHECK(!gori_signal_is_active(&watcher.signal));
    gori_signal_stop(&watcher.signal); /* the loop has done so already */
}

/* Rule 1: many signals before a turn are one call. */
GT_TEST(signals_that_come_together_are_one)
{
    struct fixture fixture = {0};
    struct watcher watchers[3];
    fixture_open(&fixture);
    for (int i = 0; i < 3; i++) {
        watcher_start(&fixture, &watchers[i], SIGTERM);
    }
    for (int i = 0; i < 5; i++) {
        raise_signal(&fixture, SIGTERM);
    }
    FIXTURE_UNTIL(&fixture, watchers[2].heard > 0);
    fixture_settle(&fixture);
    for (int i = 0; i < 3; i++) {
        GT_EQUAL(watchers[i].heard, 1);
    }
    fixture_close(&fixture);
}

/* Rule 4, before the turn and by another watcher within it; what is started again in a callback
 * hears of the next signal. */
GT_TEST(a_stopped_watcher_is_not_called)
{
    struct fixture fixture = {0};
    struct watcher first;
    struct watcher second;
    struct watcher third;
    fixture_open(&fixture);
    watcher_start(&fixture, &first, SIGTERM);
    watcher_start(&fixture, &second, SIGTERM);
    watcher_start(&fixture, &third, SIGTERM);
    raise_signal(&fixture, SIGTERM);
    gori_signal_stop(&first.signal);
    gori_signal_stop(&first.signal);
    second.stop = &third.signal;
    FIXTURE_UNTIL(&fixture, second.heard == 1);
    fixture_settle(&fixture);
    GT_EQUAL(first.heard, 0);
    GT_EQUAL(third.heard, 0);
    GT_CHECK(!gori_signal_is_active(&third.signal));
    second.stop = NULL;
    second.restart = &second.signal;
    raise_signal(&fixture, SIGTERM);
    FIXTURE_UNTIL(&fixture, second.heard == 2);
    fixture_settle(&fixture);
    GT_EQUAL(second.heard, 2);
    raise_signal(&fixture, SIGTERM);
    FIXTURE_UNTIL(&fixture, second.heard == 3);
    gori_signal_stop(&second.signal);
    fixture_close(&fixture);
}

/* A watcher that starts after the last one has stopped hears of nothing that came between. */
GT_TEST(a_watcher_can_be_started_again)
{
    struct fixture fixture = {0};
    struct watcher keeper;
    struct watcher watcher;
    fixture_open(&fixture);
    watcher_start(&fixture, &keeper, SIGINT);
    watcher_start(&fixture, &watcher, SIGTERM);
    for (unsigned i = 1; i <= 3; i++) {
        raise_signal(&fixture, SIGTERM);
        FIXTURE_UNTIL(&fixture, watcher.heard == i);
        raise_signal(&fixture, SIGTERM);
        gori_signal_stop(&watcher.signal);
        fixture_settle(&fixture);
        GT_EQUAL(watcher.heard, i);
        GT_EQUAL(gori_signal_start(fixture.loop, &watcher.signal, SIGTERM), 0);
        fixture_settle(&fixture);
        GT_EQUAL(watcher.heard, i);
    }
    GT_EQUAL(keeper.heard, 0);
    fixture_close(&fixture);
}

GT_TEST(watchers_on_several_loops_all_hear)
{
    struct fixture fixture = {0};
    struct gori_loop *second = NULL;
    struct watcher here;
    struct watcher there;
    fixture_open(&fixture);
    GT_EQUAL(gori_loop_create(&fixture.config, &second), 0);
    watcher_start(&fixture, &here, SIGTERM);
    watcher_init(&fixture, &there);
    GT_EQUAL(gori_signal_start(second, &there.signal, SIGTERM), 0);
    for (unsigned i = 1; i <= 2; i++) {
        raise_signal(&fixture, SIGTERM);
        while (here.heard < i || there.heard < i) {
            fixture_turn(&fixture);
            GT_CHECK(gori_loop_turn(second, 0) >= 0);
        }
    }
    GT_EQUAL(here.heard, 2);
    GT_EQUAL(there.heard, 2);
    gori_signal_stop(&here.signal);
    raise_signal(&fixture, SIGTERM);
    while (there.heard < 3) {
        GT_CHECK(gori_loop_turn(second, 0) >= 0);
    }
    fixture_settle(&fixture);
    GT_EQUAL(here.heard, 2);
    gori_loop_destroy(second);
    fixture_close(&fixture);
}

/* And a loop that has no room for an operation refuses until it has. */
GT_TEST(what_cannot_be_watched_is_refused)
{
    const int numbers[] = {0, -1, 9, 11,
                           1000}; /* 9 and 11: KILL and SEGV wherever there are such */
    struct fixture fixture = {.config.ops_max = 1};
    struct watcher watcher;
    fixture_open(&fixture);
    watcher_init(&fixture, &watcher);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        GT_EQUAL(gori_signal_start(fixture.loop, &watcher.signal, numbers[i]), GORI_EINVAL);
        GT_CHECK(!gori_signal_is_active(&watcher.signal));
    }
    watcher.signal.on_signal = NULL;
    GT_EQUAL(gori_signal_start(fixture.loop, &watcher.signal, SIGTERM), GORI_EINVAL);
    struct pair pair;
    struct probe probe;
    uint8_t byte;
    pair_open(&fixture, &pair);
    probe_init(&fixture, &probe);
    GT_EQUAL(gori_op_recv(&probe.op, &pair.handle, &byte, 1), 0);
    watcher.signal.on_signal = heard;
    GT_EQUAL(gori_signal_start(fixture.loop, &watcher.signal, SIGTERM), GORI_ELIMIT);
    GT_CHECK(!gori_signal_is_active(&watcher.signal));
    pair_close(&pair);
    GT_EQUAL(gori_signal_start(fixture.loop, &watcher.signal, SIGTERM), 0);
    GT_EQUAL(gori_signal_start(fixture.loop, &watcher.signal, SIGTERM), GORI_EBUSY);
    raise_signal(&fixture, SIGTERM);
    FIXTURE_UNTIL(&fixture, watcher.heard == 1);
    fixture_close(&fixture);
}
