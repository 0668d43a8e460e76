/* SPDX-License-Identifier: MIT */
/*
 * Conditional requests.
 *
 * Invariants: If-None-Match silences If-Modified-Since, and If-Match silences If-Unmodified-Since,
 * whatever they say; a header that must be single and comes twice, or a date that is none, counts
 * as absent, but for If-Range, where in doubt all is sent; If-Range compares strongly, and a date
 * is strong only when the file is older than the second in which the answer is made.
 *
 * Thread: any.
 * Reading: RFC 9110 8.8.2.2, 8.8.3.2, 13.1, 13.2.2.
 */
#include "proto/http_condition.h"

#include <string.h>

#include "proto/http1_parts.h"
#include "proto/http_date.h"

static bool is_weak(struct gori_slice etag)
{
    return etag.size >= 2 && etag.data[0] == 'W' && etag.data[1] == '/';
}

static struct gori_slice opaque_part(struct gori_slice etag)
{
    return is_weak(etag) ? (struct gori_slice){etag.data + 2, etag.size - 2} : etag;
}

bool gi_http_etag_equal(struct gori_slice a, struct gori_slice b,
                        enum gi_http_etag_comparison comparison)
{
    if (comparison == GI_HTTP_ETAG_STRONG && (is_weak(a) || is_weak(b))) {
        return false;
    }
    a = opaque_part(a);
    b = opaque_part(b);
    return a.size > 0 && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* The size of the entity tag at the start of `text`, or 0. */
static size_t etag_size(struct gori_slice text)
{
    size_t size = is_weak(text) ? 2 : 0;

    if (size == text.size || text.data[size] != '"') {
        return 0;
    }
    for (size++; size < text.size && text.data[size] != '"'; size++) {
        if (text.data[size] <= 0x20 || text.data[size] == 0x7f) {
            return 0;
        }
    }
    return size < text.size ? size + 1 : 0;
}

static size_t skip_spaces(struct gori_slice text, size_t position)
{
    while (position < text.size && (text.data[position] == ' ' || text.data[position] == '\t')) {
        position++;
    }
    return position;
}

bool gi_http_etag_in_list(struct gori_slice list, struct gori_slice etag,
                          enum gi_http_etag_comparison comparison)
{
    size_t position = 0;

    if (list.size == 1 && list.data[0] == '*') {
        return true;
    }
    while (position < list.size) {
        struct gori_slice member = {list.data + position, list.size - position};

        member.size = etag_size(member);
        if (member.size == 0) {
            return false;
        }
        if (gi_http_etag_equal(member, etag, comparison)) {
            return true;
        }
        position = skip_spaces(list, position + member.size);
        if (position < list.size && list.data[position] != ',') {
            return false;
        }
        position = skip_spaces(list, position + 1);
    }
    return false;
}

/* Over all headers of the field, since a list may come in several. */
static bool any_match(const struct gi_http1_head *head, const uint8_t *data,
                      enum gi_http1_field field, struct gori_slice etag,
                      enum gi_http_etag_comparison comparison)
{
    const struct gi_http1_header *header = gi_http1_header(head, field);

    for (; header != NULL; header = gi_http1_header_next(head, header)) {
        if (gi_http_etag_in_list(gi_http1_slice(data, header->value), etag, comparison)) {
            return true;
        }
    }
    return false;
}

/* The value of a header that is there exactly once, or one without data. */
static struct gori_slice single_value(const struct gi_http1_head *head, const uint8_t *data,
                                      enum gi_http1_field field)
{
    const struct gi_http1_header *header = gi_http1_header(head, field);

    if (header == NULL || gi_http1_repeated(head, field)) {
        return (struct gori_slice){NULL, 0};
    }
    return gi_http1_slice(data, header->value);
}

/* Whether the field is one good date; then *ret_seconds is it. */
static bool single_date(const struct gi_http1_head *head, const uint8_t *data,
                        enum gi_http1_field field, int64_t now_seconds, int64_t *ret_seconds)
{
    const struct gori_slice value = single_value(head, data, field);

    return value.data != NULL && gi_http_date_parse(value, now_seconds, ret_seconds) == 0;
}

static bool match_holds(const struct gi_http1_head *head, const uint8_t *data,
                        const struct gi_http_validators *validators)
{
    int64_t date;

    if (gi_http1_header(head, GI_HTTP1_FIELD_IF_MATCH) != NULL) {
        return any_match(head, data, GI_HTTP1_FIELD_IF_MATCH, validators->etag,
                         GI_HTTP_ETAG_STRONG);
    }
    if (!validators->has_modified || !single_date(head, data, GI_HTTP1_FIELD_IF_UNMODIFIED_SINCE,
                                                  validators->now_seconds, &date)) {
        return true;
    }
    return validators->modified_seconds <= date;
}

enum gi_http_condition_result
gi_http_condition_evaluate(const struct gi_http1_head *head, const uint8_t *data,
                           const struct gi_http_validators *validators)
{
    const bool reads = head->method == GI_HTTP1_METHOD_GET || head->method == GI_HTTP1_METHOD_HEAD;
    int64_t date;

    if (!match_holds(head, data, validators)) {
        return GI_HTTP_CONDITION_FAILED;
    }
    if (gi_http1_header(head, GI_HTTP1_FIELD_IF_NONE_MATCH) != NULL) {
        if (!any_match(head, data, GI_HTTP1_FIELD_IF_NONE_MATCH, validators->etag,
                       GI_HTTP_ETAG_WEAK)) {
            return GI_HTTP_CONDITION_PROCEED;
        }
        return reads ? GI_HTTP_CONDITION_NOT_MODIFIED : GI_HTTP_CONDITION_FAILED;
    }
    if (reads && validators->has_modified &&
        single_date(head, data, GI_HTTP1_FIELD_IF_MODIFIED_SINCE, validators->now_seconds, &date) &&
        validators->modified_seconds <= date) {
        return GI_HTTP_CONDITION_NOT_MODIFIED;
    }
    return GI_HTTP_CONDITION_PROCEED;
}

static bool range_still_holds(const struct gi_http1_head *head, const uint8_t *data,
                              const struct gi_http_validators *validators)
{
    const struct gori_slice value = single_value(head, data, GI_HTTP1_FIELD_IF_RANGE);
    int64_t date;

    if (gi_http1_header(head, GI_HTTP1_FIELD_IF_RANGE) == NULL) {
        return true;
    }
    if (value.size == 0) {
        return false;
    }
    if (etag_size(value) == value.size) {
        return gi_http_etag_equal(value, validators->etag, GI_HTTP_ETAG_STRONG);
    }
    return validators->has_modified && validators->modified_seconds < validators->now_seconds &&
           gi_http_date_parse(value, validators->now_seconds, &date) == 0 &&
           date == validators->modified_seconds;
}

enum gi_http_range_result gi_http_condition_range(const struct gi_http1_head *head,
                                                  const uint8_t *data,
                                                  const struct gi_http_validators *validators,
                                                  uint64_t size, struct gi_http_range *ret_range)
{
    const struct gori_slice value = single_value(head, data, GI_HTTP1_FIELD_RANGE);

    if (head->method != GI_HTTP1_METHOD_GET || value.data == NULL ||
        !range_still_holds(head, data, validators)) {
        return GI_HTTP_RANGE_NONE;
    }
    return gi_http_range_parse(value, size, ret_range);
}
