/* SPDX-License-Identifier: MIT */
/*
 * What the headers of a request mean for its framing and for the connection.  Whatever two
 * implementations could read differently is refused, not repaired: a proxy in front may have read
 * it the other way.
 *
 * Invariants: Content-Length is one header with one number, also when two would agree;
 * Transfer-Encoding is one header with the one word `chunked`; both together are refused; Host is
 * there exactly once in HTTP/1.1.
 *
 * Thread: that of the parser.
 * Reading: RFC 9112 6, RFC 9110 5.6, 7.2, 7.6.1, 8.6, 10.1.1.
 */
#include <string.h>

#include "base/assert.h"
#include "proto/http1_parts.h"
#include "proto/http1_scan.h"

struct field_name {
    uint8_t size;
    char text[31];
};

static const struct field_name field_names[GI_HTTP1_FIELD_COUNT] = {
#define FIELD_NAME(identifier, name, slot) [GI_HTTP1_FIELD_##identifier] = {sizeof(name) - 1, name},
    GI_HTTP1_FIELDS(FIELD_NAME)
#undef FIELD_NAME
};

/* A perfect hash over size, first and last letter; an empty slot is GI_HTTP1_FIELD_OTHER. */
static const uint8_t field_slots[64] = {
#define FIELD_SLOT(identifier, name, slot) [slot] = GI_HTTP1_FIELD_##identifier,
    GI_HTTP1_FIELDS(FIELD_SLOT)
#undef FIELD_SLOT
};

/* Letters and '-' of a token only: 0x20 more maps no other token byte onto them. */
static uint64_t load_lower(const uint8_t *text)
{
    uint64_t word;

    memcpy(&word, text, sizeof(word));
    return word | 0x2020202020202020u;
}

static bool equals_name(const uint8_t *text, const struct field_name *name)
{
    const uint8_t *lower = (const uint8_t *)name->text;
    size_t size = name->size;
    size_t i = 0;

    if (size < 8) {
        for (; i < size; i++) {
            if ((text[i] | 0x20) != lower[i]) {
                return false;
            }
        }
        return true;
    }
    for (; i + 8 < size; i += 8) {
        if (load_lower(text + i) != load_lower(lower + i)) {
            return false;
        }
    }
    return load_lower(text + size - 8) == load_lower(lower + size - 8);
}

enum gi_http1_field gi_http1_field_find(struct gori_slice name)
{
    unsigned first;
    unsigned last;
    unsigned field;

    if (name.size == 0) {
        return GI_HTTP1_FIELD_OTHER;
    }
    first = name.data[0] | 0x20u;
    last = name.data[name.size - 1] | 0x20u;
    field = field_slots[((unsigned)name.size * 2 + first * 25 + last * 23) & 63];
    if (name.size != field_names[field].size || !equals_name(name.data, &field_names[field])) {
        return GI_HTTP1_FIELD_OTHER;
    }
    return (enum gi_http1_field)field;
}

static uint8_t lower_byte(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

bool gi_http1_equals(struct gori_slice text, const char *lower)
{
    for (size_t i = 0; i < text.size; i++) {
        if (lower[i] == '\0' || lower_byte(text.data[i]) != (uint8_t)lower[i]) {
            return false;
        }
    }
    return lower[text.size] == '\0';
}

static struct gori_slice trim(struct gori_slice text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t')) {
        text.size--;
    }
    return text;
}

/* Cuts the first member off a list; false when there is none left.  A member may be empty. */
static bool next_member(struct gori_slice *list, struct gori_slice *ret_member)
{
    const uint8_t *comma;
    size_t size;

    if (list->data == NULL) {
        return false;
    }
    comma = list->size == 0 ? NULL : memchr(list->data, ',', list->size);
    size = comma == NULL ? list->size : (size_t)(comma - list->data);
    *ret_member = trim((struct gori_slice){list->data, size});
    if (comma == NULL) {
        *list = (struct gori_slice){NULL, 0};
    } else {
        *list = (struct gori_slice){comma + 1, list->size - size - 1};
    }
    return true;
}

bool gi_http1_list_has(struct gori_slice list, const char *token)
{
    struct gori_slice member;

    while (next_member(&list, &member)) {
        if (gi_http1_equals(member, token)) {
            return true;
        }
    }
    return false;
}

static int read_host(struct gi_http1_parser *parser, const uint8_t *data,
                     const struct gi_http1_header *header)
{
    if (gi_http1_repeated(&parser->head, GI_HTTP1_FIELD_HOST)) {
        return GI_HTTP1_E_HOST_REPEATED;
    }
    return gi_http1_host_valid(gi_http1_slice(data, header->value), false) ? 0 : GI_HTTP1_E_HOST;
}

static int read_length(struct gi_http1_parser *parser, const uint8_t *data,
                       const struct gi_http1_header *header)
{
    const struct gori_slice value = gi_http1_slice(data, header->value);
    uint64_t length = 0;

    if (gi_http1_repeated(&parser->head, GI_HTTP1_FIELD_CONTENT_LENGTH)) {
        return GI_HTTP1_E_LENGTH_REPEATED;
    }
    /* Nineteen digits cannot overflow 64 bits; nobody means more than INT64_MAX bytes. */
    if (value.size == 0 || value.size > 19) {
        return GI_HTTP1_E_LENGTH;
    }
    for (size_t i = 0; i < value.size; i++) {
        if (!gi_http1_is(value.data[i], GI_HTTP1_CLASS_DIGIT)) {
            return GI_HTTP1_E_LENGTH;
        }
        length = length * 10 + (uint64_t)(value.data[i] - '0');
    }
    if (length > (uint64_t)INT64_MAX) {
        return GI_HTTP1_E_LENGTH;
    }
    parser->head.content_length = length;
    parser->head.has_content_length = true;
    return 0;
}

