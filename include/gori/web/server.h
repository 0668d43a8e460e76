/* SPDX-License-Identifier: MIT */
/*
 * A web server for the files of a folder: HTTP/1.1 with keep-alive and pipelining, conditional
 * requests, ranges, and a cache of hot files.  One server belongs to one loop and shares nothing;
 * a runtime of N workers has N of them.  It listens through an ordinary listener, whose config it
 * fills in.
 *
 *     gori_web_server_create(loop, &config, &server)
 *     gori_web_server_listen_config(server, &listener)     then gori_listener_open, or on_listen
 *     gori_web_server_stop(server)                         no more than one request on each
 *     gori_web_server_destroy(server)
 *
 * Stability: unstable until 1.0.
 */
#ifndef GORI_WEB_SERVER_H
#define GORI_WEB_SERVER_H

#include <gori/allocator.h>
#include <gori/base.h>
#include <gori/listener.h>
#include <gori/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_loop;
struct gori_web_server;

/** A request that was answered, as an access log wants to know it.  Valid during the call. */
struct gori_web_access {
    struct gori_session *session; /* its peer, its id */
    struct gori_slice method;     /* as sent; this and the following are empty when the request */
    struct gori_slice target;     /* could not be read as far as that */
    struct gori_slice referer;
    struct gori_slice user_agent;
    uint64_t body_bytes;  /* of the response, as announced; 0 when none goes with it */
    int64_t wall_seconds; /* when it was answered, since 1970 */
    uint16_t status;
    uint8_t version_minor; /* HTTP/1.n */
};

typedef void gori_web_access_fn(void *user, const struct gori_web_access *access);

/** The time of day in nanoseconds since 1970. */
typedef gori_time gori_web_clock_fn(void *user);

/** How a server is made.  Zero means the default for every field but `root`. */
struct gori_web_config {
    const struct gori_allocator *allocator; /* default: the C library's */
    const char *root;                       /* the folder whose files are served */
    const char *server_name;                /* header Server; default "gori", "" for no header */

    gori_time idle_timeout;   /* without progress in either direction; default 60 s */
    gori_time header_timeout; /* from the first byte of a request to its last; default 10 s */

    uint32_t target_bytes_max; /* of the request line's target; default 8192 */
    uint32_t head_bytes_max;   /* of all of the request's head; default 32 KiB, at most 256 KiB */
    uint32_t headers_max;      /* in one request; default 100 */
    uint32_t body_bytes_max;   /* of a request body that nobody wants; default 32 KiB, at most
                                  256 KiB; a larger one is answered 413 */

    uint64_t cache_bytes;      /* of memory for hot files; default 64 MiB */
    uint32_t cache_file_bytes; /* larger files are sent from the disk; default 16 KiB */
    uint32_t cache_files;      /* smaller ones known at a time; default 4096 */
    uint32_t cache_open_files; /* larger ones kept open at a time; default 256 */
    gori_time revalidate;      /* longest time that a change of a file is not seen; default 1 s */

    bool hidden_files; /* serve names that begin with a dot, not only /.well-known/ */

    gori_web_access_fn *on_access;
    gori_web_clock_fn *wall_clock; /* default: the system's */
    void *user;                    /* of both */
};

/** Figures of a server, counted since it was made unless they say "now". */
struct gori_web_stats {
    uint64_t requests;         /* answered, refused ones included */
    uint64_t status_class[6];  /* [2] counts 200 to 299, and so on */
    uint64_t body_bytes;       /* of responses, as announced */
    uint64_t refused;          /* malformed requests: the connection was closed */
    uint64_t request_timeouts; /* requests that did not arrive in time */
    uint64_t idle_timeouts;    /* connections closed because nothing moved */
    uint64_t truncations;      /* files that became shorter while they were sent */
    uint64_t cache_hits;       /* requests for a file that was known */
    uint64_t cache_misses;     /* requests for which the disk was asked */
    uint64_t cache_bytes_now;  /* of memory */
    uint32_t cache_files_now;  /* known */
    uint32_t connections_now;  /* open */
};

/**
 * Creates a server.  Thread: the loop's, or before the loop runs.  Memory: the config, the root's
 * name included, is copied; `loop` and the allocator must outlive the server.
 * Errors: GORI_EINVAL for a config out of range; those of gori_root_open; GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_web_server_create(struct gori_loop *loop,
                                                  const struct gori_web_config *config,
                                                  struct gori_web_server **ret_server);

/**
 * Sets what makes a listener one of this server: `events`, `user` and of `options` the idle
 * timeout, the receive limit and the context; the rest stays as it is.
 * Thread: the loop's.
 */
GORI_API void gori_web_server_listen_config(struct gori_web_server *server,
                                            struct gori_listener_config *config);

/**
 * Begins a graceful stop: idle connections close, the others after their next response, which says
 * so.  The listener is the caller's to close.  A second call does nothing.  Thread: the loop's.
 */
GORI_API void gori_web_server_stop(struct gori_web_server *server);

/**
 * Destroys a server.  Connections that are still open close; the memory goes with the last of
 * them, so that the loop has to turn, or to be destroyed, after this.  The listener must be closed.
 * NULL does nothing.  Thread: the loop's.
 */
GORI_API void gori_web_server_destroy(struct gori_web_server *server);

/** Copies the server's figures.  Thread: the loop's. */
GORI_API void gori_web_server_stats(const struct gori_web_server *server,
                                    struct gori_web_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
