/* SPDX-License-Identifier: MIT */
/*
 * micro_pingpong ENGINE MESSAGES [SEED]: two loops play ball, and sleep as often as they can. There
 * is one ball at first, since with more the next wake makes up for one that was lost; the last
 * quarter is played with a few, which meet loops that others have woken.
 *  Goal: no message waits for a wake that never comes.  There is no timer and no other
 * traffic that could wake a loop by chance, and each side is late by a random while before it posts
 * or falls asleep, so that posts meet every moment of falling asleep.  Exit status 1, and who
 * waited, when nothing has moved for PATIENCE_S; else nanoseconds for each message.
 */
#include "micro.h"

#include <gori/error.h>
#include <gori/loop.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum { PLAYERS = 2, BALLS = 3, PATIENCE_S = 10 };

struct game;

struct player {
    struct game *game;
    pthread_t thread;
    _Atomic(struct gori_loop *) loop; /* set once it is there */
    uint64_t random;
    _Atomic uint64_t turns;
};

struct ball {
    struct gori_task task;
    struct game *game;
    unsigned at; /* the player whose loop it is posted to */
};

struct game {
    const char *engine;
    uint64_t messages;
    _Atomic uint64_t played;
    _Atomic bool over;
    struct player players[PLAYERS];
    struct ball balls[BALLS];
};

static void hit(struct gori_task *task);

static void check(const char *what, int error)
{
    if (error < 0) {
        (void)fprintf(stderr, "%s: %s\n", what, gori_error_text(error));
        exit(1);
    }
}

/* Now and then long, so that the other sleeps; else up to about the time that a wake takes. */
static void be_late(struct player *player)
{
    uint64_t value = micro_random(&player->random);
    if (value % 1024 == 0) {
        struct timespec delay = {.tv_nsec = (long)(value >> 32) % 20000};
        (void)nanosleep(&delay, NULL);
    } else if (value % 2 != 0) {
        for (volatile uint64_t rest = (value >> 32) % 6000; rest > 0; rest--) {
        }
    }
}

static void throw_in(struct game *game, unsigned index)
{
    struct ball *ball = &game->balls[index];
    *ball = (struct ball){.task = {.run = hit, .user = ball}, .game = game, .at = index % PLAYERS};
    check("gori_loop_post",
          gori_loop_post(atomic_load(&game->players[ball->at].loop), &ball->task));
}

static void stop_all(struct game *game)
{
    for (unsigned i = 0; i < PLAYERS; i++) {
        gori_loop_stop(atomic_load(&game->players[i].loop));
    }
}

static void hit(struct gori_task *task)
{
    struct ball *ball = task->user;
    struct game *game = ball->game;
    uint64_t played = atomic_fetch_add(&game->played, 1) + 1;
    for (unsigned i = 1; i < BALLS && played == game->messages / 4 * 3; i++) {
        throw_in(game, i);
    }
    if (played >= game->messages) {
        atomic_store(&game->over, true);
        stop_all(game);
        return; /* this ball stays here */
    }
    be_late(&game->players[ball->at]);
    ball->at = (ball->at + 1) % PLAYERS;
    check("gori_loop_post", gori_loop_post(atomic_load(&game->players[ball->at].loop), task));
}

static void *play(void *argument)
{
    struct player *player = argument;
    struct game *game = player->game;
    const struct gori_loop_config config = {.engine = game->engine};
    struct gori_loop *loop;
    check("gori_loop_create", gori_loop_create(&config, &loop));
    atomic_store(&player->loop, loop);
    while (!atomic_load(&game->over)) {
        be_late(player);
        check("gori_loop_turn", gori_loop_turn(loop, GORI_NEVER));
        atomic_fetch_add_explicit(&player->turns, 1, memory_order_relaxed);
    }
    return NULL;
}

static void start(struct game *game, uint64_t seed)
{
    for (unsigned i = 0; i < PLAYERS; i++) {
        struct player *player = &game->players[i];
        player->game = game;
        player->random = seed * PLAYERS + i;
        if (pthread_create(&player->thread, NULL, play, player) != 0) {
            (void)fprintf(stderr, "no thread\n");
            exit(1);
        }
    }
    for (unsigned i = 0; i < PLAYERS; i++) {
        while (atomic_load(&game->players[i].loop) == NULL) {
            struct timespec delay = {.tv_nsec = 100 * 1000};
            (void)nanosleep(&delay, NULL);
        }
    }
    throw_in(game, 0);
}

static void watch(struct game *game)
{
    uint64_t seen = 0;
    uint64_t moved_ns = micro_now_ns();
    while (!atomic_load(&game->over)) {
        struct timespec delay = {.tv_nsec = 2 * 1000 * 1000};
        (void)nanosleep(&delay, NULL);
        uint64_t played = atomic_load(&game->played);
        if (played != seen) {
            seen = played;
            moved_ns = micro_now_ns();
        } else if (micro_now_ns() - moved_ns > PATIENCE_S * UINT64_C(1000000000)) {
            (void)fprintf(stderr, "nothing moves after %llu messages; balls at %u %u %u\n",
                          (unsigned long long)played, game->balls[0].at, game->balls[1].at,
                          game->balls[2].at);
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static struct game game;
    if (argc < 3 || argc > 4) {
        (void)fprintf(stderr, "usage: micro_pingpong ENGINE MESSAGES [SEED]\n");
        return 2;
    }
    game.engine = argv[1];
    game.messages = strtoull(argv[2], NULL, 10);
    uint64_t from_ns = micro_now_ns();
    start(&game, argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
    watch(&game);
    uint64_t span_ns = micro_now_ns() - from_ns;
    uint64_t turns = 0;
    for (unsigned i = 0; i < PLAYERS; i++) {
        (void)pthread_join(game.players[i].thread, NULL);
        turns += atomic_load(&game.players[i].turns);
    }
    /* Their balls and loops go with the process. */
    printf("{\"ping-pong: a message\": %.1f, \"ping-pong: turns for each 1000\": %.1f}\n",
           (double)span_ns / (double)game.messages, 1000.0 * (double)turns / (double)game.messages);
    return 0;
}
