/* SPDX-License-Identifier: MIT */
/*
 * The store of messages.
 *
 *  1. A store is an array and a stack of free indices in it.  Many threads take from the stack at
 *     once, so its head carries a tag that every change makes new: a taker that was stopped between
 *     reading the head and exchanging it fails, whatever happened meanwhile.
 *  2. The array is made by the first sender; of several at once, one wins and the others give
 *     theirs back.  Places that were never used are not touched.
 *  3. `count_max` is the bound on what is under way: no message is lost silently, the sender is
 *     told.
 *
 * Order: free_head is exchanged with acquire and release, so `next` of what is taken, and the
 * message itself, are as they were given back.
 */
#include "rt/message.h"

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"

void gi_message_store_init(struct gi_message_store *store, const struct gori_allocator *allocator,
                           uint32_t count_max)
{
    store->allocator = allocator;
    store->count_max = count_max;
    gi_atomic_pointer_init(&store->messages, NULL);
    gi_atomic_u32_init(&store->used, 0);
    gi_atomic_u64_init(&store->free_head, 0);
}

void gi_message_store_fini(struct gi_message_store *store)
{
    void *messages = gi_atomic_pointer_load(&store->messages, GI_ACQUIRE);
    gi_free(store->allocator, messages, store->count_max * sizeof(struct gi_message));
}

static struct gi_message *make_messages(struct gi_message_store *store)
{
    size_t bytes = store->count_max * sizeof(struct gi_message);
    struct gi_message *made = gi_alloc(store->allocator, bytes);
    if (made == NULL) {
        return NULL;
    }
    void *there = NULL;
    while (!gi_atomic_pointer_compare_exchange(&store->messages, &there, made, GI_ACQ_REL)) {
        if (there != NULL) {
            gi_free(store->allocator, made, bytes);
            return gi_atomic_pointer_load(&store->messages, GI_ACQUIRE);
        }
    }
    return made;
}

static struct gi_message *pop_free(struct gi_message_store *store, struct gi_message *messages)
{
    for (;;) {
        /* Loaded with acquire each time: what a failed exchange answers would not bring `next`. */
        uint64_t head = gi_atomic_u64_load(&store->free_head, GI_ACQUIRE);
        if ((uint32_t)head == 0) {
            return NULL;
        }
        struct gi_message *message = &messages[(uint32_t)head - 1];
        uint64_t next = gi_atomic_u32_load(&message->next, GI_RELAXED);
        next |= ((head >> 32) + 1) << 32;
        if (gi_atomic_u64_compare_exchange(&store->free_head, &head, next, GI_ACQ_REL)) {
            return message;
        }
    }
}

static struct gi_message *take_unused(struct gi_message_store *store, struct gi_message *messages)
{
    uint32_t used = gi_atomic_u32_load(&store->used, GI_RELAXED);
    do {
        if (used == store->count_max) {
            return NULL;
        }
    } while (!gi_atomic_u32_compare_exchange(&store->used, &used, used + 1, GI_RELAXED));
    gi_atomic_u32_init(&messages[used].next, 0);
    return &messages[used];
}

int gi_message_acquire(struct gi_message_store *store, struct gi_message **ret_message)
{
    struct gi_message *messages = gi_atomic_pointer_load(&store->messages, GI_ACQUIRE);
    if (GI_UNLIKELY(messages == NULL)) {
        messages = make_messages(store);
        if (messages == NULL) {
            return GORI_ENOMEM;
        }
    }
    struct gi_message *message = pop_free(store, messages);
    if (message == NULL) {
        message = take_unused(store, messages);
    }
    if (message == NULL) {
        return GORI_ELIMIT;
    }
    *ret_message = message;
    return 0;
}

struct gi_message *gi_message_of(struct gi_message_store *store, struct gori_task *task)
{
    uintptr_t messages = (uintptr_t)gi_atomic_pointer_load(&store->messages, GI_ACQUIRE);
    uintptr_t bytes = store->count_max * sizeof(struct gi_message);
    bool is_ours =
        messages != 0 && (uintptr_t)task >= messages && (uintptr_t)task < messages + bytes;
    return is_ours ? gori_container_of(task, struct gi_message, task) : NULL;
}

void gi_message_release(struct gi_message_store *store, struct gi_message *message)
{
    struct gi_message *messages = gi_atomic_pointer_load(&store->messages, GI_RELAXED);
    uint64_t index = (uint64_t)(message - messages) + 1;
    uint64_t head = gi_atomic_u64_load(&store->free_head, GI_RELAXED);
    uint64_t next;
    do {
        gi_atomic_u32_store(&message->next, (uint32_t)head, GI_RELAXED);
        next = ((head >> 32) + 1) << 32 | index;
    } while (!gi_atomic_u64_compare_exchange(&store->free_head, &head, next, GI_ACQ_REL));
}
