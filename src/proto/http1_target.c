/* SPDX-License-Identifier: MIT */
/*
 * Methods and request targets: which of the registered methods, which of the four forms, and where
 * path, query and host are in it.  Not here: decoding of a path, see http_path.c.
 *
 * Invariants: CONNECT has authority form and nothing else has; `*` comes with OPTIONS only; an
 * absolute target is http or https, since this is an origin and no gateway to other schemes, and
 * carries no user name.
 *
 * Thread: any.
 * Reading: RFC 9112 3.2, RFC 9110 4.2 and 9, RFC 3986 3.2.
 */
#include <string.h>

#include "proto/http1_parts.h"
#include "proto/http1_scan.h"

struct method_name {
    uint8_t size;
    char text[23];
};

static const struct method_name method_names[] = {[GI_HTTP1_METHOD_OTHER] = {0, ""},
#define METHOD_NAME(identifier, text) [GI_HTTP1_METHOD_##identifier] = {sizeof(text) - 1, text},
                                                  GI_HTTP1_METHODS(METHOD_NAME)
#undef METHOD_NAME
};

enum gi_http1_method gi_http1_method_find(struct gori_slice text)
{
    for (size_t i = 1; i < sizeof(method_names) / sizeof(method_names[0]); i++) {
        if (text.size == method_names[i].size &&
            memcmp(text.data, method_names[i].text, text.size) == 0) {
            return (enum gi_http1_method)i;
        }
    }
    return GI_HTTP1_METHOD_OTHER;
}

/* The size of the bracketed IP literal at the start of `text`, or 0. */
static size_t literal_size(struct gori_slice text)
{
    size_t size = 1;

    while (size < text.size && (gi_http1_is(text.data[size], GI_HTTP1_CLASS_HEX) ||
                                text.data[size] == ':' || text.data[size] == '.')) {
        size++;
    }
    return size > 2 && size < text.size && text.data[size] == ']' ? size + 1 : 0;
}

/* The size of the registered name or IPv4 address at the start of `text`. */
static size_t name_size(struct gori_slice text)
{
    size_t size = 0;

    for (;;) {
        size = gi_http1_scan_class(text.data, size, text.size, GI_HTTP1_CLASS_HOST);
        if (text.size - size < 3 || text.data[size] != '%' ||
            !gi_http1_is(text.data[size + 1], GI_HTTP1_CLASS_HEX) ||
            !gi_http1_is(text.data[size + 2], GI_HTTP1_CLASS_HEX)) {
            return size;
        }
        size += 3;
    }
}

/* `text` starts at the colon. */
static bool port_valid(struct gori_slice text, bool required)
{
    uint32_t port = 0;

    if (text.data[0] != ':' || text.size > 6 || (required && text.size == 1)) {
        return false;
    }
    for (size_t i = 1; i < text.size; i++) {
        if (!gi_http1_is(text.data[i], GI_HTTP1_CLASS_DIGIT)) {
            return false;
        }
        port = port * 10 + (uint32_t)(text.data[i] - '0');
    }
    return port <= 65535;
}

bool gi_http1_host_valid(struct gori_slice text, bool port_required)
{
    size_t size;

    if (text.size == 0) {
        return false;
    }
    size = text.data[0] == '[' ? literal_size(text) : name_size(text);
    if (size == 0) {
        return false;
    }
    if (size == text.size) {
        return !port_required;
    }
    return port_valid((struct gori_slice){text.data + size, text.size - size}, port_required);
}

static struct gi_http1_span span_from(size_t offset, size_t end)
{
    return (struct gi_http1_span){.offset = (uint32_t)offset, .size = (uint32_t)(end - offset)};
}

static void split_query(struct gi_http1_head *head, const uint8_t *data, size_t offset)
{
    const size_t end = (size_t)head->target.offset + head->target.size;
    const uint8_t *mark = memchr(data + offset, '?', end - offset);
    const size_t path_end = mark == NULL ? end : (size_t)(mark - data);

    head->path = span_from(offset, path_end);
    head->query = span_from(mark == NULL ? end : path_end + 1, end);
}

/* The size of "http://" or "https://" at the start of the target, or 0. */
static size_t scheme_size(struct gori_slice target)
{
    if (target.size >= 7 && gi_http1_equals((struct gori_slice){target.data, 7}, "http://")) {
        return 7;
    }
    if (target.size >= 8 && gi_http1_equals((struct gori_slice){target.data, 8}, "https://")) {
        return 8;
    }
    return 0;
}

static int read_absolute(struct gi_http1_head *head, const uint8_t *data)
{
    const size_t end = (size_t)head->target.offset + head->target.size;
    const size_t scheme = scheme_size(gi_http1_slice(data, head->target));
    const size_t host = head->target.offset + scheme;
    size_t path = host;

    if (scheme == 0) {
        return GI_HTTP1_E_TARGET;
    }
    while (path < end && data[path] != '/' && data[path] != '?') {
        path++;
    }
    head->target_form = GI_HTTP1_TARGET_ABSOLUTE;
    head->host = span_from(host, path);
    if (!gi_http1_host_valid(gi_http1_slice(data, head->host), false)) {
        return GI_HTTP1_E_TARGET;
    }
    split_query(head, data, path);
    return 0;
}

int gi_http1_target_read(struct gi_http1_head *head, const uint8_t *data)
{
    const struct gori_slice target = gi_http1_slice(data, head->target);

    if (head->method == GI_HTTP1_METHOD_CONNECT) {
        head->target_form = GI_HTTP1_TARGET_AUTHORITY;
        head->host = head->target;
        return gi_http1_host_valid(target, true) ? 0 : GI_HTTP1_E_TARGET;
    }
    if (target.data[0] == '/') {
        head->target_form = GI_HTTP1_TARGET_ORIGIN;
        split_query(head, data, head->target.offset);
        return 0;
    }
    if (target.size == 1 && target.data[0] == '*') {
        head->target_form = GI_HTTP1_TARGET_ASTERISK;
        return head->method == GI_HTTP1_METHOD_OPTIONS ? 0 : GI_HTTP1_E_TARGET;
    }
    return read_absolute(head, data);
}
