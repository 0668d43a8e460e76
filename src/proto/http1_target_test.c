/* SPDX-License-Identifier: MIT */
/*
 * Goal: methods are known by name; each target form is told apart, with its parts; what is none is
 * refused.  Method: tables through the whole parser, in every cutting.
 */
#include "proto/http1_parts.h"

#include "lib/http1_cut.h"
#include "lib/test.h"

static struct gi_test_head request;

static int parse_line(const char *method, const char *target)
{
    char text[512];
    const int size =
        snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: other:1\r\n\r\n", method, target);

    GT_CHECK(size > 0 && (size_t)size < sizeof(text));
    GT_EQUAL(gi_test_head_cut(&request, NULL, text, (size_t)size), -1);
    return request.result > 0 ? 0 : request.result;
}

static void check_span(struct gi_http1_span span, const char *method, const char *target,
                       const char *expected)
{
    const size_t shift = strlen(method) + 1;

    GT_EQUAL_BYTES(target + span.offset - shift, span.size, expected, strlen(expected));
}

GT_TEST(every_registered_method_is_found)
{
    static const char *const names[] = {
#define METHOD_NAME(identifier, text) text,
        GI_HTTP1_METHODS(METHOD_NAME)
#undef METHOD_NAME
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct gori_slice text = {(const uint8_t *)names[i], strlen(names[i])};
        const struct gori_slice shorter = {text.data, text.size - 1};

        GT_EQUAL(gi_http1_method_find(text), i + 1);
        GT_EQUAL(gi_http1_method_find(shorter), GI_HTTP1_METHOD_OTHER);
    }
    GT_EQUAL(gi_http1_method_find((struct gori_slice){(const uint8_t *)"get", 3}),
             GI_HTTP1_METHOD_OTHER);
}

struct target_case {
    const char *method;
    const char *target;
    enum gi_http1_target_form form;
    const char *path;
    const char *query;
    const char *host; /* NULL: that of the header */
};

GT_TEST(targets_and_their_parts)
{
    static const struct target_case cases[] = {
        {"GET", "/", GI_HTTP1_TARGET_ORIGIN, "/", "", NULL},
        {"GET", "/a/b?c=d", GI_HTTP1_TARGET_ORIGIN, "/a/b", "c=d", NULL},
        {"GET", "/a?b?c", GI_HTTP1_TARGET_ORIGIN, "/a", "b?c", NULL},
        {"GET", "/?", GI_HTTP1_TARGET_ORIGIN, "/", "", NULL},
        {"GET", "//x/y", GI_HTTP1_TARGET_ORIGIN, "//x/y", "", NULL},
        {"GET", "/a|b\"<>\\^`{}", GI_HTTP1_TARGET_ORIGIN, "/a|b\"<>\\^`{}", "", NULL},
        {"GET", "http://h/p?q", GI_HTTP1_TARGET_ABSOLUTE, "/p", "q", "h"},
        {"GET", "HTTPS://h:443", GI_HTTP1_TARGET_ABSOLUTE, "", "", "h:443"},
        {"GET", "http://h?q", GI_HTTP1_TARGET_ABSOLUTE, "", "q", "h"},
        {"GET", "http://[::1]:80/", GI_HTTP1_TARGET_ABSOLUTE, "/", "", "[::1]:80"},
        {"OPTIONS", "*", GI_HTTP1_TARGET_ASTERISK, "", "", NULL},
        {"OPTIONS", "/a", GI_HTTP1_TARGET_ORIGIN, "/a", "", NULL},
        {"CONNECT", "h:443", GI_HTTP1_TARGET_AUTHORITY, "", "", "h:443"},
        {"CONNECT", "[2001:db8::1]:443", GI_HTTP1_TARGET_AUTHORITY, "", "", "[2001:db8::1]:443"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct target_case *c = &cases[i];
        const struct gi_http1_head *head = &request.parser.head;

        GT_EQUAL(parse_line(c->method, c->target), 0);
        GT_EQUAL(head->target_form, c->form);
        check_span(head->target, c->method, c->target, c->target);
        if (head->path.size + head->query.size > 0) {
            check_span(head->path, c->method, c->target, c->path);
            check_span(head->query, c->method, c->target, c->query);
        }
        if (c->host == NULL) {
            GT_EQUAL(head->host.offset, head->headers[0].value.offset);
            GT_EQUAL(head->host.size, 7);
        } else {
            check_span(head->host, c->method, c->target, c->host);
        }
    }
}

GT_TEST(targets_that_are_none)
{
    static const char *const cases[][2] = {
        {"GET", ""},
        {"GET", "a"},
        {"GET", "*"},
        {"GET", "**"},
        {"OPTIONS", "**"},
        {"GET", "h:443"},
        {"GET", "/a#b"},
        {"GET", "/a\tb"},
        {"GET", "/a\x7f"},
        {"GET", "/\xc3\xa9"},
        {"GET", "/a\x01"},
        {"GET", "http://"},
        {"GET", "http:///a"},
        {"GET", "http://user@h/"},
        {"GET", "http://h:x/"},
        {"GET", "http://h:99999/"},
        {"GET", "ftp://h/"},
        {"GET", "http:/h/"},
        {"CONNECT", "/"},
        {"CONNECT", "h"},
        {"CONNECT", "h:"},
        {"CONNECT", ":443"},
        {"CONNECT", "http://h:443/"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        GT_EQUAL(parse_line(cases[i][0], cases[i][1]), GI_HTTP1_E_TARGET);
    }
    /* A space ends the target, and what follows is no version. */
    GT_EQUAL(parse_line("GET", "/a b"), GI_HTTP1_E_VERSION);
}

static bool host_valid(const char *text)
{
    const size_t size = strlen(text);

    return gi_http1_host_valid((struct gori_slice){gi_fenced(text, size), size}, false);
}

GT_TEST(hosts)
{
    GT_CHECK(host_valid("a"));
    GT_CHECK(host_valid("a.example:80"));
    GT_CHECK(host_valid("a.example:"));
    GT_CHECK(host_valid("under_score"));
    GT_CHECK(host_valid("127.0.0.1:65535"));
    GT_CHECK(host_valid("[::1]"));
    GT_CHECK(host_valid("[::ffff:127.0.0.1]:1"));
    GT_CHECK(host_valid("%41b"));
    GT_CHECK(!host_valid(""));
    GT_CHECK(!host_valid(":80"));
    GT_CHECK(!host_valid("a b"));
    GT_CHECK(!host_valid("a,b c"));
    GT_CHECK(!host_valid("a/b"));
    GT_CHECK(!host_valid("a@b"));
    GT_CHECK(!host_valid("a:b"));
    GT_CHECK(!host_valid("a:65536"));
    GT_CHECK(!host_valid("a:000080"));
    GT_CHECK(!host_valid("a:80:80"));
    GT_CHECK(!host_valid("::1"));
    GT_CHECK(!host_valid("[::1"));
    GT_CHECK(!host_valid("[]"));
    GT_CHECK(!host_valid("[::1]x"));
    GT_CHECK(!host_valid("[fe80::1%25eth0]"));
    GT_CHECK(!host_valid("%4"));
    GT_CHECK(!host_valid("%4x"));
    GT_CHECK(!host_valid("\xc3\xa9"));
}

GT_MAIN()
