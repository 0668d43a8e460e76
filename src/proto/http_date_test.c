/* SPDX-License-Identifier: MIT */
/*
 * Goal: dates survive writing and reading, in all three forms, and what is no date is refused.
 * Method: known instants, a walk over ten thousand years, tables.
 */
#include "proto/http_date.h"

#include "lib/test.h"

#define NOW INT64_C(784111777) /* 1994 */

static int64_t parse(const char *text)
{
    const struct gori_slice slice = {(const uint8_t *)text, strlen(text)};
    int64_t seconds = -12345;

    if (gi_http_date_parse(slice, NOW, &seconds) != 0) {
        GT_EQUAL(seconds, -12345);
        return INT64_MIN;
    }
    return seconds;
}

static void check_format(int64_t seconds, const char *expected)
{
    uint8_t text[GI_HTTP_DATE_SIZE];

    gi_http_date_format(seconds, text);
    GT_EQUAL_BYTES(text, sizeof(text), expected, strlen(expected));
}

GT_TEST(known_instants_are_written)
{
    check_format(0, "Thu, 01 Jan 1970 00:00:00 GMT");
    check_format(784111777, "Sun, 06 Nov 1994 08:49:37 GMT");
    check_format(951782400, "Tue, 29 Feb 2000 00:00:00 GMT");
    check_format(4102444799, "Thu, 31 Dec 2099 23:59:59 GMT");
    check_format(-1, "Wed, 31 Dec 1969 23:59:59 GMT");
    check_format(GI_HTTP_DATE_SECONDS_MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
    check_format(INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
    check_format(GI_HTTP_DATE_SECONDS_MIN, "Sat, 01 Jan 0000 00:00:00 GMT");
    check_format(INT64_MIN, "Sat, 01 Jan 0000 00:00:00 GMT");
}

GT_TEST(the_three_forms_are_read)
{
    GT_EQUAL(parse("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
    GT_EQUAL(parse("Sunday, 06-Nov-94 08:49:37 GMT"), 784111777);
    GT_EQUAL(parse("Sun Nov  6 08:49:37 1994"), 784111777);
    GT_EQUAL(parse("Sun Nov 16 08:49:37 1994"), 784111777 + 10 * 86400);
    GT_EQUAL(parse("Wed, 31 Dec 1969 23:59:59 GMT"), -1);
    GT_EQUAL(parse("Sat, 31 Dec 2016 23:59:60 GMT"), 1483228799);
}

GT_TEST(two_digits_of_a_year)
{
    /* It is 1994: at most fifty years ahead, else of the last hundred. */
    GT_EQUAL(parse("Monday, 01-Jan-44 00:00:00 GMT"),
             parse("Fri, 01 Jan 2044 00:00:00 GMT") - INT64_C(36525) * 86400);
    GT_EQUAL(parse("Thursday, 01-Jan-70 00:00:00 GMT"), 0);
    GT_EQUAL(parse("Saturday, 01-Jan-00 00:00:00 GMT"), parse("Mon, 01 Jan 1900 00:00:00 GMT"));
}

GT_TEST(what_is_no_date)
{
    static const char *const texts[] = {
        "",
        "0",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Son, 06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Now 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 08-49-37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 06 08:49:37 94",
        "Sunday Nov  6 08:49:37 1994",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        GT_EQUAL(parse(texts[i]), INT64_MIN);
    }
}

GT_TEST(written_dates_are_read_back)
{
    /* A step that meets every day of the week, month, hour, minute and second. */
    const int64_t step = 86400 * 17 + 3600 * 5 + 60 * 7 + 11;

    for (int64_t seconds = GI_HTTP_DATE_SECONDS_MIN; seconds <= GI_HTTP_DATE_SECONDS_MAX;
         seconds += step) {
        uint8_t text[GI_HTTP_DATE_SIZE];
        int64_t read = 0;

        gi_http_date_format(seconds, text);
        GT_EQUAL(gi_http_date_parse((struct gori_slice){text, sizeof(text)}, NOW, &read), 0);
        GT_EQUAL(read, seconds);
    }
}

GT_MAIN()
