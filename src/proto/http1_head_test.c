/* SPDX-License-Identifier: MIT */
/*
 * Goal: the lines of a request head, and that no cutting changes the verdict.  Method: tables; each
 * case is parsed whole, in two pieces cut at every byte, and byte by byte.
 */
#include "proto/http1.h"

#include "lib/http1_cut.h"
#include "lib/test.h"

#define HOST "Host: a\r\n"
#define ALL  1 /* complete, and nothing left over */
#define MORE 0

struct head_case {
    const char *text;
    size_t size;
    int expected;
};

#define CASE(text, expected)                                                                       \
    {                                                                                              \
        text, sizeof(text) - 1, expected                                                           \
    }

static void check_cases(const struct head_case *cases, size_t count,
                        const struct gi_http1_limits *limits)
{
    static struct gi_test_head test;

    for (size_t i = 0; i < count; i++) {
        const long cut = gi_test_head_cut(&test, limits, cases[i].text, cases[i].size);
        const int expected = cases[i].expected == ALL ? (int)cases[i].size : cases[i].expected;

        if (cut != -1 || test.result != expected) {
            fprintf(stderr, "case %zu, cut at %ld: %s\n", i, cut, cases[i].text);
        }
        GT_EQUAL(test.result, expected);
        GT_EQUAL(cut, -1);
    }
}

#define CHECK_CASES(cases) check_cases(cases, sizeof(cases) / sizeof((cases)[0]), NULL)

GT_TEST(request_lines)
{
    static const struct head_case cases[] = {
        CASE("GET / HTTP/1.1\r\n" HOST "\r\n", ALL),
        CASE("GET / HTTP/1.0\r\n\r\n", ALL),
        CASE("GET / HTTP/1.2\r\n" HOST "\r\n", ALL),
        CASE("GET / HTTP/1.9\r\n" HOST "\r\n", ALL),
        CASE("BREW / HTTP/1.1\r\n" HOST "\r\n", ALL),
        CASE("!#$%&'*+-.^_`|~09azAZ / HTTP/1.1\r\n" HOST "\r\n", ALL),
        CASE("", MORE),
        CASE("G", MORE),
        CASE("GET / HTTP/1.1\r\n", MORE),
        CASE("GET / HTTP/1.1\r\n" HOST, MORE),
        CASE("GET / HTTP/1.1\r\n" HOST "\r", MORE),
        CASE("GET / HTTP/2.0\r\n", GI_HTTP1_E_VERSION_MAJOR),
        CASE("GET / HTTP/0.9\r\n", GI_HTTP1_E_VERSION_MAJOR),
        CASE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", GI_HTTP1_E_VERSION_MAJOR),
        CASE("GET / HTTP/1.32\r\n", GI_HTTP1_E_VERSION),
        CASE("GET / HTTP/1\r\n", GI_HTTP1_E_VERSION),
        CASE("GET / HTTP/ 1.1\r\n", GI_HTTP1_E_VERSION),
        CASE("GET / http/1.1\r\n", GI_HTTP1_E_VERSION),
        CASE("GET / HTTP/4294967297.1\r\n", GI_HTTP1_E_VERSION),
        CASE("GET / HTTP/1.1 \r\n", GI_HTTP1_E_VERSION),
        CASE("GET / HTTP/1.1\n", GI_HTTP1_E_LINE_END),
        CASE("GET / HTTP/1.1\r\r\n", GI_HTTP1_E_LINE_END),
        CASE("GET / HTTP/1.x\r\n", GI_HTTP1_E_VERSION),
        CASE("GET / HTTP/x.1\r\n", GI_HTTP1_E_VERSION),
        CASE("GET / HTTP/1,1\r\n", GI_HTTP1_E_VERSION),
        CASE("GET /\r\n", GI_HTTP1_E_VERSION),
        CASE("GET /\n", GI_HTTP1_E_VERSION),
        CASE("GET\r\n", GI_HTTP1_E_METHOD),
        CASE("G=\" / HTTP/1.1\r\n", GI_HTTP1_E_METHOD),
        CASE(" GET / HTTP/1.1\r\n", GI_HTTP1_E_METHOD),
        CASE("GET\t/ HTTP/1.1\r\n", GI_HTTP1_E_METHOD),
        CASE("G\x80T / HTTP/1.1\r\n", GI_HTTP1_E_METHOD),
        CASE("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", GI_HTTP1_E_METHOD),
        CASE("\0", GI_HTTP1_E_METHOD),
        CASE("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF / HTTP/1.0\r\n\r\n", ALL),
        CASE("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", GI_HTTP1_E_METHOD_SIZE),
    };

    CHECK_CASES(cases);
}

