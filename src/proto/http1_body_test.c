/* SPDX-License-Identifier: MIT */
/*
 * Goal: payload comes out as it went in, bodies end where they say, and every malformed chunk is
 * refused at its byte.  Method: tables, each fed whole, in two pieces cut at every byte, and byte
 * by byte.
 */
#include "proto/http1.h"

#include "lib/http1_cut.h"
#include "lib/test.h"

static const struct gi_http1_head chunked = {.chunked = true};

struct body_case {
    const char *text;
    int expected;
    size_t payload_size;
    size_t rest; /* bytes behind the body */
};

static void check_body(const struct body_case *c, uint64_t limit)
{
    struct gi_test_body body;
    const size_t size = strlen(c->text);
    const long cut = gi_test_body_cut(&body, &chunked, limit, c->text, size);

    if (cut != -1 || body.result != c->expected) {
        fprintf(stderr, "cut at %ld: %s\n", cut, c->text);
    }
    GT_EQUAL(body.result, c->expected);
    GT_EQUAL(cut, -1);
    GT_EQUAL(body.payload_size, c->payload_size);
    if (body.result == GI_HTTP1_BODY_DONE) {
        GT_EQUAL(body.consumed, size - c->rest);
        GT_CHECK(gi_http1_body_over(&body.body));
    }
}

static void check_bodies(const struct body_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_body(&cases[i], 1000);
    }
}

#define CHECK_BODIES(cases) check_bodies(cases, sizeof(cases) / sizeof((cases)[0]))
#define DONE                GI_HTTP1_BODY_DONE
#define MORE                GI_HTTP1_BODY_MORE

GT_TEST(chunks)
{
    static const struct body_case cases[] = {
        {"0\r\n\r\n", DONE, 0, 0},
        {"5\r\nhello\r\n0\r\n\r\n", DONE, 5, 0},
        {"5\r\nhello\r\n1\r\n!\r\n000\r\n\r\nGET / HTTP/1.1\r\n", DONE, 6, 16},
        {"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", DONE, 20, 0},
        {"0000000000000005\r\nhello\r\n0\r\n\r\n", DONE, 5, 0},
        {"5\r\nhel", MORE, 3, 0},
        {"5\r\nhello\r\n0\r\n", MORE, 5, 0},
        {"", MORE, 0, 0},
    };

    CHECK_BODIES(cases);
}

