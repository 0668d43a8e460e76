/* SPDX-License-Identifier: MIT */
/*
 * The body of a request: counted by Content-Length or cut in chunks.  Payload goes out as pieces of
 * what came in; framing is read byte by byte, since there is little of it.
 *
 *     FIXED -> OVER
 *     SIZE_FIRST -> SIZE -+-> SIZE_END -> DATA -> DATA_CR -> DATA_LF -> SIZE_FIRST ...
 *                         +-> extension states -> SIZE_END
 *     SIZE_END of the chunk of size 0 -> TRAILER -> NAME -> VALUE -> VALUE_LF -> TRAILER ...
 *     TRAILER -> OVER_LF -> OVER
 *
 * Invariants: a chunk size is 1 to 16 hexadecimal digits and nothing else; every line ends in CR LF
 * and a CR is nowhere else; extensions count together over the whole body, since each of a million
 * chunks could carry some; a declared size beyond the limit is an error before its payload comes.
 *
 * Thread: that of the body.
 * Reading: RFC 9112 6 and 7.1.
 */
#include "base/assert.h"
#include "proto/http1.h"
#include "proto/http1_scan.h"

#define CHUNK_DIGITS_MAX 16

enum state {
    STATE_OVER,
    STATE_FIXED,
    STATE_SIZE_FIRST,
    STATE_SIZE,
    STATE_EXTENSION_SPACE,       /* white space before a semicolon */
    STATE_EXTENSION_NAME_FIRST,  /* behind the semicolon */
    STATE_EXTENSION_NAME,        /* in the name */
    STATE_EXTENSION_NAME_END,    /* white space behind the name */
    STATE_EXTENSION_VALUE_FIRST, /* behind the equals sign */
    STATE_EXTENSION_VALUE,       /* in a token */
    STATE_EXTENSION_QUOTED,
    STATE_EXTENSION_ESCAPED, /* behind a backslash in quotes */
    STATE_EXTENSION_END,     /* behind the closing quote */
    STATE_SIZE_END,          /* CR seen */
    STATE_DATA,
    STATE_DATA_CR,
    STATE_DATA_LF,
    STATE_TRAILER, /* at the start of a line */
    STATE_TRAILER_NAME,
    STATE_TRAILER_VALUE,
    STATE_TRAILER_LF,
    STATE_OVER_LF,
};

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

static int go(struct gi_http1_body *body, enum state state)
{
    body->state = state;
    return 0;
}

static int size_digit(struct gi_http1_body *body, uint8_t byte)
{
    if (body->digits == CHUNK_DIGITS_MAX) {
        return GI_HTTP1_E_CHUNK_SIZE;
    }
    body->digits++;
    body->remaining = body->remaining << 4 | gi_http1_hex_value(byte);
    return go(body, STATE_SIZE);
}

static int size_first_byte(struct gi_http1_body *body, uint8_t byte)
{
    body->remaining = 0;
    body->digits = 0;
    return gi_http1_is(byte, GI_HTTP1_CLASS_HEX) ? size_digit(body, byte) : GI_HTTP1_E_CHUNK_SIZE;
}

static int size_byte(struct gi_http1_body *body, uint8_t byte)
{
    if (gi_http1_is(byte, GI_HTTP1_CLASS_HEX)) {
        return size_digit(body, byte);
    }
    if (body->remaining > body->limit - body->received) {
        return GI_HTTP1_E_BODY_SIZE;
    }
    if (byte == '\r') {
        return go(body, STATE_SIZE_END);
    }
    if (byte == ';') {
        return go(body, STATE_EXTENSION_NAME_FIRST);
    }
    return is_space(byte) ? go(body, STATE_EXTENSION_SPACE) : GI_HTTP1_E_CHUNK_SIZE;
}

static int size_end_byte(struct gi_http1_body *body, uint8_t byte)
{
    if (byte != '\n') {
        return GI_HTTP1_E_CHUNK_SIZE;
    }
    return go(body, body->remaining == 0 ? STATE_TRAILER : STATE_DATA);
}

