/* SPDX-License-Identifier: MIT */
/*
 * A session: one stream connection with everything a server needs around it: receiving with a
 * consumed count, ordered gathered sending with watermarks, timeouts, half-closes, and a life
 * that ends in exactly one `on_close`.
 *
 *   opening --> open --> closing --> draining --> closed
 *
 * opening: a connect is on its way.  open: both directions work.  closing: what is queued is still
 * sent, nothing new is accepted.  draining: our end is sent; the peer's last bytes are read and
 * thrown away, within limits, so that it gets ours.  closed: `on_close` has run.
 * Stability: unstable until 1.0.
 */
#ifndef GORI_SESSION_H
#define GORI_SESSION_H

#include <gori/addr.h>
#include <gori/base.h>
#include <gori/block.h>
#include <gori/op.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_buffer;
struct gori_file;
struct gori_loop;
struct gori_session;

/** Why a session ended. */
enum gori_close_reason {
    GORI_CLOSE_LOCAL = 1,     /* gori_session_close or _close_after_flush finished its work */
    GORI_CLOSE_PEER = 2,      /* the peer ended the stream, and nobody handled `on_eof` */
    GORI_CLOSE_RESET = 3,     /* reset by the peer, or by gori_session_reset */
    GORI_CLOSE_ERROR = 4,     /* the connection failed; see the error */
    GORI_CLOSE_CONNECT = 5,   /* it could not be made; see the error */
    GORI_CLOSE_TIMEOUT = 6,   /* idle, connect or total timeout */
    GORI_CLOSE_SLOW = 7,      /* more than `send_max` bytes waited for a slow peer */
    GORI_CLOSE_TOO_LARGE = 8, /* more than `recv_max` bytes were received and not consumed */
    GORI_CLOSE_TRUNCATED = 9, /* a file that was being sent became shorter */
    GORI_CLOSE_SHUTDOWN = 10  /* the loop or runtime ended */
};

/** Which limit of time has passed. */
enum gori_timeout {
    GORI_TIMEOUT_IDLE = 1,    /* no progress in either direction */
    GORI_TIMEOUT_CONNECT = 2, /* the peer did not accept in time */
    GORI_TIMEOUT_TOTAL = 3,   /* the whole session took too long */
    GORI_TIMEOUT_DEADLINE = 4 /* gori_session_set_deadline */
};

/** The callbacks of a session.  All run on its loop, never inside a call to it; NULL is allowed. */
struct gori_session_events {
    /** The session is open.  Once, before all others; not for a connect that failed. */
    void (*on_open)(struct gori_session *session);
    /**
     * Bytes have arrived.  Result: how many of `bytes` were consumed; the rest is kept and shown
     * again in front of what follows, or after gori_session_resume.  The view is valid during the
     * call (see gori_session_retain).  NULL consumes everything.
     */
    size_t (*on_recv)(struct gori_session *session, struct gori_slice bytes);
    /**
     * The peer has ended its direction; everything it sent has been shown.  Sending still works.
     * NULL: the session closes after its queue is flushed, with GORI_CLOSE_PEER.
     * When our direction was ended as well, the session is over and closes with GORI_CLOSE_LOCAL.
     */
    void (*on_eof)(struct gori_session *session);
    /** The send queue fell to the low mark after it had been over the high one. */
    void (*on_drain)(struct gori_session *session);
    /**
     * A limit of time has passed.  The handler decides: when it does not close the session, the
     * idle limit starts anew.  NULL closes with GORI_CLOSE_TIMEOUT.  Never for connect, which
     * always closes.
     */
    void (*on_timeout)(struct gori_session *session, enum gori_timeout which);
    /**
     * The last callback there will ever be, once.  `error` is a GORI_E… value, or 0.  The session
     * is freed afterwards unless gori_session_ref holds it.
     */
    void (*on_close)(struct gori_session *session, enum gori_close_reason reason, int error);
};

/** What a session is like.  Zero means the default for every field. */
struct gori_session_options {
    gori_time idle_timeout;    /* without progress in either direction; default none */
    gori_time connect_timeout; /* default 10 s; GORI_NEVER for none */
    gori_time total_timeout;   /* from open; default none */
    gori_time drain_timeout;   /* longest stay in draining; default 2 s */
    uint32_t drain_bytes;      /* most bytes read and thrown away there; default 1 MiB */
    uint32_t send_high;        /* bytes queued at which the producer is told; default 256 KiB */
    uint32_t send_low;         /* bytes at which on_drain comes; default a quarter of send_high */
    uint32_t send_max;         /* bytes beyond which the session is closed; default 16 MiB */
    uint32_t recv_max;         /* unconsumed bytes beyond which it is closed; default 1 MiB */
    uint32_t context_bytes;    /* zeroed memory that comes with each session; default 0 */
    bool delay;                /* let the system gather small sends (Nagle); default off */
};

/** Result of a send: accepted, but the queue is over the high mark; wait for on_drain. */
#define GORI_SEND_HIGH 1

/**
 * Connects to an address: a session in the state opening that ends in `on_open`, or in `on_close`
 * with GORI_CLOSE_CONNECT or GORI_CLOSE_TIMEOUT.
 * Thread: the loop's.  Memory: `events` must live as long as the session; `options` (NULL for all
 * defaults) and `addr` are copied; `user` is kept for gori_session_user.
 * Errors: GORI_EINVAL, GORI_ELIMIT (sessions_max), GORI_ENOMEM, GORI_EMFILE, GORI_ENFILE; a session
 * then never existed and no callback runs.
 */
GORI_API GORI_MUST_USE int gori_session_connect(struct gori_loop *loop,
                                                const struct gori_addr *addr,
                                                const struct gori_session_events *events,
                                                const struct gori_session_options *options,
                                                void *user, struct gori_session **ret_session);

