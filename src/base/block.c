/* SPDX-License-Identifier: MIT */
/*
 * Blocks: immutable bytes with an atomic count of references.
 *
 * Contract:
 *  1. Bytes never change once a second reference exists or another thread sees the block.
 *  2. The block is freed, and the external memory released, by whoever drops the last reference,
 *     exactly once, on that thread.
 *  3. Taking a reference needs a reference: a count of 0 never rises again, which is asserted.
 *
 * Order: a new reference is made from one that is held, so ref is relaxed.  unref is
 * acquire-release: the release pairs with the acquire of the unref that finds itself last, so every
 * read of the bytes by every former holder happens before the memory goes.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"

#include <gori/block.h>
#include <gori/error.h>
#include <string.h>

struct gori_block {
    struct gi_atomic_u32 reference_count;
    const struct gori_allocator *allocator;
    const uint8_t *data; /* what follows the block, or external */
    size_t size;
    size_t alloc_bytes;
    gori_block_release_fn *release_fn; /* NULL: none */
    void *user;
};

/* Far from overflow, and far more than can be held in the memory that holds references. */
#define REFERENCE_COUNT_MAX (UINT32_MAX / 2)

static int make_block(const struct gori_allocator *allocator, size_t inline_size,
                      struct gori_block **ret_block)
{
    if (inline_size > SIZE_MAX / 2) {
        return GORI_EINVAL;
    }
    size_t alloc_bytes = sizeof(struct gori_block) + inline_size;
    struct gori_block *block = gi_alloc(allocator, alloc_bytes);
    if (block == NULL) {
        return GORI_ENOMEM;
    }
    *block = (struct gori_block){
        .allocator = allocator,
        .data = (const uint8_t *)(block + 1),
        .size = inline_size,
        .alloc_bytes = alloc_bytes,
    };
    gi_atomic_u32_init(&block->reference_count, 1);
    *ret_block = block;
    return 0;
}

int gori_block_create(const struct gori_allocator *allocator, const void *data, size_t size,
                      struct gori_block **ret_block)
{
    if (ret_block == NULL || (data == NULL && size > 0)) {
        return GORI_EINVAL;
    }
    struct gori_block *block;
    int error = make_block(allocator, size, &block);
    if (error < 0) {
        return error;
    }
    if (size > 0) {
        memcpy(block + 1, data, size);
    }
    *ret_block = block;
    return 0;
}

int gori_block_build(const struct gori_allocator *allocator, size_t size,
                     struct gori_block **ret_block, uint8_t **ret_data)
{
    if (ret_block == NULL || ret_data == NULL) {
        return GORI_EINVAL;
    }
    struct gori_block *block;
    int error = make_block(allocator, size, &block);
    if (error < 0) {
        return error;
    }
    *ret_data = (uint8_t *)(block + 1);
    *ret_block = block;
    return 0;
}

int gori_block_wrap(const struct gori_allocator *allocator, const void *data, size_t size,
                    gori_block_release_fn *release_fn, void *user, struct gori_block **ret_block)
{
    if (ret_block == NULL || (data == NULL && size > 0)) {
        return GORI_EINVAL;
    }
    struct gori_block *block;
    int error = make_block(allocator, 0, &block);
    if (error < 0) {
        return error;
    }
    block->data = data;
    block->size = size;
    block->release_fn = release_fn;
    block->user = user;
    *ret_block = block;
    return 0;
}

struct gori_block *gori_block_ref(struct gori_block *block)
{
    uint32_t before = gi_atomic_u32_add(&block->reference_count, 1, GI_RELAXED);
    GI_ASSERT(before > 0);
    GI_ASSERT(before < REFERENCE_COUNT_MAX);
    return block;
}

void gori_block_unref(struct gori_block *block)
{
    if (block == NULL) {
        return;
    }
    uint32_t before = gi_atomic_u32_sub(&block->reference_count, 1, GI_ACQ_REL);
    GI_ASSERT(before > 0);
    if (before > 1) {
        return;
    }
    if (block->release_fn != NULL) {
        block->release_fn(block->user, block->data, block->size);
    }
    gi_free(block->allocator, block, block->alloc_bytes);
}

struct gori_slice gori_block_view(const struct gori_block *block)
{
    return (struct gori_slice){.data = block->data, .size = block->size};
}
