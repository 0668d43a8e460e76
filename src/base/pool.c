/* SPDX-License-Identifier: MIT */
/*
 * The object pool.
 *
 * Contract:
 *  1. acquire answers memory that nobody else has until it is released; never zeroed.
 *  2. The object released last is acquired first.
 *  3. At most count_max objects are out (0: no bound); chunks are never given back before fini, so
 *     after warm-up acquire and release allocate nothing.
 *  4. fini asserts that nothing is out: an object that outlives its pool is a bug of its owner.
 *  5. A released object keeps its memory but not its content: the first word is the free list's,
 *     and the address sanitizer reports every use of it.
 */
#include "base/pool.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"

#include <gori/error.h>
#include <string.h>

#if GI_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(pointer, size)   __asan_poison_memory_region(pointer, size)
#define UNPOISON(pointer, size) __asan_unpoison_memory_region(pointer, size)
#else
#define POISON(pointer, size)   ((void)0)
#define UNPOISON(pointer, size) ((void)0)
#endif

#define OBJECT_ALIGNMENT 16

struct chunk {
    struct gori_link link; /* exactly OBJECT_ALIGNMENT bytes; objects follow */
};

struct free_object {
    void *next;
};

_Static_assert(sizeof(struct chunk) % OBJECT_ALIGNMENT == 0, "objects stay aligned");

static void put_free(struct gi_pool *pool, void *object)
{
    ((struct free_object *)object)->next = pool->free_head;
    pool->free_head = object;
    POISON(object, pool->object_bytes);
}

static bool add_chunk(struct gi_pool *pool)
{
    if (pool->capacity > UINT32_MAX - pool->objects_per_chunk) {
        return false;
    }
    struct chunk *chunk = gi_alloc(pool->allocator, pool->chunk_bytes);
    if (chunk == NULL) {
        return false;
    }
    memset(chunk, 0, sizeof(*chunk));
    gi_list_push_front(&pool->chunks, &chunk->link);
    pool->capacity += pool->objects_per_chunk;
    /* From the end, so that objects are handed out in the order of their addresses. */
    uint8_t *objects = (uint8_t *)(chunk + 1);
    for (uint32_t i = pool->objects_per_chunk; i-- > 0;) {
        put_free(pool, objects + i * pool->object_bytes);
    }
    return true;
}

int gi_pool_init(struct gi_pool *pool, const struct gori_allocator *allocator, size_t object_size,
                 uint32_t objects_per_chunk, uint32_t count_max)
{
    if (object_size == 0 || object_size > SIZE_MAX / 2 || objects_per_chunk == 0) {
        return GORI_EINVAL;
    }
    size_t object_bytes = (object_size + OBJECT_ALIGNMENT - 1) & ~(size_t)(OBJECT_ALIGNMENT - 1);
    size_t chunk_bytes;
    if (__builtin_mul_overflow(object_bytes, (size_t)objects_per_chunk, &chunk_bytes) ||
        __builtin_add_overflow(chunk_bytes, sizeof(struct chunk), &chunk_bytes)) {
        return GORI_EINVAL;
    }
    *pool = (struct gi_pool){
        .allocator = allocator,
        .object_bytes = object_bytes,
        .chunk_bytes = chunk_bytes,
        .objects_per_chunk = objects_per_chunk,
        .count_max = count_max,
    };
    gi_list_init(&pool->chunks);
    return 0;
}

void gi_pool_fini(struct gi_pool *pool)
{
    GI_ASSERT(pool->count == 0);
    struct gori_link *link;
    while ((link = gi_list_pop_front(&pool->chunks)) != NULL) {
        struct chunk *chunk = gori_container_of(link, struct chunk, link);
        UNPOISON(chunk, pool->chunk_bytes);
        gi_free(pool->allocator, chunk, pool->chunk_bytes);
    }
    memset(pool, 0, sizeof(*pool));
}

void *gi_pool_acquire(struct gi_pool *pool)
{
    if (pool->count_max != 0 && pool->count == pool->count_max) {
        return NULL;
    }
    if (pool->free_head == NULL && !add_chunk(pool)) {
        return NULL;
    }
    void *object = pool->free_head;
    UNPOISON(object, pool->object_bytes);
    pool->free_head = ((struct free_object *)object)->next;
    pool->count++;
    return object;
}

void gi_pool_release(struct gi_pool *pool, void *object)
{
    GI_ASSERT(object != NULL);
    GI_ASSERT(pool->count > 0);
    pool->count--;
    put_free(pool, object);
}
