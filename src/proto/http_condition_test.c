/* SPDX-License-Identifier: MIT */
/*
 * Goal: conditions count in the order of RFC 9110 13.2.2, tags compare strongly or weakly where
 * they should, and in doubt the whole is sent.  Method: tables of header lines against one
 * representation.
 */
#include "proto/http_condition.h"

#include "lib/http1_cut.h"
#include "lib/test.h"

#define MODIFIED "Sun, 06 Nov 1994 08:49:37 GMT"
#define EARLIER  "Sun, 06 Nov 1994 08:49:36 GMT"
#define LATER    "Sun, 06 Nov 1994 08:49:38 GMT"

#define PROCEED      GI_HTTP_CONDITION_PROCEED
#define NOT_MODIFIED GI_HTTP_CONDITION_NOT_MODIFIED
#define FAILED       GI_HTTP_CONDITION_FAILED

static struct gi_test_head request;
static char text[512];

static struct gori_slice slice(const char *value)
{
    return (struct gori_slice){(const uint8_t *)value, strlen(value)};
}

static struct gi_http_validators validators_of(const char *etag)
{
    return (struct gi_http_validators){.etag = slice(etag),
                                       .modified_seconds = 784111777,
                                       .now_seconds = 784111777 + 1000,
                                       .has_modified = true};
}

static void parse(const char *method, const char *lines)
{
    const int size =
        snprintf(text, sizeof(text), "%s / HTTP/1.1\r\nHost: h\r\n%s\r\n", method, lines);

    GT_CHECK(size > 0 && (size_t)size < sizeof(text));
    gi_test_head_init(&request, NULL);
    gi_test_head_show(&request, text, (size_t)size);
    GT_EQUAL(request.result, size);
}

static enum gi_http_condition_result evaluate(const char *method, const char *lines,
                                              const char *etag)
{
    const struct gi_http_validators validators = validators_of(etag);

    parse(method, lines);
    return gi_http_condition_evaluate(&request.parser.head, (const uint8_t *)text, &validators);
}

GT_TEST(tags_are_equal_strongly_or_weakly)
{
    GT_CHECK(gi_http_etag_equal(slice("\"a\""), slice("\"a\""), GI_HTTP_ETAG_STRONG));
    GT_CHECK(!gi_http_etag_equal(slice("W/\"a\""), slice("W/\"a\""), GI_HTTP_ETAG_STRONG));
    GT_CHECK(!gi_http_etag_equal(slice("W/\"a\""), slice("\"a\""), GI_HTTP_ETAG_STRONG));
    GT_CHECK(gi_http_etag_equal(slice("W/\"a\""), slice("\"a\""), GI_HTTP_ETAG_WEAK));
    GT_CHECK(!gi_http_etag_equal(slice("\"a\""), slice("\"b\""), GI_HTTP_ETAG_WEAK));
    GT_CHECK(!gi_http_etag_equal(slice(""), slice(""), GI_HTTP_ETAG_WEAK));
}

