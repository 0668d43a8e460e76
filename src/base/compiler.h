/* SPDX-License-Identifier: MIT */
/*
 * What the compilers offer beyond C17, under one name each, and the few helpers every file wants.
 * Not a place for anything that has a state.
 */
#ifndef GI_BASE_COMPILER_H
#define GI_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define GI_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define GI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define GI_ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/** Bytes that two processors cannot write independently of each other; x86-64 and most of arm64. */
#define GI_CACHE_LINE 64

#define GI_ALIGNED(bytes)           __attribute__((aligned(bytes)))
#define GI_ALWAYS_INLINE            inline __attribute__((always_inline))
#define GI_NOINLINE                 __attribute__((noinline))
#define GI_COLD                     __attribute__((cold))
#define GI_NORETURN                 __attribute__((noreturn))
#define GI_PRINTF(text, first_item) __attribute__((__format__(__printf__, text, first_item)))

/** 1 when the address sanitizer watches this build. */
#if defined(__SANITIZE_ADDRESS__)
#define GI_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GI_ASAN 1
#endif
#endif
#ifndef GI_ASAN
#define GI_ASAN 0
#endif

static inline size_t gi_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t gi_max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline uint32_t gi_min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t gi_max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline uint64_t gi_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t gi_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/** `a + b`, or GORI_NEVER's value where that does not fit: how deadlines are computed. */
static inline uint64_t gi_add_saturated_u64(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

#endif
