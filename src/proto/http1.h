/* SPDX-License-Identifier: MIT */
/*
 * The wire format of HTTP/1 for a server: request heads in, request bodies in, response heads out.
 * No I/O, no clock, no allocation.  Not a server: what is answered is decided by the caller.
 *
 * Invariants: a verdict depends on the bytes seen, never on how they were cut into pieces; every
 * byte is looked at a bounded number of times, also when bytes arrive one by one; nothing beyond
 * `data[size - 1]` is read; after an error the connection must be closed, because where the next
 * message starts is unknown.
 *
 * Thread: any one at a time per object.
 * Reading: RFC 9112 (messaging), RFC 9110 (semantics), src/proto/README.md.
 */
#ifndef GI_PROTO_HTTP1_H
#define GI_PROTO_HTTP1_H

#include <stdbool.h>

#include <gori/base.h>

/* ------------------------------------------------------------------------------------------------
 * Reasons: why bytes were refused.  They are the negative results of everything in this header.
 */

/* X(name, status to answer with, text) */
#define GI_HTTP1_REASONS(X)                                                                        \
    X(BLANK_LINES, 400, "too many blank lines before the request")                                 \
    X(METHOD, 400, "malformed method")                                                             \
    X(METHOD_SIZE, 501, "method too long")                                                         \
    X(TARGET, 400, "malformed request target")                                                     \
    X(TARGET_SIZE, 414, "request target too long")                                                 \
    X(VERSION, 400, "malformed protocol version")                                                  \
    X(VERSION_MAJOR, 505, "unsupported protocol version")                                          \
    X(LINE_END, 400, "line does not end in CR LF")                                                 \
    X(FIELD_NAME, 400, "malformed header name")                                                    \
    X(FIELD_VALUE, 400, "forbidden byte in a header value")                                        \
    X(FIELD_FOLD, 400, "folded header line")                                                       \
    X(FIELD_COUNT, 431, "too many headers")                                                        \
    X(HEAD_SIZE, 431, "request head too large")                                                    \
    X(HOST_MISSING, 400, "Host missing")                                                           \
    X(HOST_REPEATED, 400, "Host repeated")                                                         \
    X(HOST, 400, "malformed Host")                                                                 \
    X(LENGTH, 400, "malformed Content-Length")                                                     \
    X(LENGTH_REPEATED, 400, "Content-Length repeated")                                             \
    X(LENGTH_AND_CODING, 400, "both Content-Length and Transfer-Encoding")                         \
    X(CODING, 400, "malformed Transfer-Encoding")                                                  \
    X(CODING_UNKNOWN, 501, "unknown transfer coding")                                              \
    X(CODING_VERSION, 400, "Transfer-Encoding in HTTP/1.0")                                        \
    X(EXPECTATION, 417, "unknown expectation")                                                     \
    X(BODY_SIZE, 413, "request body too large")                                                    \
    X(CHUNK_SIZE, 400, "malformed chunk size")                                                     \
    X(CHUNK_EXTENSION, 400, "malformed or oversized chunk extension")                              \
    X(CHUNK_END, 400, "chunk does not end where it said")                                          \
    X(TRAILER, 400, "malformed trailer")                                                           \
    X(TRAILER_SIZE, 431, "trailers too large")                                                     \
    X(PATH_ESCAPE, 400, "malformed percent escape in the path")                                    \
    X(PATH_BYTE, 400, "forbidden byte in the path")                                                \
    X(PATH_PARENT, 400, "parent segment in the path")                                              \
    X(PATH_SLASH, 404, "escaped slash in the path")                                                \
    X(PATH_SIZE, 414, "path too long")                                                             \
    X(OUTPUT_SIZE, 500, "response head larger than its buffer")                                    \
    X(OUTPUT_BYTE, 500, "forbidden byte in a response header")

