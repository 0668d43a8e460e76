/* SPDX-License-Identifier: MIT */
/*
 * Numbers and generations: a stale token finds nothing, whoever has the number now.
 */
#include "lib/test.h"

#include <gori/error.h>
#include <gori/op.h>

#include "base/fault_alloc.h"
#include "engine/reactor/slots.h"

#define HANDLES 200

GT_TEST(slots_stale_tokens_find_nothing)
{
    struct gi_slots slots;
    struct gori_handle old = {0};
    struct gori_handle new = {0};
    uint32_t slot;
    uint32_t again;
    gi_slots_init(&slots, NULL);
    GT_CHECK(gi_slots_find(&slots, 0) == NULL);
    GT_CHECK(gi_slots_find(&slots, UINT64_MAX) == NULL);
    GT_EQUAL(gi_slots_acquire(&slots, &old, &slot), 0);
    uint64_t token = gi_slots_token(&slots, slot);
    GT_CHECK(token != 0);
    GT_CHECK(gi_slots_find(&slots, token) == &old);
    gi_slots_release(&slots, slot);
    GT_CHECK(gi_slots_find(&slots, token) == NULL);
    GT_EQUAL(gi_slots_acquire(&slots, &new, &again), 0);
    GT_EQUAL(again, slot);
    GT_CHECK(gi_slots_find(&slots, token) == NULL);
    GT_CHECK(gi_slots_find(&slots, gi_slots_token(&slots, again)) == &new);
    GT_CHECK(gi_slots_find(&slots, token + 1000) == NULL);
    gi_slots_release(&slots, again);
    gi_slots_fini(&slots);
}

/* Number 0 is never given out, each number is one handle's, and growing keeps all of them. */
GT_TEST(slots_grow_and_keep)
{
    static struct gori_handle handles[HANDLES];
    struct gi_slots slots;
    uint32_t numbers[HANDLES];
    gi_slots_init(&slots, NULL);
    for (int i = 0; i < HANDLES; i++) {
        GT_EQUAL(gi_slots_acquire(&slots, &handles[i], &numbers[i]), 0);
        GT_CHECK(numbers[i] != 0);
    }
    for (int i = 0; i < HANDLES; i++) {
        GT_CHECK(gi_slots_find(&slots, gi_slots_token(&slots, numbers[i])) == &handles[i]);
    }
    GT_DIES(gi_slots_fini(&slots));
    for (int i = 0; i < HANDLES; i++) {
        gi_slots_release(&slots, numbers[i]);
    }
    GT_DIES(gi_slots_release(&slots, numbers[0]));
    GT_DIES(gi_slots_release(&slots, 0));
    gi_slots_fini(&slots);
}

GT_TEST(slots_without_memory)
{
    struct gi_fault_alloc fault;
    struct gi_slots slots;
    struct gori_handle handle = {0};
    uint32_t slot = 77;
    gi_fault_alloc_init(&fault, NULL);
    gi_slots_init(&slots, &fault.allocator);
    gi_fault_alloc_fail_once(&fault, 1);
    GT_EQUAL(gi_slots_acquire(&slots, &handle, &slot), GORI_ENOMEM);
    GT_EQUAL(slot, 77);
    GT_EQUAL(gi_slots_acquire(&slots, &handle, &slot), 0);
    gi_slots_release(&slots, slot);
    gi_slots_fini(&slots);
    gi_fault_alloc_fini(&fault);
}

GT_MAIN()
