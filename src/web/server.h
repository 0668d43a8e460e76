/* SPDX-License-Identifier: MIT */
/*
 * The inside of a web server: what its files share.  A request goes through them like this:
 *
 *     connection.c     bytes --> requests, one after the other
 *     static_files.c   request --> response        (the seam: what answers is a function of both)
 *     response.c       response --> bytes of the session
 *
 * Thread: the loop's.
 */
#ifndef GI_WEB_SERVER_H
#define GI_WEB_SERVER_H

#include <gori/loop.h>
#include <gori/web/server.h>

#include "base/pool.h"
#include "proto/http1.h"
#include "web/clock.h"
#include "web/file_cache.h"

struct gori_web_server {
    struct gori_loop *loop;
    const struct gori_allocator *allocator;
    struct gori_web_config config; /* with its defaults; its texts are not ours: do not use them */
    struct gi_web_clock clock;
    struct gi_web_cache cache;
    struct gi_http1_parser parser; /* for heads that come as a whole; with `headers` */
    struct gi_http1_header *headers;
    struct gi_pool pendings; /* for those that do not: see connection.c */
    struct gori_link connections;
    struct gori_web_stats stats;
    uint8_t *scratch; /* for one request: its decoded name, then the head of its response */
    size_t scratch_bytes;
    size_t name_bytes;
    char server_line[96]; /* the header Server with its line end, or "" */
    bool stopping;
    bool destroyed;
};

/** One request, whole.  Spans of `head` are offsets into `data`. */
struct gi_web_request {
    const struct gi_http1_head *head; /* NULL: it was not even begun */
    const uint8_t *data;
    bool close;  /* it will be the last on its connection */
    int refusal; /* 0, or the status with which it is refused without a look at what it names */
};

/** What a request is answered with. */
struct gi_web_response {
    int status;
    struct gi_web_file *file;   /* whose bytes are the body; NULL: a text about the status */
    uint64_t first;             /* the part of the file, */
    uint64_t size;              /* and its bytes */
    struct gori_slice location; /* decoded name to redirect to, without the slash at its end */
};

/** static_files.c: answers from the files of the root. */
void gi_web_static_files(struct gori_web_server *server, const struct gi_web_request *request,
                         struct gi_web_response *ret_response);

/**
 * response.c: sends a response and counts it.
 * Result: 0, GORI_SEND_HIGH, or an error after which the session has to close.
 */
GORI_MUST_USE int gi_web_respond(struct gori_web_server *server, struct gori_session *session,
                                 const struct gi_web_request *request,
                                 struct gi_web_response *response);

/* connection.c */
extern const struct gori_session_events gi_web_events;

/** Bytes of memory that go with each session. */
size_t gi_web_connection_bytes(void);

/** The most bytes that one request takes on the wire. */
size_t gi_web_message_bytes(const struct gori_web_server *server);

/** Bytes of one object of server->pendings. */
size_t gi_web_pending_bytes(const struct gori_web_server *server);

/** Closes the connections that have nothing to finish, and tells the others. */
void gi_web_stop_connections(struct gori_web_server *server);

/** Closes all connections. */
void gi_web_close_connections(struct gori_web_server *server);

/** server.c: frees a destroyed server once its last connection is gone. */
void gi_web_server_release(struct gori_web_server *server);

#endif
