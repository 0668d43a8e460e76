/* SPDX-License-Identifier: MIT */
/*
 * Sessions under every fault of the simulated world: two ends stream to each other, copy,
 * reference, pause, resume, consume little by little, and end in each of the graceful ways. What
 * must hold: bytes come in order; none is missing when the stream ended in order; each session
 * closes once; nothing is left.  A failure prints its seed; CHAOS_SEED=n plays that one alone,
 * CHAOS_COUNT=n as many from there.
 */
#include <lib/session_fixture.h>

#include "base/random.h"
#include "rt/session.h"

enum { SEEDS = 60, PAIRS = 4, TURNS_MAX = 60000, STREAM_MAX = 200000 };

/* One end of a connection. */
struct end {
    struct gori_session *session; /* NULL when it is closed, or not yet open */
    size_t sent;
    size_t received;
    bool is_server;
    bool paused;
    bool ended; /* the peer's stream, in order */
    bool done;  /* nothing more will be sent */
};

struct chaos {
    struct gi_sim *sim;
    struct gori_loop *loop;
    struct gi_random random;
    struct end clients[PAIRS];
    struct end servers[4 * PAIRS];
    uint32_t server_count;
    size_t size_of[2]; /* of the clients' streams, and of the servers' */
    uint32_t opened;
    uint32_t closed;
    bool is_calm; /* no connection is cut, nothing runs out */
    struct gori_addr addr;
};

static struct chaos *chaos_of(struct gori_session *session)
{
    return gori_session_user(session);
}

static struct end **slot_of(struct gori_session *session)
{
    return gori_session_context(session);
}

static uint8_t byte_at(bool of_server, size_t place)
{
    return (uint8_t)(place ^ (place >> 7) * 5 ^ (of_server ? 0x5a : 0));
}

static void opened(struct gori_session *session)
{
    struct chaos *c = chaos_of(session);
    c->opened++;
    if (*slot_of(session) == NULL) { /* an accepted one */
        GT_CHECK(c->server_count < 4 * PAIRS);
        struct end *end = &c->servers[c->server_count++];
        end->is_server = true;
        *slot_of(session) = end;
    }
    (*slot_of(session))->session = session;
}

static size_t received(struct gori_session *session, struct gori_slice bytes)
{
    struct chaos *c = chaos_of(session);
    struct end *end = *slot_of(session);
    GT_CHECK(!end->paused && !end->ended);
    for (size_t i = 0; i < bytes.size; i++) {
        GT_EQUAL(bytes.data[i], byte_at(!end->is_server, end->received + i));
    }
    size_t used = bytes.size;
    if (gi_random_chance(&c->random, 1, 4)) {
        used = (size_t)gi_random_below(&c->random, bytes.size + 1);
    }
    if (gi_random_chance(&c->random, 1, 6)) {
        end->paused = true;
        gori_session_pause(session);
    } else if (used < bytes.size) {
        gori_session_resume(session); /* to be shown the rest without waiting for more */
    }
    end->received += used;
    return used;
}

static void ended(struct gori_session *session)
{
    struct chaos *c = chaos_of(session);
    struct end *end = *slot_of(session);
    /* A reset whose error a send was told looks like an end to the receive, as on a real system. */
    GT_CHECK(!c->is_calm || end->received == c->size_of[!end->is_server]);
    end->ended = true;
}

static void closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    (void)reason;
    (void)error;
    struct chaos *c = chaos_of(session);
    struct end *end = *slot_of(session);
    GT_CHECK(gori_loop_session(c->loop, gori_session_id(session)) == NULL);
    if (end != NULL && end->session == session) {
        c->closed++;
        end->session = NULL;
    }
}

static const struct gori_session_events events = {
    .on_open = opened, .on_recv = received, .on_eof = ended, .on_close = closed};

static void send_some(struct chaos *c, struct end *end)
{
    size_t left = c->size_of[end->is_server] - end->sent;
    size_t size =
        1 + (size_t)gi_random_below(&c->random, gi_random_chance(&c->random, 1, 5) ? 9000 : 600);
    size = size < left ? size : left;
    uint8_t bytes[9001];
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(end->is_server, end->sent + i);
    }
    int result;
    if (gi_random_chance(&c->random, 1, 2)) {
        result = gori_session_send(end->session, bytes, size);
    } else {
        struct gori_block *block;
        GT_EQUAL(gori_block_create(NULL, bytes, size, &block), 0);
        result = gori_session_send_block(end->session, block);
        gori_block_unref(block);
    }
    if (result >= 0) {
        end->sent += size;
    } else {
        GT_EQUAL(result, GORI_ECLOSED); /* it failed meanwhile */
        end->done = true;
    }
}

static void act(struct chaos *c, struct end *end)
{
    if (end->session == NULL) {
        return;
    }
    if (end->paused && gi_random_chance(&c->random, 1, 3)) {
        end->paused = false;
        gori_session_resume(end->session);
    }
    if (end->done) {
        return;
    }
    if (end->sent < c->size_of[end->is_server]) {
        if (gori_session_send_bytes(end->session) < 50000) {
            send_some(c, end);
        }
    } else if (end->ended || gi_random_chance(&c->random, 1, 2)) {
        end->done = true;
        if (end->ended && gi_random_chance(&c->random, 1, 2)) {
            gori_session_close_after_flush(end->session);
        } else {
            gori_session_shutdown(end->session);
        }
    }
}