enum gi_http1_reason_order {
    GI_HTTP1_REASON_NONE,
#define GI_HTTP1_REASON_ENUM(name, status, text) GI_HTTP1_REASON_##name,
    GI_HTTP1_REASONS(GI_HTTP1_REASON_ENUM)
#undef GI_HTTP1_REASON_ENUM
        GI_HTTP1_REASON_COUNT
};

enum gi_http1_reason {
#define GI_HTTP1_REASON_ENUM(name, status, text) GI_HTTP1_E_##name = -GI_HTTP1_REASON_##name,
    GI_HTTP1_REASONS(GI_HTTP1_REASON_ENUM)
#undef GI_HTTP1_REASON_ENUM
};

/** The status to answer with for a (negative) reason; 500 for a value that is none. */
int gi_http1_status(int reason);

/** A short English text for a (negative) reason, for logs. */
const char *gi_http1_reason_text(int reason);

/* ------------------------------------------------------------------------------------------------
 * Words of the protocol.
 */

/* The methods of the IANA registry, by RFC 9110 first.  X(identifier, text) */
#define GI_HTTP1_METHODS(X)                                                                        \
    X(GET, "GET")                                                                                  \
    X(HEAD, "HEAD")                                                                                \
    X(POST, "POST")                                                                                \
    X(PUT, "PUT")                                                                                  \
    X(DELETE, "DELETE")                                                                            \
    X(CONNECT, "CONNECT")                                                                          \
    X(OPTIONS, "OPTIONS")                                                                          \
    X(TRACE, "TRACE")                                                                              \
    X(PATCH, "PATCH")                                                                              \
    X(ACL, "ACL")                                                                                  \
    X(BASELINE_CONTROL, "BASELINE-CONTROL")                                                        \
    X(BIND, "BIND")                                                                                \
    X(CHECKIN, "CHECKIN")                                                                          \
    X(CHECKOUT, "CHECKOUT")                                                                        \
    X(COPY, "COPY")                                                                                \
    X(LABEL, "LABEL")                                                                              \
    X(LINK, "LINK")                                                                                \
    X(LOCK, "LOCK")                                                                                \
    X(MERGE, "MERGE")                                                                              \
    X(MKACTIVITY, "MKACTIVITY")                                                                    \
    X(MKCALENDAR, "MKCALENDAR")                                                                    \
    X(MKCOL, "MKCOL")                                                                              \
    X(MKREDIRECTREF, "MKREDIRECTREF")                                                              \
    X(MKWORKSPACE, "MKWORKSPACE")                                                                  \
    X(MOVE, "MOVE")                                                                                \
    X(ORDERPATCH, "ORDERPATCH")                                                                    \
    X(PROPFIND, "PROPFIND")                                                                        \
    X(PROPPATCH, "PROPPATCH")                                                                      \
    X(REBIND, "REBIND")                                                                            \
    X(REPORT, "REPORT")                                                                            \
    X(SEARCH, "SEARCH")                                                                            \
    X(UNBIND, "UNBIND")                                                                            \
    X(UNCHECKOUT, "UNCHECKOUT")                                                                    \
    X(UNLINK, "UNLINK")                                                                            \
    X(UNLOCK, "UNLOCK")                                                                            \
    X(UPDATE, "UPDATE")                                                                            \
    X(UPDATEREDIRECTREF, "UPDATEREDIRECTREF")                                                      \
    X(VERSION_CONTROL, "VERSION-CONTROL")

enum gi_http1_method {
    GI_HTTP1_METHOD_OTHER,
#define GI_HTTP1_METHOD_ENUM(identifier, text) GI_HTTP1_METHOD_##identifier,
    GI_HTTP1_METHODS(GI_HTTP1_METHOD_ENUM)
#undef GI_HTTP1_METHOD_ENUM
};

