/* SPDX-License-Identifier: MIT */
/*
 * The one door to C11 atomics: every lock-free part of gori goes through these functions, so that a
 * model checker can stand in for them.  Each atomic is a struct, so that a plain access does not
 * compile.  Not locks, not condition variables: those are in src/os.
 *
 * Rule: at each use the comment names what it pairs with.  Orders are always spelled out, always
 * constants.  There are no stand-alone fences: the thread sanitizer cannot see them.
 *
 * Reading: C17 7.17; Mark Batty, "The C11 and C++11 concurrency model".
 */
#ifndef GI_BASE_ATOMIC_H
#define GI_BASE_ATOMIC_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GI_RELAXED memory_order_relaxed
#define GI_ACQUIRE memory_order_acquire
#define GI_RELEASE memory_order_release
#define GI_ACQ_REL memory_order_acq_rel
#define GI_SEQ_CST memory_order_seq_cst

/*
 * struct gi_atomic_NAME and, for it:
 *   _init      sets the value before anybody else can see it
 *   _load, _store, _exchange
 *   _compare_exchange   true when *expected was there and was replaced; else *expected is what was
 *                       there.  Weak: it may fail for no reason, so it stands in a loop.  The order
 *                       of a failure is relaxed.
 */
#define GI_ATOMIC_DEFINE(name, type)                                                               \
    struct gi_atomic_##name {                                                                      \
        _Atomic(type) value;                                                                       \
    };                                                                                             \
    static GI_ALWAYS_INLINE void gi_atomic_##name##_init(struct gi_atomic_##name *atomic,          \
                                                         type value)                               \
    {                                                                                              \
        atomic_init(&atomic->value, value);                                                        \
    }                                                                                              \
    static GI_ALWAYS_INLINE type gi_atomic_##name##_load(const struct gi_atomic_##name *atomic,    \
                                                         memory_order order)                       \
    {                                                                                              \
        return atomic_load_explicit(&atomic->value, order);                                        \
    }                                                                                              \
    static GI_ALWAYS_INLINE void gi_atomic_##name##_store(struct gi_atomic_##name *atomic,         \
                                                          type value, memory_order order)          \
    {                                                                                              \
        atomic_store_explicit(&atomic->value, value, order);                                       \
    }                                                                                              \
    static GI_ALWAYS_INLINE type gi_atomic_##name##_exchange(struct gi_atomic_##name *atomic,      \
                                                             type value, memory_order order)       \
    {                                                                                              \
        return atomic_exchange_explicit(&atomic->value, value, order);                             \
    }                                                                                              \
    static GI_ALWAYS_INLINE bool gi_atomic_##name##_compare_exchange(                              \
        struct gi_atomic_##name *atomic, type *expected, type value, memory_order order)           \
    {                                                                                              \
        return atomic_compare_exchange_weak_explicit(&atomic->value, expected, value, order,       \
                                                     GI_RELAXED);                                  \
    }

/* _add and _sub answer what was there before. */
#define GI_ATOMIC_DEFINE_ARITHMETIC(name, type)                                                    \
    static GI_ALWAYS_INLINE type gi_atomic_##name##_add(struct gi_atomic_##name *atomic,           \
                                                        type value, memory_order order)            \
    {                                                                                              \
        return atomic_fetch_add_explicit(&atomic->value, value, order);                            \
    }                                                                                              \
    static GI_ALWAYS_INLINE type gi_atomic_##name##_sub(struct gi_atomic_##name *atomic,           \
                                                        type value, memory_order order)            \
    {                                                                                              \
        return atomic_fetch_sub_explicit(&atomic->value, value, order);                            \
    }

GI_ATOMIC_DEFINE(bool, bool)
GI_ATOMIC_DEFINE(u32, uint32_t)
GI_ATOMIC_DEFINE_ARITHMETIC(u32, uint32_t)
GI_ATOMIC_DEFINE(u64, uint64_t)
GI_ATOMIC_DEFINE_ARITHMETIC(u64, uint64_t)
GI_ATOMIC_DEFINE(size, size_t)
GI_ATOMIC_DEFINE_ARITHMETIC(size, size_t)
GI_ATOMIC_DEFINE(pointer, void *)

/** For the body of a loop that waits for another processor: it costs less power and ends sooner. */
static GI_ALWAYS_INLINE void gi_atomic_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

#endif
