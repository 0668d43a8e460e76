/* SPDX-License-Identifier: MIT */
/*
 * Conformance of waits for event sources (E11 of engine.h, gori_op_wait).
 */
#include "conformance/fixture.h"
#include "engine/sim/sim.h"
#include "lib/system.h"

#define SOURCES 100

/* An event source of the system, or of a simulated world, and the handle that watches it. */
struct source {
    struct fixture *fixture;
    struct gt_event event;
    struct gori_handle handle;
    struct probe wait;
    unsigned closed;
};

static void source_set(struct source *source, bool is_ready)
{
    if (source->fixture->sim != NULL) {
        gi_sim_source_set(source->fixture->sim, source->event.native, is_ready);
    } else {
        gt_event_set(&source->event, is_ready);
    }
}

static void source_closed(struct gori_handle *handle)
{
    struct source *source = handle->user;
    GT_CHECK(!source->fixture->in_call);
    GT_EQUAL(source->wait.completions, source->wait.last);
    source->closed++;
}

static void source_watch(struct source *source)
{
    source->handle = (struct gori_handle){.on_close = source_closed, .user = source};
    GT_EQUAL(gori_handle_watch(source->fixture->loop, source->event.native, &source->handle), 0);
}

static void source_open(struct fixture *fixture, struct source *source)
{
    *source = (struct source){.fixture = fixture};
    if (fixture->sim != NULL) {
        gori_native native;
        GT_EQUAL(gi_sim_source_open(fixture->sim, NULL, &native), 0);
        source->event.native = native;
    } else {
        gt_event_open(&source->event);
    }
    probe_init(fixture, &source->wait);
    source_watch(source);
}

static void source_wait(struct source *source)
{
    probe_init(source->fixture, &source->wait);
    source->fixture->in_call = true;
    GT_EQUAL(gori_op_wait(&source->wait.op, &source->handle), 0);
    source->fixture->in_call = false;
    GT_CHECK(gori_op_is_active(&source->wait.op));
}

static void source_cancel(struct source *source)
{
    source->fixture->in_call = true;
    gori_op_cancel(&source->wait.op);
    source->fixture->in_call = false;
}

/* Closes the handle and waits for the end of it; the source itself stays. */
static void source_unwatch(struct source *source)
{
    unsigned before = source->closed;
    source->fixture->in_call = true;
    gori_handle_close(&source->handle);
    source->fixture->in_call = false;
    FIXTURE_UNTIL(source->fixture, source->closed > before);
    GT_EQUAL(source->closed, before + 1);
}

static void source_free(struct source *source)
{
    if (source->fixture->sim != NULL) {
        gi_sim_close(source->fixture->sim, source->event.native);
    } else {
        gt_event_close(&source->event);
    }
}

static void source_close(struct source *source)
{
    source_unwatch(source);
    source_free(source);
}

GT_TEST(a_wait_completes_when_its_source_becomes_ready)
{
    struct fixture fixture = {0};
    struct source source;
    fixture_open(&fixture);
    source_open(&fixture, &source);
    source_wait(&source);
    fixture_settle(&fixture);
    GT_EQUAL(source.wait.completions, 0);
    source_set(&source, true);
    FIXTURE_UNTIL(&fixture, source.wait.last == 1);
    GT_EQUAL(source.wait.result, 0);
    fixture_settle(&fixture);
    GT_EQUAL(source.wait.completions, 1);
    source_close(&source);
    fixture_close(&fixture);
}

/* Also when it was ready before anybody watched, and again as long as nobody has emptied it. */
GT_TEST(a_wait_for_what_is_ready_completes_as_often_as_it_is_asked)
{
    struct fixture fixture = {0};
    struct source source;
    fixture_open(&fixture);
    source_open(&fixture, &source);
    source_unwatch(&source);
    source_set(&source, true);
    source_watch(&source);
    for (int i = 0; i < 5; i++) {
        source_wait(&source);
        FIXTURE_UNTIL(&fixture, source.wait.last == 1);
        GT_EQUAL(source.wait.result, 0);
    }
    source_close(&source);
    fixture_close(&fixture);
}

