/* SPDX-License-Identifier: MIT */
/*
 * Everything at once: threads that push, destroy and make queues anew and start and destroy timers,
 * jobs that do the same, slices of a few jobs, and at the end a scheduler that ends with all of it
 * under way.  Each accepted job must run or be dropped exactly once, in the order of its queue, and
 * no two jobs of a queue may meet.  Mostly for the sanitizers.
 */
#include <gori/error.h>
#include <gori/job_queue.h>
#include <gori/job_scheduler.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/fault_alloc.h"
#include "base/random.h"
#include "lib/test.h"
#include "os/os.h"

enum { PLACES = 6, PUSHERS = 3, ROUNDS = 3000 };

/* What belongs to one queue; its memory outlives it. */
struct room {
    struct gori_job_queue *queue;
    struct gi_atomic_bool is_busy;   /* one of its jobs runs */
    struct gi_atomic_u32 references; /* of jobs and of the place */
};

struct chaos {
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler;
    struct gi_os_monitor monitor; /* guards places and timers */
    struct room *places[PLACES];
    struct gori_job_timer *timers[PLACES];
    struct gi_atomic_u64 accepted;
    struct gi_atomic_u64 ended;
    struct gi_atomic_u64 ticks;
};

struct errand {
    struct gori_job job;
    struct chaos *chaos;
    struct room *room;
    uint64_t seed;
};

static void room_unref(struct room *room)
{
    if (gi_atomic_u32_sub(&room->references, 1, GI_ACQ_REL) == 1) {
        gi_free(NULL, room, sizeof(*room));
    }
}

static void end_errand(struct errand *errand)
{
    (void)gi_atomic_u64_add(&errand->chaos->ended, 1, GI_RELEASE);
    room_unref(errand->room);
    gi_free(NULL, errand, sizeof(*errand));
}

static void drop_errand(struct gori_job *job)
{
    end_errand(gori_container_of(job, struct errand, job));
}

static void act(struct chaos *chaos, struct gi_random *random);

static void run_errand(struct gori_job *job)
{
    struct errand *errand = gori_container_of(job, struct errand, job);
    struct room *room = errand->room;
    GT_CHECK(!gi_atomic_bool_exchange(&room->is_busy, true, GI_RELAXED));
    struct gi_random random;
    gi_random_init(&random, errand->seed);
    if (gi_random_chance(&random, 1, 4)) {
        act(errand->chaos, &random);
    }
    gi_atomic_bool_store(&room->is_busy, false, GI_RELAXED);
    end_errand(errand);
}

/* The room of a place, with a reference on it and on its queue; NULL when there is none. */
static struct room *visit(struct chaos *chaos, size_t place)
{
    gi_os_monitor_lock(&chaos->monitor);
    struct room *room = chaos->places[place];
    if (room != NULL) {
        (void)gi_atomic_u32_add(&room->references, 1, GI_RELAXED);
        (void)gori_job_queue_ref(room->queue);
    }
    gi_os_monitor_unlock(&chaos->monitor);
    return room;
}

static void push(struct chaos *chaos, struct gi_random *random, size_t place)
{
    struct room *room = visit(chaos, place);
    if (room == NULL) {
        return;
    }
    struct gori_job_queue *queue = room->queue;
    struct errand *errand = gi_alloc(NULL, sizeof(*errand));
    GT_CHECK(errand != NULL);
    *errand = (struct errand){.job = {.run = run_errand, .on_drop = drop_errand},
                              .chaos = chaos,
                              .room = room,
                              .seed = gi_random_next(random)};
    (void)gi_atomic_u64_add(&chaos->accepted, 1, GI_RELAXED);
    int result = gori_job_queue_push(queue, &errand->job);
    if (result < 0) {
        GT_CHECK(result == GORI_ECLOSED || result == GORI_ELIMIT);
        (void)gi_atomic_u64_sub(&chaos->accepted, 1, GI_RELAXED);
        room_unref(room);
        gi_free(NULL, errand, sizeof(*errand));
    }
    gori_job_queue_unref(queue);
}

static void tick(struct gori_job_timer *timer, uint64_t ticks)
{
    struct chaos *chaos = gori_job_timer_user(timer);
    (void)gi_atomic_u64_add(&chaos->ticks, ticks, GI_RELAXED);
}

