/* SPDX-License-Identifier: MIT */
/*
 * A listener: accepts connections on one address (IPv4, IPv6 or UNIX) and makes sessions of them.
 * Out of descriptors or memory it backs off without a spin, and goes on when there are some again.
 *
 * Stopping without refusing anybody: a client is connected as soon as it stands in the queue of the
 * socket, and the queue goes with the socket.  So let the socket go on: release it from one
 * listener and let another adopt it, on any loop, or in another process (docs/adr/0014).
 * Stability: unstable until 1.0.
 */
#ifndef GORI_LISTENER_H
#define GORI_LISTENER_H

#include <gori/addr.h>
#include <gori/op.h>
#include <gori/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_listener;

typedef void gori_listener_fn(struct gori_listener *listener);

/** Which worker of a runtime gets a connection. */
enum gori_accept_policy {
    GORI_ACCEPT_KERNEL = 0,      /* each has its own socket on the port and the system chooses, by a
                                    hash of the addresses; where it does not, and of a UNIX path or
                                    a socket that came from outside, as LEAST */
    GORI_ACCEPT_LEAST = 1,       /* worker 0 accepts; the one with the fewest connections serves */
    GORI_ACCEPT_ROUND_ROBIN = 2, /* worker 0 accepts; they serve in turn */
    GORI_ACCEPT_SINGLE = 3       /* worker 0 accepts and serves none, if there are others; of those
                                    the one with the fewest connections serves */
};

/** How a listener is made.  Zero means the default for every field but `addr` and `events`. */
struct gori_listener_config {
    struct gori_addr addr;
    const struct gori_session_events *events; /* must outlive the listener and its sessions */
    struct gori_session_options options;      /* of the sessions */
    void *user;                               /* becomes gori_session_user */
    uint32_t backlog;                         /* default 4096; the system may cap it */
    uint32_t sessions_max;                    /* accepting pauses at so many; default none; of a
                                                 runtime's listener, per worker */
    bool reuse_port;                          /* share the port between loops (SO_REUSEPORT) */
    bool ipv6_only;                           /* an IPv6 wildcard takes no IPv4 */
    bool keep_socket;                         /* others have the socket too: at the close what it
                                                 has queued, and a UNIX path, are left to them */
    enum gori_accept_policy accept_policy;    /* of a runtime's listener only */
    gori_listener_fn *on_close;               /* the last callback of the listener; may be NULL */
};

/**
 * Opens a listener.  It accepts from the loop's next turn on.
 * Thread: the loop's.  Memory: the config is copied, `events` is not.
 * Errors: GORI_EINVAL, GORI_EADDRINUSE, GORI_EADDRNOTAVAIL, GORI_EACCESS, GORI_ENOMEM, GORI_EMFILE;
 * GORI_EADDRINUSE for a UNIX path on which a live server listens; a dead one's path is taken over.
 */
GORI_API GORI_MUST_USE int gori_listener_open(struct gori_loop *loop,
                                              const struct gori_listener_config *config,
                                              struct gori_listener **ret_listener);

/**
 * As gori_listener_open, with a stream socket that listens already: one that was released, came
 * from another process, or was opened by a supervisor.  `addr`, `backlog` and the like of the
 * config are not looked at.
 * Thread: the loop's.  Memory: on success the loop owns `native`, on failure the caller still does.
 * Errors: GORI_EINVAL when it does not listen, or belongs to another loop of Windows; GORI_ENOTSUP
 * in the simulator; GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_listener_adopt(struct gori_loop *loop, gori_native native,
                                               const struct gori_listener_config *config,
                                               struct gori_listener **ret_listener);

/**
 * Stops accepting and closes.  Connections that the system has queued already are still accepted
 * and become sessions, but with `keep_socket`; then `on_close` runs, and the listener is freed.
 * Its sessions go on.  Thread: the loop's.
 */
GORI_API void gori_listener_close(struct gori_listener *listener);

/**
 * Closes a listener, but for its socket, which becomes the caller's: for gori_listener_adopt on
 * this loop or another, or another process.  It goes on queueing meanwhile.  What this listener has
 * accepted already becomes sessions.
 * Thread: the loop's.
 * Errors: GORI_EMFILE and the like, and the listener goes on; GORI_ECLOSED when it is closing;
 * GORI_ENOTSUP on Windows, where a socket stays with its loop, and in the simulator.
 */
GORI_API GORI_MUST_USE int gori_listener_release(struct gori_listener *listener,
                                                 gori_native *ret_native);

/** The address it listens on, with the port that the system chose.  Thread: the loop's. */
GORI_API void gori_listener_addr(const struct gori_listener *listener, struct gori_addr *ret_addr);

/** Sessions that it accepted and that are not closed.  Thread: the loop's. */
GORI_API uint32_t gori_listener_sessions(const struct gori_listener *listener);

/** The pointer given in the config. */
GORI_API void *gori_listener_user(const struct gori_listener *listener);

#ifdef __cplusplus
}
#endif

#endif