GT_TEST(chunk_sizes_that_are_none)
{
    static const struct body_case cases[] = {
        {"0x5\r\nhello\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"+5\r\nhello\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"-1\r\nhello\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"0_2e\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {" 5\r\nhello\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"5 \r\nhello\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"1Z\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {";a\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"00000000000000005\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"5\nhello\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"5\rhello", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"5\r\nhelloX\r\n", GI_HTTP1_E_CHUNK_END, 5, 0},
        {"5\r\nhello\n0\r\n\r\n", GI_HTTP1_E_CHUNK_END, 5, 0},
        {"5\r\nhello\rx", GI_HTTP1_E_CHUNK_END, 5, 0},
        {"5\r\nhello\r\n\r\n", GI_HTTP1_E_CHUNK_SIZE, 5, 0},
        {"3e9\r\n", GI_HTTP1_E_BODY_SIZE, 0, 0},
        {"ffffffffffffffff\r\n", GI_HTTP1_E_BODY_SIZE, 0, 0},
        {"5\r\nhello\r\n3e4\r\n", GI_HTTP1_E_BODY_SIZE, 5, 0},
    };

    CHECK_BODIES(cases);
}

GT_TEST(chunk_extensions)
{
    static const struct body_case cases[] = {
        {"5;a\r\nhello\r\n0;b=c\r\n\r\n", DONE, 5, 0},
        {"5 ;\ta = b ; c=\"d;\\\"e\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"5 ;\ta = b ; c=\"d;\\\"e\";f\r\nhello\r\n0\r\n\r\n", DONE, 5, 0},
        {"2\r\r;a\r\nab\r\n", GI_HTTP1_E_CHUNK_SIZE, 0, 0},
        {"2 \r\r;a\r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;\r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;a=\r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;a \r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;a=b c\r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;a\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;a=\"\n\"\r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;a=\"\\\r\"\r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;a=\"b\"c\r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;a=(\r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
        {"2;=b\r\nab\r\n", GI_HTTP1_E_CHUNK_EXTENSION, 0, 0},
    };

    CHECK_BODIES(cases);
}

GT_TEST(trailers)
{
    static const struct body_case cases[] = {
        {"0\r\nA: b\r\nC:d\x80\r\n\r\nrest", DONE, 0, 4},
        {"0\r\nA: b\r\n", MORE, 0, 0},
        {"0\r\n: b\r\n\r\n", GI_HTTP1_E_TRAILER, 0, 0},
        {"0\r\nA b\r\n\r\n", GI_HTTP1_E_TRAILER, 0, 0},
        {"0\r\nA : b\r\n\r\n", GI_HTTP1_E_TRAILER, 0, 0},
        {"0\r\nA: b\r\n c\r\n\r\n", GI_HTTP1_E_TRAILER, 0, 0},
        {"0\r\nA: b\n\r\n", GI_HTTP1_E_TRAILER, 0, 0},
        {"0\r\nA: b\rc\r\n", GI_HTTP1_E_TRAILER, 0, 0},
        {"0\r\nA\r\n\r\n", GI_HTTP1_E_TRAILER, 0, 0},
        {"0\r\n\n", GI_HTTP1_E_TRAILER, 0, 0},
        {"0\r\n\rx", GI_HTTP1_E_TRAILER, 0, 0},
        {"0\r\nGET / HTTP/1.1\r\n", GI_HTTP1_E_TRAILER, 0, 0},
    };

    CHECK_BODIES(cases);
}

/* Feeds `part` until the body says more than that it needs more. */
static int feed_until_refused(const char *start, const char *part)
{
    struct gi_test_body body;
    size_t fed = 0;

    gi_test_body_init(&body, &chunked, UINT64_MAX);
    gi_test_body_feed(&body, start, strlen(start));
    while (body.result == MORE) {
        gi_test_body_feed(&body, part, strlen(part));
        fed += strlen(part);
        GT_CHECK(fed < 100000);
    }
    return body.result;
}

GT_TEST(what_has_no_end_is_ended)
{
    GT_EQUAL(feed_until_refused("1;", "a"), GI_HTTP1_E_CHUNK_EXTENSION);
    GT_EQUAL(feed_until_refused("", "1;abcdefgh=ijklmnopq\r\nx\r\n"), GI_HTTP1_E_CHUNK_EXTENSION);
    GT_EQUAL(feed_until_refused("0\r\n", "A: b\r\n"), GI_HTTP1_E_TRAILER_SIZE);
    GT_EQUAL(feed_until_refused("0\r\nA:", "b"), GI_HTTP1_E_TRAILER_SIZE);
}

GT_TEST(counted_bodies)
{
    const struct gi_http1_head head = {.has_content_length = true, .content_length = 5};
    struct gi_test_body body;

    GT_EQUAL(gi_test_body_cut(&body, &head, 5, "helloGET", 8), -1);
    GT_EQUAL(body.result, DONE);
    GT_EQUAL(body.consumed, 5);
    GT_EQUAL(body.payload_size, 5);
    GT_EQUAL(gi_test_body_cut(&body, &head, 5, "hell", 4), -1);
    GT_EQUAL(body.result, MORE);
    GT_EQUAL(gi_test_body_cut(&body, &head, 4, "hello", 5), -1);
    GT_EQUAL(body.result, GI_HTTP1_E_BODY_SIZE);
}

GT_TEST(no_body)
{
    const struct gi_http1_head head = {.content_length = 0};
    struct gi_test_body body;

    gi_test_body_init(&body, &head, 0);
    GT_EQUAL(body.result, 0);
    GT_CHECK(gi_http1_body_over(&body.body));
    gi_test_body_feed(&body, "GET", 3);
    GT_EQUAL(body.result, DONE);
    GT_EQUAL(body.consumed, 0);
}

GT_TEST(payload_is_a_piece_of_what_came_in)
{
    static const uint8_t text[] = "3\r\nabc\r\n0\r\n\r\n";
    struct gi_http1_body body;
    struct gori_slice payload = {NULL, 0};
    size_t consumed = 0;

    GT_EQUAL(gi_http1_body_init(&body, &chunked, 3), 0);
    GT_EQUAL(gi_http1_body_next(&body, text, sizeof(text) - 1, &consumed, &payload),
             GI_HTTP1_BODY_DATA);
    GT_CHECK(payload.data == text + 3);
    GT_EQUAL(payload.size, 3);
    GT_EQUAL(consumed, 6);
    GT_EQUAL(body.received, 3);
}

GT_MAIN()
