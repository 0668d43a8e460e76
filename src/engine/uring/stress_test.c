/* SPDX-License-Identifier: MIT */
/*
 * Random interleavings on the real kernel: connections between the engine and itself receive, send,
 * cancel and close in an order that a seed decides, with queues of 8 and 16 in half of the runs and
 * few buffers in the other.  Each operation ends once, bytes come in order, nothing is left behind.
 * GORI_TEST_SEED in the environment runs one seed.
 */
#include "base/random.h"
#include "engine/uring/fixture_test.h"

enum { ENDS = 16, STEPS = 3000, SEEDS = 100, PIECE_BYTES = 3000 };

/* One end of a connection; the other is `ends[index ^ 1]`. */
struct end {
    struct socket socket;
    struct record receive;
    struct record send;
    struct gori_slice pieces[3];
    bool open;
};

struct world {
    struct fixture fixture;
    struct gi_random random;
    struct end ends[ENDS];
    uint32_t submitted;
};

static uint8_t g_bytes[PIECE_BYTES];

static uint32_t pick(struct world *world, uint32_t bound)
{
    return (uint32_t)gi_random_below(&world->random, bound);
}

static void open_pair(struct world *world, uint32_t index)
{
    int fds[2];
    GT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct end *end = &world->ends[index + i];
        memset(end, 0, sizeof(*end));
        socket_adopt(&world->fixture, &end->socket, fds[i]);
        end->open = true;
    }
}

static bool is_free(const struct record *record)
{
    return record->op.state == GI_OP_IDLE;
}

static void start_receive(struct world *world, struct end *end)
{
    if (is_free(&end->receive)) {
        world->submitted++;
        record_submit(&world->fixture, &end->receive, &end->socket, GORI_OP_RECV_MULTI);
    }
}

static void start_send(struct world *world, struct end *end)
{
    if (!is_free(&end->send)) {
        return;
    }
    uint32_t count = 1 + pick(world, 3);
    for (uint32_t i = 0; i < count; i++) {
        end->pieces[i] = (struct gori_slice){.data = g_bytes, .size = pick(world, PIECE_BYTES)};
    }
    world->submitted++;
    record_send(&world->fixture, &end->send, &end->socket, end->pieces, count);
}

static void cancel_one(struct world *world, struct record *record)
{
    if (record->op.state == GI_OP_SUBMITTED) {
        record_cancel(&world->fixture, record);
    }
}

static void step(struct world *world)
{
    uint32_t index = pick(world, ENDS);
    struct end *end = &world->ends[index];
    if (!end->open) {
        const struct end *other = &world->ends[index ^ 1];
        if (end->socket.closed == 1 && other->socket.closed == 1) {
            open_pair(world, index & ~1u);
        }
        return;
    }
    switch (pick(world, 10)) {
    case 0:
        socket_close(&world->fixture, &end->socket);
        end->open = false;
        break;
    case 1:
        cancel_one(world, &end->receive);
        break;
    case 2:
        cancel_one(world, &end->send);
        break;
    case 3:
    case 4:
    case 5:
        start_receive(world, end);
        break;
    default:
        start_send(world, end);
        break;
    }
}

static void run_seed(uint64_t seed)
{
    static struct world world;
    memset(&world, 0, sizeof(world));
    gi_random_init(&world.random, seed);
    fixture_init(&world.fixture, seed % 2 == 0 ? 5 : 256);
    if (seed % 4 < 2 && (world.fixture.uring->ring.features & GI_URING_RESIZE_RINGS)) {
        (void)fixture_turn(&world.fixture, 0);
        GT_EQUAL(gi_ring_resize(&world.fixture.uring->ring, 8, 16), 0);
        world.fixture.uring->may_grow = false;
    }
    for (uint32_t i = 0; i < ENDS; i += 2) {
        open_pair(&world, i);
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        step(&world);
        if (pick(&world, 3) == 0) {
            (void)fixture_turn(&world.fixture, 0);
        }
    }
    for (uint32_t i = 0; i < ENDS; i++) {
        if (world.ends[i].open) {
            socket_close(&world.fixture, &world.ends[i].socket);
        }
    }
    for (uint32_t i = 0; i < ENDS; i++) {
        FIXTURE_UNTIL(&world.fixture, world.ends[i].socket.closed == 1);
        GT_CHECK(is_free(&world.ends[i].receive));
        GT_CHECK(is_free(&world.ends[i].send));
    }
    GT_CHECK(world.submitted > STEPS / 10);
    GT_EQUAL(world.fixture.uring->ops_in_flight, 0);
    GT_EQUAL(world.fixture.uring->stale_completions, 0);
    GT_EQUAL(world.fixture.buffers.held_count, 0);
    fixture_fini(&world.fixture);
}

GT_TEST(random_interleavings_end_each_operation_once)
{
    const char *one = getenv("GORI_TEST_SEED");
    if (one != NULL) {
        run_seed(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        (void)printf("seed %llu\n", (unsigned long long)seed);
        run_seed(seed);
    }
}

GT_MAIN()
