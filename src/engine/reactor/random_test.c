/* SPDX-License-Identifier: MIT */
/*
 * The reactor under random orders of submit, cancel, close, peers that write, read and leave, with
 * buffers always scarce.  Whatever the order: every op completes for the last time exactly once,
 * the bytes of each direction are in order and none is missing, every handle is told once that it
 * is closed, and no buffer stays out.  A failure prints its seed.
 */
#include "lib/reactor_bed.h"

#include <stdio.h>
#include <unistd.h>

#include "base/random.h"

#define LINES     6
#define PIECE_MAX 3000
#define HELD_MAX  3
#define STEPS     400
#define WORLDS    40

/* One connection: the handle of ours and the descriptor of its peer. */
struct line {
    struct gori_handle handle;
    struct gori_op receive;
    struct gori_op answer;
    struct gori_slice piece;
    uint8_t bytes[PIECE_MAX];
    int peer; /* -1 when it has left */
    bool open;
    bool receiving;
    bool sending;
    bool failed;        /* an error has ended it: the peer is gone */
    uint64_t written;   /* by the peer */
    uint64_t received;  /* by us */
    uint64_t sent;      /* by us, whole sends only */
    uint64_t read;      /* by the peer */
    bool has_lost_send; /* a send was cancelled: an unknown part of it went out */
};

struct world {
    struct bed bed;
    struct gi_random random;
    struct line lines[LINES];
    struct gori_buffer *held[HELD_MAX];
    bool settling; /* buffers go back at once */
};

/* The byte at a place of any stream. */
static uint8_t byte_at(uint64_t place)
{
    return (uint8_t)(place * 31 + (place >> 8));
}

static uint32_t below(struct world *world, uint32_t bound)
{
    return (uint32_t)gi_random_below(&world->random, bound);
}

