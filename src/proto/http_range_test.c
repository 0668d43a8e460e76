/* SPDX-License-Identifier: MIT */
/*
 * Goal: single ranges are cut to the size, and all that is odd is ignored.  Method: a table.
 */
#include "proto/http_range.h"

#include "lib/http1_cut.h"
#include "lib/test.h"

#define NONE          GI_HTTP_RANGE_NONE
#define SINGLE        GI_HTTP_RANGE_SINGLE
#define UNSATISFIABLE GI_HTTP_RANGE_UNSATISFIABLE

struct range_case {
    const char *value;
    uint64_t size;
    enum gi_http_range_result expected;
    uint64_t first;
    uint64_t last;
};

static const struct range_case cases[] = {
    {"bytes=0-9", 536, SINGLE, 0, 9},
    {"bytes=50-99999", 536, SINGLE, 50, 535},
    {"bytes=0-", 536, SINGLE, 0, 535},
    {"bytes=535-", 536, SINGLE, 535, 535},
    {"bytes=535-535", 536, SINGLE, 535, 535},
    {"Bytes=0-0", 1, SINGLE, 0, 0},
    {"bytes=-5", 536, SINGLE, 531, 535},
    {"bytes=-536", 536, SINGLE, 0, 535},
    {"bytes=-99999999999999999999999", 536, SINGLE, 0, 535},
    {"bytes=0-99999999999999999999999", 536, SINGLE, 0, 535},
    {"bytes=536-", 536, UNSATISFIABLE, 0, 0},
    {"bytes=536-600", 536, UNSATISFIABLE, 0, 0},
    {"bytes=99999999999999999999999-", 536, UNSATISFIABLE, 0, 0},
    {"bytes=-0", 536, UNSATISFIABLE, 0, 0},
    {"bytes=0-", 0, UNSATISFIABLE, 0, 0},
    {"bytes=0-0", 0, UNSATISFIABLE, 0, 0},
    {"bytes=-5", 0, NONE, 0, 0},
    {"bytes: 0-22", 536, NONE, 0, 0},
    {"bytes=a-b", 536, NONE, 0, 0},
    {"bytes=", 536, NONE, 0, 0},
    {"bytes=-", 536, NONE, 0, 0},
    {"bytes=5", 536, NONE, 0, 0},
    {"bytes=9-5", 536, NONE, 0, 0},
    {"bytes=0-1,3-4", 536, NONE, 0, 0},
    {"bytes=0-1,", 536, NONE, 0, 0},
    {"bytes=0-1 ", 536, NONE, 0, 0},
    {"bytes= 0-1", 536, NONE, 0, 0},
    {"bytes=0 -1", 536, NONE, 0, 0},
    {"bytes=0--1", 536, NONE, 0, 0},
    {"bytes=--1", 536, NONE, 0, 0},
    {"bytes=+1-2", 536, NONE, 0, 0},
    {"items=0-1", 536, NONE, 0, 0},
    {"bytes", 536, NONE, 0, 0},
    {"", 536, NONE, 0, 0},
};

GT_TEST(ranges)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct range_case *c = &cases[i];
        const size_t size = strlen(c->value);
        struct gi_http_range range = {77, 78};

        if (c->expected != SINGLE) {
            GT_EQUAL(gi_http_range_parse((struct gori_slice){gi_fenced(c->value, size), size},
                                         c->size, &range),
                     c->expected);
            GT_EQUAL(range.first, 77);
            GT_EQUAL(range.last, 78);
            continue;
        }
        GT_EQUAL(gi_http_range_parse((struct gori_slice){gi_fenced(c->value, size), size}, c->size,
                                     &range),
                 SINGLE);
        GT_EQUAL(range.first, c->first);
        GT_EQUAL(range.last, c->last);
    }
}

GT_MAIN()
