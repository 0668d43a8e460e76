/* SPDX-License-Identifier: MIT */
/*
 * What it costs to start, restart and stop one timer among a million, in nanoseconds each.
 *
 * Each timer sits in an object of its own, as it does in a session, and operations go through the
 * objects in a random order, so that the caches' misses are in the figures. "restart later" is
 * what an idle timer does at each message: the same timeout from a later time. "restart anywhere"
 * takes any deadline of the next minute. The rows called active work on a thousand timers over
 * and over, as the busy sessions among idle ones do.
 */
#include "base/wheel.h"
#include "micro.h"

#include <stdio.h>

enum { TIMER_COUNT = 1000000, ACTIVE_COUNT = 1000 };

struct object {
    struct gori_wheel_entry entry;
    char rest[128 - sizeof(struct gori_wheel_entry)];
};

struct bench {
    struct gi_wheel wheel;
    uint64_t seed;
    gori_time now;
    uint32_t order[TIMER_COUNT];
    uint32_t active[ACTIVE_COUNT];
    struct object objects[TIMER_COUNT];
};

typedef void operation_fn(struct bench *bench, struct object *object);

/* Time goes on by a microsecond with each. */
static void start_later(struct bench *bench, struct object *object)
{
    bench->now += GORI_MICROSECONDS;
    gi_wheel_start(&bench->wheel, &object->entry, bench->now + 60 * GORI_SECONDS);
}

static void start_anywhere(struct bench *bench, struct object *object)
{
    gori_time delay = micro_random(&bench->seed) >> 28; /* up to 68 s */
    gi_wheel_start(&bench->wheel, &object->entry, bench->now + GORI_SECONDS + delay);
}

static void stop(struct bench *bench, struct object *object)
{
    gi_wheel_stop(&bench->wheel, &object->entry);
}

static void stop_and_start(struct bench *bench, struct object *object)
{
    gi_wheel_stop(&bench->wheel, &object->entry);
    start_anywhere(bench, object);
}

static void shuffle(struct bench *bench)
{
    for (uint32_t i = 0; i < TIMER_COUNT; i++) {
        bench->order[i] = i;
    }
    for (uint32_t i = TIMER_COUNT - 1; i > 0; i--) {
        uint32_t other = (uint32_t)(micro_random(&bench->seed) % (i + 1));
        uint32_t kept = bench->order[i];
        bench->order[i] = bench->order[other];
        bench->order[other] = kept;
    }
}

/* Does it to every object, in a new random order each time; returns the nanoseconds of one. */
static inline double run(struct bench *bench, operation_fn *operation)
{
    shuffle(bench);
    uint64_t from_ns = micro_now_ns();
    for (uint32_t i = 0; i < TIMER_COUNT; i++) {
        operation(bench, &bench->objects[bench->order[i]]);
    }
    return (double)(micro_now_ns() - from_ns) / TIMER_COUNT;
}

static inline double run_active(struct bench *bench, operation_fn *operation)
{
    uint64_t from_ns = micro_now_ns();
    for (uint32_t i = 0; i < TIMER_COUNT; i++) {
        operation(bench, &bench->objects[bench->active[i % ACTIVE_COUNT]]);
    }
    return (double)(micro_now_ns() - from_ns) / TIMER_COUNT;
}

int main(void)
{
    static struct bench bench = {.seed = 1};
    bench.now = micro_now_ns();
    gi_wheel_init(&bench.wheel, bench.now);
    (void)run(&bench, start_anywhere); /* touches all memory once, unmeasured */
    (void)run(&bench, stop);
    for (uint32_t i = 0; i < ACTIVE_COUNT; i++) {
        bench.active[i] = bench.order[i];
    }
    printf("{\"start\": %.2f", run(&bench, start_later));
    printf(", \"restart later\": %.2f", run(&bench, start_later));
    printf(", \"restart anywhere\": %.2f", run(&bench, start_anywhere));
    printf(", \"restart later, active\": %.2f", run_active(&bench, start_later));
    printf(", \"restart anywhere, active\": %.2f", run_active(&bench, start_anywhere));
    printf(", \"stop and start, active\": %.2f", run_active(&bench, stop_and_start));
    printf(", \"stop\": %.2f}\n", run(&bench, stop));
    return 0;
}
