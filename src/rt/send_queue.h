/* SPDX-License-Identifier: MIT */
/*
 * The bytes that one session has still to send, in order: copies, blocks, receive buffers, ranges
 * of files.  It decides what goes into the next send and forgets what was sent.  It knows no
 * socket, no session and no watermark.  Thread: the loop's.  Contract: send_queue.c.
 */
#ifndef GI_RT_SEND_QUEUE_H
#define GI_RT_SEND_QUEUE_H

#include <gori/block.h>
#include <gori/file.h>
#include <gori/op.h>
#include <stdbool.h>

#include "base/pool.h"

/** Pieces that a queue holds in itself; more are in pages of a pool. */
#define GI_SEND_INLINE_PIECES 2

/**
 * Bytes of one gathered send, about: its end is what an idle limit sees as progress, since an
 * engine need not show how far a send in flight has come.
 */
#define GI_SEND_BATCH_BYTES ((size_t)256 << 10)

/** Bytes of one send of a file, for the same reason. */
#define GI_SEND_FILE_BYTES ((uint64_t)1 << 20)

/**
 * What a range of a file counts as, in bytes.  It takes next to no memory, but it may hold a
 * descriptor: a peer that asks for many files and reads none must come to a limit soon.
 */
#define GI_SEND_FILE_COST ((size_t)16 << 10)

/** Bytes that one chunk of copies holds.  With its header no multiple of a page: see send_queue.c.
 */
#define GI_SEND_CHUNK_BYTES 2096

/** Where the memory of all queues of a loop comes from. */
struct gi_send_pools {
    struct gi_pool chunks; /* of copied bytes */
    struct gi_pool pages;  /* of pieces, for queues with more than a few */
    struct gi_pool files;  /* one for each range of a file */
};

struct gi_send_queue {
    struct gori_slice slices[GI_SEND_INLINE_PIECES];
    uintptr_t
        owners[GI_SEND_INLINE_PIECES]; /* what holds the bytes, and its kind in the low bits */
    struct gi_send_page *first_page;   /* pieces after the inline ones */
    struct gi_send_chunk *chunk;       /* the one that copies go to; some piece refers to it */
    size_t bytes;                      /* queued; a range of a file counts as GI_SEND_FILE_COST */
    uint8_t first;                     /* inline pieces: the first that is left, */
    uint8_t count;                     /* and how many are */
    uint8_t in_flight;                 /* pieces of the head that a send has */
};

/** What one send shall carry: pieces, or a part of a file (`count` is 0 then). */
struct gi_send_batch {
    const struct gori_slice *pieces;
    uint32_t count;
    struct gori_file_range file;
    bool more; /* pieces only: something is queued behind them */
};

/** Makes empty pools; allocates nothing yet. */
GORI_MUST_USE int gi_send_pools_init(struct gi_send_pools *pools,
                                     const struct gori_allocator *allocator);

/** Frees the pools.  Asserts that no queue holds anything of them. */
void gi_send_pools_fini(struct gi_send_pools *pools);

/** Appends a copy of `size` bytes: all of them or, on GORI_ENOMEM, none. */
GORI_MUST_USE int gi_send_queue_copy(struct gi_send_queue *queue, struct gi_send_pools *pools,
                                     const void *data, size_t size);

/** Appends a block of at least one byte; takes a reference.  Errors: GORI_ENOMEM. */
GORI_MUST_USE int gi_send_queue_push_block(struct gi_send_queue *queue, struct gi_send_pools *pools,
                                           struct gori_block *block);

/** Appends bytes (at least one) of a receive buffer; takes a reference.  Errors: GORI_ENOMEM. */
GORI_MUST_USE int gi_send_queue_push_buffer(struct gi_send_queue *queue,
                                            struct gi_send_pools *pools, struct gori_buffer *buffer,
                                            struct gori_slice bytes);

/** Appends a range (of at least one byte) of a file; takes a reference.  Errors: GORI_ENOMEM. */
GORI_MUST_USE int gi_send_queue_push_file(struct gi_send_queue *queue, struct gi_send_pools *pools,
                                          struct gori_file *file, uint64_t offset, uint64_t size);

/**
 * What to send next.  The pieces stay as they are until gi_send_queue_advance; only one batch is
 * out at a time.  Asserts that the queue is not empty.
 */
void gi_send_queue_next(struct gi_send_queue *queue, struct gi_send_batch *ret_batch);

/**
 * Forgets `bytes`, which were sent, from the front of the batch that is out, and ends the batch.
 * What it did not send is the front of the next one.  Result: the bytes by which `queue->bytes`
 * fell.
 */
size_t gi_send_queue_advance(struct gi_send_queue *queue, struct gi_send_pools *pools,
                             uint64_t bytes);

/** Forgets everything.  No batch may be out with the kernel. */
void gi_send_queue_clear(struct gi_send_queue *queue, struct gi_send_pools *pools);

static inline bool gi_send_queue_is_empty(const struct gi_send_queue *queue)
{
    return queue->bytes == 0;
}

#endif
