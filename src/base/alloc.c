/* SPDX-License-Identifier: MIT */
/*
 * Allocation.
 *
 * Contract:
 *  1. This file is the only one that calls malloc and free.
 *  2. A size of 0 is a mistake of the caller and asserts: its meaning differs between allocators.
 *  3. A product that overflows answers NULL, as if there were no memory for it; there is not.
 *  4. gi_realloc copies: the allocator interface is kept so small that anything can implement it,
 *     and what grows here grows by doubling.
 */
#include "base/alloc.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

static void *default_alloc(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static void default_free(void *user, void *pointer, size_t size)
{
    (void)user;
    (void)size;
    free(pointer);
}

static const struct gori_allocator default_allocator = {
    .alloc = default_alloc,
    .free = default_free,
};

const struct gori_allocator *gori_allocator_default(void)
{
    return &default_allocator;
}

void *gi_alloc(const struct gori_allocator *allocator, size_t size)
{
    GI_ASSERT(size > 0);
    if (allocator == NULL) {
        allocator = &default_allocator;
    }
    return allocator->alloc(allocator->user, size);
}

void *gi_alloc_zero(const struct gori_allocator *allocator, size_t size)
{
    void *pointer = gi_alloc(allocator, size);
    if (pointer != NULL) {
        memset(pointer, 0, size);
    }
    return pointer;
}

void *gi_alloc_array(const struct gori_allocator *allocator, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    return gi_alloc_zero(allocator, bytes);
}

void *gi_realloc(const struct gori_allocator *allocator, void *pointer, size_t old_size,
                 size_t new_size)
{
    GI_ASSERT((pointer == NULL) == (old_size == 0));
    void *moved = gi_alloc(allocator, new_size);
    if (moved != NULL && pointer != NULL) {
        memcpy(moved, pointer, gi_min_size(old_size, new_size));
        gi_free(allocator, pointer, old_size);
    }
    return moved;
}

void gi_free(const struct gori_allocator *allocator, void *pointer, size_t size)
{
    if (pointer == NULL) {
        return;
    }
    GI_ASSERT(size > 0);
    if (allocator == NULL) {
        allocator = &default_allocator;
    }
    allocator->free(allocator->user, pointer, size);
}
