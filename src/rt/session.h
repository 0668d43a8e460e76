/* SPDX-License-Identifier: MIT */
/*
 * The inside of a session, for the files of src/rt.  One page of prose on how a session lives
 * stands in session_life.c, on receiving in session_receive.c, on sending in session_send.c.
 * Thread: the loop's.
 */
#ifndef GI_RT_SESSION_H
#define GI_RT_SESSION_H

#include <assert.h>
#include <gori/op.h>
#include <gori/session.h>
#include <gori/timer.h>

#include "rt/loop.h"

enum gi_session_state {
    GI_SESSION_OPENING = 0,
    GI_SESSION_OPEN = 1,
    GI_SESSION_CLOSING = 2,  /* sends what is queued */
    GI_SESSION_DRAINING = 3, /* reads what the peer still sends */
    GI_SESSION_ENDING = 4,   /* the handle closes */
    GI_SESSION_CLOSED = 5    /* on_close runs or has run */
};

/* Bits of session.flags. */
#define GI_SESSION_PAUSED       0x0001 /* delivers nothing */
#define GI_SESSION_REDELIVER    0x0002 /* stands in store->redeliver */
#define GI_SESSION_FLUSH        0x0004 /* stands in store->flush */
#define GI_SESSION_HIGH         0x0008 /* was over the high mark, on_drain is owed */
#define GI_SESSION_RECV_ENDED   0x0010 /* the last receive ended for good; `recv_error` says how */
#define GI_SESSION_EOF_SHOWN    0x0020 /* and on_eof has run */
#define GI_SESSION_SHUTDOWN     0x0040 /* our direction ends after what is queued */
#define GI_SESSION_SHUT         0x0080 /* and has ended */
#define GI_SESSION_SEND_FAILED  0x0100 /* what the peer sent before is still read */
#define GI_SESSION_CLOSE_OPENED 0x0200 /* close after flush was asked for while opening */
#define GI_SESSION_UNBORN       0x0400 /* its connect failed at once: nobody knows of it */
#define GI_SESSION_OPENED       0x0800 /* was open, counted in stats.sessions_opened */

/**
 * A session.  The members up to `queue` are what a message touches; `handle`, `timer` and the last
 * ones are used when something begins or ends.  The context of the application lies behind it.
 */
struct gori_session {
    struct gi_session_class *class;
    gori_time progress_at; /* when bytes last moved, in either direction */
    uint16_t flags;
    uint8_t state;        /* enum gi_session_state */
    uint8_t close_reason; /* enum gori_close_reason; from closing on */
    uint32_t references;  /* of the application */
    struct gori_session *next_flush;
    struct gi_send_queue queue;
    struct gori_op recv_op;    /* its `user` is the receive queue, or NULL */
    struct gori_op send_op;    /* also connects; its `user` is then the address */
    struct gori_handle handle; /* its `user` is the application's */
    struct gori_timer timer;   /* one for all limits of time */
    uint64_t id;
    struct gori_session *next_redeliver;
    gori_time total_at;       /* when connecting, the whole session or draining took too long */
    gori_time deadline_at;    /* of gori_session_set_deadline */
    uint32_t idle_timeout_ms; /* rounded up; 0 for none */
    uint32_t drain_left;      /* bytes that may still be read and thrown away */
    uint32_t
        progress_seen;  /* low bits of the send in flight's progress, at the timer's last look */
    int16_t error;      /* goes to on_close */
    int16_t recv_error; /* how receiving ended; 0: the end of the stream */
};

static_assert(sizeof(struct gori_session) <= 500, "an idle connection must stay below 600 bytes");
static_assert(sizeof(struct gori_session) % 16 == 0, "the context behind it is aligned");

static inline struct gori_session *gi_session_of_handle(struct gori_handle *handle)
{
    return gori_container_of(handle, struct gori_session, handle);
}

static inline struct gi_session_store *gi_session_store(const struct gori_session *session)
{
    return &session->class->loop->session_store;
}

/* session.c ------------------------------------------------------------------------------ */

/** A session in the state opening, with an id, a reference on `class` and no socket. */
GORI_MUST_USE int gi_session_create(struct gi_session_class *class, void *user,
                                    struct gori_session **ret_session);

/** Undoes gi_session_create, for one that never got a socket. */
void gi_session_discard(struct gori_session *session);

/** Makes an accepted socket a session and opens it.  On failure `native` is still the caller's. */
GORI_MUST_USE int gi_session_accept(struct gi_session_class *class, void *user, gori_native native);

/** As gori_session_adopt, of a class. */
GORI_MUST_USE int gi_session_adopt(struct gi_session_class *class, void *user, gori_native native,
                                   struct gori_session **ret_session);

/** Frees the memory now, when nothing refers to it, or in step 7 (session_life.c). */
void gi_session_reap(struct gori_session *session);

/** The clock, read anew: for what an application asks for between turns. */
gori_time gi_session_clock(const struct gori_session *session);

/* session_receive.c ---------------------------------------------------------------------- */

/** Starts receiving, unless it runs, has ended, or is paused. */
void gi_session_receive(struct gori_session *session);

/** Drops what was received and not consumed, unless it is being shown. */
void gi_session_drop_received(struct gori_session *session);

/** The callback of recv_op. */
void gi_session_recv_done(struct gori_op *op, const struct gori_completion *completion);

/* session_send.c ------------------------------------------------------------------------- */

/** Puts the session on the list of step 6, unless it is there or has a send in flight. */
void gi_session_schedule_flush(struct gori_session *session);

/** Drops the send queue; no send is in flight. */
void gi_session_drop_sends(struct gori_session *session);

/* session_life.c ------------------------------------------------------------------------- */

/** From opening to open, and no more. */
void gi_session_begin(struct gori_session *session);

/** From opening to open: the callback, and receiving begins. */
void gi_session_opened(struct gori_session *session);

/** Begins the end: the reason is final, the handle closes, on_close will come. */
void gi_session_finish(struct gori_session *session, enum gori_close_reason reason, int error);

/** As gi_session_finish for a connection that failed with `error`. */
void gi_session_fail(struct gori_session *session, int error);

/** From open to closing: what gori_session_close_after_flush does, with a reason. */
void gi_session_close_gracefully(struct gori_session *session, enum gori_close_reason reason);

/** Everything queued is sent: does what waited for that. */
void gi_session_flushed(struct gori_session *session);

/** The end of the stream, or the failure of receiving, is due: everything received was shown. */
void gi_session_receive_ended(struct gori_session *session);

/** Sending failed: reads on for what the peer sent before, then fails. */
void gi_session_send_failed(struct gori_session *session, int error);

/** The callback of the handle. */
void gi_session_handle_closed(struct gori_handle *handle);

/* session_timer.c ------------------------------------------------------------------------ */

/** Starts the timer, or moves it forward, so that it fires at the nearest limit. */
void gi_session_start_timer(struct gori_session *session);

/** The callback of the timer. */
void gi_session_timer_expired(struct gori_timer *timer);

#endif