/* Destroys what is at a place, if anything, and perhaps makes a new queue there. */
static void replace(struct chaos *chaos, struct gi_random *random, size_t place)
{
    struct room *made = NULL;
    if (!gi_random_chance(random, 1, 8)) {
        const struct gori_job_queue_config config = {.jobs_max = 20};
        made = gi_alloc_zero(NULL, sizeof(*made));
        GT_CHECK(made != NULL);
        gi_atomic_u32_init(&made->references, 1);
        if (gori_job_queue_create(chaos->scheduler, &config, &made->queue) < 0) {
            gi_free(NULL, made, sizeof(*made));
            made = NULL;
        }
    }
    gi_os_monitor_lock(&chaos->monitor);
    struct room *before = chaos->places[place];
    chaos->places[place] = made;
    gi_os_monitor_unlock(&chaos->monitor);
    if (before != NULL) {
        gori_job_queue_destroy(before->queue);
        room_unref(before);
    }
}

static void play_with_timer(struct chaos *chaos, struct gi_random *random, size_t place)
{
    struct room *room = visit(chaos, place);
    struct gori_job_timer *timer = NULL;
    if (room != NULL) {
        GT_EQUAL(gori_job_timer_create(room->queue, tick, chaos, &timer), 0);
        gori_job_timer_start_periodic(timer, gi_random_below(random, GORI_MILLISECONDS));
    }
    gi_os_monitor_lock(&chaos->monitor);
    struct gori_job_timer *before = chaos->timers[place];
    chaos->timers[place] = timer;
    gi_os_monitor_unlock(&chaos->monitor);
    gori_job_timer_destroy(before);
    if (room != NULL) {
        gori_job_queue_unref(room->queue);
        room_unref(room);
    }
}

static void act(struct chaos *chaos, struct gi_random *random)
{
    size_t place = gi_random_below(random, PLACES);
    switch (gi_random_below(random, 32)) {
    case 0:
        replace(chaos, random, place);
        break;
    case 1:
        play_with_timer(chaos, random, place);
        break;
    default:
        push(chaos, random, place);
        break;
    }
}

struct pusher {
    struct gi_os_thread thread;
    struct chaos *chaos;
    uint64_t seed;
};

static void push_for_a_while(void *argument)
{
    struct pusher *pusher = argument;
    struct gi_random random;
    gi_random_init(&random, pusher->seed);
    for (int i = 0; i < ROUNDS; i++) {
        act(pusher->chaos, &random);
    }
}

static void clear_places(struct chaos *chaos)
{
    for (size_t place = 0; place < PLACES; place++) {
        gori_job_timer_destroy(chaos->timers[place]);
        if (chaos->places[place] != NULL) {
            gori_job_queue_destroy(chaos->places[place]->queue);
            room_unref(chaos->places[place]);
        }
    }
}

static void play(uint64_t seed, bool no_stealing)
{
    static struct chaos chaos;
    struct pusher pushers[PUSHERS];
    chaos = (struct chaos){0};
    gi_fault_alloc_init(&chaos.memory, NULL);
    const struct gori_job_scheduler_config config = {
        .allocator = &chaos.memory.allocator,
        .threads = 3,
        .no_stealing = no_stealing,
        .slice_jobs = 3,
    };
    GT_EQUAL(gi_os_monitor_init(&chaos.monitor), 0);
    GT_EQUAL(gori_job_scheduler_create(&config, &chaos.scheduler), 0);
    for (uint64_t i = 0; i < PUSHERS; i++) {
        pushers[i] = (struct pusher){.chaos = &chaos, .seed = seed * PUSHERS + i};
        GT_EQUAL(gi_os_thread_start(&pushers[i].thread, push_for_a_while, &pushers[i]), 0);
    }
    for (int i = 0; i < PUSHERS; i++) {
        gi_os_thread_join(&pushers[i].thread);
    }
    gori_job_scheduler_destroy(chaos.scheduler);
    clear_places(&chaos);
    GT_EQUAL(gi_atomic_u64_load(&chaos.accepted, GI_ACQUIRE),
             gi_atomic_u64_load(&chaos.ended, GI_ACQUIRE));
    gi_fault_alloc_fini(&chaos.memory);
}

GT_TEST(jobs_survive_chaos)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        play(seed, false);
    }
}

GT_TEST(jobs_survive_chaos_without_stealing)
{
    for (uint64_t seed = 6; seed <= 8; seed++) {
        play(seed, true);
    }
}

GT_MAIN()
