/* SPDX-License-Identifier: MIT */
/*
 * What comes back from the kernel, one completion at a time, straight from its queue.  Most are
 * delivered as they are; some only tell the engine to go on (a short send, a multishot that the
 * kernel ended by itself, a receive that found no buffer) and are nobody else's business.
 * Reading: io_uring_enter(2), the section on each opcode; docs/adr/0002-raw-io-uring-layer.md.
 */
#include <errno.h>

#include <gori/error.h>

#include "base/assert.h"
#include "engine/uring/uring.h"
#include "os/os.h"

/* Vain cancels of one operation in a row, after which there is a pause before each. */
#define CANCEL_TRIES_MAX 64
#define CANCEL_PAUSE     (5 * GORI_MILLISECONDS)

/* Vain cancels of what is in flight on a closing handle, after which all of it is asked to end. */
#define CLOSE_TRIES_BY_NAME 4

/* Errors in a row of an accept that no peer can cause: at the first it becomes single-shot, after
 * the last it ends. */
#define ACCEPT_TRIES_SINGLE 3
#define ACCEPT_TRIES_MAX    6

/* One completion of the kernel's: a copy, because the room of the original may be used again. */
struct outcome {
    uint64_t user_data;
    int32_t result;
    uint32_t flags;
};

/* The same, and the operation it is about. */
struct event {
    struct gi_uring_slot *slot; /* not good any more after anything is armed, parked or ended */
    struct gori_op *op;
    uint32_t index;
    int32_t result;
    uint32_t flags;
};

/* The engine lets go of an operation: the slot is free, and the handle may be at its end. */
static inline void release_op(struct gi_uring *uring, uint32_t index, const struct gori_op *op)
{
    struct gori_handle *handle = op->handle;
    GI_ASSERT(handle->in_flight > 0);
    handle->in_flight--;
    *gi_uring_note_of(op) = NULL;
    uring->ops_in_flight--;
    if (GI_UNLIKELY(gi_uring_slots_at(&uring->slots, index)->queue != GI_URING_QUEUE_NONE)) {
        gi_uring_slots_remove(&uring->slots, index); /* its cancel was to be asked for again */
    }
    gi_uring_slots_release(&uring->slots, index);
    if (GI_UNLIKELY(handle->state == GI_HANDLE_CLOSING) && handle->in_flight == 0) {
        const struct gi_uring_slot *slot = gi_uring_handle_slot(uring, handle);
        if (slot->queue == GI_URING_QUEUE_REDO) {
            gi_uring_slots_remove(&uring->slots, handle->slot);
        }
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_CLOSED, handle->slot);
    }
}

static inline bool deliver(struct gi_uring *uring, const struct event *event, int64_t result,
                           bool is_last, struct gi_completion *ret_completion)
{
    *ret_completion = (struct gi_completion){
        .op = event->op,
        .what = {.result = result, .is_last = is_last, .accepted = GORI_NATIVE_NONE},
    };
    if (is_last) {
        release_op(uring, event->index, event->op);
    }
    return true;
}

/* An error that ends the operation.  One that was asked to end says so, whatever form it took. */
static GI_COLD bool deliver_error(struct gi_uring *uring, const struct event *event,
                                  struct gi_completion *ret_completion)
{
    int error = gi_os_error(-event->result);
    if (gi_uring_is_ending(event->op)) {
        bool is_passing =
            event->result == -EINTR || event->result == -EAGAIN || event->result == -ENOBUFS;
        error = is_passing ? GORI_ECANCELED : error;
    }
    return deliver(uring, event, error, true, ret_completion);
}

/*
 * Whether an error passes by itself; then the operation is armed again.  EAGAIN is the answer for a
 * socket that somebody has given O_NONBLOCK: it would come again at once.
 */
static GI_COLD bool try_again(struct gi_uring *uring, const struct event *event)
{
    if (gi_uring_is_ending(event->op)) {
        return false;
    }
    if (event->result == -EAGAIN) {
        if (gi_os_set_blocking((int)event->op->handle->native, true) < 0) {
            return false;
        }
    } else if (event->result != -EINTR) {
        return false;
    }
    gi_uring_arm(uring, event->index);
    return true;
}

/*
 * A multishot operation whose activation ended without an error (the kernel's queue was full, or it
 * was single-shot to begin with) goes on, and nobody hears of it; one that was asked to end, ends.
 * A receive that had its one buffer of few goes behind those that wait for theirs.
 */
