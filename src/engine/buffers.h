/* SPDX-License-Identifier: MIT */
/*
 * The receive buffers of one loop: equal pieces of memory, handed out last-in first-out so that
 * the hot ones stay hot, made in chunks when they are needed, never beyond a maximum.
 * It is not a kernel interface: the io_uring engine lends some of these to its ring.
 *
 *  B1  A buffer is in one place: free in the pool, lent to the engine, or held by the runtime or
 *      the application with a count of holders.  free + lent + held = made, always.
 *  B2  A buffer with holders is never lent; one that is lent has none.
 *  B3  The last release returns it to the pool, and nowhere else.  The engine looks at the pool in
 *      its turn and resumes parked receives then.
 *  B4  What is made never exceeds the maximum; taking beyond it answers NULL, counted as starved.
 * Thread: the loop's.
 */
#ifndef GI_ENGINE_BUFFERS_H
#define GI_ENGINE_BUFFERS_H

#include <gori/allocator.h>
#include <gori/base.h>
#include <gori/op.h>
#include <stdbool.h>

/** One receive buffer.  The application knows it as an opaque name. */
struct gori_buffer {
    struct gi_buffers *pool;
    uint8_t *data;
    uint32_t holders;
    uint32_t index; /* its number in the pool, below `made` */
    struct gori_buffer *next_free;
};

struct gi_buffers {
    const struct gori_allocator *allocator;
    /* No two of the three counters are neighbours: a compiler would add to both in one eight byte
       access, which then waits for the four byte one of the call before. */
    uint32_t free_count;
    uint32_t buffer_bytes;
    uint32_t held_count; /* held by the runtime or the application */
    uint32_t buffers_max;
    uint32_t lent_count; /* lent to the engine */
    uint32_t made;
    uint32_t chunk_shift; /* log2 of the buffers in a chunk */
    uint64_t starved;     /* times a take found none */
    struct gori_buffer *free_list;
    struct gi_buffer_chunk **chunks;
    uint32_t chunk_count;
    uint32_t chunk_capacity;
};

/** `buffer_bytes` 512 to 1 MiB, `buffers_max` 1 to 32768.  Makes nothing yet. */
int gi_buffers_init(struct gi_buffers *pool, const struct gori_allocator *allocator,
                    uint32_t buffer_bytes, uint32_t buffers_max);

/** Asserts that none is held or lent. */
void gi_buffers_fini(struct gi_buffers *pool);

/** Takes a free buffer, making some when there are none; lent to the engine, no holders. */
struct gori_buffer *gi_buffers_lend(struct gi_buffers *pool);

/** The engine gives back a buffer that it did not use. */
void gi_buffers_unlend(struct gi_buffers *pool, struct gori_buffer *buffer);

/** The engine delivers a lent buffer: from here on it has one holder. */
void gi_buffers_deliver(struct gi_buffers *pool, struct gori_buffer *buffer);

/** Whether a lend would succeed without passing the maximum. */
bool gi_buffers_can_lend(const struct gi_buffers *pool);

/** The buffer with a number. */
struct gori_buffer *gi_buffers_at(struct gi_buffers *pool, uint32_t index);

#endif
