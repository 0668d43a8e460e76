/* SPDX-License-Identifier: MIT */
/*
 * Conditional requests: entity tags, dates, and the order in which they count.
 *
 * Thread: any.
 * Reading: RFC 9110 8.8 and 13.
 */
#ifndef GI_PROTO_HTTP_CONDITION_H
#define GI_PROTO_HTTP_CONDITION_H

#include "proto/http1.h"
#include "proto/http_range.h"

/** What is known about the current representation. */
struct gi_http_validators {
    struct gori_slice etag; /* with its quotes, and W/ when weak; size 0: none */
    int64_t modified_seconds;
    int64_t now_seconds; /* what the response will say in Date */
    bool has_modified;
};

enum gi_http_condition_result {
    GI_HTTP_CONDITION_PROCEED,
    GI_HTTP_CONDITION_NOT_MODIFIED, /* answer 304 */
    GI_HTTP_CONDITION_FAILED,       /* answer 412 */
};

enum gi_http_etag_comparison {
    GI_HTTP_ETAG_STRONG, /* equal, and neither is weak */
    GI_HTTP_ETAG_WEAK,   /* equal but for W/ */
};

/** Whether two entity tags match. */
bool gi_http_etag_equal(struct gori_slice a, struct gori_slice b,
                        enum gi_http_etag_comparison comparison);

/** Whether `etag` is in a list of entity tags, or the list is `*`.  Reading ends at a mistake. */
bool gi_http_etag_in_list(struct gori_slice list, struct gori_slice etag,
                          enum gi_http_etag_comparison comparison);

/** If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since, in the order of 13.2.2. */
enum gi_http_condition_result
gi_http_condition_evaluate(const struct gi_http1_head *head, const uint8_t *data,
                           const struct gi_http_validators *validators);

/** Range and If-Range of a GET, for a representation of `size` bytes. */
enum gi_http_range_result gi_http_condition_range(const struct gi_http1_head *head,
                                                  const uint8_t *data,
                                                  const struct gi_http_validators *validators,
                                                  uint64_t size, struct gi_http_range *ret_range);

#endif