/**
 * Makes a session of a stream socket that is connected already: one that came from elsewhere, or
 * the pipe to a child (gori_process_take_pipe).  It is open when this returns, or closes already
 * when it could not begin to receive; `on_open` is not called.
 * Memory, errors: as gori_session_connect; on success the session owns `native`, on failure the
 * caller still does.
 */
GORI_API GORI_MUST_USE int gori_session_adopt(struct gori_loop *loop, gori_native native,
                                              const struct gori_session_events *events,
                                              const struct gori_session_options *options,
                                              void *user, struct gori_session **ret_session);

/**
 * Sends a copy of `size` bytes.  What is produced in one turn leaves in one gathered send.
 * Thread: the loop's.  Result: 0, or GORI_SEND_HIGH.
 * Errors: GORI_ECLOSED when the session is past open or its sending direction was ended;
 * GORI_ELIMIT when send_max would be passed: the session then closes with GORI_CLOSE_SLOW;
 * GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_session_send(struct gori_session *session, const void *data,
                                             size_t size);

/** Sends a block without copying it; takes its own reference.  As gori_session_send. */
GORI_API GORI_MUST_USE int gori_session_send_block(struct gori_session *session,
                                                   struct gori_block *block);

/**
 * Sends bytes of a receive buffer of the same loop without copying them; takes its own reference
 * of `buffer` (see gori_session_retain).  As gori_session_send.
 */
GORI_API GORI_MUST_USE int gori_session_send_buffer(struct gori_session *session,
                                                    struct gori_buffer *buffer,
                                                    struct gori_slice bytes);

/**
 * Sends a range of a file by the cheapest way the engine has; takes its own reference of `file`.
 * The range counts as 16 KiB against the watermarks: no memory, but a descriptor.  When the file
 * turns out shorter, the session closes with GORI_CLOSE_TRUNCATED.  As gori_session_send.
 */
GORI_API GORI_MUST_USE int gori_session_send_file(struct gori_session *session,
                                                  struct gori_file *file, uint64_t offset,
                                                  uint64_t size);

/**
 * Inside on_recv only: the buffer that holds the view, kept for the caller, so that the bytes stay
 * valid until gori_buffer_release.  NULL when the view is an assembled one (a message that came in
 * several completions): copy it then.  What is retained counts against the loop's buffers.
 */
GORI_API struct gori_buffer *gori_session_retain(struct gori_session *session);

/** Bytes queued for sending and not yet taken by the system.  Thread: the loop's. */
GORI_API size_t gori_session_send_bytes(const struct gori_session *session);

/** Stops delivery of received bytes at once; the system's window then slows the peer. */
GORI_API void gori_session_pause(struct gori_session *session);

/** Resumes delivery, never inside this call, beginning with what was not consumed. */
GORI_API void gori_session_resume(struct gori_session *session);

/**
 * Ends our direction after what is queued: the peer reads it all, then the end of the stream.
 * Receiving goes on.  Thread: the loop's.  Calling it twice is the same as once.
 */
GORI_API void gori_session_shutdown(struct gori_session *session);

/** Closes now: what is queued is dropped.  `on_close` comes from the loop.  Thread: the loop's. */
GORI_API void gori_session_close(struct gori_session *session);

/** Closes gracefully: flushes, ends our direction, drains the peer's, then closes. */
GORI_API void gori_session_close_after_flush(struct gori_session *session);

/** Closes now and tells the peer by a reset. */
GORI_API void gori_session_reset(struct gori_session *session);

/** Sets, moves or (GORI_NEVER) clears the session's one deadline; `delay` counts from now. */
GORI_API void gori_session_set_deadline(struct gori_session *session, gori_time delay);

/** Changes the idle limit; 0 for none.  The time without progress counts from now. */
GORI_API void gori_session_set_idle_timeout(struct gori_session *session, gori_time timeout);

/**
 * The session's id: 64 bits, never used again for another session before 2^32 reuses of its place.
 * Any thread may hold it and post it back; gori_loop_session finds the session or says it is gone.
 */
GORI_API uint64_t gori_session_id(const struct gori_session *session);

/** Whether `id` names a session of `loop` that is not closed.  Thread: any. */
GORI_API bool gori_session_id_is_live(struct gori_loop *loop, uint64_t id);

/** The loop of a session. */
GORI_API struct gori_loop *gori_session_loop(const struct gori_session *session);

/** The pointer given at connect, or the listener's. */
GORI_API void *gori_session_user(const struct gori_session *session);

/** Replaces that pointer. */
GORI_API void gori_session_set_user(struct gori_session *session, void *user);

/** The memory of `context_bytes` that came with the session; lives as long as it. */
GORI_API void *gori_session_context(struct gori_session *session);

/** The peer's address; family NONE for an unnamed UNIX peer.  Errors: GORI_ECLOSED. */
GORI_API GORI_MUST_USE int gori_session_peer(const struct gori_session *session,
                                             struct gori_addr *ret_addr);

/** Our own address.  Errors: GORI_ECLOSED. */
GORI_API GORI_MUST_USE int gori_session_local(const struct gori_session *session,
                                              struct gori_addr *ret_addr);

/**
 * Keeps the memory of a session beyond its close; all calls then answer GORI_ECLOSED or nothing.
 * A reference must be given up before the loop is destroyed.
 */
GORI_API void gori_session_ref(struct gori_session *session);

/** Gives that up. */
GORI_API void gori_session_unref(struct gori_session *session);

/** The name of a close reason, such as "timeout".  Thread: any. */
GORI_API const char *gori_close_reason_name(enum gori_close_reason reason);

#ifdef __cplusplus
}
#endif

#endif