static GI_NOINLINE void go_on(struct gi_uring *uring, uint32_t index)
{
    struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
    const struct gori_op *op = slot->owner;
    slot->flags &= (uint8_t)~GI_URING_SLOT_KERNEL;
    if (gi_uring_is_ending(op)) {
        gi_uring_finish(uring, index, GORI_ECANCELED);
        return;
    }
    if (op->kind == GORI_OP_RECV_MULTI && (slot->flags & GI_URING_SLOT_ONCE)) {
        if (gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_PARKED) > 0) {
            gi_uring_park(uring, index);
            return;
        }
        slot->flags &= (uint8_t)~GI_URING_SLOT_ONCE;
    }
    gi_uring_arm(uring, index);
}

static bool complete_recv_end(struct gi_uring *uring, const struct event *event,
                              struct gi_completion *ret_completion)
{
    if (event->flags & IORING_CQE_F_BUFFER) {
        struct gori_buffer *unused = gi_recv_buffers_take(&uring->recv_buffers, event->flags);
        gi_buffers_unlend(uring->recv_buffers.pool, unused);
    }
    if (event->flags & IORING_CQE_F_MORE) {
        return false;
    }
    event->slot->flags &= (uint8_t)~GI_URING_SLOT_KERNEL;
    if (event->result == 0) {
        return deliver(uring, event, 0, true, ret_completion);
    }
    if (event->result == -ENOBUFS && !gi_uring_is_ending(event->op)) {
        gi_recv_buffers_starved(&uring->recv_buffers);
        gi_uring_park(uring, event->index);
        return false;
    }
    if (try_again(uring, event)) {
        return false;
    }
    return deliver_error(uring, event, ret_completion);
}

/* Bytes for a multishot receive: the first of the two completions that nearly all are. */
static inline void complete_recv_data(struct gi_uring *uring, struct gi_uring_slot *slot,
                                      struct outcome outcome, struct gi_completion *ret_completion)
{
    GI_ASSERT(outcome.flags & IORING_CQE_F_BUFFER);
    struct gori_buffer *buffer = gi_recv_buffers_take(&uring->recv_buffers, outcome.flags);
    gi_buffers_deliver(uring->recv_buffers.pool, buffer);
    *ret_completion = (struct gi_completion){
        .op = slot->owner,
        .what = {.result = outcome.result,
                 .accepted = GORI_NATIVE_NONE,
                 .buffer = buffer,
                 .data = {.data = buffer->data, .size = (uint32_t)outcome.result}},
    };
    slot->tries = 0;
    if (GI_UNLIKELY(!(outcome.flags & IORING_CQE_F_MORE))) {
        go_on(uring, gi_user_data_slot(outcome.user_data));
    }
}

static bool complete_recv(struct gi_uring *uring, const struct event *event,
                          struct gi_completion *ret_completion)
{
    event->slot->flags &= (uint8_t)~GI_URING_SLOT_KERNEL;
    if (GI_LIKELY(event->result >= 0)) {
        return deliver(uring, event, event->result, true, ret_completion);
    }
    return !try_again(uring, event) && deliver_error(uring, event, ret_completion);
}

/* Moves the cursor over `bytes` that were sent; whether all is sent now. */
static bool advance_send(struct gori_op *op, size_t bytes)
{
    op->as.send.progress += bytes;
    while (op->as.send.index < op->as.send.count) {
        size_t left = op->as.send.pieces[op->as.send.index].size - op->as.send.offset;
        if (bytes < left) {
            op->as.send.offset += bytes;
            return false;
        }
        bytes -= left;
        op->as.send.index++;
        op->as.send.offset = 0;
    }
    GI_ASSERT(bytes == 0);
    return true;
}

/* Whether a result is all of a send of one piece, from its start: the second of the two. */
static inline bool is_whole_send(const struct gori_op *op, int32_t result)
{
    return op->as.send.count == 1 && op->as.send.offset == 0 && result >= 0 &&
           (uint32_t)result == op->as.send.pieces->size;
}

static inline void complete_whole_send(struct gi_uring *uring, struct gori_op *op,
                                       struct outcome outcome, struct gi_completion *ret_completion)
{
    *ret_completion = (struct gi_completion){
        .op = op,
        .what = {.result = outcome.result, .is_last = true, .accepted = GORI_NATIVE_NONE},
    };
    release_op(uring, gi_user_data_slot(outcome.user_data), op);
}

