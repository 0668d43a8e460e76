/* SPDX-License-Identifier: MIT */
/*
 * What a poller knows a handle by: a number and a generation, never a pointer.  An event that was
 * on its way when the handle went, and its number to another one, finds nothing.
 * Number 0 is never given out; the reactor uses it for itself.
 * Thread: the loop's.
 */
#ifndef GI_ENGINE_REACTOR_SLOTS_H
#define GI_ENGINE_REACTOR_SLOTS_H

#include <gori/allocator.h>
#include <gori/base.h>

struct gori_handle;

struct gi_slot {
    struct gori_handle *handle; /* NULL while it is free */
    uint32_t generation;        /* grows with each release */
    uint32_t next_free;
};

struct gi_slots {
    const struct gori_allocator *allocator;
    struct gi_slot *slots;
    uint32_t capacity;
    uint32_t used;       /* numbers that were ever given out, and 0 */
    uint32_t first_free; /* 0 for none */
    uint32_t count;      /* handles in it */
};

void gi_slots_init(struct gi_slots *slots, const struct gori_allocator *allocator);

/** Asserts that no handle is in it. */
void gi_slots_fini(struct gi_slots *slots);

/** A number for a handle.  Errors: GORI_ENOMEM. */
int gi_slots_acquire(struct gi_slots *slots, struct gori_handle *handle, uint32_t *ret_slot);

void gi_slots_release(struct gi_slots *slots, uint32_t slot);

/** The token of a number in use. */
static inline uint64_t gi_slots_token(const struct gi_slots *slots, uint32_t slot)
{
    return (uint64_t)slots->slots[slot].generation << 32 | slot;
}

/** The handle that a token means, or NULL when it is stale. */
static inline struct gori_handle *gi_slots_find(const struct gi_slots *slots, uint64_t token)
{
    uint32_t slot = (uint32_t)token;
    if (slot >= slots->used || slots->slots[slot].generation != (uint32_t)(token >> 32)) {
        return NULL;
    }
    return slots->slots[slot].handle;
}

#endif
