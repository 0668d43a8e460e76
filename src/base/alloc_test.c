/* SPDX-License-Identifier: MIT */
/*
 * Allocation: sizes, zeros, overflow, growth, and what happens when there is no memory.
 */
#include "base/alloc.h"
#include "base/fault_alloc.h"
#include "lib/test.h"

#include <gori/error.h>

static bool is_filled(const uint8_t *bytes, size_t size, uint8_t value)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

GT_TEST(alloc_default_serves_when_none_is_named)
{
    uint8_t *by_default = gi_alloc(NULL, 100);
    uint8_t *by_name = gi_alloc(gori_allocator_default(), 100);
    GT_CHECK(by_default != NULL);
    GT_CHECK(by_name != NULL);
    GT_EQUAL((uintptr_t)by_default % 16, 0);
    gi_free(NULL, by_name, 100);
    gi_free(gori_allocator_default(), by_default, 100);
    gi_free(NULL, NULL, 0);
    gi_free(NULL, NULL, 7);
}

/* The fault allocator fills what it gives with rubbish, so zeros are somebody's work. */
GT_TEST(alloc_zero_and_array_are_zeroed)
{
    struct gi_fault_alloc fault;
    gi_fault_alloc_init(&fault, NULL);
    uint8_t *plain = gi_alloc(&fault.allocator, 64);
    uint8_t *zero = gi_alloc_zero(&fault.allocator, 64);
    uint8_t *array = gi_alloc_array(&fault.allocator, 8, 8);
    GT_CHECK(!is_filled(plain, 64, 0));
    GT_CHECK(is_filled(zero, 64, 0));
    GT_CHECK(is_filled(array, 64, 0));
    gi_free(&fault.allocator, plain, 64);
    gi_free(&fault.allocator, zero, 64);
    gi_free(&fault.allocator, array, 64);
    gi_fault_alloc_fini(&fault);
}

GT_TEST(alloc_array_refuses_overflow)
{
    struct gi_fault_alloc fault;
    gi_fault_alloc_init(&fault, NULL);
    GT_CHECK(gi_alloc_array(&fault.allocator, SIZE_MAX / 2, 3) == NULL);
    GT_CHECK(gi_alloc_array(&fault.allocator, (size_t)1 << 33, (size_t)1 << 33) == NULL);
    GT_EQUAL(gi_fault_alloc_count(&fault), 0);
    gi_fault_alloc_fini(&fault);
}

GT_TEST(alloc_realloc_moves_and_keeps_on_failure)
{
    struct gi_fault_alloc fault;
    gi_fault_alloc_init(&fault, NULL);
    uint8_t *bytes = gi_realloc(&fault.allocator, NULL, 0, 10);
    GT_CHECK(bytes != NULL);
    memset(bytes, 7, 10);
    bytes = gi_realloc(&fault.allocator, bytes, 10, 1000);
    GT_CHECK(is_filled(bytes, 10, 7));
    bytes = gi_realloc(&fault.allocator, bytes, 1000, 5);
    GT_CHECK(is_filled(bytes, 5, 7));
    gi_fault_alloc_fail_once(&fault, 1);
    GT_CHECK(gi_realloc(&fault.allocator, bytes, 5, 50) == NULL);
    GT_CHECK(is_filled(bytes, 5, 7));
    gi_free(&fault.allocator, bytes, 5);
    gi_fault_alloc_fini(&fault);
}

GT_TEST(alloc_nothing_is_a_broken_invariant)
{
    GT_DIES((void)!gi_alloc(NULL, 0));
    GT_DIES((void)!gi_alloc_array(NULL, 0, 8));
}

GT_MAIN()
