/* SPDX-License-Identifier: MIT */
/*
 * Two loops throw messages to and fro while each is now and then busy for a random while, so that
 * messages meet the other awake, asleep and falling asleep.  A wake that is lost is a test that
 * does not end.  GORI_PING_PONG says how many messages (default 200,000).
 */
#include <gori/error.h>
#include <gori/loop.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/random.h"
#include "lib/test.h"
#include "os/os.h"

enum { BALLS = 2 };

struct player {
    pthread_t thread;
    struct match *match;
    struct gi_atomic_pointer loop;
    struct gi_random random;
    uint64_t hits;
};

struct ball {
    struct gori_task task;
    struct match *match;
    unsigned at; /* the player who is to hit it */
};

struct match {
    const char *engine;
    struct player players[2];
    struct ball balls[BALLS];
    uint64_t hits_max;
    struct gi_atomic_u64 hits;
    struct gi_atomic_u32 over; /* players who may leave when both have seen it */
};

/* Now and then something else to do: a little, or long enough for the other to fall asleep. */
static void be_busy(struct gi_random *random)
{
    if (!gi_random_chance(random, 1, 4)) {
        return;
    }
    gori_time until = gi_os_now() + gi_random_below(random, 20 * GORI_MICROSECONDS);
    while (gi_os_now() < until) {
        gi_atomic_relax();
    }
}

static struct gori_loop *loop_of(struct player *player)
{
    return gi_atomic_pointer_load(&player->loop, GI_ACQUIRE);
}

static void hit(struct gori_task *task)
{
    struct ball *ball = gori_container_of(task, struct ball, task);
    struct match *match = ball->match;
    struct player *player = &match->players[ball->at];
    player->hits++;
    if (gi_atomic_u64_add(&match->hits, 1, GI_RELAXED) >= match->hits_max) {
        gori_loop_stop(loop_of(&match->players[0]));
        gori_loop_stop(loop_of(&match->players[1]));
        return;
    }
    be_busy(&player->random);
    ball->at = 1 - ball->at;
    GT_EQUAL(gori_loop_post(loop_of(&match->players[ball->at]), &ball->task), 0);
}

static void *play(void *argument)
{
    struct player *player = argument;
    struct match *match = player->match;
    const struct gori_loop_config config = {.engine = match->engine};
    struct gori_loop *loop;
    if (gori_loop_create(&config, &loop) < 0) {
        GT_SKIP("the engine is not to be had here");
    }
    gi_atomic_pointer_store(&player->loop, loop, GI_RELEASE);
    while (loop_of(&match->players[0]) == NULL || loop_of(&match->players[1]) == NULL) {
        gi_atomic_relax();
    }
    if (player == &match->players[0]) {
        for (int i = 0; i < BALLS; i++) {
            GT_EQUAL(gori_loop_post(loop, &match->balls[i].task), 0);
        }
    }
    GT_EQUAL(gori_loop_run(loop), 0);
    /* The other may still be about to stop this one. */
    (void)gi_atomic_u32_add(&match->over, 1, GI_ACQ_REL);
    while (gi_atomic_u32_load(&match->over, GI_ACQUIRE) < 2) {
        gi_atomic_relax();
    }
    gori_loop_destroy(loop);
    return NULL;
}

static void play_on(const char *engine)
{
    static struct match match;
    const char *wanted = getenv("GORI_PING_PONG");
    match.engine = engine;
    match.hits_max = wanted != NULL ? strtoull(wanted, NULL, 10) : 200000;
    for (unsigned i = 0; i < BALLS; i++) {
        match.balls[i] = (struct ball){.task = {.run = hit}, .match = &match};
    }
    for (unsigned i = 0; i < 2; i++) {
        match.players[i].match = &match;
        gi_random_init(&match.players[i].random, i);
        GT_EQUAL(pthread_create(&match.players[i].thread, NULL, play, &match.players[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        GT_EQUAL(pthread_join(match.players[i].thread, NULL), 0);
    }
    GT_CHECK(match.players[0].hits + match.players[1].hits >= match.hits_max);
}

GT_TEST(ping_pong_epoll)
{
    play_on("epoll");
}

GT_TEST(ping_pong_io_uring)
{
    play_on("io_uring");
}

GT_MAIN()
