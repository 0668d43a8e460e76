/* SPDX-License-Identifier: MIT */
/*
 * The header Range.  A server may ignore it, so all that is odd is ignored: several ranges, other
 * units, white space, numbers in the wrong order.
 *
 * Invariants: numbers too large for 64 bits are the largest one, which is beyond every file.
 *
 * Thread: any.
 */
#include "proto/http_range.h"

#include "proto/http1_parts.h"
#include "proto/http1_scan.h"

#define UNIT "bytes="

/* Reads digits from *position on; false when there are none. */
static bool read_number(struct gori_slice text, size_t *position, uint64_t *ret_number)
{
    const size_t start = *position;
    uint64_t number = 0;

    while (*position < text.size && gi_http1_is(text.data[*position], GI_HTTP1_CLASS_DIGIT)) {
        const uint64_t digit = (uint64_t)(text.data[*position] - '0');

        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
        (*position)++;
    }
    *ret_number = number;
    return *position > start;
}

static enum gi_http_range_result suffix_range(uint64_t suffix, uint64_t size,
                                              struct gi_http_range *ret_range)
{
    if (suffix == 0) {
        return GI_HTTP_RANGE_UNSATISFIABLE;
    }
    if (size == 0) {
        /* Satisfiable by RFC 9110 14.1.2, but Content-Range has no words for no bytes. */
        return GI_HTTP_RANGE_NONE;
    }
    ret_range->first = suffix < size ? size - suffix : 0;
    ret_range->last = size - 1;
    return GI_HTTP_RANGE_SINGLE;
}

enum gi_http_range_result gi_http_range_parse(struct gori_slice value, uint64_t size,
                                              struct gi_http_range *ret_range)
{
    size_t position = sizeof(UNIT) - 1;
    uint64_t first;
    uint64_t last;
    bool has_first;
    bool has_last;

    if (value.size < position ||
        !gi_http1_equals((struct gori_slice){value.data, position}, UNIT)) {
        return GI_HTTP_RANGE_NONE;
    }
    has_first = read_number(value, &position, &first);
    if (position == value.size || value.data[position] != '-') {
        return GI_HTTP_RANGE_NONE;
    }
    position++;
    has_last = read_number(value, &position, &last);
    if (position != value.size || (!has_first && !has_last)) {
        return GI_HTTP_RANGE_NONE;
    }
    if (!has_first) {
        return suffix_range(last, size, ret_range);
    }
    if (has_last && last < first) {
        return GI_HTTP_RANGE_NONE;
    }
    if (first >= size) {
        return GI_HTTP_RANGE_UNSATISFIABLE;
    }
    ret_range->first = first;
    ret_range->last = has_last && last < size ? last : size - 1;
    return GI_HTTP_RANGE_SINGLE;
}
