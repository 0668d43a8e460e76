/* SPDX-License-Identifier: MIT */
/*
 * The allocator of tests, tested: it must count exactly, fail exactly where told, and catch misuse.
 */
#include "base/alloc.h"
#include "base/fault_alloc.h"
#include "lib/test.h"

GT_TEST(fault_alloc_counts)
{
    struct gi_fault_alloc fault;
    gi_fault_alloc_init(&fault, NULL);
    void *first = gi_alloc(&fault.allocator, 10);
    void *second = gi_alloc(&fault.allocator, 20);
    GT_EQUAL(gi_fault_alloc_count(&fault), 2);
    GT_EQUAL(gi_fault_alloc_live_blocks(&fault), 2);
    GT_EQUAL(gi_fault_alloc_live_bytes(&fault), 30);
    gi_free(&fault.allocator, first, 10);
    GT_EQUAL(gi_fault_alloc_live_blocks(&fault), 1);
    GT_EQUAL(gi_fault_alloc_live_bytes(&fault), 20);
    GT_EQUAL(gi_atomic_u64_load(&fault.peak_bytes, GI_RELAXED), 30);
    gi_free(&fault.allocator, second, 20);
    gi_fault_alloc_fini(&fault);
}

/* Asks for four blocks and answers which came, as bits. */
static unsigned ask_four_times(struct gi_fault_alloc *fault)
{
    unsigned came = 0;
    for (unsigned i = 0; i < 4; i++) {
        void *pointer = gi_alloc(&fault->allocator, 8);
        came |= (unsigned)(pointer != NULL) << i;
        gi_free(&fault->allocator, pointer, 8);
    }
    return came;
}

GT_TEST(fault_alloc_fails_where_told)
{
    struct gi_fault_alloc fault;
    gi_fault_alloc_init(&fault, NULL);
    GT_EQUAL(ask_four_times(&fault), 0xf);
    gi_fault_alloc_fail_once(&fault, 1);
    GT_EQUAL(ask_four_times(&fault), 0xe);
    gi_fault_alloc_fail_once(&fault, 3);
    GT_EQUAL(ask_four_times(&fault), 0xb);
    GT_EQUAL(gi_fault_alloc_failed_count(&fault), 1);
    gi_fault_alloc_fail_from(&fault, 2);
    GT_EQUAL(ask_four_times(&fault), 0x1);
    GT_EQUAL(gi_fault_alloc_failed_count(&fault), 3);
    gi_fault_alloc_fail_once(&fault, 5);
    GT_EQUAL(ask_four_times(&fault), 0xf);
    GT_EQUAL(gi_fault_alloc_failed_count(&fault), 0);
    gi_fault_alloc_fail_never(&fault);
    GT_EQUAL(ask_four_times(&fault), 0xf);
    gi_fault_alloc_fini(&fault);
}

GT_TEST(fault_alloc_passes_on_the_failure_of_the_inner_one)
{
    struct gi_fault_alloc inner;
    struct gi_fault_alloc outer;
    gi_fault_alloc_init(&inner, NULL);
    gi_fault_alloc_init(&outer, &inner.allocator);
    gi_fault_alloc_fail_once(&inner, 1);
    GT_CHECK(gi_alloc(&outer.allocator, 8) == NULL);
    GT_CHECK(gi_alloc(&outer.allocator, SIZE_MAX) == NULL);
    GT_EQUAL(gi_fault_alloc_live_blocks(&outer), 0);
    GT_EQUAL(gi_fault_alloc_failed_count(&outer), 0);
    gi_fault_alloc_fini(&outer);
    gi_fault_alloc_fini(&inner);
}

GT_TEST(fault_alloc_catches_misuse)
{
    struct gi_fault_alloc fault;
    gi_fault_alloc_init(&fault, NULL);
    uint64_t *block = gi_alloc(&fault.allocator, 64);
    GT_DIES(gi_free(&fault.allocator, block, 63));
    GT_DIES(gi_free(&fault.allocator, block + 4, 64));
    GT_DIES(gi_fault_alloc_fini(&fault));
    GT_DIES(gi_fault_alloc_fail_once(&fault, 0));
    gi_free(&fault.allocator, block, 64);
    gi_fault_alloc_fini(&fault);
}

GT_MAIN()
