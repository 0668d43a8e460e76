/* SPDX-License-Identifier: MIT */
/*
 * A pool of objects of one size for one thread.  What is released last is acquired first, while it
 * is still in the cache.  Memory is not zeroed, grows by chunks, and goes back at fini only.  Under
 * the address sanitizer a released object is poisoned.  Contract: pool.c.
 */
#ifndef GI_BASE_POOL_H
#define GI_BASE_POOL_H

#include <gori/allocator.h>
#include <gori/base.h>

struct gi_pool {
    const struct gori_allocator *allocator;
    void *free_head;         /* the object to hand out next */
    struct gori_link chunks; /* newest first */
    size_t object_bytes;     /* distance of objects */
    size_t chunk_bytes;
    uint32_t objects_per_chunk;
    uint32_t count_max; /* objects out at once; 0: unbounded */
    uint32_t count;     /* objects that are out */
    uint32_t capacity;  /* objects in all chunks */
};

/**
 * Makes an empty pool; allocates nothing yet.  Objects are aligned to 16 bytes.
 * Errors: GORI_EINVAL (no size, no objects per chunk, or their product overflows).
 */
GORI_MUST_USE int gi_pool_init(struct gi_pool *pool, const struct gori_allocator *allocator,
                               size_t object_size, uint32_t objects_per_chunk, uint32_t count_max);

/** Frees the pool.  Asserts that no object is out. */
void gi_pool_fini(struct gi_pool *pool);

/** An object of undefined content; NULL when `count_max` are out or there is no memory. */
GORI_MUST_USE void *gi_pool_acquire(struct gi_pool *pool);

/** Gives back what gi_pool_acquire of the same pool answered. */
void gi_pool_release(struct gi_pool *pool, void *object);

#endif
