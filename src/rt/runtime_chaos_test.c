/* SPDX-License-Identifier: MIT */
/*
 * Goal: however a runtime is started and stopped, while clients come, stay, do not read and vanish,
 * it ends, every session that opened has closed, and nothing is left.
 * Method: rounds in which all of it follows from a seed but the order between threads.  A failure
 * prints its seed; CHAOS_SEED=n plays that one alone, CHAOS_COUNT=n as many from there.
 */
#include <fcntl.h>
#include <gori/error.h>
#include <gori/runtime.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/atomic.h"
#include "base/fault_alloc.h"
#include "base/random.h"
#include "lib/test.h"

enum { ROUNDS = 10, CLIENTS = 3, HELD_MAX = 6, DESCRIPTORS = 256 };

/* What a client says first. */
#define ECHO        'e'
#define FLOOD       'f'
#define CLOSE       'c'
#define FLOOD_BYTES (4u << 20)

struct round {
    struct gi_fault_alloc memory;
    struct gi_random random;
    struct gori_runtime *runtime;
    struct gori_addr addr;
    pthread_t thread;
    pthread_t clients[CLIENTS];
    struct gi_atomic_u32 opened;
    struct gi_atomic_u32 closed;
    struct gi_atomic_u32 numbers; /* of clients, for their seeds */
    struct gi_atomic_bool over;
    struct gi_atomic_bool is_running;
    uint64_t seed;
    bool has_signals;
};

/* The server -------------------------------------------------------------------------------- */

static struct round *round_of(struct gori_session *session)
{
    return gori_session_user(session);
}

static void opened(struct gori_session *session)
{
    (void)gi_atomic_u32_add(&round_of(session)->opened, 1, GI_RELEASE);
}

static size_t answered(struct gori_session *session, struct gori_slice bytes)
{
    static const char flood[FLOOD_BYTES];
    switch (bytes.data[0]) {
    case FLOOD:
        GT_CHECK(gori_session_send(session, flood, sizeof(flood)) >= 0);
        break;
    case CLOSE:
        gori_session_close(session);
        break;
    default:
        GT_CHECK(gori_session_send(session, bytes.data, bytes.size) >= 0);
        break;
    }
    return bytes.size;
}

static void closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    (void)reason;
    (void)error;
    (void)gi_atomic_u32_add(&round_of(session)->closed, 1, GI_RELEASE);
}

static const struct gori_session_events events = {
    .on_open = opened, .on_recv = answered, .on_close = closed};

static void let_them_end(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    (void)runtime;
    (void)worker;
    (void)loop;
}

/* Clients ----------------------------------------------------------------------------------- */

static int dial(const struct round *round)
{
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GT_CHECK(client >= 0);
    const struct linger at_once = {.l_onoff = 1};
    (void)setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    if (connect(client, (const struct sockaddr *)(const void *)round->addr.as.native,
                round->addr.size) < 0) {
        close(client);
        return -1;
    }
    return client;
}

/* Says something, and perhaps waits for what comes; the server may be gone. */
static void talk(int client, struct gi_random *random)
{
    static const char words[] = {ECHO, FLOOD, CLOSE};
    char byte = words[gi_random_below(random, sizeof(words))];
    if (send(client, &byte, 1, MSG_NOSIGNAL) == 1 && gi_random_chance(random, 2, 3)) {
        (void)recv(client, &byte, 1, 0);
    }
}

static void *be_client(void *argument)
{
    struct round *round = argument;
    int held[HELD_MAX];
    uint32_t count = 0;
    struct gi_random random;
    gi_random_init(&random,
                   round->seed * CLIENTS + gi_atomic_u32_add(&round->numbers, 1, GI_RELAXED));
    while (!gi_atomic_bool_load(&round->over, GI_ACQUIRE)) {
        int client = dial(round);
        if (client < 0) {
            (void)sched_yield();
            continue;
        }
        if (gi_random_chance(&random, 3, 4)) {
            talk(client, &random);
        }
        if (count == HELD_MAX) {
            close(held[--count]);
        }
        held[count++] = client;
        if (gi_random_chance(&random, 1, 2)) {
            close(held[--count]);
        }
    }
    while (count > 0) {
        close(held[--count]);
    }
    return NULL;
}

/* Rounds ------------------------------------------------------------------------------------ */

static uint32_t count_descriptors(void)
{
    uint32_t count = 0;
    for (int i = 0; i < DESCRIPTORS; i++) {
        count += fcntl(i, F_GETFD) >= 0 ? 1 : 0;
    }
    return count;
}

static void *run(void *argument)
{
    struct round *round = argument;
    GT_EQUAL(gori_runtime_run(round->runtime), 0);
    gi_atomic_bool_store(&round->is_running, false, GI_RELEASE);
    return NULL;
}