GT_TEST(blank_lines_before_a_request)
{
    static const struct head_case cases[] = {
        CASE("\r\nGET / HTTP/1.0\r\n\r\n", ALL),
        CASE("\r\n\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n", ALL),
        CASE("\r\n", MORE),
        CASE("\r", MORE),
        CASE("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n", GI_HTTP1_E_BLANK_LINES),
        CASE("\nGET / HTTP/1.0\r\n\r\n", GI_HTTP1_E_METHOD),
        CASE("\r\r\nGET / HTTP/1.0\r\n\r\n", GI_HTTP1_E_LINE_END),
    };

    CHECK_CASES(cases);
}

GT_TEST(header_lines)
{
    static const struct head_case cases[] = {
        CASE("GET / HTTP/1.1\r\nHost:a\r\n\r\n", ALL),
        CASE("GET / HTTP/1.1\r\nHost: \t a \t \r\nX:\r\nY: \r\n\r\n", ALL),
        CASE("GET / HTTP/1.1\r\n" HOST "X: a\tb\x80\xff\r\n\r\n", ALL),
        CASE("GET / HTTP/1.1\r\n" HOST "X!#$%&'*+-.^_`|~09azAZ: a\r\n\r\n", ALL),
        CASE("GET / HTTP/1.1\r\n" HOST ": x\r\n", GI_HTTP1_E_FIELD_NAME),
        CASE("GET / HTTP/1.1\r\n" HOST ":\r\nA: b\r\n", GI_HTTP1_E_FIELD_NAME),
        CASE("GET / HTTP/1.1\r\n" HOST "Content-Length 10\r\n", GI_HTTP1_E_FIELD_NAME),
        CASE("GET / HTTP/1.1\r\n" HOST "Content-Length : 34\r\n", GI_HTTP1_E_FIELD_NAME),
        CASE("GET / HTTP/1.1\r\n" HOST "X\r\n", GI_HTTP1_E_FIELD_NAME),
        CASE("GET / HTTP/1.1\r\n" HOST "X\x80: a\r\n", GI_HTTP1_E_FIELD_NAME),
        CASE("GET / HTTP/1.1\r\n" HOST "X(a): b\r\n", GI_HTTP1_E_FIELD_NAME),
        CASE("GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n", GI_HTTP1_E_LINE_END),
        CASE("GET / HTTP/1.1\r\n" HOST "X: a\nb: c\r\n", GI_HTTP1_E_LINE_END),
        CASE("GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n", GI_HTTP1_E_FIELD_VALUE),
        CASE("GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n", GI_HTTP1_E_FIELD_VALUE),
        CASE("GET / HTTP/1.1\r\n" HOST "X: a\x1b[0m\r\n", GI_HTTP1_E_FIELD_VALUE),
        CASE("GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n", GI_HTTP1_E_FIELD_FOLD),
        CASE("GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n", GI_HTTP1_E_FIELD_FOLD),
        CASE("GET / HTTP/1.1\r\n Host: a\r\n", GI_HTTP1_E_FIELD_FOLD),
        CASE("GET / HTTP/1.1\r\n" HOST "\n", GI_HTTP1_E_LINE_END),
        CASE("GET / HTTP/1.1\r\n" HOST "\r\r\n", GI_HTTP1_E_LINE_END),
    };

    CHECK_CASES(cases);
}

GT_TEST(limit_of_the_target)
{
    static const struct gi_http1_limits limits = {.target_size = 8};
    static const struct head_case cases[] = {
        CASE("GET /2345678 HTTP/1.0\r\n\r\n", ALL),
        CASE("GET /2345678", MORE),
        CASE("GET /23456789", GI_HTTP1_E_TARGET_SIZE),
        CASE("GET /23456789 HTTP/1.0\r\n\r\n", GI_HTTP1_E_TARGET_SIZE),
        CASE("GET /2345678\x80", GI_HTTP1_E_TARGET),
    };

    check_cases(cases, sizeof(cases) / sizeof(cases[0]), &limits);
}

GT_TEST(limit_of_the_headers)
{
    static const struct gi_http1_limits limits = {.header_count = 2};
    static const struct head_case cases[] = {
        CASE("GET / HTTP/1.0\r\nA: b\r\nC: d\r\n\r\n", ALL),
        CASE("GET / HTTP/1.0\r\nA: b\r\nC: d\r\nE", GI_HTTP1_E_FIELD_COUNT),
        CASE("GET / HTTP/1.0\r\nA: b\r\nC: d\r\n: ", GI_HTTP1_E_FIELD_COUNT),
    };

    check_cases(cases, sizeof(cases) / sizeof(cases[0]), &limits);
}