static uint16_t chance(struct gi_random *random)
{
    return gi_random_chance(random, 1, 2) ? 0 : (uint16_t)gi_random_below(random, 200);
}

static struct gi_sim_config world_of(uint64_t seed, struct gi_random *random)
{
    struct gi_sim_config config = {.seed = seed, .burst_max = 1 + (uint32_t)(seed % 7)};
    config.recv_bytes_min = 1000;
    config.recv_bytes_max = 1000 + (uint32_t)gi_random_below(random, 60000);
    config.send_bytes_min = 1000;
    config.send_bytes_max = 1000 + (uint32_t)gi_random_below(random, 60000);
    config.delay_max = gi_random_below(random, 3) * GORI_MILLISECONDS;
    struct gi_sim_faults *faults = &config.faults;
    faults->short_recv = chance(random);
    faults->short_send = chance(random);
    faults->segment = chance(random);
    faults->shuffle = chance(random);
    faults->late = chance(random);
    faults->late_submit = chance(random);
    faults->cancel_lost = chance(random);
    faults->cancel_late = chance(random);
    faults->stale = chance(random);
    faults->starve = chance(random);
    faults->spurious = chance(random);
    faults->accept_error = chance(random);
    if (seed % 3 == 0) {
        faults->reset = (uint16_t)gi_random_below(random, 5);
        faults->submit_error = (uint16_t)gi_random_below(random, 5);
        faults->open_error = (uint16_t)gi_random_below(random, 50);
    }
    return config;
}

static void run_pairs(struct chaos *c)
{
    const struct gori_session_options options = {.context_bytes = sizeof(struct end *),
                                                 .idle_timeout = 100 * GORI_SECONDS};
    for (int i = 0; i < PAIRS; i++) {
        struct gori_session *session;
        if (gori_session_connect(c->loop, &c->addr, &events, &options, c, &session) >= 0) {
            *slot_of(session) = &c->clients[i];
        }
    }
    struct gori_loop_stats stats = {0};
    int left = TURNS_MAX;
    do {
        GT_CHECK(left-- > 0);
        GT_CHECK(gori_loop_turn(c->loop, GORI_MILLISECONDS) >= 0);
        for (int i = 0; i < PAIRS; i++) {
            act(c, &c->clients[i]);
        }
        for (uint32_t i = 0; i < c->server_count; i++) {
            act(c, &c->servers[i]);
        }
        gori_loop_read_stats(c->loop, &stats);
    } while (stats.sessions_now > 0 || left > TURNS_MAX - 50);
    GT_EQUAL(stats.send_bytes_now, 0);
    GT_EQUAL(stats.buffers_held_now, 0);
}

static void play(uint64_t seed)
{
    struct gi_fault_alloc memory;
    static struct chaos chaos;
    struct chaos *c = &chaos;
    memset(c, 0, sizeof(*c));
    gi_random_init(&c->random, seed);
    c->is_calm = seed % 3 != 0;
    gi_fault_alloc_init(&memory, NULL);
    const struct gi_sim_config world = world_of(seed, &c->random);
    GT_EQUAL(gi_sim_create(NULL, &world, &c->sim), 0);
    const struct gori_loop_config config = {.engine = "sim",
                                            .simulation = c->sim,
                                            .allocator = &memory.allocator,
                                            .buffer_bytes = 512U << gi_random_below(&c->random, 4),
                                            .buffers_max =
                                                8 + (uint32_t)gi_random_below(&c->random, 100)};
    GT_EQUAL(gori_loop_create(&config, &c->loop), 0);
    c->size_of[0] = (size_t)gi_random_below(&c->random, STREAM_MAX);
    c->size_of[1] = (size_t)gi_random_below(&c->random, STREAM_MAX);
    const struct gori_listener_config listener_config = {
        .addr = addr_of("127.0.0.1:7000"),
        .events = &events,
        .user = c,
        .sessions_max = seed % 2 == 0 ? 2 : 0,
        .options = {.context_bytes = sizeof(struct end *), .idle_timeout = 100 * GORI_SECONDS}};
    struct gori_listener *listener;
    if (gori_listener_open(c->loop, &listener_config, &listener) >= 0) {
        c->addr = listener_config.addr;
        run_pairs(c);
        GT_EQUAL(c->opened, c->closed);
        GT_CHECK(!c->is_calm || c->closed == 2 * PAIRS);
        for (int i = 0; c->is_calm && i < PAIRS; i++) {
            GT_EQUAL(c->clients[i].received, c->size_of[1]);
            GT_EQUAL(c->servers[i].received, c->size_of[0]);
        }
    }
    gori_loop_destroy(c->loop);
    gi_sim_destroy(c->sim);
    gi_fault_alloc_fini(&memory);
}

static uint64_t playing; /* the seed, 0 when all is well */

static void print_seed(void)
{
    if (playing != 0) {
        fprintf(stderr, "replay it with CHAOS_SEED=%llu\n", (unsigned long long)playing);
    }
}

GT_TEST(streams_survive_every_fault)
{
    const char *first = getenv("CHAOS_SEED");
    const char *count = getenv("CHAOS_COUNT");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t seeds = first != NULL ? 1 : SEEDS;
    GT_EQUAL(atexit(print_seed), 0);
    for (uint64_t left = count != NULL ? strtoull(count, NULL, 10) : seeds; left > 0; left--) {
        playing = from++;
        play(playing);
    }
    playing = 0;
}

GT_MAIN()