static bool complete_send(struct gi_uring *uring, const struct event *event,
                          struct gi_completion *ret_completion)
{
    event->slot->flags &= (uint8_t)~GI_URING_SLOT_KERNEL;
    if (event->result < 0) {
        return !try_again(uring, event) && deliver_error(uring, event, ret_completion);
    }
    if (advance_send(event->op, (uint32_t)event->result)) {
        return deliver(uring, event, (int64_t)event->op->as.send.progress, true, ret_completion);
    }
    if (gi_uring_is_ending(event->op)) {
        return deliver(uring, event, GORI_ECANCELED, true, ret_completion);
    }
    gi_uring_arm(uring, event->index);
    return false;
}

/* Of a poll: the result is what is ready. */
static bool complete_wait(struct gi_uring *uring, const struct event *event,
                          struct gi_completion *ret_completion)
{
    event->slot->flags &= (uint8_t)~GI_URING_SLOT_KERNEL;
    if (event->result >= 0) {
        return deliver(uring, event, 0, true, ret_completion);
    }
    if (event->result == -EINTR && !gi_uring_is_ending(event->op)) {
        gi_uring_arm(uring, event->index);
        return false;
    }
    return deliver_error(uring, event, ret_completion);
}

static bool complete_connect(struct gi_uring *uring, const struct event *event,
                             struct gi_completion *ret_completion)
{
    event->slot->flags &= (uint8_t)~GI_URING_SLOT_KERNEL;
    if (event->result >= 0) {
        return deliver(uring, event, 0, true, ret_completion);
    }
    return deliver_error(uring, event, ret_completion);
}

/* What an operation of calls.c waited for is there: it goes on, or finds out why not. */
static bool complete_call(struct gi_uring *uring, const struct event *event,
                          struct gi_completion *ret_completion)
{
    event->slot->flags &= (uint8_t)~GI_URING_SLOT_KERNEL;
    if (gi_uring_is_ending(event->op)) {
        return deliver(uring, event, GORI_ECANCELED, true, ret_completion);
    }
    if (event->result < 0 && event->result != -EINTR && event->result != -ETIME) {
        return deliver_error(uring, event, ret_completion);
    }
    gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_CALLS, event->index);
    return false;
}

/* What accept(2) says of the connection it did not get, or of the network, not of the listener. */
static bool is_lost_connection(int result)
{
    switch (result) {
    case -ECONNABORTED:
    case -EINTR:
    case -EPROTO:
    case -ENETDOWN:
    case -ENOPROTOOPT:
    case -EHOSTDOWN:
    case -ENONET:
    case -EHOSTUNREACH:
    case -ENETUNREACH:
        return true;
    default:
        return false;
    }
}

static bool is_lack(int result)
{
    return result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM;
}

/*
 * An accept that failed.  Lack of descriptors and memory is for the runtime, which backs off.  What
 * cannot be, but was seen (a multishot accept that answers ENOTSOCK for ever), is given a few more
 * tries, then single-shot ones, then up.
 */
static GI_COLD bool complete_accept_error(struct gi_uring *uring, const struct event *event,
                                          struct gi_completion *ret_completion)
{
    if (event->flags & IORING_CQE_F_MORE) {
        return false;
    }
    event->slot->flags &= (uint8_t)~GI_URING_SLOT_KERNEL;
    if (gi_uring_is_ending(event->op) || is_lack(event->result)) {
        return deliver_error(uring, event, ret_completion);
    }
    if (try_again(uring, event)) {
        return false;
    }
    if (!is_lost_connection(event->result)) {
        event->slot->tries++;
        if (event->slot->tries >= ACCEPT_TRIES_MAX) {
            return deliver_error(uring, event, ret_completion);
        }
        if (event->slot->tries >= ACCEPT_TRIES_SINGLE) {
            event->slot->flags |= GI_URING_SLOT_ONCE;
        }
    }
    gi_uring_arm(uring, event->index);
    return false;
}

