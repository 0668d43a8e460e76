/* SPDX-License-Identifier: MIT */
/*
 * The names under which the kernel knows what is in flight: a compact table that grows.  An
 * operation has a slot while the engine holds it, a handle from attach to its end.  The kernel is
 * told user_data = generation(32) | slot(24) | kind(8), never a pointer.
 *
 *  S1  Each activation (each time something is submitted under a slot) has a generation of its own,
 *      and so has each owner: a completion of an earlier one finds nothing.
 *  S2  A slot is in at most one queue; which, it knows.  Queues are chains of indexes, so that the
 *      table may move when it grows: keep indexes, not pointers, over anything that takes a slot.
 * Thread: the loop's.
 */
#ifndef GI_ENGINE_URING_SLOTS_H
#define GI_ENGINE_URING_SLOTS_H

#include <gori/allocator.h>
#include <stdbool.h>

#include "base/assert.h"
#include "base/compiler.h"

#define GI_URING_SLOT_NONE UINT32_MAX
#define GI_URING_SLOTS_MAX ((1u << 24) - 1) /* the last index names the engine itself */

/** Flags of a slot. */
enum gi_uring_slot_flag {
    GI_URING_SLOT_HANDLE = 0x01, /* the owner is a handle, not an operation */
    GI_URING_SLOT_KERNEL = 0x02, /* the kernel holds it, or the submission queue does */
    GI_URING_SLOT_ONCE = 0x04,   /* this activation is single-shot, though the operation is not */
    GI_URING_SLOT_CLOSING = 0x08 /* a handle whose close was asked for */
};

/** The queues a slot can be in. */
enum gi_uring_slot_queue_id {
    GI_URING_QUEUE_NONE = 0,
    GI_URING_QUEUE_REDO,   /* to be submitted in the next turn, or its cancel is */
    GI_URING_QUEUE_VAIN,   /* cancels of it were in vain often; asked again after a pause */
    GI_URING_QUEUE_PARKED, /* receives that wait for buffers, in order */
    GI_URING_QUEUE_CALLS,  /* what the engine does itself, by system calls, in the next turn */
    GI_URING_QUEUE_READY,  /* ended in user space: `result` is to be delivered */
    GI_URING_QUEUE_CLOSED, /* handles with nothing in flight, to be closed and delivered */
    GI_URING_QUEUE_COUNT
};

struct gi_uring_slot {
    void *owner; /* struct gori_op or struct gori_handle; NULL when free */
    uint32_t generation;
    uint32_t next; /* in its queue, or in the free list */
    uint32_t previous;
    int32_t result;   /* of an operation in READY, a GORI_E… value or 0 */
    uint32_t waiting; /* of a handle: the slot of its receive when that is parked, else NONE */
    uint8_t queue;
    uint8_t flags;
    uint8_t tries; /* errors, or vain cancels, in a row */
    uint8_t reserved;
};

_Static_assert(sizeof(struct gi_uring_slot) == 32, "two slots a cache line");

struct gi_uring_slot_queue {
    uint32_t first;
    uint32_t last;
    uint32_t count;
};

struct gi_uring_slots {
    struct gi_uring_slot *table;
    uint32_t count; /* entries made */
    uint32_t capacity;
    uint32_t free_list;
    const struct gori_allocator *allocator;
    struct gi_uring_slot_queue queues[GI_URING_QUEUE_COUNT];
};

void gi_uring_slots_init(struct gi_uring_slots *slots, const struct gori_allocator *allocator);
void gi_uring_slots_fini(struct gi_uring_slots *slots);

/** Enlarges the table and takes a slot of it: the slow half of gi_uring_slots_take. */
uint32_t gi_uring_slots_take_new(struct gi_uring_slots *slots);

static inline struct gi_uring_slot *gi_uring_slots_at(struct gi_uring_slots *slots, uint32_t index)
{
    GI_DASSERT(index < slots->count);
    return &slots->table[index];
}

/** Takes a slot for `owner`; GI_URING_SLOT_NONE when there is no memory for one. */
static inline uint32_t gi_uring_slots_take(struct gi_uring_slots *slots, void *owner, uint8_t flags)
{
    uint32_t index = slots->free_list;
    if (GI_LIKELY(index != GI_URING_SLOT_NONE)) {
        slots->free_list = slots->table[index].next;
    } else {
        index = gi_uring_slots_take_new(slots);
        if (index == GI_URING_SLOT_NONE) {
            return GI_URING_SLOT_NONE;
        }
    }
    struct gi_uring_slot *slot = &slots->table[index];
    slot->owner = owner;
    slot->waiting = GI_URING_SLOT_NONE;
    slot->queue = GI_URING_QUEUE_NONE;
    slot->flags = flags;
    slot->tries = 0;
    return index;
}

/** Gives a slot back: what the kernel may still say under its name is stale from here on. */
static inline void gi_uring_slots_release(struct gi_uring_slots *slots, uint32_t index)
{
    struct gi_uring_slot *slot = gi_uring_slots_at(slots, index);
    GI_ASSERT(slot->queue == GI_URING_QUEUE_NONE);
    slot->owner = NULL;
    slot->generation++;
    slot->next = slots->free_list;
    slots->free_list = index;
}

void gi_uring_slots_push(struct gi_uring_slots *slots, enum gi_uring_slot_queue_id id,
                         uint32_t index);

/** Takes a slot out of the queue it is in. */
void gi_uring_slots_remove(struct gi_uring_slots *slots, uint32_t index);

/** Takes the first one out; GI_URING_SLOT_NONE when the queue is empty. */
uint32_t gi_uring_slots_pop(struct gi_uring_slots *slots, enum gi_uring_slot_queue_id id);

static inline uint32_t gi_uring_slots_queued(const struct gi_uring_slots *slots,
                                             enum gi_uring_slot_queue_id id)
{
    return slots->queues[id].count;
}

/** The kernel's name of what is in flight under a slot, and its parts. */
static inline uint64_t gi_uring_slots_user_data(const struct gi_uring_slots *slots, uint32_t index,
                                                uint8_t kind)
{
    return (uint64_t)slots->table[index].generation << 32 | (uint64_t)index << 8 | kind;
}

static inline uint32_t gi_user_data_slot(uint64_t user_data)
{
    return (uint32_t)user_data >> 8;
}

static inline uint32_t gi_user_data_generation(uint64_t user_data)
{
    return (uint32_t)(user_data >> 32);
}

static inline uint8_t gi_user_data_kind(uint64_t user_data)
{
    return (uint8_t)user_data;
}

/** The slot that a completion is about, or NULL when it comes too late. */
static inline struct gi_uring_slot *gi_uring_slots_find(struct gi_uring_slots *slots,
                                                        uint64_t user_data)
{
    uint32_t index = gi_user_data_slot(user_data);
    if (GI_UNLIKELY(index >= slots->count)) {
        return NULL;
    }
    struct gi_uring_slot *slot = &slots->table[index];
    return GI_LIKELY(slot->generation == gi_user_data_generation(user_data)) ? slot : NULL;
}

#endif
