/* SPDX-License-Identifier: MIT */
/*
 * Goal: the headers that frame a request, and that none of the ways to say two things at once gets
 * through.  Method: tables through the whole parser, in every cutting.
 */
#include "proto/http1_parts.h"

#include "lib/http1_cut.h"
#include "lib/test.h"

static struct gi_test_head request;

/* Parses a request of that version with these header lines; returns 0 or the reason. */
static int parse_version(const char *version, const char *lines)
{
    char text[1024];
    const int size = snprintf(text, sizeof(text), "POST / HTTP/%s\r\n%s\r\n", version, lines);

    GT_CHECK(size > 0 && (size_t)size < sizeof(text));
    GT_EQUAL(gi_test_head_cut(&request, NULL, text, (size_t)size), -1);
    GT_CHECK(request.result != 0);
    return request.result > 0 ? 0 : request.result;
}

static int parse(const char *lines)
{
    char text[512];
    const int size = snprintf(text, sizeof(text), "Host: h\r\n%s", lines);

    GT_CHECK(size > 0 && (size_t)size < sizeof(text));
    return parse_version("1.1", text);
}

GT_TEST(known_fields_are_found_in_any_case)
{
    static const char *const names[] = {
#define FIELD_NAME(identifier, name, slot) name,
        GI_HTTP1_FIELDS(FIELD_NAME)
#undef FIELD_NAME
    };
    char name[32];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const size_t size = strlen(names[i]);

        GT_EQUAL(gi_http1_field_find((struct gori_slice){gi_fenced(names[i], size), size}), i + 1);
        for (size_t j = 0; j < size; j++) {
            const bool letter = names[i][j] >= 'a' && names[i][j] <= 'z';

            name[j] = (char)(letter ? names[i][j] - 0x20 : names[i][j]);
        }
        GT_EQUAL(gi_http1_field_find((struct gori_slice){gi_fenced(name, size), size}), i + 1);
        for (size_t j = 0; j < size; j++) {
            const char kept = name[j];

            name[j] = '+';
            GT_EQUAL(gi_http1_field_find((struct gori_slice){gi_fenced(name, size), size}),
                     GI_HTTP1_FIELD_OTHER);
            name[j] = kept;
        }
    }
    GT_EQUAL(gi_http1_field_find((struct gori_slice){gi_fenced("x", 1), 1}), GI_HTTP1_FIELD_OTHER);
    GT_EQUAL(gi_http1_field_find((struct gori_slice){gi_fenced("", 0), 0}), GI_HTTP1_FIELD_OTHER);
}

struct reason_case {
    const char *lines;
    int expected;
};

static void check_reasons(const struct reason_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int result = parse(cases[i].lines);

        if (result != cases[i].expected) {
            fprintf(stderr, "%s", cases[i].lines);
        }
        GT_EQUAL(result, cases[i].expected);
    }
}

#define CHECK_REASONS(cases) check_reasons(cases, sizeof(cases) / sizeof((cases)[0]))

GT_TEST(content_length)
{
    static const struct reason_case cases[] = {
        {"Content-Length:\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: \r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length:\r\nContent-Length: 5\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 5\r\nContent-Length:\r\n", GI_HTTP1_E_LENGTH_REPEATED},
        {"Content-Length: 0\r\nContent-Length: 38\r\n", GI_HTTP1_E_LENGTH_REPEATED},
        {"Content-Length: 5\r\ncontent-length: 5\r\n", GI_HTTP1_E_LENGTH_REPEATED},
        {"Content-Length:\r\n6\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: \r\n 6\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: -48\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: +5\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 0x5\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 5,5\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 5,6\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 5 6\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 1Z\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 1_0\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 5;\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 12345678901234567890\r\n", GI_HTTP1_E_LENGTH},
        {"Content-Length: 9223372036854775808\r\n", GI_HTTP1_E_LENGTH},
    };

    CHECK_REASONS(cases);
    GT_EQUAL(parse("Content-Length: 0\r\n"), 0);
    GT_CHECK(request.parser.head.has_content_length);
    GT_EQUAL(parse("Content-Length: \t 9223372036854775807 \t\r\n"), 0);
    GT_EQUAL(request.parser.head.content_length, INT64_MAX);
    GT_EQUAL(parse("Content-Length: 007\r\n"), 0);
    GT_EQUAL(request.parser.head.content_length, 7);
    GT_EQUAL(parse(""), 0);
    GT_CHECK(!request.parser.head.has_content_length);
    GT_CHECK(!request.parser.head.chunked);
}

