/* SPDX-License-Identifier: MIT */
/*
 * The inside of the io_uring engine, for the files of this folder only.
 *
 *   engine.c    life, the turn, wake                 submit.c   what goes to the kernel
 *   complete.c  what comes back                      calls.c    what the engine does itself
 *   files.c     file ops                             ring.c, slots.c, recv_buffers.c   their names
 *   probe.c     what is to be had on this machine
 *
 * Where an operation is, by its slot:
 *
 *   submit ──> KERNEL ──completion──> delivered, slot released
 *     │          │ ^ │
 *     │          │ │ └─ no buffer ──> PARKED ── buffers are back ──┐
 *     │          │ └──── next turn ── REDO <── queue full, lost F_MORE, short send
 *     └─ file ─> CALLS ── would block ──> KERNEL (a poll) ──> CALLS
 *   REDO, PARKED, CALLS ── done or cancelled ──> READY ──> delivered, slot released
 *
 *  U1  An operation ends by its own completion only, or in user space when the kernel has nothing
 *      of it.  What a cancel says of itself never ends one; it is asked again while it was in vain.
 *  U2  A descriptor is closed when its handle has nothing in flight, so a number is reused only
 *      after all that was said about the old one.
 *  U3  gori_op.state and gori_handle.state belong to the runtime; the engine reads them.
 *  U4  handle.reads.next and handle.writes.next are the links of what is in flight in each
 *      direction, of which there is one at most (E4), or NULL.  So closing can end them by name:
 *      by descriptor the kernel walks over everything that is in flight on the ring, and closing
 *      n handles took n * n steps: seconds, from some thousands of idle connections on.
 *  Thread: the loop's, but for `shared`.
 */
#ifndef GI_ENGINE_URING_URING_H
#define GI_ENGINE_URING_URING_H

#include "base/atomic.h"
#include "engine/engine.h"
#include "engine/uring/recv_buffers.h"
#include "engine/uring/ring.h"
#include "engine/uring/slots.h"

/** The kinds in user_data beside those of enum gori_op_kind. */
enum gi_uring_kind {
    GI_URING_CANCEL = 16,        /* a cancel of one operation, of itself */
    GI_URING_CANCEL_HANDLE = 17, /* a cancel of all on a descriptor, of itself */
    GI_URING_WAKE = 18,
    GI_URING_NOTHING = 19
};

/** user_data of what belongs to the engine itself: no slot has this index. */
#define GI_URING_OWN(kind) ((uint64_t)GI_URING_SLOTS_MAX << 8 | (kind))

struct gi_uring {
    struct gi_engine base;
    struct gi_ring ring;
    struct gi_uring_slots slots;
    struct gi_recv_buffers recv_buffers;
    struct msghdr *headers; /* one for each SQE; NULL when gathered sends need none */
    uint32_t header_count;
    uint32_t ops_in_flight;
    uint32_t ops_max;
    bool sq_was_full; /* since the rings were last made larger */
    bool cq_was_full;
    bool may_grow;
    bool wake_armed;
    gori_time vain_at;   /* when those in QUEUE_VAIN are asked again */
    uint64_t wake_count; /* read from `wake_fd`, of no interest */
    uint64_t stale_completions;
    const struct gori_allocator *allocator;
    uint8_t padding[GI_CACHE_LINE]; /* the allocator aligns to less than a cache line */
    struct {
        struct gi_atomic_bool woken; /* set by whoever wakes, cleared when that was seen */
        int wake_fd;                 /* an eventfd */
    } shared;
};

/** Whether an operation was asked to end, itself or with its handle. */
static inline bool gi_uring_is_ending(const struct gori_op *op)
{
    return op->state == GI_OP_CANCELING ||
           (op->handle != NULL && op->handle->state == GI_HANDLE_CLOSING);
}

/** Where its handle notes that an operation is in flight (U4). */
static inline struct gori_link **gi_uring_note_of(const struct gori_op *op)
{
    bool reads = op->kind == GORI_OP_RECV_MULTI || op->kind == GORI_OP_RECV ||
                 op->kind == GORI_OP_ACCEPT || op->kind == GORI_OP_WAIT;
    return reads ? &op->handle->reads.next : &op->handle->writes.next;
}

/** The slot of an operation's handle. */
static inline struct gi_uring_slot *gi_uring_handle_slot(struct gi_uring *uring,
                                                         const struct gori_handle *handle)
{
    return gi_uring_slots_at(&uring->slots, handle->slot);
}

/* submit.c */
int gi_uring_attach(struct gi_engine *engine, struct gori_handle *handle);
int gi_uring_submit(struct gi_engine *engine, struct gori_op *op);
void gi_uring_cancel(struct gi_engine *engine, struct gori_op *op);
void gi_uring_close(struct gi_engine *engine, struct gori_handle *handle);

/** Gives the operation in `index` to the kernel, now or, when its queue is full, next turn. */
void gi_uring_arm(struct gi_uring *uring, uint32_t index);

/** Lets a receive wait for buffers, behind all that wait already. */
void gi_uring_park(struct gi_uring *uring, uint32_t index);

/** The operation in `index` has ended without the kernel: `error`, or 0 for all of it done. */
void gi_uring_finish(struct gi_uring *uring, uint32_t index, int error);

/** Does what REDO holds. */
void gi_uring_redo(struct gi_uring *uring);

/** Gives parked receives to the kernel, as many as there are buffers for. */
void gi_uring_resume_parked(struct gi_uring *uring);

/** Waits in the kernel for a wake, unless that is done already. */
void gi_uring_arm_wake(struct gi_uring *uring);

/* complete.c */
bool gi_uring_next(struct gi_engine *engine, struct gi_completion *ret_completion);

/* files.c */

/** Writes the submission of a file op. */
void gi_uring_fill_file(const struct gori_op *owner, uint64_t user_data, struct io_uring_sqe *sqe);

int gi_uring_submit_file(struct gi_uring *uring, struct gori_op *op);

/** Takes in what the kernel said; whether that makes a completion for the runtime. */
bool gi_uring_complete_file(struct gi_uring *uring, uint32_t index, int32_t result,
                            struct gi_completion *ret_completion);

/** Ends a file op of which the kernel has nothing. */
bool gi_uring_deliver_file(struct gi_uring *uring, uint32_t index, int64_t result,
                           struct gi_completion *ret_completion);

/* calls.c */

/** Whether an operation is done by system calls of our own. */
bool gi_uring_is_call(const struct gori_op *op);

/** Does, a bounded amount, what CALLS holds. */
void gi_uring_make_calls(struct gi_uring *uring);

#endif
