/* SPDX-License-Identifier: MIT */
/*
 * The header Range, for a single range of bytes.
 *
 * Thread: any.
 * Reading: RFC 9110 14.
 */
#ifndef GI_PROTO_HTTP_RANGE_H
#define GI_PROTO_HTTP_RANGE_H

#include <gori/base.h>

enum gi_http_range_result {
    GI_HTTP_RANGE_NONE,          /* send all: no range, several, or not understood */
    GI_HTTP_RANGE_SINGLE,        /* send *ret_range with 206 */
    GI_HTTP_RANGE_UNSATISFIABLE, /* answer 416 */
};

struct gi_http_range {
    uint64_t first; /* bytes from the start */
    uint64_t last;  /* inclusive, below the size */
};

/** Applies the value of Range to a representation of `size` bytes. */
enum gi_http_range_result gi_http_range_parse(struct gori_slice value, uint64_t size,
                                              struct gi_http_range *ret_range);

#endif