/* Headers that are found without a search.  X(identifier, lower-case name, slot of its hash) */
#define GI_HTTP1_FIELDS(X)                                                                         \
    X(HOST, "host", 28)                                                                            \
    X(CONTENT_LENGTH, "content-length", 31)                                                        \
    X(TRANSFER_ENCODING, "transfer-encoding", 55)                                                  \
    X(CONNECTION, "connection", 33)                                                                \
    X(EXPECT, "expect", 21)                                                                        \
    X(UPGRADE, "upgrade", 14)                                                                      \
    X(TE, "te", 43)                                                                                \
    X(TRAILER, "trailer", 32)                                                                      \
    X(RANGE, "range", 63)                                                                          \
    X(IF_MATCH, "if-match", 41)                                                                    \
    X(IF_NONE_MATCH, "if-none-match", 51)                                                          \
    X(IF_MODIFIED_SINCE, "if-modified-since", 54)                                                  \
    X(IF_UNMODIFIED_SINCE, "if-unmodified-since", 58)                                              \
    X(IF_RANGE, "if-range", 36)                                                                    \
    X(ACCEPT, "accept", 49)                                                                        \
    X(ACCEPT_ENCODING, "accept-encoding", 24)                                                      \
    X(ACCEPT_LANGUAGE, "accept-language", 42)                                                      \
    X(AUTHORIZATION, "authorization", 53)                                                          \
    X(CACHE_CONTROL, "cache-control", 57)                                                          \
    X(CONTENT_ENCODING, "content-encoding", 12)                                                    \
    X(CONTENT_TYPE, "content-type", 22)                                                            \
    X(COOKIE, "cookie", 10)                                                                        \
    X(FORWARDED, "forwarded", 4)                                                                   \
    X(HTTP2_SETTINGS, "http2-settings", 25)                                                        \
    X(KEEP_ALIVE, "keep-alive", 26)                                                                \
    X(ORIGIN, "origin", 5)                                                                         \
    X(REFERER, "referer", 46)                                                                      \
    X(SEC_WEBSOCKET_EXTENSIONS, "sec-websocket-extensions", 0)                                     \
    X(SEC_WEBSOCKET_KEY, "sec-websocket-key", 60)                                                  \
    X(SEC_WEBSOCKET_PROTOCOL, "sec-websocket-protocol", 27)                                        \
    X(SEC_WEBSOCKET_VERSION, "sec-websocket-version", 7)                                           \
    X(USER_AGENT, "user-agent", 45)                                                                \
    X(X_FORWARDED_FOR, "x-forwarded-for", 20)                                                      \
    X(X_FORWARDED_PROTO, "x-forwarded-proto", 19)

enum gi_http1_field {
    GI_HTTP1_FIELD_OTHER,
#define GI_HTTP1_FIELD_ENUM(identifier, name, slot) GI_HTTP1_FIELD_##identifier,
    GI_HTTP1_FIELDS(GI_HTTP1_FIELD_ENUM)
#undef GI_HTTP1_FIELD_ENUM
        GI_HTTP1_FIELD_COUNT
};

enum gi_http1_target_form {
    GI_HTTP1_TARGET_ORIGIN,    /* /path?query */
    GI_HTTP1_TARGET_ABSOLUTE,  /* http://host/path?query */
    GI_HTTP1_TARGET_AUTHORITY, /* host:port, with CONNECT only */
    GI_HTTP1_TARGET_ASTERISK,  /* *, with OPTIONS only */
};

/* ------------------------------------------------------------------------------------------------
 * The head of a request.
 */

/** A piece of the head, as offsets: the caller's buffer may move between two calls. */
struct gi_http1_span {
    uint32_t offset;
    uint32_t size; /* bytes */
};

struct gi_http1_header {
    struct gi_http1_span name;
    struct gi_http1_span value; /* without the white space around it */
    enum gi_http1_field field;
};

