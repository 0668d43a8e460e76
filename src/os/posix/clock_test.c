/* SPDX-License-Identifier: MIT */
/*
 * Time does not run backwards, the calendar is in this century, randomness differs.
 */
#include "lib/test.h"

#include "os/os.h"

GT_TEST(os_now_is_monotonic)
{
    gori_time before = gi_os_now();
    for (int i = 0; i < 1000; i++) {
        gori_time now = gi_os_now();
        GT_CHECK(now >= before);
        before = now;
    }
}

GT_TEST(os_calendar_is_plausible)
{
    GT_CHECK(gi_os_calendar_seconds() > INT64_C(1700000000));
    GT_CHECK(gi_os_calendar_seconds() < INT64_C(10000000000));
}

GT_TEST(os_entropy_differs)
{
    uint64_t first = gi_os_entropy();
    GT_CHECK(gi_os_entropy() != first);
    GT_CHECK(gi_os_entropy() != first);
}

GT_MAIN()