/* What was emptied in the meantime is not ready, whatever an engine remembers; and an edge between
 * two waits is not lost. */
GT_TEST(a_wait_asks_anew)
{
    struct fixture fixture = {0};
    struct source source;
    fixture_open(&fixture);
    source_open(&fixture, &source);
    for (int i = 0; i < 5; i++) {
        source_set(&source, true);
        source_wait(&source);
        FIXTURE_UNTIL(&fixture, source.wait.last == 1);
        source_set(&source, false);
        source_wait(&source);
        fixture_settle(&fixture);
        GT_EQUAL(source.wait.completions, 0);
        source_set(&source, true);
        FIXTURE_UNTIL(&fixture, source.wait.last == 1);
        GT_EQUAL(source.wait.result, 0);
        fixture_settle(&fixture);
        source_set(&source, false);
        fixture_settle(&fixture);
    }
    source_close(&source);
    fixture_close(&fixture);
}

GT_TEST(a_cancelled_wait_completes_once)
{
    struct fixture fixture = {0};
    struct source source;
    fixture_open(&fixture);
    source_open(&fixture, &source);
    for (int i = 0; i < 10; i++) {
        source_wait(&source);
        if (i % 2 == 0) {
            fixture_settle(&fixture); /* else it is cancelled before anything saw it */
        }
        source_cancel(&source);
        source_cancel(&source);
        FIXTURE_UNTIL(&fixture, source.wait.last == 1);
        GT_EQUAL(source.wait.result, GORI_ECANCELED);
    }
    source_set(&source, true);
    fixture_settle(&fixture);
    GT_EQUAL(source.wait.completions, 1);
    source_close(&source);
    fixture_close(&fixture);
}

/* Ready and cancelled: either answer is right, and it is one. */
GT_TEST(a_wait_that_is_ready_when_it_is_cancelled_completes_once)
{
    struct fixture fixture = {0};
    struct source source;
    fixture_open(&fixture);
    source_open(&fixture, &source);
    for (int i = 0; i < 20; i++) {
        source_wait(&source);
        if (i % 2 == 0) {
            fixture_settle(&fixture);
        }
        source_set(&source, true);
        if (i % 3 == 0) {
            GT_CHECK(gori_loop_turn(fixture.loop, 0) >= 0);
        }
        source_cancel(&source);
        FIXTURE_UNTIL(&fixture, source.wait.last == 1);
        GT_CHECK(source.wait.result == 0 || source.wait.result == GORI_ECANCELED);
        fixture_settle(&fixture);
        GT_EQUAL(source.wait.completions, 1);
        source_set(&source, false);
    }
    source_close(&source);
    fixture_close(&fixture);
}

GT_TEST(a_close_ends_the_wait_in_flight)
{
    struct fixture fixture = {0};
    struct source source;
    fixture_open(&fixture);
    source_open(&fixture, &source);
    for (int i = 0; i < 8; i++) {
        source_wait(&source);
        if (i % 2 == 0) {
            fixture_settle(&fixture);
        }
        if (i % 4 >= 2) {
            source_set(&source, true);
        }
        source_unwatch(&source);
        GT_EQUAL(source.wait.last, 1);
        GT_CHECK(source.wait.result == GORI_ECANCELED || (i % 4 >= 2 && source.wait.result == 0));
        GT_EQUAL(gori_op_wait(&source.wait.op, &source.handle), GORI_ECLOSED);
        source_set(&source, false);
        source_watch(&source);
    }
    source_close(&source);
    fixture_close(&fixture);
}

