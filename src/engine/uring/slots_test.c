/* SPDX-License-Identifier: MIT */
/*
 * The slot table: names are never confused, queues keep their order, and running out of memory
 * leaves everything as it was.
 */
#include "engine/uring/slots.h"
#include "lib/test.h"

GT_TEST(name_of_an_earlier_owner_finds_nothing)
{
    struct gi_uring_slots slots;
    int owners[2];
    gi_uring_slots_init(&slots, gori_allocator_default());
    uint32_t first = gi_uring_slots_take(&slots, &owners[0], 0);
    uint64_t name = gi_uring_slots_user_data(&slots, first, 5);
    GT_EQUAL(gi_user_data_slot(name), first);
    GT_EQUAL(gi_user_data_kind(name), 5);
    GT_CHECK(gi_uring_slots_find(&slots, name)->owner == &owners[0]);
    gi_uring_slots_release(&slots, first);
    GT_CHECK(gi_uring_slots_find(&slots, name) == NULL);
    uint32_t second = gi_uring_slots_take(&slots, &owners[1], 0);
    GT_EQUAL(second, first);
    GT_CHECK(gi_uring_slots_find(&slots, name) == NULL);
    GT_CHECK(gi_uring_slots_find(&slots, (uint64_t)GI_URING_SLOTS_MAX << 8) == NULL);
    gi_uring_slots_release(&slots, second);
    gi_uring_slots_fini(&slots);
}

GT_TEST(generation_survives_its_own_overflow)
{
    struct gi_uring_slots slots;
    int owner;
    gi_uring_slots_init(&slots, gori_allocator_default());
    uint32_t index = gi_uring_slots_take(&slots, &owner, 0);
    gi_uring_slots_at(&slots, index)->generation = UINT32_MAX;
    uint64_t name = gi_uring_slots_user_data(&slots, index, 1);
    GT_CHECK(gi_uring_slots_find(&slots, name) != NULL);
    gi_uring_slots_release(&slots, index);
    GT_CHECK(gi_uring_slots_find(&slots, name) == NULL);
    gi_uring_slots_fini(&slots);
}

GT_TEST(queues_keep_order_over_growth_and_removal)
{
    enum { COUNT = 1000 };
    struct gi_uring_slots slots;
    int owner;
    uint32_t indexes[COUNT];
    gi_uring_slots_init(&slots, gori_allocator_default());
    for (uint32_t i = 0; i < COUNT; i++) {
        indexes[i] = gi_uring_slots_take(&slots, &owner, 0);
        GT_CHECK(indexes[i] != GI_URING_SLOT_NONE);
        gi_uring_slots_push(&slots, GI_URING_QUEUE_PARKED, indexes[i]);
    }
    for (uint32_t i = 0; i < COUNT; i += 3) {
        gi_uring_slots_remove(&slots, indexes[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        if (i % 3 != 0) {
            GT_EQUAL(gi_uring_slots_pop(&slots, GI_URING_QUEUE_PARKED), indexes[i]);
        }
    }
    GT_EQUAL(gi_uring_slots_pop(&slots, GI_URING_QUEUE_PARKED), GI_URING_SLOT_NONE);
    GT_EQUAL(gi_uring_slots_queued(&slots, GI_URING_QUEUE_PARKED), 0);
    gi_uring_slots_fini(&slots);
}

GT_TEST(slot_in_two_queues_is_a_broken_invariant)
{
    struct gi_uring_slots slots;
    int owner;
    gi_uring_slots_init(&slots, gori_allocator_default());
    uint32_t index = gi_uring_slots_take(&slots, &owner, 0);
    gi_uring_slots_push(&slots, GI_URING_QUEUE_REDO, index);
    GT_DIES(gi_uring_slots_push(&slots, GI_URING_QUEUE_READY, index));
    GT_DIES(gi_uring_slots_release(&slots, index));
    gi_uring_slots_fini(&slots);
}

GT_MAIN()
