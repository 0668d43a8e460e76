/* SPDX-License-Identifier: MIT */
/*
 * What the tests and fuzz targets of the HTTP/1 parser share; not part of the library.  Bytes are
 * laid right in front of a page that cannot be read, so that reading one too many is a crash in
 * every build, and a head is parsed in every cutting, which must make no difference.
 *
 * Thread: one.
 */
#ifndef GT_HTTP1_CUT_H
#define GT_HTTP1_CUT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include "proto/http1.h"

#define GI_FENCED_SIZE_MAX  ((size_t)1 << 18)
#define GI_TEST_HEADERS_MAX 128

/** Memory of GI_FENCED_SIZE_MAX bytes with a fence behind it; NULL when there is none. */
static inline uint8_t *gi_make_fence(void)
{
#if __has_include(<sys/mman.h>)
    const size_t page = 65536;
    uint8_t *memory = (uint8_t *)mmap(NULL, GI_FENCED_SIZE_MAX + page, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool made = memory != MAP_FAILED && mprotect(memory + GI_FENCED_SIZE_MAX, page, PROT_NONE) == 0;
#else
    /* No fence: other systems have the same parser, and look. */
    static uint8_t memory[GI_FENCED_SIZE_MAX];
    bool made = true;
#endif
    return made ? memory : NULL;
}

/** A copy of the bytes that ends where the fence begins.  The next copy takes its place. */
static inline const uint8_t *gi_fenced(const void *bytes, size_t size)
{
    static uint8_t *g_fence;

    if (g_fence == NULL) {
        uint8_t *memory = gi_make_fence();

        if (memory == NULL) {
            perror("fence");
            abort();
        }
        g_fence = memory + GI_FENCED_SIZE_MAX;
    }
    if (size > GI_FENCED_SIZE_MAX) {
        abort();
    }
    if (size > 0) {
        memcpy(g_fence - size, bytes, size);
    }
    return g_fence - size;
}

/** A parser with its headers. */
struct gi_test_head {
    struct gi_http1_parser parser;
    struct gi_http1_header headers[GI_TEST_HEADERS_MAX];
    int result;
};

static inline void gi_test_head_init(struct gi_test_head *test,
                                     const struct gi_http1_limits *limits)
{
    test->result = 0;
    gi_http1_parser_init(&test->parser, limits, test->headers);
}

/** Shows the first `size` bytes, unless there is a result already. */
static inline void gi_test_head_show(struct gi_test_head *test, const void *bytes, size_t size)
{
    if (test->result == 0) {
        test->result = gi_http1_parse_head(&test->parser, gi_fenced(bytes, size), size);
    }
}

/** Whether two parses came to the same end. */
static inline bool gi_test_head_same(const struct gi_test_head *a, const struct gi_test_head *b)
{
    const struct gi_http1_head *left = &a->parser.head;
    const struct gi_http1_head *right = &b->parser.head;

    if (a->result != b->result) {
        return false;
    }
    if (a->result <= 0) {
        return true;
    }
    return left->header_count == right->header_count &&
           memcmp(left->headers, right->headers, sizeof(*left->headers) * left->header_count) ==
               0 &&
           left->content_length == right->content_length && left->repeated == right->repeated &&
           memcmp(&left->method_text, &right->method_text, sizeof(left->method_text)) == 0 &&
           memcmp(&left->target, &right->target, sizeof(left->target)) == 0 &&
           memcmp(&left->path, &right->path, sizeof(left->path)) == 0 &&
           memcmp(&left->query, &right->query, sizeof(left->query)) == 0 &&
           memcmp(&left->host, &right->host, sizeof(left->host)) == 0 &&
           memcmp(left->known, right->known, sizeof(left->known)) == 0 &&
           left->method == right->method && left->target_form == right->target_form &&
           left->version_minor == right->version_minor &&
           left->has_content_length == right->has_content_length &&
           left->chunked == right->chunked && left->keep_alive == right->keep_alive &&
           left->expect_continue == right->expect_continue && left->upgrade == right->upgrade;
}

/**
 * Parses whole into `ret_whole`, then in two pieces at every byte and byte by byte.  Returns the
 * size of the first piece with which it came out differently, `size` for byte by byte, or -1.
 */
static inline long gi_test_head_cut(struct gi_test_head *ret_whole,
                                    const struct gi_http1_limits *limits, const void *bytes,
                                    size_t size)
{
    struct gi_test_head cut;

    gi_test_head_init(ret_whole, limits);
    gi_test_head_show(ret_whole, bytes, size);
    for (size_t first = 0; first < size; first++) {
        gi_test_head_init(&cut, limits);
        gi_test_head_show(&cut, bytes, first);
        gi_test_head_show(&cut, bytes, size);
        if (!gi_test_head_same(ret_whole, &cut)) {
            return (long)first;
        }
    }
    gi_test_head_init(&cut, limits);
    for (size_t shown = 0; shown <= size; shown++) {
        gi_test_head_show(&cut, bytes, shown);
    }
    return gi_test_head_same(ret_whole, &cut) ? -1 : (long)size;
}

/** A body read to its end, to an error, or as far as there are bytes. */
struct gi_test_body {
    struct gi_http1_body body;
    int result;
    size_t consumed;
    size_t payload_size;
    uint64_t payload_hash;
};

static inline void gi_test_body_feed(struct gi_test_body *test, const void *bytes, size_t size)
{
    const uint8_t *data = gi_fenced(bytes, size);
    size_t position = 0;

    while (test->result >= 0 && test->result != GI_HTTP1_BODY_DONE) {
        struct gori_slice payload = {NULL, 0};
        size_t consumed = 0;

        test->result =
            gi_http1_body_next(&test->body, data + position, size - position, &consumed, &payload);
        position += consumed;
        test->consumed += consumed;
        test->payload_size += payload.size;
        for (size_t i = 0; i < payload.size; i++) {
            test->payload_hash = (test->payload_hash ^ payload.data[i]) * 1099511628211u;
        }
        if (test->result == GI_HTTP1_BODY_MORE) {
            return;
        }
    }
}

static inline bool gi_test_body_same(const struct gi_test_body *a, const struct gi_test_body *b)
{
    return a->result == b->result && a->payload_size == b->payload_size &&
           a->payload_hash == b->payload_hash && (a->result < 0 || a->consumed == b->consumed);
}

static inline void gi_test_body_init(struct gi_test_body *test, const struct gi_http1_head *head,
                                     uint64_t limit)
{
    memset(test, 0, sizeof(*test));
    test->result = gi_http1_body_init(&test->body, head, limit);
}

/** As gi_test_head_cut(), for the body that `head` announces. */
static inline long gi_test_body_cut(struct gi_test_body *ret_whole,
                                    const struct gi_http1_head *head, uint64_t limit,
                                    const void *bytes, size_t size)
{
    struct gi_test_body cut;

    gi_test_body_init(ret_whole, head, limit);
    gi_test_body_feed(ret_whole, bytes, size);
    for (size_t first = 0; first < size; first++) {
        gi_test_body_init(&cut, head, limit);
        gi_test_body_feed(&cut, bytes, first);
        gi_test_body_feed(&cut, (const uint8_t *)bytes + first, size - first);
        if (!gi_test_body_same(ret_whole, &cut)) {
            return (long)first;
        }
    }
    gi_test_body_init(&cut, head, limit);
    gi_test_body_feed(&cut, bytes, 0);
    for (size_t i = 0; i < size; i++) {
        gi_test_body_feed(&cut, (const uint8_t *)bytes + i, 1);
    }
    return gi_test_body_same(ret_whole, &cut) ? -1 : (long)size;
}

#endif
