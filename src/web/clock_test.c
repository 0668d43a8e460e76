/* SPDX-License-Identifier: MIT */
/*
 * Goal: Date is right to the second, and the clock is not read more often than that.
 * Method: a clock that counts how often it is asked, and says what the test wants.
 */
#include "web/clock.h"

#include <string.h>

#include "lib/test.h"

struct fake {
    gori_time now;
    unsigned reads;
};

static gori_time read_fake(void *user)
{
    struct fake *fake = user;
    fake->reads++;
    return fake->now;
}

GT_TEST(read_once_a_second)
{
    struct fake fake = {.now = 784111777 * GORI_SECONDS + 900 * GORI_MILLISECONDS};
    struct gi_web_clock clock;
    gi_web_clock_init(&clock, read_fake, &fake);
    gori_time loop_now = 5 * GORI_SECONDS;
    gi_web_clock_update(&clock, loop_now);
    GT_CHECK(memcmp(clock.date, "Sun, 06 Nov 1994 08:49:37 GMT", GI_HTTP_DATE_SIZE) == 0);
    gi_web_clock_update(&clock, loop_now + 99 * GORI_MILLISECONDS);
    GT_EQUAL(fake.reads, 1);
    fake.now += 100 * GORI_MILLISECONDS;
    gi_web_clock_update(&clock, loop_now + 100 * GORI_MILLISECONDS);
    GT_EQUAL(fake.reads, 2);
    GT_EQUAL(clock.seconds, 784111778);
    GT_CHECK(memcmp(clock.date, "Sun, 06 Nov 1994 08:49:38 GMT", GI_HTTP_DATE_SIZE) == 0);
}

GT_TEST(a_clock_that_is_set_back_is_noticed)
{
    struct fake fake = {.now = 1000 * GORI_SECONDS};
    struct gi_web_clock clock;
    gi_web_clock_init(&clock, read_fake, &fake);
    gi_web_clock_update(&clock, 0);
    GT_EQUAL(clock.seconds, 1000);
    fake.now = 10 * GORI_SECONDS;
    gi_web_clock_update(&clock, GORI_SECONDS);
    GT_EQUAL(clock.seconds, 10);
}

GT_TEST(the_system_has_one_too)
{
    struct gi_web_clock clock;
    gi_web_clock_init(&clock, NULL, NULL);
    gi_web_clock_update(&clock, 0);
    GT_CHECK(clock.seconds > 1700000000);
}

GT_MAIN()
