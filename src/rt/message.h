/* SPDX-License-Identifier: MIT */
/*
 * Messages that the library itself sends to a loop from any thread: bytes for a session that is
 * named by its id, a connection that another loop has accepted.  They come from a store of the
 * receiving loop, so that sending allocates nothing.  Contract: message.c.
 */
#ifndef GI_RT_MESSAGE_H
#define GI_RT_MESSAGE_H

#include <gori/allocator.h>
#include <gori/loop.h>
#include <gori/op.h>

#include "base/atomic.h"

struct gori_block;
struct gori_listener;

struct gi_message;

typedef void gi_message_fn(struct gi_message *message);

struct gi_message {
    struct gori_task task;
    gi_message_fn *drop; /* instead of task.run, when the loop ends first */
    union {
        struct {
            uint64_t id;
            struct gori_block *block;
        } send;
        struct {
            gori_native native;
            struct gori_listener *listener;
        } handover;
    } as;
    struct gi_atomic_u32 next; /* 1 + index of the next free one, while free */
};

struct gi_message_store {
    const struct gori_allocator *allocator;
    uint32_t count_max;
    struct gi_atomic_pointer messages; /* struct gi_message[count_max], made by the first sender */
    struct gi_atomic_u32 used;         /* messages that were ever in use */
    struct gi_atomic_u64 free_head;    /* tag << 32 | 1 + index; the tag counts every change */
};

/** Makes an empty store of `count_max` (> 0) messages; allocates nothing yet. */
void gi_message_store_init(struct gi_message_store *store, const struct gori_allocator *allocator,
                           uint32_t count_max);

/** Frees it.  No message is out that anybody will still use. */
void gi_message_store_fini(struct gi_message_store *store);

/** A message of undefined content.  Thread: any.  Errors: GORI_ELIMIT, GORI_ENOMEM. */
GORI_MUST_USE int gi_message_acquire(struct gi_message_store *store,
                                     struct gi_message **ret_message);

/** The message that a task is, or NULL when it is somebody else's.  Thread: any. */
struct gi_message *gi_message_of(struct gi_message_store *store, struct gori_task *task);

/** Gives one back.  Thread: any. */
void gi_message_release(struct gi_message_store *store, struct gi_message *message);

#endif