/* A number that meant one source, and then another, brings nothing from the first to the second. */
GT_TEST(a_reused_descriptor_waits_for_its_own_source)
{
    struct fixture fixture = {0};
    struct source first;
    struct source second;
    fixture_open(&fixture);
    source_open(&fixture, &first);
    source_wait(&first);
    fixture_settle(&fixture);
    source_set(&first, true);
    source_unwatch(&first);
    source_open(&fixture, &second);
    source_wait(&second);
    fixture_settle(&fixture);
    source_set(&first, false);
    source_set(&first, true);
    fixture_settle(&fixture);
    GT_EQUAL(second.wait.completions, 0);
    source_set(&second, true);
    FIXTURE_UNTIL(&fixture, second.wait.last == 1);
    GT_EQUAL(second.wait.result, 0);
    source_free(&first);
    source_close(&second);
    fixture_close(&fixture);
}

/* The caller's own name of it may go while the wait is in flight. */
GT_TEST(a_watched_source_may_be_closed_by_its_owner)
{
    struct fixture fixture = {0};
    struct source source;
    fixture_open(&fixture);
    source_open(&fixture, &source);
    source_set(&source, true);
    source_free(&source);
    source_wait(&source);
    FIXTURE_UNTIL(&fixture, source.wait.last == 1);
    GT_EQUAL(source.wait.result, 0);
    source_unwatch(&source);
    fixture_close(&fixture);
}

GT_TEST(one_source_can_be_watched_twice)
{
    struct fixture fixture = {0};
    struct source source;
    struct source twin = {0};
    fixture_open(&fixture);
    source_open(&fixture, &source);
    twin.fixture = &fixture;
    twin.event = source.event;
    source_watch(&twin);
    source_wait(&source);
    source_wait(&twin);
    source_set(&source, true);
    FIXTURE_UNTIL(&fixture, source.wait.last == 1 && twin.wait.last == 1);
    GT_EQUAL(source.wait.result, 0);
    GT_EQUAL(twin.wait.result, 0);
    source_unwatch(&twin);
    source_close(&source);
    fixture_close(&fixture);
}

static void source_fill(struct source *source, bool is_full)
{
    if (source->fixture->sim != NULL) {
        gi_sim_source_fill(source->fixture->sim, source->event.native, is_full);
    } else if (!gt_event_fill(&source->event, is_full)) {
        GT_SKIP("objects of this system are signalled and no more");
    }
}

/* In both directions at once, each for itself, and asked anew each time. */
GT_TEST(a_wait_for_room_completes_when_there_is_some)
{
    struct fixture fixture = {0};
    struct source source;
    struct probe room;
    fixture_open(&fixture);
    source_open(&fixture, &source);
    source_fill(&source, true);
    source_wait(&source);
    for (int i = 0; i < 5; i++) {
        probe_init(&fixture, &room);
        fixture.in_call = true;
        GT_EQUAL(gori_op_wait_writable(&room.op, &source.handle), 0);
        fixture.in_call = false;
        fixture_settle(&fixture);
        GT_EQUAL(room.completions, 0);
        if (i == 3) {
            gori_op_cancel(&room.op);
            FIXTURE_UNTIL(&fixture, room.last == 1);
            GT_EQUAL(room.result, GORI_ECANCELED);
            continue;
        }
        source_fill(&source, false);
        FIXTURE_UNTIL(&fixture, room.last == 1);
        GT_EQUAL(room.result, 0);
        source_fill(&source, true);
    }
    GT_EQUAL(source.wait.completions, 0);
    probe_init(&fixture, &room);
    GT_EQUAL(gori_op_wait_writable(&room.op, &source.handle), 0);
    source_set(&source, true);
    FIXTURE_UNTIL(&fixture, source.wait.last == 1);
    GT_EQUAL(source.wait.result, 0);
    fixture_settle(&fixture);
    GT_EQUAL(room.completions, 0);
    source_close(&source);
    GT_EQUAL(room.last, 1);
    GT_EQUAL(room.result, GORI_ECANCELED);
    fixture_close(&fixture);
}