/** What a request head said.  Valid once gi_http1_parse_head() has returned its size. */
struct gi_http1_head {
    struct gi_http1_header *headers; /* the caller's array */
    uint64_t content_length;         /* 0 without Content-Length */
    uint64_t repeated;               /* bit n: the known field n came more than once */
    struct gi_http1_span method_text;
    struct gi_http1_span target; /* all of it */
    struct gi_http1_span path;   /* as sent, still escaped; empty for authority and asterisk form */
    struct gi_http1_span query;  /* without the question mark */
    struct gi_http1_span host;   /* the target's authority in absolute form, else Host; with port */
    uint32_t header_count;
    enum gi_http1_method method;
    enum gi_http1_target_form target_form;
    uint8_t version_minor; /* 0 or 1; anything above counts as 1 */
    bool has_content_length;
    bool chunked;
    bool keep_alive;      /* the client would like another request on this connection */
    bool expect_continue; /* the client waits for 100 or a final status before it sends a body */
    bool upgrade;         /* the client asks for what the header Upgrade names */
    uint16_t known[GI_HTTP1_FIELD_COUNT]; /* 1 + index of the first header of a field, 0: none */
};

#define GI_HTTP1_TARGET_SIZE_DEFAULT  8192u
#define GI_HTTP1_HEAD_SIZE_DEFAULT    32768u
#define GI_HTTP1_HEADER_COUNT_DEFAULT 100u
#define GI_HTTP1_HEADER_COUNT_MAX     65534u
#define GI_HTTP1_HEAD_SIZE_MAX        (1u << 30)
#define GI_HTTP1_METHOD_SIZE_MAX      32u
#define GI_HTTP1_BLANK_LINES_MAX      4u

/** Zero means default.  A head of exactly `head_size` bytes passes. */
struct gi_http1_limits {
    uint32_t target_size; /* bytes */
    uint32_t head_size;   /* bytes, blank lines before the request line included */
    uint32_t header_count;
};

struct gi_http1_parser {
    struct gi_http1_head head;
    /* Private from here on. */
    struct gi_http1_limits limits;
    uint32_t position; /* bytes before it are never looked at again, save as part of a token */
    uint32_t token;    /* where the token that is being read started */
    uint32_t state;
    int reason; /* the error found, which stays */
    uint8_t version_major;
    uint8_t blank_lines;
    bool connection_close;
    bool connection_keep_alive;
    bool connection_upgrade;
};

/**
 * Prepares a parser.  `limits` may be NULL; `headers` must have room for limits->header_count of
 * them (100 by default) and live until the head has been used.  It may be moved between two calls
 * by the caller, who then sets `parser->head.headers`.
 */
void gi_http1_parser_init(struct gi_http1_parser *parser, const struct gi_http1_limits *limits,
                          struct gi_http1_header *headers);

/** Makes the parser ready for the next head of the same connection. */
void gi_http1_parser_reset(struct gi_http1_parser *parser);

/**
 * Reads on.  `data` always starts at the first byte of the head and holds at least what the call
 * before was shown.  Returns the size of the head once it is complete, 0 when more bytes are
 * needed, or a reason (< 0), and then the same one for ever.
 */
GORI_MUST_USE int gi_http1_parse_head(struct gi_http1_parser *parser, const uint8_t *data,
                                      size_t size);

/** Whether a first byte of a request line was seen; blank lines do not count. */
bool gi_http1_parser_started(const struct gi_http1_parser *parser);

static inline struct gori_slice gi_http1_slice(const uint8_t *data, struct gi_http1_span span)
{
    return (struct gori_slice){.data = data + span.offset, .size = span.size};
}

/** The first header of a known field, or NULL. */
static inline const struct gi_http1_header *gi_http1_header(const struct gi_http1_head *head,
                                                            enum gi_http1_field field)
{
    return head->known[field] == 0 ? NULL : &head->headers[head->known[field] - 1];
}

/** The next header of the same field after `header`, or NULL. */
const struct gi_http1_header *gi_http1_header_next(const struct gi_http1_head *head,
                                                   const struct gi_http1_header *header);

/** The first header with that name (lower case), known or not, or NULL. */
const struct gi_http1_header *gi_http1_header_named(const struct gi_http1_head *head,
                                                    const uint8_t *data, const char *name);

/** Whether a list of tokens (Connection, Upgrade ...) has `token` (lower case) as a member. */
bool gi_http1_list_has(struct gori_slice list, const char *token);