GT_TEST(transfer_encoding)
{
    static const struct reason_case cases[] = {
        {"Transfer-Encoding: chunked\t\r\nContent-Length: 60\r\n", GI_HTTP1_E_LENGTH_AND_CODING},
        {"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", GI_HTTP1_E_LENGTH_AND_CODING},
        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: chunked, identity\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: identity, chunked\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: identity\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: chunked, chunked\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: chunked, gzip\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding:\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: ,chunked\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: chunked,\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: \"chunked\"\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: chunked;q=1\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: chun ked\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: \r\n chunked\r\n", GI_HTTP1_E_CODING},
        {"Transfer-Encoding: chunked\r\n ,x\r\n", GI_HTTP1_E_FIELD_FOLD},
        {"Transfer-Encoding: chunked\x0b\r\n", GI_HTTP1_E_FIELD_VALUE},
        {"Transfer-Encoding : chunked\r\n", GI_HTTP1_E_FIELD_NAME},
        {"Transfer-Encoding: gzip, chunked\r\n", GI_HTTP1_E_CODING_UNKNOWN},
        {"Transfer-Encoding: gzip\r\n", GI_HTTP1_E_CODING_UNKNOWN},
        {"Transfer-Encoding: xchunked\r\n", GI_HTTP1_E_CODING_UNKNOWN},
    };

    CHECK_REASONS(cases);
    GT_EQUAL(parse("Transfer-Encoding: \t chuNKed \t\r\n"), 0);
    GT_CHECK(request.parser.head.chunked);
    GT_EQUAL(parse_version("1.0", "Transfer-Encoding: chunked\r\n"), GI_HTTP1_E_CODING_VERSION);
}

GT_TEST(host)
{
    GT_EQUAL(parse_version("1.1", ""), GI_HTTP1_E_HOST_MISSING);
    GT_EQUAL(parse_version("1.1", "Host: a\r\nHost: a\r\n"), GI_HTTP1_E_HOST_REPEATED);
    GT_EQUAL(parse_version("1.1", "Host: a b\r\n"), GI_HTTP1_E_HOST);
    GT_EQUAL(parse_version("1.1", "Host:\r\n"), GI_HTTP1_E_HOST);
    GT_EQUAL(parse_version("1.0", "Host: a\r\nHost: b\r\n"), GI_HTTP1_E_HOST_REPEATED);
    GT_EQUAL(parse_version("1.0", ""), 0);
    GT_EQUAL(request.parser.head.host.size, 0);
    GT_EQUAL(parse_version("1.1", "Host: abc:80\r\n"), 0);
    GT_EQUAL(request.parser.head.host.size, 6);
}

static bool keeps_alive(const char *version, const char *lines)
{
    GT_EQUAL(parse_version(version, lines), 0);
    return request.parser.head.keep_alive;
}

GT_TEST(keep_alive)
{
    GT_CHECK(keeps_alive("1.1", "Host: h\r\n"));
    GT_CHECK(keeps_alive("1.2", "Host: h\r\n"));
    GT_CHECK(!keeps_alive("1.1", "Host: h\r\nConnection: close\r\n"));
    GT_CHECK(!keeps_alive("1.1", "Host: h\r\nConnection: TE , Close\r\n"));
    GT_CHECK(!keeps_alive("1.1", "Host: h\r\nConnection: keep-alive\r\nConnection: close\r\n"));
    GT_CHECK(keeps_alive("1.1", "Host: h\r\nConnection: closed, x-close, close d\r\n"));
    GT_CHECK(!keeps_alive("1.0", ""));
    GT_CHECK(keeps_alive("1.0", "Connection: Keep-Alive\r\n"));
    GT_CHECK(keeps_alive("1.0", "Connection: ,, keep-alive\r\n"));
    GT_CHECK(!keeps_alive("1.0", "Connection: keep-alive, close\r\n"));
}

