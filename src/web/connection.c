/* SPDX-License-Identifier: MIT */
/*
 * Connections: from the bytes of a session to requests, answered one after the other.
 *
 *            +--------- answered, the connection is kept ----------+
 *            v                                                     |
 *     nothing read --> part of a request (pending) --> whole --> handler --> response
 *            |               |            |                            |
 *            |               | deadline   | cannot be read             | last one
 *            | idle          v            v                            v
 *            +-------->   close  <-- 408 400 413 414 431 ... <------ close after flush
 *
 *  1. A request is consumed when all of it, its body included, is there; until then the session
 *     shows it again with what follows.  So responses are in the order of requests by construction,
 *     and a handler never sees half of one.
 *  2. A head that comes as a whole, as nearly all do, is read with the server's parser, and leaves
 *     nothing behind.  Only a part of a request takes an object of its own (a pending), with the
 *     parser, so that no byte is read twice, and a deadline that further bytes do not move.
 *  3. Bodies of requests are read over within bounds.  A client that waits for 100 (Continue) gets
 *     the final status at once instead, and the connection closes, since nobody knows whether it
 *     will send the body.
 *  4. Over the high mark no further request is read until the session has drained.
 *  5. What cannot be read is answered, and the connection closed: where the next request would
 *     begin is unknown.
 *  6. While the server stops, the next response is the last one.
 *
 * Thread: the loop's.  Reading: RFC 9112 6, 9; RFC 9110 10.1.1.
 */
#include <gori/error.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "web/server.h"

/* While the server stops: how long a connection that never sent anything is waited for.  It may
 * stand in the system's queue since before the stop, with its request on the way. */
#define LATE_TIMEOUT GORI_SECONDS

/* A chunk of one byte takes six; the codec bounds extensions and trailers to less than that. */
#define CHUNK_BYTES    6u
#define TRAILING_BYTES ((size_t)16 << 10)

/* A request of which a part has arrived. */
struct pending {
    struct gi_http1_parser parser;
    struct gi_http1_body body;
    size_t head_size; /* 0: the head is not complete */
    size_t read;      /* bytes of the message that were looked at; from then on they are body */
    struct gi_http1_header headers[];
};

struct connection {
    struct gori_link link;
    struct gori_session *session;
    struct gori_web_server *server;
    struct pending *pending;
    bool paused;
    bool served; /* something was answered */
};

size_t gi_web_connection_bytes(void)
{
    return sizeof(struct connection);
}

size_t gi_web_pending_bytes(const struct gori_web_server *server)
{
    return sizeof(struct pending) + server->config.headers_max * sizeof(struct gi_http1_header);
}

size_t gi_web_message_bytes(const struct gori_web_server *server)
{
    return server->config.head_bytes_max + CHUNK_BYTES * (size_t)server->config.body_bytes_max +
           TRAILING_BYTES;
}

static struct connection *connection_of(struct gori_session *session)
{
    return gori_session_context(session);
}

/* Pending requests ------------------------------------------------------------------------- */

/* The header that is being read counts too: its name may be known already. */
static void copy_parser(struct pending *pending, const struct gi_http1_parser *parser)
{
    size_t count = gi_min_size((size_t)parser->head.header_count + 1, parser->limits.header_count);
    pending->parser = *parser;
    pending->parser.head.headers = pending->headers;
    memcpy(pending->headers, parser->head.headers, count * sizeof(struct gi_http1_header));
}

/* Keeps what the server's parser knows.  Result: NULL when there is no memory. */
static struct pending *park(struct connection *connection, size_t head_size)
{
    struct gori_web_server *server = connection->server;
    struct pending *pending = gi_pool_acquire(&server->pendings);
    if (pending == NULL) {
        return NULL;
    }
    copy_parser(pending, &server->parser);
    pending->head_size = head_size;
    pending->read = 0;
    connection->pending = pending;
    gori_session_set_deadline(connection->session, server->config.header_timeout);
    return pending;
}

static void drop_pending(struct connection *connection)
{
    if (connection->pending != NULL) {
        gi_pool_release(&connection->server->pendings, connection->pending);
        connection->pending = NULL;
        gori_session_set_deadline(connection->session, GORI_NEVER);
    }
}

/* Reading ---------------------------------------------------------------------------------- */

enum reading {
    READ_MORE,    /* the rest has not arrived */
    READ_REQUEST, /* the request is whole, or will be answered as it is */
};

static enum reading refuse(struct gi_web_request *request, int status)
{
    request->refusal = status;
    request->close = true;
    return READ_REQUEST;
}

static bool announces_body(const struct gi_http1_head *head)
{
    return head->chunked || head->content_length > 0;
}