static inline bool gi_http1_repeated(const struct gi_http1_head *head, enum gi_http1_field field)
{
    return (head->repeated >> field & 1) != 0;
}

/* ------------------------------------------------------------------------------------------------
 * The body of a request.
 */

#define GI_HTTP1_TRAILER_SIZE_DEFAULT   8192u
#define GI_HTTP1_EXTENSION_SIZE_DEFAULT 4096u

/** Takes a body apart.  Prepared by gi_http1_body_init(), read through gi_http1_body_next(). */
struct gi_http1_body {
    uint64_t received; /* bytes of payload so far */
    uint64_t limit;    /* bytes of payload at most */
    /* Private from here on. */
    uint64_t remaining; /* bytes of the chunk, or of the whole body, still to come */
    uint32_t trailer_size;
    uint32_t extension_size;
    uint32_t state;
    int reason;
    uint8_t digits;
};

enum gi_http1_body_result {
    GI_HTTP1_BODY_MORE = 0, /* all bytes were consumed and the body is not over */
    GI_HTTP1_BODY_DATA = 1, /* *ret_payload is payload */
    GI_HTTP1_BODY_DONE = 2, /* the body is over; what was not consumed is the next request */
};

/**
 * Prepares for the body that `head` announced.  `limit` is the payload accepted at most, in bytes.
 * Returns 0, or GI_HTTP1_E_BODY_SIZE when the head already announces more than that.
 */
GORI_MUST_USE int gi_http1_body_init(struct gi_http1_body *body, const struct gi_http1_head *head,
                                     uint64_t limit);

/**
 * Takes one step through new bytes.  Unlike the head, bytes are shown once: *ret_consumed of them
 * are done with.  Returns one of enum gi_http1_body_result, or a reason (< 0), for ever the same;
 * then nothing is written.  Trailers are checked and dropped.
 */
GORI_MUST_USE int gi_http1_body_next(struct gi_http1_body *body, const uint8_t *data, size_t size,
                                     size_t *ret_consumed, struct gori_slice *ret_payload);

/** Whether there is nothing (more) to read. */
bool gi_http1_body_over(const struct gi_http1_body *body);

/* ------------------------------------------------------------------------------------------------
 * The head of a response.
 */

/** Writes into the caller's buffer.  The first error stays and is reported at the end. */
struct gi_http1_writer {
    uint8_t *data;
    size_t capacity; /* bytes */
    size_t size;     /* bytes written */
    int reason;
};

void gi_http1_writer_init(struct gi_http1_writer *writer, uint8_t *data, size_t capacity);

/** "HTTP/1.1 200 OK\r\n"; a status without a registered phrase gets none. */
void gi_http1_write_status(struct gi_http1_writer *writer, int status);

/** One header line.  A name that is no token, or CR, LF, NUL and so on in a value, is an error. */
void gi_http1_write_header(struct gi_http1_writer *writer, const char *name,
                           struct gori_slice value);
void gi_http1_write_text(struct gi_http1_writer *writer, const char *name, const char *value);
void gi_http1_write_number(struct gi_http1_writer *writer, const char *name, uint64_t value);

/** `name: bytes first-last/total` */
void gi_http1_write_range(struct gi_http1_writer *writer, const char *name, uint64_t first,
                          uint64_t last, uint64_t total);

/** `name: bytes (asterisk)/total`, which goes with 416. */
void gi_http1_write_no_range(struct gi_http1_writer *writer, const char *name, uint64_t total);

/** Header lines made beforehand, each with its CR LF, as they are. */
void gi_http1_write_raw(struct gi_http1_writer *writer, struct gori_slice lines);

/** The empty line.  Returns the size of the head, or the first reason (< 0). */
GORI_MUST_USE int gi_http1_write_end(struct gi_http1_writer *writer);

/** The registered phrase of a status, or "". */
const char *gi_http1_status_text(int status);

#endif
