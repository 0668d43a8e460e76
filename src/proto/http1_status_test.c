/* SPDX-License-Identifier: MIT */
/*
 * Goal: every reason has a text and a status a server may send; what is no reason does no harm.
 * Method: all of them, and values around.
 */
#include "proto/http1.h"

#include "lib/test.h"

GT_TEST(every_reason_has_status_and_text)
{
    for (int reason = -1; reason > -GI_HTTP1_REASON_COUNT; reason--) {
        GT_CHECK(gi_http1_status(reason) >= 400 && gi_http1_status(reason) <= 599);
        GT_CHECK(gi_http1_status_text(gi_http1_status(reason))[0] != '\0');
        GT_CHECK(gi_http1_reason_text(reason)[0] != '\0');
    }
}

GT_TEST(reasons_map_as_the_rfc_says)
{
    GT_EQUAL(gi_http1_status(GI_HTTP1_E_LENGTH), 400);
    GT_EQUAL(gi_http1_status(GI_HTTP1_E_TARGET_SIZE), 414);
    GT_EQUAL(gi_http1_status(GI_HTTP1_E_HEAD_SIZE), 431);
    GT_EQUAL(gi_http1_status(GI_HTTP1_E_FIELD_COUNT), 431);
    GT_EQUAL(gi_http1_status(GI_HTTP1_E_CODING_UNKNOWN), 501);
    GT_EQUAL(gi_http1_status(GI_HTTP1_E_VERSION_MAJOR), 505);
    GT_EQUAL(gi_http1_status(GI_HTTP1_E_EXPECTATION), 417);
    GT_EQUAL(gi_http1_status(GI_HTTP1_E_BODY_SIZE), 413);
}

GT_TEST(what_is_no_reason)
{
    GT_EQUAL(gi_http1_status(0), 500);
    GT_EQUAL(gi_http1_status(1), 500);
    GT_EQUAL(gi_http1_status(INT32_MIN), 500);
    GT_EQUAL(gi_http1_status(-GI_HTTP1_REASON_COUNT), 500);
    GT_EQUAL_STRING(gi_http1_reason_text(7), "not a reason");
}

GT_TEST(phrases)
{
    GT_EQUAL_STRING(gi_http1_status_text(200), "OK");
    GT_EQUAL_STRING(gi_http1_status_text(431), "Request Header Fields Too Large");
    GT_EQUAL_STRING(gi_http1_status_text(299), "");
    GT_EQUAL_STRING(gi_http1_status_text(-1), "");
    GT_EQUAL_STRING(gi_http1_status_text(100000), "");
}

GT_MAIN()