static void stop(const struct round *round, int number)
{
    if (round->has_signals) {
        GT_EQUAL(pthread_kill(round->thread, number), 0);
    } else {
        gori_runtime_stop(round->runtime);
    }
}

/* Runs until so many clients came, and stops in one of the ways.  Whoever floods and does not read
 * never ends, so without a deadline it takes a second stop; one that comes too late for this run
 * ends the next one. */
static void run_and_stop(struct round *round, bool has_deadline)
{
    uint32_t wanted = (uint32_t)gi_random_below(&round->random, 40);
    uint32_t first = gi_atomic_u32_load(&round->opened, GI_ACQUIRE);
    gi_atomic_bool_store(&round->is_running, true, GI_RELEASE);
    GT_EQUAL(pthread_create(&round->thread, NULL, run, round), 0);
    while (gi_atomic_bool_load(&round->is_running, GI_ACQUIRE) &&
           gi_atomic_u32_load(&round->opened, GI_ACQUIRE) - first < wanted) {
        (void)sched_yield();
    }
    stop(round, SIGTERM);
    if (!has_deadline || gi_random_chance(&round->random, 1, 2)) {
        for (uint64_t left = gi_random_below(&round->random, 200); left > 0; left--) {
            (void)sched_yield();
        }
        stop(round, SIGINT);
    }
    GT_EQUAL(pthread_join(round->thread, NULL), 0);
    /* Of a session that opened in the run nothing is left behind it. */
    GT_EQUAL(gi_atomic_u32_load(&round->opened, GI_ACQUIRE),
             gi_atomic_u32_load(&round->closed, GI_ACQUIRE));
}

static gori_time choose_deadline(struct gi_random *random)
{
    static const gori_time deadlines[] = {1, 100 * GORI_MICROSECONDS, 5 * GORI_MILLISECONDS,
                                          GORI_NEVER};
    return deadlines[gi_random_below(random, 4)];
}

static void play(uint64_t seed)
{
    static const char *const engines[] = {"auto", "epoll"};
    static struct round round;
    uint32_t descriptors = count_descriptors();
    round = (struct round){.seed = seed};
    gi_random_init(&round.random, seed);
    gi_fault_alloc_init(&round.memory, NULL);
    round.has_signals = gi_random_chance(&round.random, 1, 3);
    const struct gori_runtime_config config = {
        .loop = {.allocator = &round.memory.allocator,
                 .engine = engines[gi_random_below(&round.random, 2)]},
        .workers = 1 + (uint32_t)gi_random_below(&round.random, 3),
        .drain_timeout = choose_deadline(&round.random),
        .handle_signals = round.has_signals,
        .on_stop = gi_random_chance(&round.random, 1, 2) ? let_them_end : NULL,
    };
    struct gori_listener_config listener = {
        .events = &events,
        .user = &round,
        .keep_socket = gi_random_chance(&round.random, 1, 2),
        .accept_policy = (enum gori_accept_policy)gi_random_below(&round.random, 4),
    };
    GT_EQUAL(gori_runtime_create(&config, &round.runtime), 0);
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &listener.addr), 0);
    GT_EQUAL(gori_runtime_listen(round.runtime, &listener, &round.addr), 0);
    for (int i = 0; i < CLIENTS; i++) {
        GT_EQUAL(pthread_create(&round.clients[i], NULL, be_client, &round), 0);
    }
    for (int runs = listener.keep_socket ? 3 : 1; runs > 0; runs--) {
        run_and_stop(&round, config.drain_timeout != GORI_NEVER);
    }
    gi_atomic_bool_store(&round.over, true, GI_RELEASE);
    gori_runtime_destroy(round.runtime); /* ends the wait of who stands in a queue */
    for (int i = 0; i < CLIENTS; i++) {
        GT_EQUAL(pthread_join(round.clients[i], NULL), 0);
    }
    gi_fault_alloc_fini(&round.memory);
    GT_EQUAL(count_descriptors(), descriptors);
}

static uint64_t playing; /* the seed, 0 when all is well */

static void print_seed(void)
{
    if (playing != 0) {
        fprintf(stderr, "replay it with CHAOS_SEED=%llu\n", (unsigned long long)playing);
    }
}

GT_TEST(runtimes_survive_chaos)
{
    const char *first = getenv("CHAOS_SEED");
    const char *count = getenv("CHAOS_COUNT");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t rounds = first != NULL ? 1 : ROUNDS;
    GT_EQUAL(atexit(print_seed), 0);
    for (uint64_t left = count != NULL ? strtoull(count, NULL, 10) : rounds; left > 0; left--) {
        playing = from++;
        play(playing);
    }
    playing = 0;
}

GT_MAIN()