/* Where an extension may end: another one, or the end of the line. */
static int extension_end_byte(struct gi_http1_body *body, uint8_t byte)
{
    if (byte == '\r') {
        return go(body, STATE_SIZE_END);
    }
    if (byte == ';') {
        return go(body, STATE_EXTENSION_NAME_FIRST);
    }
    return is_space(byte) ? go(body, STATE_EXTENSION_SPACE) : GI_HTTP1_E_CHUNK_EXTENSION;
}

static int extension_name_byte(struct gi_http1_body *body, uint8_t byte)
{
    const bool token = gi_http1_is(byte, GI_HTTP1_CLASS_TOKEN);

    switch (body->state) {
    case STATE_EXTENSION_SPACE:
        if (byte == ';') {
            return go(body, STATE_EXTENSION_NAME_FIRST);
        }
        return is_space(byte) ? 0 : GI_HTTP1_E_CHUNK_EXTENSION;
    case STATE_EXTENSION_NAME_FIRST:
        if (token) {
            return go(body, STATE_EXTENSION_NAME);
        }
        return is_space(byte) ? 0 : GI_HTTP1_E_CHUNK_EXTENSION;
    case STATE_EXTENSION_NAME:
        if (token) {
            return 0;
        }
        if (is_space(byte)) {
            return go(body, STATE_EXTENSION_NAME_END);
        }
        break;
    default: /* STATE_EXTENSION_NAME_END */
        if (is_space(byte)) {
            return 0;
        }
        if (byte == '\r') {
            return GI_HTTP1_E_CHUNK_EXTENSION;
        }
        break;
    }
    return byte == '=' ? go(body, STATE_EXTENSION_VALUE_FIRST) : extension_end_byte(body, byte);
}

static int extension_value_byte(struct gi_http1_body *body, uint8_t byte)
{
    const bool token = gi_http1_is(byte, GI_HTTP1_CLASS_TOKEN);

    switch (body->state) {
    case STATE_EXTENSION_VALUE_FIRST:
        if (byte == '"') {
            return go(body, STATE_EXTENSION_QUOTED);
        }
        if (token) {
            return go(body, STATE_EXTENSION_VALUE);
        }
        return is_space(byte) ? 0 : GI_HTTP1_E_CHUNK_EXTENSION;
    case STATE_EXTENSION_VALUE:
        return token ? 0 : extension_end_byte(body, byte);
    case STATE_EXTENSION_QUOTED:
        if (byte == '"') {
            return go(body, STATE_EXTENSION_END);
        }
        if (byte == '\\') {
            return go(body, STATE_EXTENSION_ESCAPED);
        }
        return gi_http1_is(byte, GI_HTTP1_CLASS_VALUE) ? 0 : GI_HTTP1_E_CHUNK_EXTENSION;
    case STATE_EXTENSION_ESCAPED:
        body->state = STATE_EXTENSION_QUOTED;
        return gi_http1_is(byte, GI_HTTP1_CLASS_VALUE) ? 0 : GI_HTTP1_E_CHUNK_EXTENSION;
    default: /* STATE_EXTENSION_END */
        return extension_end_byte(body, byte);
    }
}

static int extension_byte(struct gi_http1_body *body, uint8_t byte)
{
    if (body->extension_size == GI_HTTP1_EXTENSION_SIZE_DEFAULT) {
        return GI_HTTP1_E_CHUNK_EXTENSION;
    }
    body->extension_size++;
    return body->state <= STATE_EXTENSION_NAME_END ? extension_name_byte(body, byte)
                                                   : extension_value_byte(body, byte);
}

static int data_end_byte(struct gi_http1_body *body, uint8_t byte)
{
    if (body->state == STATE_DATA_CR) {
        return byte == '\r' ? go(body, STATE_DATA_LF) : GI_HTTP1_E_CHUNK_END;
    }
    return byte == '\n' ? go(body, STATE_SIZE_FIRST) : GI_HTTP1_E_CHUNK_END;
}

static int trailer_start_byte(struct gi_http1_body *body, uint8_t byte)
{
    if (byte == '\r') {
        return go(body, STATE_OVER_LF);
    }
    return gi_http1_is(byte, GI_HTTP1_CLASS_TOKEN) ? go(body, STATE_TRAILER_NAME)
                                                   : GI_HTTP1_E_TRAILER;
}