/* A head of exactly the limit passes; one byte less of a limit refuses it, wherever it cuts. */
GT_TEST(limit_of_the_head)
{
    static const char text[] = "\r\nGET /a HTTP/1.0\r\nA: bc \r\nD: e\r\n\r\n";
    const size_t size = sizeof(text) - 1;
    static struct gi_test_head test;

    for (uint32_t head_size = 1; head_size <= size; head_size++) {
        const struct gi_http1_limits limits = {.head_size = head_size};
        const bool in_target = head_size > 5 && head_size < 9;

        GT_EQUAL(gi_test_head_cut(&test, &limits, text, size), -1);
        if (head_size == size) {
            GT_EQUAL(test.result, size);
        } else {
            GT_EQUAL(test.result, in_target ? GI_HTTP1_E_TARGET_SIZE : GI_HTTP1_E_HEAD_SIZE);
        }
    }
}

/* Builds PREFIX, `count` times `filler`, SUFFIX in a static buffer. */
static struct gori_slice build(const char *prefix, const char *filler, size_t count,
                               const char *suffix)
{
    static uint8_t text[GI_FENCED_SIZE_MAX];
    const size_t filler_size = strlen(filler);
    size_t size = strlen(prefix);

    GT_CHECK(size + count * filler_size + strlen(suffix) <= sizeof(text));
    memcpy(text, prefix, size);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + size, filler, filler_size);
        size += filler_size;
    }
    memcpy(text + size, suffix, strlen(suffix));
    return (struct gori_slice){text, size + strlen(suffix)};
}

static int parse(struct gori_slice text)
{
    static struct gi_test_head test;

    gi_test_head_init(&test, NULL);
    gi_test_head_show(&test, text.data, text.size);
    return test.result;
}

GT_TEST(sizes_that_browsers_reach_and_attackers_pass)
{
    struct gori_slice text = build("GET /", "a", 8000, " HTTP/1.1\r\n" HOST "\r\n");

    GT_EQUAL(parse(text), text.size);
    text = build("GET / HTTP/1.1\r\n" HOST "Cookie: ", "c", 8192, "\r\n\r\n");
    GT_EQUAL(parse(text), text.size);
    text = build("GET /", "a", 65536, " HTTP/1.1\r\n" HOST "\r\n");
    GT_EQUAL(parse(text), GI_HTTP1_E_TARGET_SIZE);
    text = build("GET / HTTP/1.1\r\n" HOST, "A: b\r\n", 10000, "\r\n");
    GT_EQUAL(parse(text), GI_HTTP1_E_FIELD_COUNT);
    text = build("GET / HTTP/1.1\r\n" HOST "Cookie: ", "c", 65536, "\r\n\r\n");
    GT_EQUAL(parse(text), GI_HTTP1_E_HEAD_SIZE);
}

GT_TEST(requests_behind_each_other)
{
    static const char text[] = "GET /1 HTTP/1.1\r\n" HOST "\r\n"
                               "GET /2 HTTP/1.1\r\n" HOST "\r\n"
                               "GET /3 HTTP/1.1\r\n" HOST "\r\n"
                               "GET /4 HTT";
    static struct gi_test_head test;
    size_t position = 0;

    gi_test_head_init(&test, NULL);
    for (unsigned i = 1; i <= 3; i++) {
        test.result = 0;
        gi_test_head_show(&test, text + position, sizeof(text) - 1 - position);
        GT_CHECK(test.result > 0);
        GT_EQUAL(text[position + test.parser.head.path.offset + 1], '0' + i);
        position += (size_t)test.result;
        GT_EQUAL(gi_http1_parse_head(&test.parser, NULL, 0), test.result);
        gi_http1_parser_reset(&test.parser);
        GT_CHECK(!gi_http1_parser_started(&test.parser));
    }
    test.result = 0;
    gi_test_head_show(&test, text + position, sizeof(text) - 1 - position);
    GT_EQUAL(test.result, 0);
    GT_CHECK(gi_http1_parser_started(&test.parser));
}

GT_TEST(an_error_stays)
{
    static struct gi_test_head test;

    gi_test_head_init(&test, NULL);
    gi_test_head_show(&test, "(", 1);
    GT_EQUAL(test.result, GI_HTTP1_E_METHOD);
    GT_EQUAL(gi_http1_parse_head(&test.parser, (const uint8_t *)"GET ", 4), GI_HTTP1_E_METHOD);
}

GT_MAIN()