static bool complete_accept(struct gi_uring *uring, const struct event *event,
                            struct gi_completion *ret_completion)
{
    if (event->result < 0) {
        return complete_accept_error(uring, event, ret_completion);
    }
    event->slot->tries = 0;
    (void)deliver(uring, event, 0, false, ret_completion);
    ret_completion->what.accepted = event->result;
    if (!(event->flags & IORING_CQE_F_MORE)) {
        go_on(uring, event->index);
    }
    return true;
}

/* A cancel of all on a descriptor is done, or one of one was in vain; while something is left
 * there, it is asked (again) for all. */
static void ask_handle_again(struct gi_uring *uring, uint32_t index)
{
    if (gi_uring_slots_at(&uring->slots, index)->queue == GI_URING_QUEUE_NONE) {
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_REDO, index);
    }
}

/* A cancel of one operation was in vain.  Its victim ends by itself soon, or is asked again. */
static void complete_cancel(struct gi_uring *uring, uint64_t user_data)
{
    uint32_t index = gi_user_data_slot(user_data);
    struct gi_uring_slot *slot = gi_uring_slots_find(&uring->slots, user_data);
    if (slot == NULL || slot->queue != GI_URING_QUEUE_NONE ||
        !(slot->flags & GI_URING_SLOT_KERNEL)) {
        return;
    }
    const struct gori_op *op = slot->owner;
    if (gi_is_file_kind(op->kind)) {
        return; /* a thread of the kernel's is at it */
    }
    const struct gori_handle *handle = op->handle;
    if (handle->state == GI_HANDLE_CLOSING) {
        /* Counted by the handle: an operation that shows life begins anew. */
        struct gi_uring_slot *handle_slot = gi_uring_handle_slot(uring, handle);
        if (++handle_slot->tries <= CLOSE_TRIES_BY_NAME) {
            gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_REDO, index);
        } else {
            ask_handle_again(uring, handle->slot);
        }
        return;
    }
    if (slot->tries < CANCEL_TRIES_MAX) {
        slot->tries++;
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_REDO, index);
        return;
    }
    if (gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_VAIN) == 0) {
        uring->vain_at = gi_os_now() + CANCEL_PAUSE;
    }
    gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_VAIN, index);
}

static void complete_cancel_handle(struct gi_uring *uring, uint64_t user_data)
{
    if (gi_uring_slots_find(&uring->slots, user_data) != NULL) {
        ask_handle_again(uring, gi_user_data_slot(user_data));
    }
}

/*
 * What is under no living slot.  A socket or a buffer that comes with a completion too late is not
 * lost for that.
 */
static GI_COLD void complete_other(struct gi_uring *uring, struct outcome outcome)
{
    switch (gi_user_data_kind(outcome.user_data)) {
    case GI_URING_CANCEL:
    case GI_URING_CANCEL_HANDLE:
    case GI_URING_NOTHING:
        return;
    case GI_URING_WAKE:
        uring->wake_armed = false;
        /* Pairs with the exchange of wake: what the waker did before is seen after this. */
        (void)gi_atomic_bool_exchange(&uring->shared.woken, false, GI_ACQ_REL);
        return;
    case GORI_OP_ACCEPT:
        if (outcome.result >= 0) {
            gi_os_close(outcome.result);
        }
        break;
    case GORI_OP_RECV_MULTI:
        if (outcome.flags & IORING_CQE_F_BUFFER) {
            struct gori_buffer *late = gi_recv_buffers_take(&uring->recv_buffers, outcome.flags);
            gi_buffers_unlend(uring->recv_buffers.pool, late);
        }
        break;
    default:
        break;
    }
    uring->stale_completions++;
}