static void open_line(struct world *world, struct line *line)
{
    int fds[2];
    memset(line, 0, sizeof(*line));
    make_pair(fds);
    int small = 1;
    GT_EQUAL(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    attach(&world->bed, fds[0], &line->handle);
    line->peer = fds[1];
    line->open = true;
}

/* Keeps a buffer for a while, in the place of another one. */
static void hold(struct world *world, struct gori_buffer *buffer)
{
    if (world->settling) {
        gori_buffer_release(buffer);
        return;
    }
    uint32_t at = below(world, HELD_MAX);
    if (world->held[at] != NULL) {
        gori_buffer_release(world->held[at]);
    }
    world->held[at] = buffer;
}

static void note_receive(struct world *world, struct line *line, const struct gi_completion *got)
{
    GT_CHECK(line->receiving);
    line->receiving = !got->what.is_last;
    if (got->what.result <= 0) {
        GT_CHECK(got->what.is_last);
        GT_CHECK(got->what.result != 0 || line->received == line->written);
        line->failed = line->failed || got->what.result != GORI_ECANCELED;
        return;
    }
    for (size_t i = 0; i < got->what.data.size; i++) {
        GT_EQUAL(got->what.data.data[i], byte_at(line->received + i));
    }
    line->received += got->what.data.size;
    hold(world, got->what.buffer);
}

static void note_send(struct line *line, const struct gi_completion *got)
{
    GT_CHECK(line->sending);
    GT_CHECK(got->what.is_last);
    line->sending = false;
    if (got->what.result >= 0) {
        GT_EQUAL(got->what.result, line->piece.size);
        line->sent += line->piece.size;
        return;
    }
    line->has_lost_send = true;
    line->failed = line->failed || got->what.result != GORI_ECANCELED;
}

static void deliver(struct world *world, const struct gi_completion *got)
{
    for (struct line *line = world->lines; line < world->lines + LINES; line++) {
        if (got->closed == &line->handle) {
            GT_CHECK(line->open && !line->receiving && !line->sending);
            line->open = false;
            line->handle.state = GI_HANDLE_FREE;
        } else if (got->op == &line->receive) {
            note_receive(world, line, got);
        } else if (got->op == &line->answer) {
            note_send(line, got);
        }
    }
}

/* A turn, and some of what it brings: what is left must keep. */
static void turn_a_little(struct world *world)
{
    struct gi_engine *engine = world->bed.engine;
    struct gi_completion got;
    GT_EQUAL(engine->impl->turn(engine, 0), 0);
    for (uint32_t left = below(world, 12); left > 0 && engine->impl->next(engine, &got); left--) {
        deliver(world, &got);
    }
}

static void act_on_our_side(struct world *world, struct line *line)
{
    struct gi_engine *engine = world->bed.engine;
    if (line->handle.state != GI_HANDLE_OPEN) {
        return;
    }
    switch (below(world, 8)) {
    case 0:
    case 1:
        if (!line->receiving && !line->failed) {
            submit(&world->bed, &line->receive, &line->handle, GORI_OP_RECV_MULTI);
            line->receiving = true;
        }
        break;
    case 2:
    case 3:
        if (!line->sending && !line->failed && !line->has_lost_send) {
            line->piece.data = line->bytes;
            line->piece.size = 1 + below(world, PIECE_MAX - 1);
            for (size_t i = 0; i < line->piece.size; i++) {
                line->bytes[i] = byte_at(line->sent + i);
            }
            submit_send(&world->bed, &line->answer, &line->handle, &line->piece, 1);
            line->sending = true;
        }
        break;
    case 4:
        if (line->receiving && line->receive.link.next != NULL) {
            engine->impl->cancel(engine, &line->receive);
        }
        break;
    case 5:
        if (line->sending && below(world, 4) == 0) {
            engine->impl->cancel(engine, &line->answer);
        }
        break;
    default:
        if (below(world, 10) == 0) {
            close_now(&world->bed, &line->handle);
        }
    }
}

static void peer_writes(struct world *world, struct line *line)
{
    uint8_t bytes[PIECE_MAX];
    size_t size = 1 + below(world, PIECE_MAX - 1);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(line->written + i);
    }
    ssize_t result = send(line->peer, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    line->written += result > 0 ? (uint64_t)result : 0;
}

static void peer_reads(struct world *world, struct line *line)
{
    uint8_t bytes[PIECE_MAX];
    ssize_t result = recv(line->peer, bytes, 1 + below(world, PIECE_MAX - 1), MSG_DONTWAIT);
    for (ssize_t i = 0; i < result; i++) {
        GT_EQUAL(bytes[i], byte_at(line->read + (uint64_t)i));
    }
    line->read += result > 0 ? (uint64_t)result : 0;
}

static void act_on_their_side(struct world *world, struct line *line)
{
    if (line->peer < 0) {
        return;
    }
    switch (below(world, 8)) {
    case 0:
    case 1:
    case 2:
        peer_writes(world, line);
        break;
    case 3:
    case 4:
    case 5:
        peer_reads(world, line);
        break;
    default:
        if (below(world, 20) == 0) {
            close(line->peer);
            line->peer = -1;
        }
    }
}

static void release_all(struct world *world)
{
    for (int i = 0; i < HELD_MAX; i++) {
        if (world->held[i] != NULL) {
            gori_buffer_release(world->held[i]);
        }
        world->held[i] = NULL;
    }
}

/* Whether a line has moved all that there is to move. */
static bool is_quiet(const struct line *line)
{
    bool lives = line->handle.state == GI_HANDLE_OPEN && !line->failed && line->peer >= 0;
    return !lives || (line->received == line->written && !line->sending);
}

/* With buffers enough and everybody reading, all that was written arrives: no edge was lost. */
static void settle(struct world *world)
{
    release_all(world);
    world->settling = true;
    bool quiet = false;
    for (int i = 0; !quiet; i++) {
        GT_CHECK(i < 10000);
        quiet = true;
        for (struct line *line = world->lines; line < world->lines + LINES; line++) {
            if (line->handle.state == GI_HANDLE_OPEN && !line->receiving && !line->failed) {
                submit(&world->bed, &line->receive, &line->handle, GORI_OP_RECV_MULTI);
                line->receiving = true;
            }
            if (line->peer >= 0) {
                peer_reads(world, line);
            }
            quiet = quiet && is_quiet(line);
        }
        turn_a_little(world);
    }
}

/* Ends everything, and looks whether all has come back. */
static void end_world(struct world *world)
{
    bool open = true;
    for (struct line *line = world->lines; line < world->lines + LINES; line++) {
        if (line->open && line->handle.state == GI_HANDLE_OPEN) {
            close_now(&world->bed, &line->handle);
        }
    }
    while (open) {
        turn_a_little(world);
        open = false;
        for (struct line *line = world->lines; line < world->lines + LINES; line++) {
            open = open || line->open;
        }
    }
    for (struct line *line = world->lines; line < world->lines + LINES; line++) {
        GT_CHECK(line->received <= line->written);
        if (line->peer >= 0) {
            close(line->peer);
        }
    }
    bed_fini(&world->bed);
}

static void live_through(const struct gi_engine_impl *impl, uint64_t seed)
{
    static struct world world;
    memset(&world, 0, sizeof(world));
    gi_random_init(&world.random, seed);
    bed_init(&world.bed, impl, HELD_MAX + 1);
    for (struct line *line = world.lines; line < world.lines + LINES; line++) {
        line->peer = -1;
    }
    for (int i = 0; i < STEPS; i++) {
        struct line *line = &world.lines[below(&world, LINES)];
        if (!line->open && line->handle.state == GI_HANDLE_FREE) {
            if (line->peer >= 0) {
                close(line->peer);
            }
            open_line(&world, line);
        }
        act_on_our_side(&world, line);
        act_on_their_side(&world, &world.lines[below(&world, LINES)]);
        if (below(&world, 3) == 0) {
            turn_a_little(&world);
        }
    }
    settle(&world);
    end_world(&world);
}

REACTOR_TEST(survives_every_order)
{
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        fprintf(stderr, "\rseed %u ", (unsigned)seed);
        live_through(impl, seed);
    }
}

GT_MAIN()