GT_TEST(many_waits_complete_for_those_that_are_ready)
{
    static struct source sources[SOURCES];
    struct fixture fixture = {0};
    fixture_open(&fixture);
    for (int i = 0; i < SOURCES; i++) {
        source_open(&fixture, &sources[i]);
        source_wait(&sources[i]);
    }
    fixture_settle(&fixture);
    for (int i = 0; i < SOURCES; i += 3) {
        source_set(&sources[i], true);
    }
    for (int i = 0; i < SOURCES; i += 3) {
        FIXTURE_UNTIL(&fixture, sources[i].wait.last == 1);
        GT_EQUAL(sources[i].wait.result, 0);
    }
    fixture_settle(&fixture);
    for (int i = 0; i < SOURCES; i++) {
        GT_EQUAL(sources[i].wait.completions, i % 3 == 0 ? 1 : 0);
    }
    for (int i = 0; i < SOURCES; i++) {
        source_close(&sources[i]);
        GT_EQUAL(sources[i].wait.result, i % 3 == 0 ? 0 : GORI_ECANCELED);
    }
    fixture_close(&fixture);
}

/* A loop that ends with waits in flight completes them, and closes what it watches with. */
GT_TEST(the_end_of_a_loop_ends_its_waits)
{
    struct fixture fixture = {0};
    struct source source;
    fixture_open(&fixture);
    source_open(&fixture, &source);
    source_wait(&source);
    gori_loop_destroy(fixture.loop);
    GT_EQUAL(source.closed, 1);
    GT_EQUAL(source.wait.last, 1);
    GT_EQUAL(source.wait.result, GORI_ECANCELED);
    source_free(&source);
    GT_EQUAL(gori_loop_create(&fixture.config, &fixture.loop), 0);
    fixture_close(&fixture);
}

GT_TEST(a_source_takes_waits_and_a_socket_takes_none)
{
    struct fixture fixture = {0};
    struct source source;
    struct pair pair;
    struct probe probe;
    struct gori_addr addr;
    uint8_t byte;
    struct gori_slice piece = {&byte, 1};
    fixture_open(&fixture);
    source_open(&fixture, &source);
    probe_init(&fixture, &probe);
    GT_EQUAL(gori_op_recv(&probe.op, &source.handle, &byte, 1), GORI_EINVAL);
    GT_EQUAL(gori_op_recv_multi(&probe.op, &source.handle), GORI_EINVAL);
    GT_EQUAL(gori_op_send(&probe.op, &source.handle, &piece, 1), GORI_EINVAL);
    GT_EQUAL(gori_op_accept(&probe.op, &source.handle), GORI_EINVAL);
    GT_EQUAL(gori_handle_shutdown(&source.handle), GORI_EINVAL);
    GT_EQUAL(gori_handle_addr(&source.handle, &addr), GORI_EINVAL);
    source_wait(&source);
    GT_EQUAL(gori_op_wait(&probe.op, &source.handle), GORI_EBUSY);
    GT_CHECK(!gori_op_is_active(&probe.op));
    GT_EQUAL(gori_handle_watch(fixture.loop, GORI_NATIVE_NONE, &pair.handle), GORI_EINVAL);
    pair_open(&fixture, &pair);
    GT_EQUAL(gori_op_wait(&probe.op, &pair.handle), GORI_EINVAL);
    pair_close(&pair);
    gori_handle_reset(&source.handle);
    FIXTURE_UNTIL(&fixture, source.closed == 1);
    source_free(&source);
    fixture_close(&fixture);
}

/* A wait is one of `ops_max`. */
GT_TEST(waits_count_against_the_limit)
{
    struct fixture fixture = {.config.ops_max = 2};
    struct source sources[3];
    fixture_open(&fixture);
    for (int i = 0; i < 3; i++) {
        source_open(&fixture, &sources[i]);
    }
    source_wait(&sources[0]);
    source_wait(&sources[1]);
    GT_EQUAL(gori_op_wait(&sources[2].wait.op, &sources[2].handle), GORI_ELIMIT);
    source_set(&sources[0], true);
    FIXTURE_UNTIL(&fixture, sources[0].wait.last == 1);
    source_wait(&sources[2]);
    for (int i = 0; i < 3; i++) {
        source_close(&sources[i]);
    }
    fixture_close(&fixture);
}
