/* SPDX-License-Identifier: MIT */
/*
 * The slot table and its queues; the rules are in slots.h.  Thread: the loop's.
 */
#include "engine/uring/slots.h"

#include "base/alloc.h"

#define SLOTS_START 64

void gi_uring_slots_init(struct gi_uring_slots *slots, const struct gori_allocator *allocator)
{
    *slots = (struct gi_uring_slots){.allocator = allocator, .free_list = GI_URING_SLOT_NONE};
    for (size_t i = 0; i < GI_URING_QUEUE_COUNT; i++) {
        slots->queues[i] =
            (struct gi_uring_slot_queue){.first = GI_URING_SLOT_NONE, .last = GI_URING_SLOT_NONE};
    }
}

void gi_uring_slots_fini(struct gi_uring_slots *slots)
{
    gi_free(slots->allocator, slots->table, slots->capacity * sizeof(struct gi_uring_slot));
    *slots = (struct gi_uring_slots){0};
}

uint32_t gi_uring_slots_take_new(struct gi_uring_slots *slots)
{
    if (slots->count == GI_URING_SLOTS_MAX) {
        return GI_URING_SLOT_NONE;
    }
    if (slots->count == slots->capacity) {
        uint32_t capacity =
            gi_min_u32(gi_max_u32(SLOTS_START, slots->capacity * 2), GI_URING_SLOTS_MAX);
        struct gi_uring_slot *table = gi_realloc(slots->allocator, slots->table,
                                                 slots->capacity * sizeof(struct gi_uring_slot),
                                                 capacity * sizeof(struct gi_uring_slot));
        if (table == NULL) {
            return GI_URING_SLOT_NONE;
        }
        slots->table = table;
        slots->capacity = capacity;
    }
    slots->table[slots->count] = (struct gi_uring_slot){0};
    return slots->count++;
}

void gi_uring_slots_push(struct gi_uring_slots *slots, enum gi_uring_slot_queue_id id,
                         uint32_t index)
{
    struct gi_uring_slot_queue *queue = &slots->queues[id];
    struct gi_uring_slot *slot = gi_uring_slots_at(slots, index);
    GI_ASSERT(slot->queue == GI_URING_QUEUE_NONE);
    slot->queue = (uint8_t)id;
    slot->next = GI_URING_SLOT_NONE;
    slot->previous = queue->last;
    if (queue->last == GI_URING_SLOT_NONE) {
        queue->first = index;
    } else {
        slots->table[queue->last].next = index;
    }
    queue->last = index;
    queue->count++;
}

void gi_uring_slots_remove(struct gi_uring_slots *slots, uint32_t index)
{
    struct gi_uring_slot *slot = gi_uring_slots_at(slots, index);
    GI_ASSERT(slot->queue != GI_URING_QUEUE_NONE);
    struct gi_uring_slot_queue *queue = &slots->queues[slot->queue];
    if (slot->previous == GI_URING_SLOT_NONE) {
        queue->first = slot->next;
    } else {
        slots->table[slot->previous].next = slot->next;
    }
    if (slot->next == GI_URING_SLOT_NONE) {
        queue->last = slot->previous;
    } else {
        slots->table[slot->next].previous = slot->previous;
    }
    queue->count--;
    slot->queue = GI_URING_QUEUE_NONE;
}

uint32_t gi_uring_slots_pop(struct gi_uring_slots *slots, enum gi_uring_slot_queue_id id)
{
    uint32_t index = slots->queues[id].first;
    if (index != GI_URING_SLOT_NONE) {
        gi_uring_slots_remove(slots, index);
    }
    return index;
}