GT_TEST(tags_in_lists)
{
    static const struct {
        const char *list;
        bool expected;
    } cases[] = {
        {"\"x\"", true},
        {"W/\"x\"", true},
        {"*", true},
        {"\"a\", \"x\"", true},
        {"\"a\" ,\tW/\"x\", \"b\"", true},
        {"\"a,\"x\"", false},
        {"\"a,x\", \"x\"", true},
        {"\"ax\"", false},
        {"\"\"", false},
        {"x", false},
        {"\"x", false},
        {"w/\"x\"", false},
        {"", false},
        {"W/", false},
        {"\"a\" \"x\"", false},
        {"* ", false},
        {"\"a\",", false},
        {"\"a\x01\", \"x\"", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t size = strlen(cases[i].list);
        const struct gori_slice list = {gi_fenced(cases[i].list, size), size};

        GT_EQUAL(gi_http_etag_in_list(list, slice("\"x\""), GI_HTTP_ETAG_WEAK), cases[i].expected);
    }
}

GT_TEST(conditions_of_a_get)
{
    static const struct {
        const char *lines;
        enum gi_http_condition_result expected;
    } cases[] = {
        {"", PROCEED},
        {"If-None-Match: W/\"x\"\r\n", NOT_MODIFIED},
        {"If-None-Match: \"a\", \"x\"\r\n", NOT_MODIFIED},
        {"If-None-Match: \"a\"\r\nIf-None-Match: \"x\"\r\n", NOT_MODIFIED},
        {"If-None-Match: *\r\n", NOT_MODIFIED},
        {"If-None-Match: \"a\"\r\n", PROCEED},
        {"If-None-Match: \"a\"\r\nIf-Modified-Since: " MODIFIED "\r\n", PROCEED},
        {"If-None-Match: \"x\"\r\nIf-Modified-Since: " EARLIER "\r\n", NOT_MODIFIED},
        {"If-Modified-Since: " MODIFIED "\r\n", NOT_MODIFIED},
        {"If-Modified-Since: " LATER "\r\n", NOT_MODIFIED},
        {"If-Modified-Since: " EARLIER "\r\n", PROCEED},
        {"If-Modified-Since: yesterday\r\n", PROCEED},
        {"If-Modified-Since: " LATER "\r\nIf-Modified-Since: " LATER "\r\n", PROCEED},
        {"If-Match: \"x\"\r\n", PROCEED},
        {"If-Match: *\r\n", PROCEED},
        {"If-Match: W/\"x\"\r\n", FAILED},
        {"If-Match: \"a\"\r\n", FAILED},
        {"If-Match: \"x\"\r\nIf-Unmodified-Since: " EARLIER "\r\n", PROCEED},
        {"If-Match: \"a\"\r\nIf-None-Match: \"x\"\r\n", FAILED},
        {"If-Match: \"x\"\r\nIf-None-Match: \"x\"\r\n", NOT_MODIFIED},
        {"If-Unmodified-Since: " MODIFIED "\r\n", PROCEED},
        {"If-Unmodified-Since: " EARLIER "\r\n", FAILED},
        {"If-Unmodified-Since: x\r\n", PROCEED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        GT_EQUAL(evaluate("GET", cases[i].lines, "\"x\""), cases[i].expected);
        GT_EQUAL(evaluate("HEAD", cases[i].lines, "\"x\""), cases[i].expected);
    }
}

GT_TEST(conditions_of_other_methods)
{
    GT_EQUAL(evaluate("PUT", "If-None-Match: *\r\n", "\"x\""), FAILED);
    GT_EQUAL(evaluate("PUT", "If-Modified-Since: " LATER "\r\n", "\"x\""), PROCEED);
    GT_EQUAL(evaluate("PUT", "If-Match: \"a\"\r\n", "\"x\""), FAILED);
}

GT_TEST(a_weak_tag_of_our_own)
{
    GT_EQUAL(evaluate("GET", "If-None-Match: \"x\"\r\n", "W/\"x\""), NOT_MODIFIED);
    GT_EQUAL(evaluate("GET", "If-Match: \"x\"\r\n", "W/\"x\""), FAILED);
    GT_EQUAL(evaluate("GET", "If-Match: W/\"x\"\r\n", "W/\"x\""), FAILED);
}

static enum gi_http_range_result range_of(const char *method, const char *lines,
                                          int64_t age_seconds)
{
    struct gi_http_validators validators = validators_of("\"x\"");
    struct gi_http_range range = {0, 0};

    validators.now_seconds = validators.modified_seconds + age_seconds;
    parse(method, lines);
    return gi_http_condition_range(&request.parser.head, (const uint8_t *)text, &validators, 100,
                                   &range);
}

#define RANGE "Range: bytes=0-9\r\n"

GT_TEST(ranges_and_if_range)
{
    static const struct {
        const char *lines;
        enum gi_http_range_result expected;
    } cases[] = {
        {"", GI_HTTP_RANGE_NONE},
        {RANGE, GI_HTTP_RANGE_SINGLE},
        {"Range: bytes=100-\r\n", GI_HTTP_RANGE_UNSATISFIABLE},
        {RANGE RANGE, GI_HTTP_RANGE_NONE},
        {RANGE "If-Range: \"x\"\r\n", GI_HTTP_RANGE_SINGLE},
        {RANGE "If-Range: W/\"x\"\r\n", GI_HTTP_RANGE_NONE},
        {RANGE "If-Range: \"xy\"\r\n", GI_HTTP_RANGE_NONE},
        {RANGE "If-Range: x\r\n", GI_HTTP_RANGE_NONE},
        {RANGE "If-Range: \"x\", \"y\"\r\n", GI_HTTP_RANGE_NONE},
        {RANGE "If-Range:\r\n", GI_HTTP_RANGE_NONE},
        {RANGE "If-Range: *\r\n", GI_HTTP_RANGE_NONE},
        {RANGE "If-Range: \"x\"\r\nIf-Range: \"x\"\r\n", GI_HTTP_RANGE_NONE},
        {RANGE "If-Range: " MODIFIED "\r\n", GI_HTTP_RANGE_SINGLE},
        {RANGE "If-Range: " LATER "\r\n", GI_HTTP_RANGE_NONE},
        {RANGE "If-Range: " EARLIER "\r\n", GI_HTTP_RANGE_NONE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        GT_EQUAL(range_of("GET", cases[i].lines, 1000), cases[i].expected);
    }
    GT_EQUAL(range_of("POST", RANGE, 1000), GI_HTTP_RANGE_NONE);
    GT_EQUAL(range_of("HEAD", RANGE, 1000), GI_HTTP_RANGE_NONE);
    /* Written in the second of the answer: it may change again without a new date. */
    GT_EQUAL(range_of("GET", RANGE "If-Range: " MODIFIED "\r\n", 0), GI_HTTP_RANGE_NONE);
    GT_EQUAL(range_of("GET", RANGE "If-Range: " MODIFIED "\r\n", 1), GI_HTTP_RANGE_SINGLE);
}

GT_MAIN()
