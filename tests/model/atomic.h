/* SPDX-License-Identifier: MIT */
/*
 * The stand-in for base/atomic.h under the model checker: the same functions, each a step of the
 * model.  It is included before everything else (-include) and claims the guard of base/atomic.h,
 * so that a unit is compiled as it is.
 */
#ifndef GI_BASE_ATOMIC_H
#define GI_BASE_ATOMIC_H

#include "base/compiler.h"
#include "model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GI_RELAXED memory_order_relaxed
#define GI_ACQUIRE memory_order_acquire
#define GI_RELEASE memory_order_release
#define GI_ACQ_REL memory_order_acq_rel
#define GI_SEQ_CST memory_order_seq_cst

/* Values travel as 64 bits; a pointer is one through uintptr_t. */
#define MODEL_ATOMIC(name, type, raw)                                                              \
    struct gi_atomic_##name {                                                                      \
        type value; /* the newest, for looking at without a step */                                \
    };                                                                                             \
    static inline void gi_atomic_##name##_init(struct gi_atomic_##name *atomic, type value)        \
    {                                                                                              \
        atomic->value = value;                                                                     \
        model_init(&atomic->value);                                                                \
    }                                                                                              \
    static inline type gi_atomic_##name##_load(const struct gi_atomic_##name *atomic,              \
                                               memory_order order)                                 \
    {                                                                                              \
        return (type)(raw)model_load(&atomic->value, sizeof(type), order);                         \
    }                                                                                              \
    static inline void gi_atomic_##name##_store(struct gi_atomic_##name *atomic, type value,       \
                                                memory_order order)                                \
    {                                                                                              \
        model_store(&atomic->value, sizeof(type), (uint64_t)(raw)value, order);                    \
    }                                                                                              \
    static inline type gi_atomic_##name##_exchange(struct gi_atomic_##name *atomic, type value,    \
                                                   memory_order order)                             \
    {                                                                                              \
        return (type)(raw)model_update(&atomic->value, sizeof(type), MODEL_EXCHANGE,               \
                                       (uint64_t)(raw)value, order);                               \
    }                                                                                              \
    static inline bool gi_atomic_##name##_compare_exchange(                                        \
        struct gi_atomic_##name *atomic, type *expected, type value, memory_order order)           \
    {                                                                                              \
        uint64_t seen = (uint64_t)(raw)*expected;                                                  \
        bool done = model_compare_exchange(&atomic->value, sizeof(type), &seen,                    \
                                           (uint64_t)(raw)value, order);                           \
        *expected = (type)(raw)seen;                                                               \
        return done;                                                                               \
    }

#define MODEL_ATOMIC_ARITHMETIC(name, type)                                                        \
    static inline type gi_atomic_##name##_add(struct gi_atomic_##name *atomic, type value,         \
                                              memory_order order)                                  \
    {                                                                                              \
        return (type)model_update(&atomic->value, sizeof(type), MODEL_ADD, value, order);          \
    }                                                                                              \
    static inline type gi_atomic_##name##_sub(struct gi_atomic_##name *atomic, type value,         \
                                              memory_order order)                                  \
    {                                                                                              \
        return (type)model_update(&atomic->value, sizeof(type), MODEL_ADD, 0 - (uint64_t)value,    \
                                  order);                                                          \
    }

MODEL_ATOMIC(bool, bool, uint64_t)
MODEL_ATOMIC(u32, uint32_t, uint64_t)
MODEL_ATOMIC_ARITHMETIC(u32, uint32_t)
MODEL_ATOMIC(u64, uint64_t, uint64_t)
MODEL_ATOMIC_ARITHMETIC(u64, uint64_t)
MODEL_ATOMIC(size, size_t, uint64_t)
MODEL_ATOMIC_ARITHMETIC(size, size_t)
MODEL_ATOMIC(pointer, void *, uintptr_t)

static inline void gi_atomic_relax(void)
{
}

#endif
