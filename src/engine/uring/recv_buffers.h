/* SPDX-License-Identifier: MIT */
/*
 * The receive buffers in the kernel's hands: a ring of provided buffers, fed from the loop's pool.
 * The kernel takes them first in, first out, so the ring is kept short: the fewer circulate, the
 * hotter they are.  The number adapts between START and the capacity: it doubles when a receive
 * found none though the pool had more, and halves when half of them were never used for a while.
 *
 *  P1  A buffer is given to the kernel once, and comes back by exactly one completion that carries
 *      its number, or in fini.
 *  P2  `provided` counts those in the ring; the kernel sees new ones after one release store a
 *      turn.
 *  P3  Address, length and number are written anew each time: kernels before 6.12.94, 6.18.36 and
 *      7.0.13 shorten the length in the ring itself.
 * Thread: the loop's.
 */
#ifndef GI_ENGINE_URING_RECV_BUFFERS_H
#define GI_ENGINE_URING_RECV_BUFFERS_H

#include "engine/buffers.h"
#include "engine/uring/ring.h"

/** The one group that all receives draw from. */
#define GI_RECV_BUFFERS_GROUP 0

struct gi_recv_buffers {
    struct gi_buffers *pool;
    struct io_uring_buf_ring *ring;
    uint32_t mask;
    uint32_t target;   /* how many to keep provided */
    uint32_t provided; /* how many the kernel has */
    uint32_t lowest;   /* fewest it had in this period */
    uint32_t turns;    /* of this period */
    uint16_t tail;
    bool wants_more; /* since the last turn: a receive found none, the pool had more */
};

/** Registers the ring.  Errors: negative errno values of the kernel. */
GORI_MUST_USE int gi_recv_buffers_init(struct gi_recv_buffers *buffers, const struct gi_ring *ring,
                                       struct gi_buffers *pool);

/** Takes the ring away from the kernel and gives its buffers back to the pool. */
void gi_recv_buffers_fini(struct gi_recv_buffers *buffers, const struct gi_ring *ring);

/** Once a turn: fills the ring up to the target, as far as the pool goes. */
void gi_recv_buffers_refill(struct gi_recv_buffers *buffers);

/** A receive found the ring empty: wants more of it, if that was the reason. */
void gi_recv_buffers_starved(struct gi_recv_buffers *buffers);

/** The buffer that a completion names; it now belongs to the caller, still lent. */
struct gori_buffer *gi_recv_buffers_take(struct gi_recv_buffers *buffers, uint32_t cqe_flags);

#endif
