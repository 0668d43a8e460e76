/* SPDX-License-Identifier: MIT */
/*
 * Goal: the vector scans and their scalar twin find the same byte, and the table says what the
 * grammar says.  Method: every byte value at every place of runs of 0 to 128 bytes from 16 starts,
 * each ending at a page that cannot be read; then pseudo-random bytes.
 */
#include "proto/http1_scan.h"

#include "lib/http1_cut.h"
#include "lib/test.h"

#define RUN_MAX 128

typedef size_t scan_fn(const uint8_t *data, size_t position, size_t end);

static const struct {
    scan_fn *scan;
    unsigned class_bits;
    uint8_t filler;
} scans[] = {
    {gi_http1_scan_value, GI_HTTP1_CLASS_VALUE, 'v'},
    {gi_http1_scan_target, GI_HTTP1_CLASS_TARGET, '/'},
    {gi_http1_scan_token, GI_HTTP1_CLASS_TOKEN, '_'},
    {gi_http1_scan_common, GI_HTTP1_CLASS_COMMON, '-'},
};

#define SCAN_COUNT (sizeof(scans) / sizeof(scans[0]))

static void check_same(size_t which, const uint8_t *data, size_t position, size_t end)
{
    const size_t found = scans[which].scan(data, position, end);

    GT_EQUAL(found, gi_http1_scan_class(data, position, end, scans[which].class_bits));
    GT_CHECK(found >= position && found <= end);
}

GT_TEST(every_alignment_and_size)
{
    uint8_t bytes[16 + RUN_MAX];

    for (size_t which = 0; which < SCAN_COUNT; which++) {
        memset(bytes, scans[which].filler, sizeof(bytes));
        for (size_t size = 0; size <= RUN_MAX; size++) {
            for (size_t start = 0; start < 16; start++) {
                const uint8_t *data = gi_fenced(bytes, start + size);

                GT_EQUAL(scans[which].scan(data, start, start + size), start + size);
            }
        }
    }
}

GT_TEST(every_byte_at_every_place)
{
    uint8_t bytes[16 + 40];

    for (size_t which = 0; which < SCAN_COUNT; which++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            for (size_t place = 0; place < sizeof(bytes); place++) {
                memset(bytes, scans[which].filler, sizeof(bytes));
                bytes[place] = (uint8_t)byte;
                check_same(which, gi_fenced(bytes, sizeof(bytes)), place % 16, sizeof(bytes));
                check_same(which, gi_fenced(bytes, place + 1), 0, place + 1);
            }
        }
    }
}

GT_TEST(random_bytes)
{
    uint64_t seed = 1;
    uint8_t bytes[RUN_MAX];

    for (unsigned round = 0; round < 20000; round++) {
        const size_t size = round % (RUN_MAX + 1);

        for (size_t i = 0; i < size; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            /* Mostly letters, so that runs get long. */
            bytes[i] = (uint8_t)(seed >> 60 == 0 ? seed >> 33 : 'a' + (seed >> 33) % 26);
        }
        for (size_t which = 0; which < SCAN_COUNT; which++) {
            check_same(which, gi_fenced(bytes, size), size / 3, size);
        }
    }
}

static bool in(unsigned byte, const char *set)
{
    return byte != 0 && byte < 128 && strchr(set, (int)byte) != NULL;
}

GT_TEST(table_follows_the_grammar)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const uint8_t value = (uint8_t)byte;
        const bool digit = byte >= '0' && byte <= '9';
        const bool alpha = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');

        GT_EQUAL(gi_http1_is(value, GI_HTTP1_CLASS_DIGIT) != 0, digit);
        GT_EQUAL(gi_http1_is(value, GI_HTTP1_CLASS_ALPHA) != 0, alpha);
        GT_EQUAL(gi_http1_is(value, GI_HTTP1_CLASS_HEX) != 0, digit || in(byte, "abcdefABCDEF"));
        GT_EQUAL(gi_http1_is(value, GI_HTTP1_CLASS_COMMON) != 0, digit || alpha || byte == '-');
        GT_EQUAL(gi_http1_is(value, GI_HTTP1_CLASS_TOKEN) != 0,
                 digit || alpha || in(byte, "!#$%&'*+-.^_`|~"));
        GT_EQUAL(gi_http1_is(value, GI_HTTP1_CLASS_HOST) != 0,
                 digit || alpha || in(byte, "-._~!$&'()*+,;="));
        GT_EQUAL(gi_http1_is(value, GI_HTTP1_CLASS_VALUE) != 0,
                 byte == '\t' || (byte >= 0x20 && byte != 0x7f));
        GT_EQUAL(gi_http1_is(value, GI_HTTP1_CLASS_TARGET) != 0,
                 byte > 0x20 && byte < 0x7f && byte != '#');
    }
}

GT_TEST(hex_digits_have_values)
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < 16; i++) {
        GT_EQUAL(gi_http1_hex_value((uint8_t)digits[i]), i);
    }
    GT_EQUAL(gi_http1_hex_value('A'), 10);
    GT_EQUAL(gi_http1_hex_value('F'), 15);
}

GT_MAIN()
