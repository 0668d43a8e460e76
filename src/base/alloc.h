/* SPDX-License-Identifier: MIT */
/*
 * Allocation through a `struct gori_allocator`: the only way memory is taken or given back in gori.
 * A NULL allocator means the default one.  Sizes are > 0 and are told again when memory is freed.
 * Thread: any, as the allocator promises.
 */
#ifndef GI_BASE_ALLOC_H
#define GI_BASE_ALLOC_H

#include <gori/allocator.h>

/** `size` bytes of undefined content; NULL when there is no memory. */
GORI_MUST_USE void *gi_alloc(const struct gori_allocator *allocator, size_t size);

/** `size` bytes of zeros; NULL when there is no memory. */
GORI_MUST_USE void *gi_alloc_zero(const struct gori_allocator *allocator, size_t size);

/**
 * `count` items of `size` bytes, all zeros; NULL when there is no memory or the product overflows.
 */
GORI_MUST_USE void *gi_alloc_array(const struct gori_allocator *allocator, size_t count,
                                   size_t size);

/**
 * Moves `old_size` bytes at `pointer` (NULL when `old_size` is 0) to a place of `new_size` bytes.
 * Returns NULL when there is no memory; `pointer` is then as it was.  Added bytes are undefined.
 */
GORI_MUST_USE void *gi_realloc(const struct gori_allocator *allocator, void *pointer,
                               size_t old_size, size_t new_size);

/** Gives back `size` bytes at `pointer`.  NULL is allowed and does nothing. */
void gi_free(const struct gori_allocator *allocator, void *pointer, size_t size);

#endif
