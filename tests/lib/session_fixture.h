/* SPDX-License-Identifier: MIT */
/*
 * What the tests of sessions and listeners share: a loop on an engine of choice, a listener whose
 * sessions write down what happens to them, and scripted peers at the other end.
 * Not for anything but tests.  Thread: one.
 */
#ifndef GT_SESSION_FIXTURE_H
#define GT_SESSION_FIXTURE_H

#include <gori/error.h>
#include <gori/listener.h>
#include <gori/loop.h>
#include <gori/session.h>
#include <lib/engines.h>
#include <lib/peer.h>
#include <lib/test.h>

#include "base/fault_alloc.h"
#include "engine/sim/sim.h"

enum { FIXTURE_BYTES_MAX = 8 << 20, FIXTURE_TURNS_MAX = 4000, FIXTURE_SESSIONS_MAX = 64 };

struct fixture;

/** What a session's callbacks do beyond writing down; NULL: consume, and nothing else. */
struct script {
    size_t (*on_recv)(struct fixture *f, struct gori_session *session, struct gori_slice bytes);
    void (*on_open)(struct fixture *f, struct gori_session *session);
    void (*on_eof)(struct fixture *f, struct gori_session *session);
    void (*on_drain)(struct fixture *f, struct gori_session *session);
    void (*on_timeout)(struct fixture *f, struct gori_session *session, enum gori_timeout which);
    void (*on_close)(struct fixture *f, struct gori_session *session);
};

struct fixture {
    struct gi_fault_alloc memory;
    struct gi_sim *sim; /* NULL on the system */
    struct gt_network network;
    struct gori_loop *loop;
    struct gori_listener *listener;
    struct gori_addr addr; /* of the listener */
    struct script script;
    /* written down */
    struct gori_session *session; /* the last that opened, of those that are open */
    struct gori_session *open[FIXTURE_SESSIONS_MAX];
    uint32_t opened;
    uint32_t closed;
    uint32_t eofs;
    uint32_t drains;
    uint32_t timeouts;
    uint32_t listeners_closed;
    enum gori_timeout last_timeout;
    enum gori_close_reason last_reason;
    int last_error;
    uint8_t *received; /* consumed by the sessions, one after the other */
    size_t received_bytes;
    uint32_t calls; /* of on_recv */
    uint8_t *read;  /* by peer_read */
    size_t read_bytes;
};

/** How a fixture is made; zero means the default. */
struct fixture_config {
    const char *engine; /* default "sim" */
    struct gi_sim_config sim;
    struct gori_loop_config loop;
    struct gori_session_options options;
    uint32_t sessions_max;
    uint32_t backlog;
    bool handle_eof;     /* the events have an on_eof */
    bool handle_timeout; /* and an on_timeout */
    bool without_listener;
};

static inline struct fixture *fixture_of(struct gori_session *session)
{
    return gori_session_user(session);
}

static inline void note_open(struct gori_session *session)
{
    struct fixture *f = fixture_of(session);
    f->opened++;
    f->session = session;
    for (size_t i = 0; i < FIXTURE_SESSIONS_MAX; i++) {
        if (f->open[i] == NULL) {
            f->open[i] = session;
            break;
        }
    }
    if (f->script.on_open != NULL) {
        f->script.on_open(f, session);
    }
}

static inline size_t note_recv(struct gori_session *session, struct gori_slice bytes)
{
    struct fixture *f = fixture_of(session);
    f->calls++;
    GT_CHECK(bytes.size > 0);
    size_t consumed = bytes.size;
    if (f->script.on_recv != NULL) {
        consumed = f->script.on_recv(f, session, bytes);
    }
    GT_CHECK(f->received_bytes + consumed <= FIXTURE_BYTES_MAX);
    memcpy(f->received + f->received_bytes, bytes.data, consumed);
    f->received_bytes += consumed;
    return consumed;
}