static void begin_request(const struct gori_web_server *server, const struct gi_http1_head *head,
                          const uint8_t *data, struct gi_web_request *request)
{
    *request = (struct gi_web_request){
        .head = head,
        .data = data,
        .close = !head->keep_alive || server->stopping,
    };
}

/* The method is refused whatever its body; a file that is asked for with a large one is not. */
static enum reading refuse_body(const struct gi_http1_head *head, struct gi_web_request *request)
{
    request->close = true;
    bool is_read = head->method == GI_HTTP1_METHOD_GET || head->method == GI_HTTP1_METHOD_HEAD;
    return is_read ? refuse(request, 413) : READ_REQUEST;
}

static enum reading read_body(struct pending *pending, struct gori_slice bytes,
                              struct gi_web_request *request, size_t *ret_size)
{
    while (!gi_http1_body_over(&pending->body)) {
        size_t consumed;
        struct gori_slice payload;
        int result = gi_http1_body_next(&pending->body, bytes.data + pending->read,
                                        bytes.size - pending->read, &consumed, &payload);
        if (result < 0) {
            return refuse(request, gi_http1_status(result));
        }
        pending->read += consumed;
        if (result == GI_HTTP1_BODY_MORE) {
            return READ_MORE;
        }
    }
    *ret_size = pending->read;
    return READ_REQUEST;
}

/* The head has just become complete: decides on its body. */
static enum reading begin_body(struct gori_web_server *server, struct pending *pending,
                               struct gori_slice bytes, struct gi_web_request *request,
                               size_t *ret_size)
{
    const struct gi_http1_head *head = &pending->parser.head;
    pending->read = pending->head_size;
    if (!announces_body(head)) {
        *ret_size = pending->head_size;
        return READ_REQUEST;
    }
    if (head->expect_continue) {
        request->close = true;
        return READ_REQUEST;
    }
    if (gi_http1_body_init(&pending->body, head, server->config.body_bytes_max) < 0) {
        return refuse_body(head, request);
    }
    return read_body(pending, bytes, request, ret_size);
}

/* Reads on in a request of which a part was there before. */
static enum reading read_pending(struct connection *connection, struct gori_slice bytes,
                                 struct gi_web_request *request, size_t *ret_size)
{
    struct pending *pending = connection->pending;
    if (pending->head_size > 0) {
        begin_request(connection->server, &pending->parser.head, bytes.data, request);
        if (pending->read == 0) {
            return begin_body(connection->server, pending, bytes, request, ret_size);
        }
        return read_body(pending, bytes, request, ret_size);
    }
    int size = gi_http1_parse_head(&pending->parser, bytes.data, bytes.size);
    if (size == 0) {
        return READ_MORE;
    }
    begin_request(connection->server, &pending->parser.head, bytes.data, request);
    if (size < 0) {
        return refuse(request, gi_http1_status(size));
    }
    pending->head_size = (size_t)size;
    return begin_body(connection->server, pending, bytes, request, ret_size);
}

/* Reads one request.  *ret_size, its bytes, is set when another may follow it. */
static GI_ALWAYS_INLINE enum reading read_request(struct connection *connection,
                                                  struct gori_slice bytes,
                                                  struct gi_web_request *request, size_t *ret_size)
{
    if (GI_UNLIKELY(connection->pending != NULL)) {
        return read_pending(connection, bytes, request, ret_size);
    }
    struct gori_web_server *server = connection->server;
    struct gi_http1_parser *parser = &server->parser;
    gi_http1_parser_reset(parser);
    int size = gi_http1_parse_head(parser, bytes.data, bytes.size);
    begin_request(server, &parser->head, bytes.data, request);
    if (GI_LIKELY(size > 0) && !announces_body(&parser->head)) {
        *ret_size = (size_t)size;
        return READ_REQUEST;
    }
    if (size < 0) {
        return refuse(request, gi_http1_status(size));
    }
    if (park(connection, (size_t)size) == NULL) {
        return refuse(request, 503);
    }
    return size == 0 ? READ_MORE : read_pending(connection, bytes, request, ret_size);
}

/* Answering -------------------------------------------------------------------------------- */

/* Ends the connection after what is queued. */
static void finish(struct connection *connection)
{
    drop_pending(connection);
    gori_session_close_after_flush(connection->session);
}

