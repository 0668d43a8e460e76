/* SPDX-License-Identifier: MIT */
/*
 * Immutable bytes shared by reference: one encoding of a message serves any number of receivers on
 * any number of threads.  Opaque.  The count is atomic.  Stability: unstable until 1.0.
 */
#ifndef GORI_BLOCK_H
#define GORI_BLOCK_H

#include <gori/allocator.h>
#include <gori/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_block;

/** Gives external memory back; runs once, on the thread that drops the last reference. */
typedef void gori_block_release_fn(void *user, const uint8_t *data, size_t size);

/**
 * Makes a block with a copy of `size` bytes at `data`.  `data` may be NULL when `size` is 0.
 *
 * Thread: any.
 * Memory: the caller gets one reference; `allocator` (NULL: the default) must outlive the block.
 * Errors: GORI_EINVAL (no data, or a size beyond all memory), GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_block_create(const struct gori_allocator *allocator,
                                             const void *data, size_t size,
                                             struct gori_block **ret_block);

/**
 * Makes a block of `size` bytes of undefined content to be filled in place: write through
 * `ret_data` before the block is shown to anybody else, never after.
 *
 * Thread: any.
 * Memory: as gori_block_create; `ret_data` is valid as long as the block.
 * Errors: as gori_block_create.
 */
GORI_API GORI_MUST_USE int gori_block_build(const struct gori_allocator *allocator, size_t size,
                                            struct gori_block **ret_block, uint8_t **ret_data);

/**
 * Makes a block of memory that belongs to somebody else, without a copy.  The bytes must not change
 * until `release_fn` (may be NULL: nothing to do) has run.
 *
 * Thread: any; `release_fn` runs on the thread that drops the last reference.
 * Memory: as gori_block_create; on failure the memory stays the caller's and nothing is released.
 * Errors: GORI_EINVAL (no data), GORI_ENOMEM.
 * Callback: `release_fn` exactly once, never inside this call.
 */
GORI_API GORI_MUST_USE int gori_block_wrap(const struct gori_allocator *allocator, const void *data,
                                           size_t size, gori_block_release_fn *release_fn,
                                           void *user, struct gori_block **ret_block);

/**
 * Takes one more reference.
 *
 * Thread: any that holds a reference.
 * Result: `block`.
 */
GORI_API struct gori_block *gori_block_ref(struct gori_block *block);

/**
 * Drops one reference; the last one frees the block.  NULL is allowed and does nothing.
 *
 * Thread: any.
 */
GORI_API void gori_block_unref(struct gori_block *block);

/**
 * The bytes of the block.
 *
 * Thread: any that holds a reference.
 * Memory: valid as long as that reference.
 */
GORI_API struct gori_slice gori_block_view(const struct gori_block *block);

#ifdef __cplusplus
}
#endif

#endif