static inline void note_eof(struct gori_session *session)
{
    struct fixture *f = fixture_of(session);
    f->eofs++;
    if (f->script.on_eof != NULL) {
        f->script.on_eof(f, session);
    }
}

static inline void note_drain(struct gori_session *session)
{
    struct fixture *f = fixture_of(session);
    f->drains++;
    if (f->script.on_drain != NULL) {
        f->script.on_drain(f, session);
    }
}

static inline void note_timeout(struct gori_session *session, enum gori_timeout which)
{
    struct fixture *f = fixture_of(session);
    f->timeouts++;
    f->last_timeout = which;
    if (f->script.on_timeout != NULL) {
        f->script.on_timeout(f, session, which);
    }
}

static inline void note_close(struct gori_session *session, enum gori_close_reason reason,
                              int error)
{
    struct fixture *f = fixture_of(session);
    f->closed++;
    f->last_reason = reason;
    f->last_error = error;
    f->session = NULL;
    for (size_t i = 0; i < FIXTURE_SESSIONS_MAX; i++) {
        if (f->open[i] == session) {
            f->open[i] = NULL;
        } else if (f->open[i] != NULL) {
            f->session = f->open[i];
        }
    }
    if (f->script.on_close != NULL) {
        f->script.on_close(f, session);
    }
}

static inline void note_listener_closed(struct gori_listener *listener)
{
    struct fixture *f = gori_listener_user(listener);
    f->listeners_closed++;
    f->listener = NULL;
}

static const struct gori_session_events events_plain = {note_open,  note_recv, NULL,
                                                        note_drain, NULL,      note_close};
static const struct gori_session_events events_eof = {note_open,  note_recv, note_eof,
                                                      note_drain, NULL,      note_close};
static const struct gori_session_events events_timeout = {note_open,  note_recv,    NULL,
                                                          note_drain, note_timeout, note_close};

static inline const struct gori_session_events *events_of(const struct fixture_config *config)
{
    if (config->handle_eof) {
        return &events_eof;
    }
    return config->handle_timeout ? &events_timeout : &events_plain;
}

static inline struct gori_addr addr_of(const char *text)
{
    struct gori_addr addr;
    GT_EQUAL(gori_addr_parse(text, &addr), 0);
    return addr;
}

static inline int open_listener(struct fixture *f, const struct fixture_config *config)
{
    const struct gori_listener_config listener_config = {
        .addr = addr_of("127.0.0.1:0"),
        .events = events_of(config),
        .options = config->options,
        .user = f,
        .sessions_max = config->sessions_max,
        .backlog = config->backlog,
        .on_close = note_listener_closed,
    };
    int result = gori_listener_open(f->loop, &listener_config, &f->listener);
    if (result >= 0) {
        gori_listener_addr(f->listener, &f->addr);
    }
    return result;
}

/** Begins; skips the test when the engine is not to be had. */
static inline void begin(struct fixture *f, const struct fixture_config *config)
{
    memset(f, 0, sizeof(*f));
    f->received = malloc(FIXTURE_BYTES_MAX);
    f->read = malloc(FIXTURE_BYTES_MAX);
    GT_CHECK(f->received != NULL && f->read != NULL);
    gi_fault_alloc_init(&f->memory, NULL);
    struct gori_loop_config loop_config = config->loop;
    loop_config.engine = config->engine != NULL ? config->engine : "sim";
    loop_config.allocator = &f->memory.allocator;
    f->network = gt_network_system();
    if (strcmp(loop_config.engine, "sim") == 0) {
        GT_EQUAL(gi_sim_create(NULL, &config->sim, &f->sim), 0);
        f->network = gt_network_sim(f->sim);
        loop_config.simulation = f->sim;
    }
    int result = gori_loop_create(&loop_config, &f->loop);
    if (result < 0 && f->sim == NULL) {
        GT_SKIP("the engine is not to be had here");
    }
    GT_EQUAL(result, 0);
    if (!config->without_listener) {
        GT_EQUAL(open_listener(f, config), 0);
    }
}

