/* SPDX-License-Identifier: MIT */
/*
 * The allocator of tests.
 *
 * Contract:
 *  1. Every block carries a header with its size; a free that names another size, or a block that
 *     is not ours or was freed before, asserts.
 *  2. New memory is filled with 0xa5, freed memory with 0xdd: who relies on zeros, or reads what it
 *     gave back, is seen in plain builds too.
 *  3. Allocations are numbered from 1 since the last arming; numbers from fail_first to fail_last
 *     answer NULL and touch nothing else.
 *  4. Counters are exact when no thread is inside alloc or free.
 */
#include "base/fault_alloc.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <string.h>

#define HEADER_MARK_LIVE 0x6c697665626c6f63ULL
#define HEADER_MARK_FREE 0x66726565626c6f63ULL
#define FILL_NEW         0xa5
#define FILL_FREED       0xdd

/* As large as the strictest alignment, so that what follows is aligned like the header. */
struct header {
    uint64_t mark;
    uint64_t size;
} GI_ALIGNED(16);

static void raise_peak(struct gi_fault_alloc *fault, uint64_t live_bytes)
{
    uint64_t peak = gi_atomic_u64_load(&fault->peak_bytes, GI_RELAXED);
    while (peak < live_bytes) {
        if (gi_atomic_u64_compare_exchange(&fault->peak_bytes, &peak, live_bytes, GI_RELAXED)) {
            break;
        }
    }
}

static void *fault_alloc(void *user, size_t size)
{
    struct gi_fault_alloc *fault = user;
    GI_ASSERT(size > 0);
    uint64_t number = gi_atomic_u64_add(&fault->alloc_count, 1, GI_RELAXED) + 1;
    if (number >= fault->fail_first && number <= fault->fail_last) {
        (void)gi_atomic_u64_add(&fault->failed_count, 1, GI_RELAXED);
        return NULL;
    }
    size_t bytes;
    if (__builtin_add_overflow(size, sizeof(struct header), &bytes)) {
        return NULL;
    }
    struct header *header = gi_alloc(fault->inner, bytes);
    if (header == NULL) {
        return NULL;
    }
    header->mark = HEADER_MARK_LIVE;
    header->size = size;
    memset(header + 1, FILL_NEW, size);
    (void)gi_atomic_u64_add(&fault->live_blocks, 1, GI_RELAXED);
    raise_peak(fault, gi_atomic_u64_add(&fault->live_bytes, size, GI_RELAXED) + size);
    return header + 1;
}

static void fault_free(void *user, void *pointer, size_t size)
{
    struct gi_fault_alloc *fault = user;
    struct header *header = (struct header *)pointer - 1;
    GI_ASSERT(header->mark == HEADER_MARK_LIVE);
    GI_ASSERT(header->size == size);
    uint64_t blocks_before = gi_atomic_u64_sub(&fault->live_blocks, 1, GI_RELAXED);
    uint64_t bytes_before = gi_atomic_u64_sub(&fault->live_bytes, size, GI_RELAXED);
    GI_ASSERT(blocks_before > 0);
    GI_ASSERT(bytes_before >= size);
    header->mark = HEADER_MARK_FREE;
    memset(header + 1, FILL_FREED, size);
    gi_free(fault->inner, header, sizeof(*header) + size);
}

static void arm(struct gi_fault_alloc *fault, uint64_t fail_first, uint64_t fail_last)
{
    fault->fail_first = fail_first;
    fault->fail_last = fail_last;
    gi_atomic_u64_store(&fault->alloc_count, 0, GI_RELAXED);
    gi_atomic_u64_store(&fault->failed_count, 0, GI_RELAXED);
}

void gi_fault_alloc_init(struct gi_fault_alloc *fault, const struct gori_allocator *inner)
{
    *fault = (struct gi_fault_alloc){
        .allocator = {.alloc = fault_alloc, .free = fault_free, .user = fault},
        .inner = inner,
    };
}

void gi_fault_alloc_fini(struct gi_fault_alloc *fault)
{
    GI_ASSERT(gi_fault_alloc_live_blocks(fault) == 0);
    GI_ASSERT(gi_fault_alloc_live_bytes(fault) == 0);
    memset(fault, 0, sizeof(*fault));
}

void gi_fault_alloc_fail_once(struct gi_fault_alloc *fault, uint64_t number)
{
    GI_ASSERT(number > 0);
    arm(fault, number, number);
}

void gi_fault_alloc_fail_from(struct gi_fault_alloc *fault, uint64_t number)
{
    GI_ASSERT(number > 0);
    arm(fault, number, UINT64_MAX);
}

void gi_fault_alloc_fail_never(struct gi_fault_alloc *fault)
{
    arm(fault, 0, 0);
}

uint64_t gi_fault_alloc_count(const struct gi_fault_alloc *fault)
{
    return gi_atomic_u64_load(&fault->alloc_count, GI_RELAXED);
}

uint64_t gi_fault_alloc_failed_count(const struct gi_fault_alloc *fault)
{
    return gi_atomic_u64_load(&fault->failed_count, GI_RELAXED);
}

uint64_t gi_fault_alloc_live_blocks(const struct gi_fault_alloc *fault)
{
    return gi_atomic_u64_load(&fault->live_blocks, GI_RELAXED);
}

uint64_t gi_fault_alloc_live_bytes(const struct gi_fault_alloc *fault)
{
    return gi_atomic_u64_load(&fault->live_bytes, GI_RELAXED);
}
