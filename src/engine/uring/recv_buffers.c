/* SPDX-License-Identifier: MIT */
/*
 * The provided buffer ring; the rules are in recv_buffers.h.
 * Reading: io_uring_register(2), IORING_REGISTER_PBUF_RING; docs/adr/0002-raw-io-uring-layer.md.
 */
#include "engine/uring/recv_buffers.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/assert.h"

#define TARGET_START 32
#define CAPACITY_MAX 512 /* 2 MiB of the usual buffers: as much as a core's cache holds */
#define PERIOD_TURNS 1024

static size_t ring_bytes(uint32_t capacity)
{
    return capacity * sizeof(struct io_uring_buf);
}

int gi_recv_buffers_init(struct gi_recv_buffers *buffers, const struct gi_ring *ring,
                         struct gi_buffers *pool)
{
    uint32_t capacity = 1;
    while (capacity < pool->buffers_max && capacity < CAPACITY_MAX) {
        capacity *= 2;
    }
    void *memory = mmap(NULL, ring_bytes(capacity), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -ENOMEM;
    }
    (void)madvise(memory, ring_bytes(capacity), MADV_DONTFORK);
    struct io_uring_buf_reg group = {
        .ring_addr = (uintptr_t)memory, .ring_entries = capacity, .bgid = GI_RECV_BUFFERS_GROUP};
    int result = gi_ring_register(ring, IORING_REGISTER_PBUF_RING, &group, 1);
    if (result < 0) {
        (void)munmap(memory, ring_bytes(capacity));
        return result;
    }
    *buffers = (struct gi_recv_buffers){
        .pool = pool,
        .ring = memory,
        .mask = capacity - 1,
        .target = gi_min_u32(TARGET_START, capacity),
        .lowest = UINT32_MAX,
    };
    return 0;
}

void gi_recv_buffers_fini(struct gi_recv_buffers *buffers, const struct gi_ring *ring)
{
    if (buffers->ring == NULL) {
        return;
    }
    struct io_uring_buf_reg group = {.bgid = GI_RECV_BUFFERS_GROUP};
    int error = gi_ring_register(ring, IORING_UNREGISTER_PBUF_RING, &group, 1);
    GI_ASSERT(error == 0);
    while (buffers->provided > 0) {
        uint32_t index = (uint16_t)(buffers->tail - buffers->provided) & buffers->mask;
        gi_buffers_unlend(buffers->pool,
                          gi_buffers_at(buffers->pool, buffers->ring->bufs[index].bid));
        buffers->provided--;
    }
    (void)munmap(buffers->ring, ring_bytes(buffers->mask + 1));
    *buffers = (struct gi_recv_buffers){0};
}

/*
 * Doubles the target when a receive since the last turn found too few, however many did; halves it
 * when at least half of it was never in use for a whole period.
 */
static void adapt(struct gi_recv_buffers *buffers)
{
    if (GI_UNLIKELY(buffers->wants_more)) {
        buffers->target = gi_min_u32(buffers->target * 2, buffers->mask + 1);
        buffers->wants_more = false;
    }
    buffers->lowest = gi_min_u32(buffers->lowest, buffers->provided);
    if (++buffers->turns < PERIOD_TURNS) {
        return;
    }
    if (buffers->lowest > buffers->target / 2 && buffers->target > TARGET_START) {
        buffers->target /= 2;
    }
    buffers->turns = 0;
    buffers->lowest = UINT32_MAX;
}

void gi_recv_buffers_refill(struct gi_recv_buffers *buffers)
{
    adapt(buffers);
    if (buffers->provided >= buffers->target) {
        return;
    }
    uint16_t tail = buffers->tail;
    uint32_t missing = buffers->target - buffers->provided;
    while (missing > 0 && gi_buffers_can_lend(buffers->pool)) {
        struct gori_buffer *buffer = gi_buffers_lend(buffers->pool);
        if (buffer == NULL) {
            break;
        }
        struct io_uring_buf *entry = &buffers->ring->bufs[tail & buffers->mask];
        entry->addr = (uintptr_t)buffer->data;
        entry->len = buffers->pool->buffer_bytes;
        entry->bid = (uint16_t)buffer->index;
        tail++;
        missing--;
    }
    buffers->provided += (uint16_t)(tail - buffers->tail);
    buffers->tail = tail;
    /* Pairs with the kernel's acquire of the tail: it sees the entries before the number of them.
     */
    __atomic_store_n(&buffers->ring->tail, tail, __ATOMIC_RELEASE);
}

void gi_recv_buffers_starved(struct gi_recv_buffers *buffers)
{
    if (!gi_buffers_can_lend(buffers->pool)) {
        buffers->pool->starved++;
    } else {
        buffers->wants_more = true;
    }
}

struct gori_buffer *gi_recv_buffers_take(struct gi_recv_buffers *buffers, uint32_t cqe_flags)
{
    GI_ASSERT(buffers->provided > 0);
    buffers->provided--;
    return gi_buffers_at(buffers->pool, cqe_flags >> IORING_CQE_BUFFER_SHIFT);
}