/* Answers a request.  Result: whether the connection goes on to the next one. */
static GI_ALWAYS_INLINE bool answer(struct connection *connection,
                                    const struct gi_web_request *request)
{
    struct gori_web_server *server = connection->server;
    struct gi_web_response response = {.status = request->refusal};
    if (GI_LIKELY(request->refusal == 0)) {
        gi_web_static_files(server, request, &response);
    } else {
        server->stats.refused++;
    }
    int result = gi_web_respond(server, connection->session, request, &response);
    connection->served = true;
    if (GI_UNLIKELY(result < 0)) {
        gori_session_close(connection->session);
        return false;
    }
    if (GI_UNLIKELY(request->close)) {
        finish(connection);
        return false;
    }
    if (GI_UNLIKELY(connection->pending != NULL)) {
        drop_pending(connection);
    }
    if (GI_UNLIKELY(result == GORI_SEND_HIGH)) {
        connection->paused = true;
        gori_session_pause(connection->session);
        return false;
    }
    return true;
}

static size_t receive(struct gori_session *session, struct gori_slice bytes)
{
    struct connection *connection = connection_of(session);
    struct gori_web_server *server = connection->server;
    gi_web_clock_update(&server->clock, gori_loop_now(server->loop));
    size_t consumed = 0;
    bool goes_on = true;
    while (goes_on && consumed < bytes.size) {
        struct gori_slice rest = {bytes.data + consumed, bytes.size - consumed};
        struct gi_web_request request;
        size_t size = rest.size;
        if (read_request(connection, rest, &request, &size) == READ_MORE) {
            break;
        }
        goes_on = answer(connection, &request);
        consumed += size;
    }
    return consumed;
}

/* Life ------------------------------------------------------------------------------------- */

static void opened(struct gori_session *session)
{
    struct connection *connection = connection_of(session);
    struct gori_web_server *server = gori_session_user(session);
    *connection = (struct connection){.session = session, .server = server};
    gi_list_push_back(&server->connections, &connection->link);
    server->stats.connections_now++;
    if (server->destroyed) {
        gori_session_close(session);
    } else if (server->stopping) {
        gori_session_set_deadline(session, LATE_TIMEOUT);
    }
}

static void drained(struct gori_session *session)
{
    struct connection *connection = connection_of(session);
    connection->paused = false;
    gori_session_resume(session);
    if (connection->server->stopping) {
        /* Whether another request is kept is only seen when it is shown. */
        gori_session_set_deadline(session, LATE_TIMEOUT);
    }
}

/* A request did not arrive in time.  Blank lines alone are no request. */
static void answer_timeout(struct connection *connection)
{
    struct gori_web_server *server = connection->server;
    server->stats.request_timeouts++;
    gi_web_clock_update(&server->clock, gori_loop_now(server->loop));
    const struct gi_web_request request = {.close = true, .refusal = 408};
    struct gi_web_response response = {.status = 408};
    if (gi_web_respond(server, connection->session, &request, &response) < 0) {
        gori_session_close(connection->session);
    } else {
        finish(connection);
    }
}

static void timed_out(struct gori_session *session, enum gori_timeout which)
{
    struct connection *connection = connection_of(session);
    if (which == GORI_TIMEOUT_DEADLINE && connection->pending != NULL &&
        (connection->pending->head_size > 0 ||
         gi_http1_parser_started(&connection->pending->parser))) {
        answer_timeout(connection);
        return;
    }
    connection->server->stats.idle_timeouts++;
    if (gori_session_send_bytes(session) > 0) {
        gori_session_close(session); /* the peer reads nothing: it would not read the end either */
    } else {
        finish(connection);
    }
}

static void closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    (void)error; /* the peer's affair */
    struct connection *connection = connection_of(session);
    struct gori_web_server *server = connection->server;
    drop_pending(connection);
    gi_list_remove(&connection->link);
    server->stats.connections_now--;
    if (reason == GORI_CLOSE_TRUNCATED) {
        server->stats.truncations++;
    }
    gi_web_server_release(server);
}

const struct gori_session_events gi_web_events = {
    .on_open = opened,
    .on_recv = receive,
    .on_drain = drained,
    .on_timeout = timed_out,
    .on_close = closed,
};

void gi_web_stop_connections(struct gori_web_server *server)
{
    GI_LIST_FOREACH (link, &server->connections) {
        struct connection *connection = gori_container_of(link, struct connection, link);
        if (!connection->served && connection->pending == NULL) {
            gori_session_set_deadline(connection->session, LATE_TIMEOUT);
        } else if (connection->pending == NULL && !connection->paused) {
            gori_session_close_after_flush(connection->session);
        }
    }
}

void gi_web_close_connections(struct gori_web_server *server)
{
    GI_LIST_FOREACH (link, &server->connections) {
        gori_session_close(gori_container_of(link, struct connection, link)->session);
    }
}