GT_TEST(expectations)
{
    GT_EQUAL(parse("Content-Length: 10\r\nExpect: 100-Continue\r\n"), 0);
    GT_CHECK(request.parser.head.expect_continue);
    GT_EQUAL(parse("Content-Length: 10\r\n"), 0);
    GT_CHECK(!request.parser.head.expect_continue);
    GT_EQUAL(parse("Expect: 200-ok\r\n"), GI_HTTP1_E_EXPECTATION);
    GT_EQUAL(parse_version("1.0", "Expect: 100-continue\r\n"), 0);
    GT_CHECK(!request.parser.head.expect_continue);
}

GT_TEST(upgrade)
{
    static const char *const asking[] = {
        "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n",
        "Upgrade: websocket\r\nConnection: Upgrade,Keep-Alive\r\n",
        "Connection: keep-alive\r\nConnection: upgrade\r\nUpgrade: websocket\r\n",
    };

    for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++) {
        GT_EQUAL(parse(asking[i]), 0);
        GT_CHECK(request.parser.head.upgrade);
        GT_CHECK(request.parser.head.keep_alive);
    }
    GT_EQUAL(parse("Upgrade: websocket\r\n"), 0);
    GT_CHECK(!request.parser.head.upgrade);
    GT_EQUAL(parse("Connection: upgrade\r\n"), 0);
    GT_CHECK(!request.parser.head.upgrade);
    GT_EQUAL(parse_version("1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n"), 0);
    GT_CHECK(!request.parser.head.upgrade);
}

GT_TEST(headers_are_found_again)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: h\r\nIf-Match: \"a\"\r\nX-One: 1\r\n"
                               "if-match: \"b\"\r\nx-one: 2\r\n\r\n";
    const uint8_t *data = (const uint8_t *)text;
    const struct gi_http1_head *head = &request.parser.head;
    const struct gi_http1_header *header;

    GT_EQUAL(gi_test_head_cut(&request, NULL, text, sizeof(text) - 1), -1);
    GT_EQUAL(head->header_count, 5);
    header = gi_http1_header(head, GI_HTTP1_FIELD_IF_MATCH);
    GT_CHECK(header == &head->headers[1]);
    GT_CHECK(gi_http1_repeated(head, GI_HTTP1_FIELD_IF_MATCH));
    header = gi_http1_header_next(head, header);
    GT_CHECK(header == &head->headers[3]);
    GT_CHECK(gi_http1_header_next(head, header) == NULL);
    header = gi_http1_header(head, GI_HTTP1_FIELD_HOST);
    GT_CHECK(gi_http1_header_next(head, header) == NULL);
    GT_CHECK(gi_http1_header_named(head, data, "x-one") == &head->headers[2]);
    GT_CHECK(gi_http1_header_named(head, data, "x-two") == NULL);
    GT_CHECK(gi_http1_header(head, GI_HTTP1_FIELD_RANGE) == NULL);
}

GT_TEST(members_of_lists)
{
    static const char text[] = "gzip , br;q=1,\tdeflate";
    const struct gori_slice list = {(const uint8_t *)text, sizeof(text) - 1};

    GT_CHECK(gi_http1_list_has(list, "gzip"));
    GT_CHECK(gi_http1_list_has(list, "deflate"));
    GT_CHECK(!gi_http1_list_has(list, "br"));
    GT_CHECK(!gi_http1_list_has(list, "zip"));
    GT_CHECK(!gi_http1_list_has((struct gori_slice){NULL, 0}, "gzip"));
}

GT_MAIN()