static int read_coding(struct gi_http1_parser *parser, const uint8_t *data,
                       const struct gi_http1_header *header)
{
    struct gori_slice list = gi_http1_slice(data, header->value);
    struct gori_slice member;
    bool unknown = false;

    if (gi_http1_repeated(&parser->head, GI_HTTP1_FIELD_TRANSFER_ENCODING)) {
        return GI_HTTP1_E_CODING;
    }
    while (next_member(&list, &member)) {
        if (member.size == 0 || parser->head.chunked || gi_http1_equals(member, "identity") ||
            gi_http1_scan_token(member.data, 0, member.size) != member.size) {
            return GI_HTTP1_E_CODING;
        }
        if (gi_http1_equals(member, "chunked")) {
            parser->head.chunked = true;
        } else {
            unknown = true;
        }
    }
    return unknown ? GI_HTTP1_E_CODING_UNKNOWN : 0;
}

static int read_connection(struct gi_http1_parser *parser, const uint8_t *data,
                           const struct gi_http1_header *header)
{
    struct gori_slice list = gi_http1_slice(data, header->value);
    struct gori_slice member;

    while (next_member(&list, &member)) {
        if (gi_http1_equals(member, "keep-alive")) {
            parser->connection_keep_alive = true;
        } else if (gi_http1_equals(member, "close")) {
            parser->connection_close = true;
        } else if (gi_http1_equals(member, "upgrade")) {
            parser->connection_upgrade = true;
        }
    }
    return 0;
}

/* A client of HTTP/1.0 does not know what it asks for: RFC 9110 10.1.1 has it ignored. */
static int read_expect(struct gi_http1_parser *parser, const uint8_t *data,
                       const struct gi_http1_header *header)
{
    if (parser->head.version_minor == 0) {
        return 0;
    }
    if (!gi_http1_equals(gi_http1_slice(data, header->value), "100-continue")) {
        return GI_HTTP1_E_EXPECTATION;
    }
    parser->head.expect_continue = true;
    return 0;
}

int gi_http1_field_read(struct gi_http1_parser *parser, const uint8_t *data)
{
    struct gi_http1_head *head = &parser->head;
    struct gi_http1_header *header = &head->headers[head->header_count];
    const enum gi_http1_field field = gi_http1_field_find(gi_http1_slice(data, header->name));

    header->field = field;
    head->header_count++;
    if (field == GI_HTTP1_FIELD_OTHER) {
        return 0;
    }
    if (head->known[field] == 0) {
        head->known[field] = (uint16_t)head->header_count;
    } else {
        head->repeated |= (uint64_t)1 << field;
    }
    switch (field) {
    case GI_HTTP1_FIELD_HOST:
        return read_host(parser, data, header);
    case GI_HTTP1_FIELD_CONTENT_LENGTH:
        return read_length(parser, data, header);
    case GI_HTTP1_FIELD_TRANSFER_ENCODING:
        return read_coding(parser, data, header);
    case GI_HTTP1_FIELD_CONNECTION:
        return read_connection(parser, data, header);
    case GI_HTTP1_FIELD_EXPECT:
        return read_expect(parser, data, header);
    default:
        return 0;
    }
}

int gi_http1_fields_finish(struct gi_http1_parser *parser)
{
    struct gi_http1_head *head = &parser->head;
    const struct gi_http1_header *host = gi_http1_header(head, GI_HTTP1_FIELD_HOST);
    const bool current = head->version_minor > 0;

    if (current && host == NULL) {
        return GI_HTTP1_E_HOST_MISSING;
    }
    if (head->chunked && !current) {
        return GI_HTTP1_E_CODING_VERSION;
    }
    if (head->chunked && head->has_content_length) {
        return GI_HTTP1_E_LENGTH_AND_CODING;
    }
    if (host != NULL && head->host.size == 0) {
        head->host = host->value;
    }
    head->keep_alive = !parser->connection_close && (current || parser->connection_keep_alive);
    head->upgrade = current && parser->connection_upgrade &&
                    gi_http1_header(head, GI_HTTP1_FIELD_UPGRADE) != NULL;
    return 0;
}

const struct gi_http1_header *gi_http1_header_next(const struct gi_http1_head *head,
                                                   const struct gi_http1_header *header)
{
    const enum gi_http1_field field = header->field;
    const struct gi_http1_header *end = head->headers + head->header_count;

    GI_ASSERT(header >= head->headers && header < end);
    GI_ASSERT(field != GI_HTTP1_FIELD_OTHER);
    if (!gi_http1_repeated(head, field)) {
        return NULL;
    }
    for (header++; header < end; header++) {
        if (header->field == field) {
            return header;
        }
    }
    return NULL;
}

const struct gi_http1_header *gi_http1_header_named(const struct gi_http1_head *head,
                                                    const uint8_t *data, const char *name)
{
    for (uint32_t i = 0; i < head->header_count; i++) {
        if (gi_http1_equals(gi_http1_slice(data, head->headers[i].name), name)) {
            return &head->headers[i];
        }
    }
    return NULL;
}
