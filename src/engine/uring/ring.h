/* SPDX-License-Identifier: MIT */
/*
 * The raw ring: set up, mapped, entered, and its two queues.  It knows no operations and no gori
 * objects.  Results are the kernel's own, negative errno values; engine.c translates at its border.
 *
 *  R1  One thread creates, enters and registers: the ring is SINGLE_ISSUER.
 *  R2  An SQE taken is in the queue: it is submitted by the next enter, in order.  What an enter
 *      did not take (the kernel was out of memory) goes with the next one.  Only the kernel's head
 *      says what was taken.
 *  R3  CQEs are read up to the tail that the last enter saw.  Their room is given back at the next
 *      enter, which therefore may write over them: copy what is needed before.
 *  R4  Whatever is queued or not yet read survives gi_ring_grow.
 */
#ifndef GI_ENGINE_URING_RING_H
#define GI_ENGINE_URING_RING_H

#include <gori/base.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "engine/uring/abi.h"
#include "engine/uring/features.h"

/** What a ring is made of. */
struct gi_ring_config {
    uint32_t sq_entries; /* powers of two */
    uint32_t cq_entries;
    uint32_t disabled; /* features not to be used */
};

/** One ring.  The first two cache lines are what each operation touches. */
struct gi_ring {
    struct io_uring_sqe *sqes;
    uint32_t sq_tail; /* ours; the kernel's is written at enter */
    uint32_t sq_head; /* as the last enter saw it */
    uint32_t sq_mask;
    uint32_t cq_mask;
    const struct io_uring_cqe *cqes;
    uint32_t cq_head; /* ours; the kernel's is written at enter */
    uint32_t cq_tail; /* as the last enter saw it */

    uint32_t *kernel_sq_head;
    uint32_t *kernel_sq_tail;
    const uint32_t *kernel_sq_flags;
    uint32_t *kernel_cq_head;
    const uint32_t *kernel_cq_tail;
    int enter_fd; /* the registered index, or `fd` */
    uint32_t enter_flags;

    int fd;
    uint32_t features;     /* enum gi_uring_feature, in use */
    uint32_t kernel_flags; /* as given to io_uring_setup */
    uint32_t kernel_features;
    uint64_t enters;
    void *rings_memory;
    size_t rings_bytes;
    size_t sqes_bytes;
};

/**
 * Opens a ring with the best set of flags that the kernel takes.  Errors: -EPERM, -EACCES, -ENOSYS
 * when there is none to be had; -EINVAL when the kernel is older than 6.0; -ENOMEM, -EMFILE,
 * -ENFILE.
 */
GORI_MUST_USE int gi_ring_init(struct gi_ring *ring, const struct gi_ring_config *config);

void gi_ring_fini(struct gi_ring *ring);

/**
 * Submits what is queued and waits for `wait_count` completions, at most until `deadline`; with 0
 * it only looks.  Errors: those of the kernel but -ETIME and -EINTR, which are 0.
 */
GORI_MUST_USE int gi_ring_enter(struct gi_ring *ring, uint32_t wait_count, gori_time deadline);

/** Waits for a completion, at most until `deadline`, and submits nothing.  Errors: the same. */
GORI_MUST_USE int gi_ring_wait(struct gi_ring *ring, gori_time deadline);

/**
 * Submits what is queued and harvests nothing: for a queue that is full in the middle of a turn.
 * Errors: as gi_ring_enter; what was not taken stays queued, and the next enter says why.
 */
int gi_ring_flush(struct gi_ring *ring);

/** io_uring_register(2) on this ring. */
GORI_MUST_USE int gi_ring_register(const struct gi_ring *ring, uint32_t opcode, void *argument,
                                   uint32_t count);

/**
 * Gives the ring queues of other sizes (powers of two).  On failure it is as it was.
 * Errors: -EINVAL without GI_URING_RESIZE_RINGS, -ENOMEM, -EOVERFLOW when what is queued does not
 * fit; -ENOTRECOVERABLE when the kernel has moved and we could not follow: the ring is dead.
 */
GORI_MUST_USE int gi_ring_resize(struct gi_ring *ring, uint32_t sq_entries, uint32_t cq_entries);

static inline uint32_t gi_ring_sq_entries(const struct gi_ring *ring)
{
    return ring->sq_mask + 1;
}

static inline uint32_t gi_ring_cq_entries(const struct gi_ring *ring)
{
    return ring->cq_mask + 1;
}

/** The number of SQEs queued and not yet taken by the kernel. */
static inline uint32_t gi_ring_queued(const struct gi_ring *ring)
{
    return ring->sq_tail - ring->sq_head;
}

/** The next free SQE, undefined in content: all of it must be written.  NULL when there is none. */
static inline struct io_uring_sqe *gi_ring_take_sqe(struct gi_ring *ring)
{
    if (GI_UNLIKELY(ring->sq_tail - ring->sq_head > ring->sq_mask)) {
        return NULL;
    }
    return &ring->sqes[ring->sq_tail++ & ring->sq_mask];
}

/** The number of CQEs to read. */
static inline uint32_t gi_ring_ready(const struct gi_ring *ring)
{
    return ring->cq_tail - ring->cq_head;
}

/** The next CQE, or NULL.  It is valid until the next enter or flush. */
static inline const struct io_uring_cqe *gi_ring_next_cqe(struct gi_ring *ring)
{
    if (ring->cq_head == ring->cq_tail) {
        return NULL;
    }
    return &ring->cqes[ring->cq_head++ & ring->cq_mask];
}

/** Whether completions wait in the kernel because the queue was full. */
bool gi_ring_has_overflow(const struct gi_ring *ring);

#endif
