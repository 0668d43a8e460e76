/* SPDX-License-Identifier: MIT */
/*
 * The wrapper over atomics: every operation does what its name says, also between threads.
 */
#include "base/atomic.h"
#include "lib/test.h"

#include <pthread.h>

GT_TEST(atomic_operations_answer_what_was_there)
{
    struct gi_atomic_u32 atomic;
    gi_atomic_u32_init(&atomic, 5);
    GT_EQUAL(gi_atomic_u32_load(&atomic, GI_RELAXED), 5);
    GT_EQUAL(gi_atomic_u32_add(&atomic, 3, GI_ACQ_REL), 5);
    GT_EQUAL(gi_atomic_u32_sub(&atomic, 1, GI_SEQ_CST), 8);
    GT_EQUAL(gi_atomic_u32_exchange(&atomic, 9, GI_SEQ_CST), 7);
    gi_atomic_u32_store(&atomic, 1, GI_RELEASE);
    uint32_t expected = 2;
    GT_CHECK(!gi_atomic_u32_compare_exchange(&atomic, &expected, 3, GI_ACQ_REL));
    GT_EQUAL(expected, 1);
    while (!gi_atomic_u32_compare_exchange(&atomic, &expected, 3, GI_ACQ_REL)) {
        GT_EQUAL(expected, 1);
    }
    GT_EQUAL(gi_atomic_u32_load(&atomic, GI_ACQUIRE), 3);
}

GT_TEST(atomic_types_hold_their_values)
{
    struct gi_atomic_bool flag;
    struct gi_atomic_u64 word;
    struct gi_atomic_size size;
    struct gi_atomic_pointer pointer;
    gi_atomic_bool_init(&flag, false);
    gi_atomic_u64_init(&word, UINT64_MAX);
    gi_atomic_size_init(&size, SIZE_MAX);
    gi_atomic_pointer_init(&pointer, NULL);
    GT_CHECK(!gi_atomic_bool_exchange(&flag, true, GI_ACQ_REL));
    GT_CHECK(gi_atomic_bool_load(&flag, GI_ACQUIRE));
    GT_EQUAL(gi_atomic_u64_add(&word, 1, GI_RELAXED), UINT64_MAX);
    GT_EQUAL(gi_atomic_u64_load(&word, GI_RELAXED), 0);
    GT_EQUAL(gi_atomic_size_sub(&size, 1, GI_RELAXED), SIZE_MAX);
    gi_atomic_pointer_store(&pointer, &flag, GI_RELEASE);
    GT_CHECK(gi_atomic_pointer_load(&pointer, GI_ACQUIRE) == &flag);
}

static void *count_up(void *user)
{
    struct gi_atomic_u64 *counter = user;
    for (int i = 0; i < 20000; i++) {
        (void)gi_atomic_u64_add(counter, 1, GI_RELAXED);
        gi_atomic_relax();
    }
    return NULL;
}

GT_TEST(atomic_add_loses_nothing)
{
    struct gi_atomic_u64 counter;
    pthread_t threads[3];
    gi_atomic_u64_init(&counter, 0);
    for (int i = 0; i < 3; i++) {
        GT_EQUAL(pthread_create(&threads[i], NULL, count_up, &counter), 0);
    }
    for (int i = 0; i < 3; i++) {
        GT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    GT_EQUAL(gi_atomic_u64_load(&counter, GI_RELAXED), 60000);
}

GT_MAIN()