static inline void end(struct fixture *f)
{
    gori_loop_destroy(f->loop);
    GT_EQUAL(f->opened, f->closed);
    if (f->sim != NULL) {
        gi_sim_destroy(f->sim);
    }
    gi_fault_alloc_fini(&f->memory);
    free(f->received);
    free(f->read);
}

/** One turn, which waits a little at most. */
static inline void turn(struct fixture *f)
{
    GT_CHECK(gori_loop_turn(f->loop, GORI_MILLISECONDS) >= 0);
}

static inline void turns(struct fixture *f, int count)
{
    for (int i = 0; i < count; i++) {
        turn(f);
    }
}

/** Turns until the condition holds. */
#define TURN_UNTIL(f, condition)                                                                   \
    do {                                                                                           \
        for (int turns_left = FIXTURE_TURNS_MAX; !(condition); turns_left--) {                     \
            GT_CHECK(turns_left > 0 && #condition[0] != '\0');                                     \
            turn(f);                                                                               \
        }                                                                                          \
    } while (0)

/** Virtual time goes on by at least `span` (sim only). */
static inline void pass_time(struct fixture *f, gori_time span)
{
    gori_time until = gi_sim_now(f->sim) + span;
    while (gi_sim_now(f->sim) < until) {
        GT_CHECK(gori_loop_turn(f->loop, until - gi_sim_now(f->sim)) >= 0);
    }
    turns(f, 2);
}

/** Connects a peer and waits until its session is open. */
static inline struct gt_peer connect_peer(struct fixture *f)
{
    struct gt_peer peer;
    uint32_t opened = f->opened;
    GT_EQUAL(gt_peer_connect(&f->network, &f->addr, &peer), 0);
    TURN_UNTIL(f, gt_peer_connected(&peer) == 0 && f->opened > opened);
    return peer;
}

/** Sends all bytes, turning the loop while there is no room. */
static inline void peer_send(struct fixture *f, struct gt_peer *peer, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (int left = FIXTURE_TURNS_MAX; size > 0; left--) {
        GT_CHECK(left > 0);
        int64_t sent = gt_peer_send(peer, bytes, size);
        GT_CHECK(sent >= 0 || sent == GORI_EAGAIN);
        if (sent > 0) {
            bytes += sent;
            size -= (size_t)sent;
        }
        turn(f);
    }
}

/** Reads what is there, appending to f->read.  Result: bytes, 0 at the end, or an error. */
static inline int64_t peer_read(struct fixture *f, struct gt_peer *peer)
{
    int64_t result = gt_peer_recv(peer, f->read + f->read_bytes, FIXTURE_BYTES_MAX - f->read_bytes);
    if (result > 0) {
        f->read_bytes += (size_t)result;
    }
    return result;
}

/** Reads until `size` bytes are in f->read. */
static inline void peer_read_bytes(struct fixture *f, struct gt_peer *peer, size_t size)
{
    for (int left = FIXTURE_TURNS_MAX; f->read_bytes < size; left--) {
        GT_CHECK(left > 0);
        int64_t result = peer_read(f, peer);
        GT_CHECK(result > 0 || result == GORI_EAGAIN);
        turn(f);
    }
}

/** Reads to the end.  Result: 0 for the end of the stream, or the error. */
static inline int peer_read_end(struct fixture *f, struct gt_peer *peer)
{
    for (int left = FIXTURE_TURNS_MAX;; left--) {
        GT_CHECK(left > 0);
        int64_t result = peer_read(f, peer);
        if (result <= 0 && result != GORI_EAGAIN) {
            return (int)result;
        }
        turn(f);
    }
}

/** Bytes that tell their place; the same ones at each call. */
static inline uint8_t *pattern(size_t size)
{
    static uint8_t bytes[FIXTURE_BYTES_MAX];
    GT_CHECK(size <= sizeof(bytes));
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(i ^ (i >> 8) * 7 ^ (i >> 16) * 3);
    }
    return bytes;
}

#endif
