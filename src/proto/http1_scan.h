/* SPDX-License-Identifier: MIT */
/*
 * Finding the first byte that does not belong: the inner loops of the HTTP/1 parser.  Each scan is
 * here twice: sixteen bytes at a time where the machine has it in its base set (SSE2 on x86-64),
 * and a scalar twin in http1_scan.c, which the tests hold against it and other machines use.
 *
 * Not here: wider vectors behind run-time dispatch.  A call of an AVX2 loop costs 2 ns more than
 * these loops on the short names and values that heads are made of, and is ahead from 80 bytes on;
 * figures in README.md.
 *
 * Invariants: `position <= end`; the result is in [position, end]; no byte at or beyond `end` and
 * none before `data` is read.  A last partial block is read as the sixteen bytes that end at `end`,
 * with what lies before `position` masked away.
 *
 * Thread: any.
 */
#ifndef GI_PROTO_HTTP1_SCAN_H
#define GI_PROTO_HTTP1_SCAN_H

#include <gori/base.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#define GI_HTTP1_SCAN_VECTOR 1
#else
#define GI_HTTP1_SCAN_VECTOR 0
#endif

/* Classes of bytes, as bits of gi_http1_class[]. */
#define GI_HTTP1_CLASS_TOKEN  0x01u /* tchar */
#define GI_HTTP1_CLASS_VALUE  0x02u /* what a field value may hold: VCHAR, SP, HTAB, obs-text */
#define GI_HTTP1_CLASS_TARGET 0x04u /* VCHAR without '#' */
#define GI_HTTP1_CLASS_HOST   0x08u /* unreserved and sub-delims of RFC 3986 */
#define GI_HTTP1_CLASS_DIGIT  0x10u
#define GI_HTTP1_CLASS_HEX    0x20u
#define GI_HTTP1_CLASS_ALPHA  0x40u
#define GI_HTTP1_CLASS_COMMON 0x80u /* letters, digits, '-': what names are made of in practice */

extern const uint8_t gi_http1_class[256];

static inline unsigned gi_http1_is(uint8_t byte, unsigned class_bits)
{
    return gi_http1_class[byte] & class_bits;
}

/** The value of a hexadecimal digit. */
static inline uint8_t gi_http1_hex_value(uint8_t digit)
{
    return (uint8_t)((digit & 0x0f) + (digit > '9' ? 9 : 0));
}

/** The scalar twins. */
size_t gi_http1_scan_class(const uint8_t *data, size_t position, size_t end, unsigned class_bits);

#if GI_HTTP1_SCAN_VECTOR

/** Bit n: byte n of sixteen is not of the class. */
typedef unsigned gi_http1_stop_fn(__m128i bytes);

static inline unsigned gi_http1_stop_value(__m128i bytes)
{
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
    __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
    __m128i delete = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, control), delete));
}

static inline unsigned gi_http1_stop_target(__m128i bytes)
{
    /* Signed: bytes from 0x80 on are below zero and stop too. */
    __m128i low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x21));
    __m128i fragment = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('#'));
    __m128i delete = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(fragment, delete)));
}

static inline __m128i gi_http1_in_range(__m128i bytes, char first, char last)
{
    return _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8((char)(first - 1))),
                         _mm_cmplt_epi8(bytes, _mm_set1_epi8((char)(last + 1))));
}

static inline unsigned gi_http1_stop_common(__m128i bytes)
{
    __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    __m128i letter = gi_http1_in_range(folded, 'a', 'z');
    __m128i digit = gi_http1_in_range(bytes, '0', '9');
    __m128i hyphen = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-'));
    __m128i common = _mm_or_si128(letter, _mm_or_si128(digit, hyphen));

    return (unsigned)_mm_movemask_epi8(common) ^ 0xffffu;
}

static inline __m128i gi_http1_load(const uint8_t *data)
{
    return _mm_loadu_si128((const __m128i *)(const void *)data);
}

/* Always called with a constant `stop`, so that it becomes part of the loop. */
__attribute__((always_inline)) static inline size_t
gi_http1_scan_blocks(const uint8_t *data, size_t position, size_t end, unsigned class_bits,
                     gi_http1_stop_fn *stop)
{
    unsigned found;

    if (end < 16) {
        return gi_http1_scan_class(data, position, end, class_bits);
    }
    for (; end - position >= 16; position += 16) {
        found = stop(gi_http1_load(data + position));
        if (found != 0) {
            return position + (size_t)__builtin_ctz(found);
        }
    }
    found = stop(gi_http1_load(data + end - 16)) >> (16 - (end - position));
    return found == 0 ? end : position + (size_t)__builtin_ctz(found);
}

static inline size_t gi_http1_scan_value(const uint8_t *data, size_t position, size_t end)
{
    return gi_http1_scan_blocks(data, position, end, GI_HTTP1_CLASS_VALUE, gi_http1_stop_value);
}

static inline size_t gi_http1_scan_target(const uint8_t *data, size_t position, size_t end)
{
    return gi_http1_scan_blocks(data, position, end, GI_HTTP1_CLASS_TARGET, gi_http1_stop_target);
}

static inline size_t gi_http1_scan_common(const uint8_t *data, size_t position, size_t end)
{
    return gi_http1_scan_blocks(data, position, end, GI_HTTP1_CLASS_COMMON, gi_http1_stop_common);
}

#else

static inline size_t gi_http1_scan_value(const uint8_t *data, size_t position, size_t end)
{
    return gi_http1_scan_class(data, position, end, GI_HTTP1_CLASS_VALUE);
}

static inline size_t gi_http1_scan_target(const uint8_t *data, size_t position, size_t end)
{
    return gi_http1_scan_class(data, position, end, GI_HTTP1_CLASS_TARGET);
}

static inline size_t gi_http1_scan_common(const uint8_t *data, size_t position, size_t end)
{
    return gi_http1_scan_class(data, position, end, GI_HTTP1_CLASS_COMMON);
}

#endif

/** Tokens: the common bytes in blocks, the rare ones by the table. */
static inline size_t gi_http1_scan_token(const uint8_t *data, size_t position, size_t end)
{
    for (;;) {
        position = gi_http1_scan_common(data, position, end);
        if (position == end || !gi_http1_is(data[position], GI_HTTP1_CLASS_TOKEN)) {
            return position;
        }
        position++;
    }
}

#endif