static int trailer_byte(struct gi_http1_body *body, uint8_t byte)
{
    if (body->trailer_size == GI_HTTP1_TRAILER_SIZE_DEFAULT) {
        return GI_HTTP1_E_TRAILER_SIZE;
    }
    body->trailer_size++;
    switch (body->state) {
    case STATE_TRAILER:
        return trailer_start_byte(body, byte);
    case STATE_TRAILER_NAME:
        if (byte == ':') {
            return go(body, STATE_TRAILER_VALUE);
        }
        return gi_http1_is(byte, GI_HTTP1_CLASS_TOKEN) ? 0 : GI_HTTP1_E_TRAILER;
    case STATE_TRAILER_VALUE:
        if (byte == '\r') {
            return go(body, STATE_TRAILER_LF);
        }
        return gi_http1_is(byte, GI_HTTP1_CLASS_VALUE) ? 0 : GI_HTTP1_E_TRAILER;
    case STATE_TRAILER_LF:
        return byte == '\n' ? go(body, STATE_TRAILER) : GI_HTTP1_E_TRAILER;
    default: /* STATE_OVER_LF */
        return byte == '\n' ? go(body, STATE_OVER) : GI_HTTP1_E_TRAILER;
    }
}

static int framing_byte(struct gi_http1_body *body, uint8_t byte)
{
    switch (body->state) {
    case STATE_SIZE_FIRST:
        return size_first_byte(body, byte);
    case STATE_SIZE:
        return size_byte(body, byte);
    case STATE_SIZE_END:
        return size_end_byte(body, byte);
    case STATE_DATA_CR:
    case STATE_DATA_LF:
        return data_end_byte(body, byte);
    case STATE_TRAILER:
    case STATE_TRAILER_NAME:
    case STATE_TRAILER_VALUE:
    case STATE_TRAILER_LF:
    case STATE_OVER_LF:
        return trailer_byte(body, byte);
    default:
        return extension_byte(body, byte);
    }
}

static bool at_payload(const struct gi_http1_body *body)
{
    return body->state == STATE_DATA || body->state == STATE_FIXED;
}

static size_t take_payload(struct gi_http1_body *body, size_t size)
{
    const size_t taken = size < body->remaining ? size : (size_t)body->remaining;

    body->remaining -= taken;
    body->received += taken;
    if (body->remaining == 0) {
        body->state = body->state == STATE_FIXED ? STATE_OVER : STATE_DATA_CR;
    }
    return taken;
}

int gi_http1_body_next(struct gi_http1_body *body, const uint8_t *data, size_t size,
                       size_t *ret_consumed, struct gori_slice *ret_payload)
{
    size_t position = 0;

    if (body->reason != 0) {
        return body->reason;
    }
    while (position < size && body->state != STATE_OVER && !at_payload(body)) {
        const int result = framing_byte(body, data[position]);

        if (result < 0) {
            body->reason = result;
            return result;
        }
        position++;
    }
    if (body->state != STATE_OVER && position < size) {
        GI_ASSERT(body->remaining > 0);
        ret_payload->data = data + position;
        ret_payload->size = take_payload(body, size - position);
        *ret_consumed = position + ret_payload->size;
        return GI_HTTP1_BODY_DATA;
    }
    *ret_consumed = position;
    return body->state == STATE_OVER ? GI_HTTP1_BODY_DONE : GI_HTTP1_BODY_MORE;
}

bool gi_http1_body_over(const struct gi_http1_body *body)
{
    return body->state == STATE_OVER;
}

int gi_http1_body_init(struct gi_http1_body *body, const struct gi_http1_head *head, uint64_t limit)
{
    if (head->content_length > limit) {
        return GI_HTTP1_E_BODY_SIZE;
    }
    *body = (struct gi_http1_body){.limit = limit, .remaining = head->content_length};
    if (head->chunked) {
        body->state = STATE_SIZE_FIRST;
    } else {
        body->state = head->content_length > 0 ? STATE_FIXED : STATE_OVER;
    }
    return 0;
}
