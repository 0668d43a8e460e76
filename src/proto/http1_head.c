/* SPDX-License-Identifier: MIT */
/*
 * The head of a request, token by token.  Not here: what a target (http1_target.c) or a header
 * (http1_field.c) means.
 *
 * Each state is one token or one line end; the function that reads it goes straight on into the
 * next, so a head that is there as a whole takes one path without returning to the loop but once a
 * line.  A function that runs out of bytes leaves its state and the place behind the last byte it
 * has judged; the next call enters there again.
 *
 *     START -> METHOD -> TARGET -> VERSION -> LINE -> NAME -> SPACE -> VALUE -> VALUE_END -+
 *     (blank lines)                            ^  |                                        |
 *                                              |  +-> DONE (empty line)                    |
 *                                              +-------------------------------------------+
 *
 * Invariants: whether a byte is accepted depends on the state and the bytes before it only, so any
 * cutting gives the same verdict at the same byte; all looking ahead is for one line feed, which is
 * waited for.  Limits are put in front of the scans, not behind them, for the same reason.
 *
 * Thread: that of the parser.
 * Reading: RFC 9112 2.2, 3, 5.
 */
#include "proto/http1.h"

#include <string.h>

#include "base/assert.h"
#include "proto/http1_parts.h"
#include "proto/http1_scan.h"

enum state {
    STATE_START,
    STATE_METHOD,
    STATE_TARGET,
    STATE_VERSION,
    STATE_LINE,
    STATE_NAME,
    STATE_SPACE,
    STATE_VALUE,
    STATE_VALUE_END,
    STATE_DONE,
};

enum step {
    STEP_MORE = 0, /* out of bytes */
    STEP_NEXT = 1, /* a line is done */
};

/*
 * The parser while it moves.  The position changes with every token, so it goes from function to
 * function as an argument, in a register; it is stored when one returns STEP_MORE or STEP_NEXT.
 */
struct cursor {
    struct gi_http1_parser *parser;
    const uint8_t *data;
    size_t position;
    size_t token;
    size_t end;
    uint32_t state;
};

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct gi_http1_span token_span(const struct cursor *cursor, size_t end)
{
    return (struct gi_http1_span){.offset = (uint32_t)cursor->token,
                                  .size = (uint32_t)(end - cursor->token)};
}

static int more(struct cursor *cursor, size_t position)
{
    cursor->position = position;
    return STEP_MORE;
}

static void begin_token(struct cursor *cursor, enum state state, size_t position)
{
    cursor->token = position;
    cursor->state = state;
}

static int version_byte(struct gi_http1_parser *parser, size_t index, uint8_t byte)
{
    switch (index) {
    case 5:
        parser->version_major = (uint8_t)(byte - '0');
        return gi_http1_is(byte, GI_HTTP1_CLASS_DIGIT) ? 0 : GI_HTTP1_E_VERSION;
    case 6:
        return byte == '.' ? 0 : GI_HTTP1_E_VERSION;
    case 7:
        parser->head.version_minor = byte == '0' ? 0 : 1;
        return gi_http1_is(byte, GI_HTTP1_CLASS_DIGIT) ? 0 : GI_HTTP1_E_VERSION;
    case 8:
        if (byte != '\r') {
            return byte == '\n' ? GI_HTTP1_E_LINE_END : GI_HTTP1_E_VERSION;
        }
        return parser->version_major == 1 ? 0 : GI_HTTP1_E_VERSION_MAJOR;
    case 9:
        return byte == '\n' ? 0 : GI_HTTP1_E_LINE_END;
    default:
        return byte == (uint8_t) "HTTP/"[index] ? 0 : GI_HTTP1_E_VERSION;
    }
}

static int read_version(struct cursor *cursor, size_t position)
{
    static const char usual[] = "HTTP/1.1\r\n";
    const size_t end = cursor->token + sizeof(usual) - 1;
    int result;

    if (cursor->end >= end && memcmp(cursor->data + cursor->token, usual, sizeof(usual) - 1) == 0) {
        cursor->parser->head.version_minor = 1;
        position = end;
    }
    for (; position < end; position++) {
        if (position == cursor->end) {
            return more(cursor, position);
        }
        result = version_byte(cursor->parser, position - cursor->token, cursor->data[position]);
        if (result < 0) {
            return result;
        }
    }
    cursor->position = position;
    cursor->state = STATE_LINE;
    result = gi_http1_target_read(&cursor->parser->head, cursor->data);
    return result < 0 ? result : STEP_NEXT;
}

