/* SPDX-License-Identifier: MIT */
/*
 * The receive buffers of a loop; the rules are in buffers.h.
 *
 * Memory comes in chunks of about CHUNK_BYTES, each one allocation: the heads of its buffers, then
 * their bytes.  A chunk holds a power of two of buffers, so that a number finds its buffer by a
 * shift and a mask.  Nothing is given back before fini: what a burst needed, the next one will.
 * Thread: the loop's.
 */
#include "engine/buffers.h"

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"

#if GI_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(pool, buffer)   __asan_poison_memory_region((buffer)->data, (pool)->buffer_bytes)
#define UNPOISON(pool, buffer) __asan_unpoison_memory_region((buffer)->data, (pool)->buffer_bytes)
#else
#define POISON(pool, buffer)   ((void)0)
#define UNPOISON(pool, buffer) ((void)0)
#endif

#define BUFFER_BYTES_MIN 512
#define BUFFER_BYTES_MAX (1u << 20)
#define BUFFERS_MAX      32768
#define CHUNK_BYTES      (64u << 10)
#define CHUNK_SHIFT_MAX  5

struct gi_buffer_chunk {
    struct gori_buffer buffers[1]; /* as many as a chunk holds; then their bytes */
};

/* log2 of the number of buffers in a chunk. */
static uint32_t chunk_shift_for(uint32_t buffer_bytes)
{
    uint32_t shift = 0;
    while (shift < CHUNK_SHIFT_MAX && (buffer_bytes << (shift + 1)) <= CHUNK_BYTES) {
        shift++;
    }
    return shift;
}

int gi_buffers_init(struct gi_buffers *pool, const struct gori_allocator *allocator,
                    uint32_t buffer_bytes, uint32_t buffers_max)
{
    if (buffer_bytes < BUFFER_BYTES_MIN || buffer_bytes > BUFFER_BYTES_MAX) {
        return GORI_EINVAL;
    }
    if (buffers_max == 0 || buffers_max > BUFFERS_MAX) {
        return GORI_EINVAL;
    }
    *pool = (struct gi_buffers){
        .allocator = allocator,
        .buffer_bytes = buffer_bytes,
        .buffers_max = buffers_max,
        .chunk_shift = chunk_shift_for(buffer_bytes),
    };
    return 0;
}

/* Heads and bytes of one chunk; the bytes begin on a cache line. */
static size_t chunk_size(const struct gi_buffers *pool)
{
    size_t count = (size_t)1 << pool->chunk_shift;
    return count * (sizeof(struct gori_buffer) + pool->buffer_bytes) + GI_CACHE_LINE;
}

void gi_buffers_fini(struct gi_buffers *pool)
{
    GI_ASSERT(pool->held_count == 0);
    GI_ASSERT(pool->lent_count == 0);
    GI_ASSERT(pool->free_count == pool->made);
    for (uint32_t i = 0; i < pool->made; i++) {
        UNPOISON(pool, gi_buffers_at(pool, i));
    }
    for (uint32_t i = 0; i < pool->chunk_count; i++) {
        gi_free(pool->allocator, pool->chunks[i], chunk_size(pool));
    }
    gi_free(pool->allocator, pool->chunks, pool->chunk_capacity * sizeof(struct gi_buffer_chunk *));
    *pool = (struct gi_buffers){0};
}

struct gori_buffer *gi_buffers_at(struct gi_buffers *pool, uint32_t index)
{
    GI_ASSERT(index < pool->made);
    uint32_t mask = (1u << pool->chunk_shift) - 1;
    return &pool->chunks[index >> pool->chunk_shift]->buffers[index & mask];
}

static void push_free(struct gi_buffers *pool, struct gori_buffer *buffer)
{
    POISON(pool, buffer);
    buffer->next_free = pool->free_list;
    pool->free_list = buffer;
    pool->free_count++;
}

static bool reserve_chunk_slot(struct gi_buffers *pool)
{
    if (pool->chunk_count < pool->chunk_capacity) {
        return true;
    }
    uint32_t capacity = gi_max_u32(8, pool->chunk_capacity * 2);
    size_t slot_bytes = sizeof(struct gi_buffer_chunk *);
    struct gi_buffer_chunk **chunks = gi_realloc(
        pool->allocator, pool->chunks, pool->chunk_capacity * slot_bytes, capacity * slot_bytes);
    if (chunks == NULL) {
        return false;
    }
    pool->chunks = chunks;
    pool->chunk_capacity = capacity;
    return true;
}

/* Makes the buffers of one more chunk, as many of them as the maximum still allows. */
static GI_COLD bool grow(struct gi_buffers *pool)
{
    if (!reserve_chunk_slot(pool)) {
        return false;
    }
    struct gi_buffer_chunk *chunk = gi_alloc(pool->allocator, chunk_size(pool));
    if (chunk == NULL) {
        return false;
    }
    uint32_t per_chunk = 1u << pool->chunk_shift;
    uintptr_t bytes = (uintptr_t)chunk + per_chunk * sizeof(struct gori_buffer);
    bytes = (bytes + GI_CACHE_LINE - 1) & ~(uintptr_t)(GI_CACHE_LINE - 1);
    uint32_t count = gi_min_u32(per_chunk, pool->buffers_max - pool->made);
    pool->chunks[pool->chunk_count++] = chunk;
    /* Backwards, so that the first one handed out is the first in memory. */
    for (uint32_t i = count; i-- > 0;) {
        chunk->buffers[i] = (struct gori_buffer){
            .pool = pool,
            .data = (uint8_t *)(bytes + (uintptr_t)i * pool->buffer_bytes),
            .index = pool->made + i,
        };
        push_free(pool, &chunk->buffers[i]);
    }
    pool->made += count;
    return true;
}

bool gi_buffers_can_lend(const struct gi_buffers *pool)
{
    return pool->free_list != NULL || pool->made < pool->buffers_max;
}

struct gori_buffer *gi_buffers_lend(struct gi_buffers *pool)
{
    if (GI_UNLIKELY(pool->free_list == NULL)) {
        if (pool->made == pool->buffers_max || !grow(pool)) {
            pool->starved++;
            return NULL;
        }
    }
    struct gori_buffer *buffer = pool->free_list;
    pool->free_list = buffer->next_free;
    pool->free_count--;
    pool->lent_count++;
    UNPOISON(pool, buffer);
    GI_DASSERT(buffer->holders == 0);
    return buffer;
}

void gi_buffers_unlend(struct gi_buffers *pool, struct gori_buffer *buffer)
{
    GI_ASSERT(buffer->holders == 0);
    GI_ASSERT(pool->lent_count > 0);
    pool->lent_count--;
    push_free(pool, buffer);
}

void gi_buffers_deliver(struct gi_buffers *pool, struct gori_buffer *buffer)
{
    GI_ASSERT(buffer->holders == 0);
    GI_ASSERT(pool->lent_count > 0);
    pool->lent_count--;
    pool->held_count++;
    buffer->holders = 1;
}

void gori_buffer_retain(struct gori_buffer *buffer)
{
    GI_ASSERT(buffer->holders > 0);
    GI_ASSERT(buffer->holders < UINT32_MAX);
    buffer->holders++;
}

void gori_buffer_release(struct gori_buffer *buffer)
{
    GI_ASSERT(buffer->holders > 0);
    buffer->holders--;
    if (buffer->holders == 0) {
        buffer->pool->held_count--;
        push_free(buffer->pool, buffer);
    }
}
