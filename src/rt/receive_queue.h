/* SPDX-License-Identifier: MIT */
/*
 * Received bytes that one session has not consumed yet, in order: the tail of a view, or what came
 * while delivery was paused.  It exists only while there are some.  It knows no session and makes
 * no callback.  Thread: the loop's.  Contract: receive_queue.c.
 */
#ifndef GI_RT_RECEIVE_QUEUE_H
#define GI_RT_RECEIVE_QUEUE_H

#include <gori/allocator.h>
#include <gori/op.h>
#include <stdbool.h>

#define GI_RECEIVE_PIECES_MAX 32

/** Sizes of assemblies that are kept for the next: 4 KiB doubled so many times less one. */
#define GI_ASSEMBLY_CLASSES 9

/** Bytes of several completions joined into one view. */
struct gi_assembly {
    struct gi_assembly *next_free;
    uint32_t capacity; /* of `bytes` */
    uint32_t start;    /* first byte that is not consumed */
    uint32_t end;
    uint8_t bytes[];
};

/** The assemblies of a loop that are not in use. */
struct gi_assembly_cache {
    const struct gori_allocator *allocator;
    struct gi_assembly *free[GI_ASSEMBLY_CLASSES];
    uint32_t count[GI_ASSEMBLY_CLASSES];
};

/** Bytes in a receive buffer of which the queue is a holder. */
struct gi_receive_piece {
    struct gori_buffer *buffer;
    struct gori_slice bytes;
};

struct gi_receive_queue {
    struct gi_assembly *assembly; /* in front of the pieces, or NULL */
    size_t bytes;                 /* of everything */
    size_t seen;                  /* of the front: shown before, and not consumed */
    uint32_t first;
    uint32_t count;
    struct gi_receive_piece pieces[GI_RECEIVE_PIECES_MAX];
};

void gi_assembly_cache_init(struct gi_assembly_cache *cache,
                            const struct gori_allocator *allocator);

/** Frees what is kept.  What is in use must have come back. */
void gi_assembly_cache_fini(struct gi_assembly_cache *cache);

/** Makes an empty queue in memory of undefined content. */
void gi_receive_queue_init(struct gi_receive_queue *queue);

/** Appends bytes and takes over the caller's hold of `piece.buffer`; not on GORI_ENOMEM. */
GORI_MUST_USE int gi_receive_queue_push(struct gi_receive_queue *queue,
                                        struct gi_assembly_cache *cache,
                                        struct gi_receive_piece piece);

/**
 * The view to show next: the front, which holds something that was not shown before unless `again`
 * is set; `buffer` is NULL when it is joined of several.  It is valid until the next call.
 * Result: 1, or 0 when there is nothing to show, or GORI_ENOMEM.
 */
GORI_MUST_USE int gi_receive_queue_show(struct gi_receive_queue *queue,
                                        struct gi_assembly_cache *cache, bool again,
                                        struct gi_receive_piece *ret_view);

/** Takes `size` bytes off the front, of which the whole was shown. */
void gi_receive_queue_consume(struct gi_receive_queue *queue, struct gi_assembly_cache *cache,
                              size_t size);

/** Moves what stands in receive buffers to memory of its own, as far as there is some. */
void gi_receive_queue_leave_buffers(struct gi_receive_queue *queue,
                                    struct gi_assembly_cache *cache);

/** Forgets everything. */
void gi_receive_queue_clear(struct gi_receive_queue *queue, struct gi_assembly_cache *cache);

#endif