static int read_target(struct cursor *cursor, size_t position)
{
    const size_t room = cursor->parser->limits.target_size;
    const size_t end = min_size(cursor->end, cursor->token + room + 1);
    uint8_t byte;

    position = gi_http1_scan_target(cursor->data, position, end);
    if (position - cursor->token > room) {
        return GI_HTTP1_E_TARGET_SIZE;
    }
    if (position == cursor->end) {
        return more(cursor, position);
    }
    byte = cursor->data[position];
    if (byte != ' ' || position == cursor->token) {
        return byte == '\r' || byte == '\n' ? GI_HTTP1_E_VERSION : GI_HTTP1_E_TARGET;
    }
    cursor->parser->head.target = token_span(cursor, position);
    begin_token(cursor, STATE_VERSION, position + 1);
    return read_version(cursor, position + 1);
}

static int read_method(struct cursor *cursor, size_t position)
{
    struct gi_http1_head *head = &cursor->parser->head;
    const size_t end = min_size(cursor->end, cursor->token + GI_HTTP1_METHOD_SIZE_MAX + 1);

    position = gi_http1_scan_class(cursor->data, position, end, GI_HTTP1_CLASS_TOKEN);
    if (position - cursor->token > GI_HTTP1_METHOD_SIZE_MAX) {
        return GI_HTTP1_E_METHOD_SIZE;
    }
    if (position == cursor->end) {
        return more(cursor, position);
    }
    if (cursor->data[position] != ' ' || position == cursor->token) {
        return GI_HTTP1_E_METHOD;
    }
    head->method_text = token_span(cursor, position);
    head->method = gi_http1_method_find(gi_http1_slice(cursor->data, head->method_text));
    begin_token(cursor, STATE_TARGET, position + 1);
    return read_target(cursor, position + 1);
}

/* Old clients put an empty line behind the body of a POST: RFC 9112 2.2 lets it pass. */
static int read_start(struct cursor *cursor, size_t position)
{
    while (position < cursor->end && cursor->data[position] == '\r') {
        if (cursor->parser->blank_lines == GI_HTTP1_BLANK_LINES_MAX) {
            return GI_HTTP1_E_BLANK_LINES;
        }
        if (position + 1 == cursor->end) {
            return more(cursor, position);
        }
        if (cursor->data[position + 1] != '\n') {
            return GI_HTTP1_E_LINE_END;
        }
        position += 2;
        cursor->parser->blank_lines++;
    }
    if (position == cursor->end) {
        return more(cursor, position);
    }
    begin_token(cursor, STATE_METHOD, position);
    return read_method(cursor, position);
}