/* All completions but the two that nearly all are. */
static GI_NOINLINE bool complete_rare(struct gi_uring *uring, struct outcome outcome,
                                      struct gi_completion *ret_completion)
{
    struct gi_uring_slot *slot = gi_uring_slots_find(&uring->slots, outcome.user_data);
    if (slot == NULL) {
        complete_other(uring, outcome);
        return false;
    }
    const struct event event = {
        .slot = slot,
        .op = slot->owner,
        .index = gi_user_data_slot(outcome.user_data),
        .result = outcome.result,
        .flags = outcome.flags,
    };
    switch (gi_user_data_kind(outcome.user_data)) {
    case GORI_OP_RECV_MULTI:
        return complete_recv_end(uring, &event, ret_completion);
    case GORI_OP_SEND:
        return complete_send(uring, &event, ret_completion);
    case GORI_OP_RECV:
        return complete_recv(uring, &event, ret_completion);
    case GORI_OP_ACCEPT:
        return complete_accept(uring, &event, ret_completion);
    case GORI_OP_CONNECT:
        if (!gi_uring_is_call(event.op)) {
            return complete_connect(uring, &event, ret_completion);
        }
        return complete_call(uring, &event, ret_completion);
    case GORI_OP_SEND_FILE:
        return complete_call(uring, &event, ret_completion);
    case GORI_OP_WAIT:
    case GORI_OP_WAIT_WRITABLE:
        return complete_wait(uring, &event, ret_completion);
    case GI_URING_CANCEL_HANDLE:
        complete_cancel_handle(uring, outcome.user_data);
        return false;
    case GORI_OP_FILE_OPEN:
    case GORI_OP_FILE_READ:
    case GORI_OP_FILE_WRITE:
    case GORI_OP_FILE_SYNC:
    case GORI_OP_FILE_STAT:
    case GORI_OP_FILE_TRUNCATE:
    case GORI_OP_FILE_CLOSE:
        return gi_uring_complete_file(uring, event.index, event.result, ret_completion);
    default:
        complete_cancel(uring, outcome.user_data);
        return false;
    }
}

/* One completion of the kernel's; whether it makes one for the runtime. */
static inline bool complete(struct gi_uring *uring, struct outcome outcome,
                            struct gi_completion *ret_completion)
{
    struct gi_uring_slot *slot = gi_uring_slots_find(&uring->slots, outcome.user_data);
    uint8_t kind = gi_user_data_kind(outcome.user_data);
    if (GI_LIKELY(slot != NULL)) {
        if (kind == GORI_OP_RECV_MULTI && outcome.result > 0) {
            complete_recv_data(uring, slot, outcome, ret_completion);
            return true;
        }
        if (kind == GORI_OP_SEND && is_whole_send(slot->owner, outcome.result)) {
            complete_whole_send(uring, slot->owner, outcome, ret_completion);
            return true;
        }
    }
    return complete_rare(uring, outcome, ret_completion);
}

static bool deliver_closed(struct gi_uring *uring, struct gi_completion *ret_completion)
{
    uint32_t index = gi_uring_slots_pop(&uring->slots, GI_URING_QUEUE_CLOSED);
    struct gori_handle *handle = gi_uring_slots_at(&uring->slots, index)->owner;
    GI_ASSERT(handle->in_flight == 0);
    /* By the system call: one less way for the kernel to put the end of the stream off, and no
     * dearer than a submission and its completion. */
    gi_os_close((int)handle->native);
    gi_uring_slots_release(&uring->slots, index);
    *ret_completion = (struct gi_completion){.closed = handle};
    return true;
}

/* What ended in user space.  Of such an operation nothing is in the kernel's queue any more. */
static GI_NOINLINE bool deliver_own(struct gi_uring *uring, struct gi_completion *ret_completion)
{
    uint32_t index = gi_uring_slots_pop(&uring->slots, GI_URING_QUEUE_READY);
    if (index == GI_URING_SLOT_NONE) {
        return deliver_closed(uring, ret_completion);
    }
    struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
    if (gi_is_file_kind(((const struct gori_op *)slot->owner)->kind)) {
        return gi_uring_deliver_file(uring, index, slot->result, ret_completion);
    }
    struct event event = {.slot = slot, .op = slot->owner, .index = index};
    int64_t result = slot->result;
    if (result == 0 && event.op->kind == GORI_OP_SEND_FILE) {
        result = (int64_t)event.op->as.send_file.size;
    }
    return deliver(uring, &event, result, true, ret_completion);
}

bool gi_uring_next(struct gi_engine *engine, struct gi_completion *ret_completion)
{
    struct gi_uring *uring = (struct gi_uring *)engine;
    for (;;) {
        if (GI_UNLIKELY(gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_READY) > 0 ||
                        gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_CLOSED) > 0)) {
            return deliver_own(uring, ret_completion);
        }
        const struct io_uring_cqe *cqe = gi_ring_next_cqe(&uring->ring);
        if (cqe == NULL) {
            return false;
        }
        struct outcome outcome = {
            .user_data = cqe->user_data, .result = cqe->res, .flags = cqe->flags};
        if (complete(uring, outcome, ret_completion)) {
            return true;
        }
    }
}
