/* SPDX-License-Identifier: MIT */
/*
 * What every conformance case stands on: a loop on the engine under test, scripted peers that
 * are no part of gori, and a trace of callbacks as text.  The suite is black-box: it knows engines
 * by name only (GORI_TEST_ENGINE), and demands the same from each.
 *
 *  1. A case ends with fixture_close, which destroys the loop and then finds every allocation given
 *     back and every descriptor closed.
 *  2. Waiting is for a condition, in turns of the loop; the test library's time limit is the only
 *     thing that gives up.
 *  3. That something does NOT happen is looked for with fixture_settle: turns without waiting, in
 *     which everything the other end has done before must show.
 */
#ifndef TESTS_CONFORMANCE_FIXTURE_H
#define TESTS_CONFORMANCE_FIXTURE_H

#include <gori/error.h>
#include <gori/file.h>
#include <gori/listener.h>
#include <gori/loop.h>
#include <gori/op.h>
#include <gori/session.h>
#include <gori/timer.h>

#include "base/fault_alloc.h"
#include "lib/peer.h"
#include "lib/test.h"

struct gi_sim;
struct gi_sim_config;

#define FIXTURE_TRACE_BYTES 4096

struct fixture {
    const char *engine;
    struct gi_fault_alloc memory;
    struct gi_sim *sim;                     /* NULL on real engines */
    const struct gi_sim_config *sim_config; /* default: calm */
    struct gt_network network;
    struct gori_loop_config config;
    struct gori_loop *loop;
    int descriptors; /* open before the loop was made */
    bool in_call;    /* inside a call to the runtime that must not call back */
    char trace[FIXTURE_TRACE_BYTES];
};

/** Opens a loop with the configuration in `fixture->config`, which starts as zero. */
void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture);

/** One turn that waits a little, so that a condition on a peer can be asked again. */
void fixture_turn(struct fixture *fixture);
void fixture_settle(struct fixture *fixture);

/** Turns until the condition holds. */
#define FIXTURE_UNTIL(fixture, condition)                                                          \
    do {                                                                                           \
        while (!(condition)) {                                                                     \
            fixture_turn(fixture);                                                                 \
        }                                                                                          \
    } while (0)

/** Adds a word to the trace. */
__attribute__((format(printf, 2, 3))) void fixture_trace(struct fixture *fixture,
                                                         const char *format, ...);

/* Peers, allocated; each is ended by fixture_hang_up or fixture_reset. */
struct gt_peer *fixture_connect(struct fixture *fixture, const struct gori_addr *addr);
/** Listens, and tells the address with the port that was chosen. */
struct gt_peer *fixture_listen(struct fixture *fixture, struct gori_addr *addr, int backlog);
struct gt_peer *fixture_accept(struct gt_peer *listener); /* NULL while there is none */
void fixture_hang_up(struct gt_peer *peer);
void fixture_reset(struct gt_peer *peer);

/** The address of a text. */
struct gori_addr fixture_addr(const char *text);

/** Byte `offset` of the stream that is sent under `stamp`: what arrives can be checked anywhere. */
static inline uint8_t fixture_byte(uint8_t stamp, uint64_t offset)
{
    return (uint8_t)(stamp * 31u + offset * 7u + (offset >> 8) * 13u + (offset >> 16));
}

void fixture_fill(uint8_t *data, size_t size, uint8_t stamp, uint64_t offset);
void fixture_check(const uint8_t *data, size_t size, uint8_t stamp, uint64_t offset);

/** A pair: a handle of the loop, and the peer at the other end. */
struct pair {
    struct fixture *fixture;
    struct gori_handle handle;
    struct gt_peer *peer;
    unsigned closed; /* times on_close ran */
};

/** Connects a peer to a handle of the loop. */
void pair_open(struct fixture *fixture, struct pair *pair);

/** Closes both ends and waits for `on_close`. */
void pair_close(struct pair *pair);

/** An op that remembers what its completions said. */
struct probe {
    struct fixture *fixture;
    struct gori_op op;
    unsigned completions;
    unsigned last;  /* completions that were marked as the last */
    int64_t result; /* of the newest */
    uint64_t bytes; /* received or sent in all */
    uint8_t stamp;  /* checked on what is received, unless 0 */
    bool hold;      /* keep the receive buffers in `held` */
    struct gori_buffer *held[64];
    unsigned held_count;
    gori_native accepted[256];
    unsigned accepted_count;
};

void probe_init(struct fixture *fixture, struct probe *probe);
void probe_release_held(struct probe *probe);

#endif