static int read_value_end(struct cursor *cursor, size_t position)
{
    int result;

    if (position + 1 == cursor->end) {
        return more(cursor, position);
    }
    if (cursor->data[position + 1] != '\n') {
        return GI_HTTP1_E_LINE_END;
    }
    cursor->position = position + 2;
    cursor->state = STATE_LINE;
    result = gi_http1_field_read(cursor->parser, cursor->data);
    return result < 0 ? result : STEP_NEXT;
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

static int read_value(struct cursor *cursor, size_t position)
{
    struct gi_http1_head *head = &cursor->parser->head;
    size_t end;
    uint8_t byte;

    position = gi_http1_scan_value(cursor->data, position, cursor->end);
    if (position == cursor->end) {
        return more(cursor, position);
    }
    byte = cursor->data[position];
    if (byte != '\r') {
        return byte == '\n' ? GI_HTTP1_E_LINE_END : GI_HTTP1_E_FIELD_VALUE;
    }
    end = position;
    while (end > cursor->token && is_space(cursor->data[end - 1])) {
        end--;
    }
    head->headers[head->header_count].value = token_span(cursor, end);
    cursor->state = STATE_VALUE_END;
    return read_value_end(cursor, position);
}

static int read_space(struct cursor *cursor, size_t position)
{
    while (position < cursor->end && is_space(cursor->data[position])) {
        position++;
    }
    if (position == cursor->end) {
        return more(cursor, position);
    }
    begin_token(cursor, STATE_VALUE, position);
    return read_value(cursor, position);
}

static int read_name(struct cursor *cursor, size_t position)
{
    struct gi_http1_head *head = &cursor->parser->head;

    position = gi_http1_scan_token(cursor->data, position, cursor->end);
    if (position == cursor->end) {
        return more(cursor, position);
    }
    if (cursor->data[position] != ':' || position == cursor->token) {
        return GI_HTTP1_E_FIELD_NAME;
    }
    head->headers[head->header_count].name = token_span(cursor, position);
    begin_token(cursor, STATE_SPACE, position + 1);
    return read_space(cursor, position + 1);
}

static int read_empty_line(struct cursor *cursor, size_t position)
{
    if (position + 1 == cursor->end) {
        return more(cursor, position);
    }
    if (cursor->data[position + 1] != '\n') {
        return GI_HTTP1_E_LINE_END;
    }
    cursor->position = position + 2;
    cursor->state = STATE_DONE;
    return gi_http1_fields_finish(cursor->parser);
}

static int read_line(struct cursor *cursor, size_t position)
{
    uint8_t byte;

    if (position == cursor->end) {
        return more(cursor, position);
    }
    byte = cursor->data[position];
    if (byte == '\r') {
        return read_empty_line(cursor, position);
    }
    if (byte == '\n') {
        return GI_HTTP1_E_LINE_END;
    }
    if (is_space(byte)) {
        return GI_HTTP1_E_FIELD_FOLD;
    }
    if (cursor->parser->head.header_count == cursor->parser->limits.header_count) {
        return GI_HTTP1_E_FIELD_COUNT;
    }
    begin_token(cursor, STATE_NAME, position);
    return read_name(cursor, position);
}

/* Enters where the last call left off. */
static int read_on(struct cursor *cursor)
{
    switch (cursor->state) {
    case STATE_START:
        return read_start(cursor, cursor->position);
    case STATE_METHOD:
        return read_method(cursor, cursor->position);
    case STATE_TARGET:
        return read_target(cursor, cursor->position);
    case STATE_VERSION:
        return read_version(cursor, cursor->position);
    case STATE_NAME:
        return read_name(cursor, cursor->position);
    case STATE_SPACE:
        return read_space(cursor, cursor->position);
    case STATE_VALUE:
        return read_value(cursor, cursor->position);
    case STATE_VALUE_END:
        return read_value_end(cursor, cursor->position);
    default:
        return read_line(cursor, cursor->position);
    }
}

/* Out of bytes; is it also out of room? */
static int more_or_too_large(const struct cursor *cursor)
{
    if (cursor->end < cursor->parser->limits.head_size) {
        return STEP_MORE;
    }
    return cursor->state == STATE_TARGET ? GI_HTTP1_E_TARGET_SIZE : GI_HTTP1_E_HEAD_SIZE;
}

int gi_http1_parse_head(struct gi_http1_parser *parser, const uint8_t *data, size_t size)
{
    struct cursor cursor = {
        .parser = parser,
        .data = data,
        .position = parser->position,
        .token = parser->token,
        .end = min_size(size, parser->limits.head_size),
        .state = parser->state,
    };
    int result;

    if (parser->reason != 0) {
        return parser->reason;
    }
    if (parser->state == STATE_DONE) {
        return (int)parser->position;
    }
    GI_ASSERT(cursor.end >= cursor.position);
    result = read_on(&cursor);
    while (result == STEP_NEXT) {
        result = read_line(&cursor, cursor.position);
    }
    if (result == 0 && cursor.state != STATE_DONE) {
        result = more_or_too_large(&cursor);
    }
    parser->position = (uint32_t)cursor.position;
    parser->token = (uint32_t)cursor.token;
    parser->state = cursor.state;
    if (result < 0) {
        parser->reason = result;
        return result;
    }
    return cursor.state == STATE_DONE ? (int)cursor.position : 0;
}

bool gi_http1_parser_started(const struct gi_http1_parser *parser)
{
    return parser->state != STATE_START;
}

void gi_http1_parser_reset(struct gi_http1_parser *parser)
{
    const struct gi_http1_limits limits = parser->limits;
    struct gi_http1_header *headers = parser->head.headers;

    *parser = (struct gi_http1_parser){.head.headers = headers, .limits = limits};
}

static uint32_t limit_or(uint32_t value, uint32_t standard, uint32_t maximum)
{
    value = value == 0 ? standard : value;
    return value < maximum ? value : maximum;
}

void gi_http1_parser_init(struct gi_http1_parser *parser, const struct gi_http1_limits *limits,
                          struct gi_http1_header *headers)
{
    static const struct gi_http1_limits standard = {0};

    GI_ASSERT(headers != NULL);
    if (limits == NULL) {
        limits = &standard;
    }
    parser->limits = (struct gi_http1_limits){
        .target_size =
            limit_or(limits->target_size, GI_HTTP1_TARGET_SIZE_DEFAULT, GI_HTTP1_HEAD_SIZE_MAX),
        .head_size =
            limit_or(limits->head_size, GI_HTTP1_HEAD_SIZE_DEFAULT, GI_HTTP1_HEAD_SIZE_MAX),
        .header_count = limit_or(limits->header_count, GI_HTTP1_HEADER_COUNT_DEFAULT,
                                 GI_HTTP1_HEADER_COUNT_MAX),
    };
    parser->head.headers = headers;
    gi_http1_parser_reset(parser);
}
