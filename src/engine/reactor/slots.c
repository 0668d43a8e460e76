/* SPDX-License-Identifier: MIT */
/*
 * Numbers and generations of handles; see slots.h.  A free number that was used last is given out
 * first, so that the table stays as small as the most handles at once.
 * Thread: the loop's.
 */
#include "engine/reactor/slots.h"

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"

#define CAPACITY_FIRST 64

void gi_slots_init(struct gi_slots *slots, const struct gori_allocator *allocator)
{
    *slots = (struct gi_slots){.allocator = allocator};
}

void gi_slots_fini(struct gi_slots *slots)
{
    GI_ASSERT(slots->count == 0);
    gi_free(slots->allocator, slots->slots, slots->capacity * sizeof(struct gi_slot));
    *slots = (struct gi_slots){0};
}

static int grow(struct gi_slots *slots)
{
    if (slots->capacity > UINT32_MAX / 2) {
        return GORI_ENOMEM;
    }
    uint32_t capacity = slots->capacity == 0 ? CAPACITY_FIRST : slots->capacity * 2;
    struct gi_slot *grown =
        gi_realloc(slots->allocator, slots->slots, slots->capacity * sizeof(struct gi_slot),
                   capacity * sizeof(struct gi_slot));
    if (grown == NULL) {
        return GORI_ENOMEM;
    }
    if (slots->capacity == 0) {
        grown[0] = (struct gi_slot){0};
        slots->used = 1;
    }
    slots->slots = grown;
    slots->capacity = capacity;
    return 0;
}

int gi_slots_acquire(struct gi_slots *slots, struct gori_handle *handle, uint32_t *ret_slot)
{
    uint32_t slot = slots->first_free;
    if (slot != 0) {
        slots->first_free = slots->slots[slot].next_free;
    } else {
        if (slots->used >= slots->capacity) {
            int error = grow(slots);
            if (error < 0) {
                return error;
            }
        }
        slot = slots->used++;
        slots->slots[slot].generation = 0;
    }
    slots->slots[slot].handle = handle;
    slots->count++;
    *ret_slot = slot;
    return 0;
}

void gi_slots_release(struct gi_slots *slots, uint32_t slot)
{
    GI_ASSERT(slot > 0);
    GI_ASSERT(slot < slots->used);
    GI_ASSERT(slots->slots[slot].handle != NULL);
    slots->slots[slot].handle = NULL;
    slots->slots[slot].generation++;
    slots->slots[slot].next_free = slots->first_free;
    slots->first_free = slot;
    slots->count--;
}
