/* SPDX-License-Identifier: MIT */
/*
 * What goes to the kernel: operations, their cancels, and the end of handles.  The queue of
 * submissions is full now and then; what finds no room is kept in REDO and goes in the next turn.
 * A submission is 64 bytes, all of which are written, in order, by one assignment.
 * Reading: io_uring_enter(2), the section on each opcode.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <gori/error.h>

#include "base/assert.h"
#include "engine/uring/uring.h"
#include "os/os.h"

/* Most bytes of one piece in one submission: its length is 32 bits wide, the result 31. */
#define SEND_BYTES_MAX (1u << 30)

/* Vain cancels in a row before another way is taken. */
#define CANCEL_TRIES_MAX 16

/* The queue is full in the middle of a turn: what it holds goes to the kernel now. */
static GI_COLD GI_NOINLINE struct io_uring_sqe *flush_and_take(struct gi_uring *uring)
{
    uring->sq_was_full = true;
    /* Nothing is lost when it fails: the queue is as it was, and the turn reports errors that last.
     */
    (void)gi_ring_flush(&uring->ring);
    return gi_ring_take_sqe(&uring->ring);
}

static inline struct io_uring_sqe *take_sqe(struct gi_uring *uring)
{
    struct io_uring_sqe *sqe = gi_ring_take_sqe(&uring->ring);
    return GI_LIKELY(sqe != NULL) ? sqe : flush_and_take(uring);
}

/*
 * Multishot while there are buffers; else once, after a poll, since an empty ring must not matter
 * before there is something to receive.  Never multishot and a poll first: when a reset stands
 * behind the last bytes already, the kernel (seen in 6.18) delivers the bytes and never looks
 * again.
 */
static inline void fill_recv_multi(const struct gi_uring *uring, struct gi_uring_slot *slot, int fd,
                                   uint64_t user_data, struct io_uring_sqe *sqe)
{
    if (GI_UNLIKELY(uring->recv_buffers.provided == 0)) {
        slot->flags |= GI_URING_SLOT_ONCE;
    }
    bool multishot =
        (uring->ring.features & GI_URING_RECV_MULTISHOT) && !(slot->flags & GI_URING_SLOT_ONCE);
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_RECV,
        .flags = IOSQE_BUFFER_SELECT,
        .ioprio = (uint16_t)(multishot ? IORING_RECV_MULTISHOT : IORING_RECVSEND_POLL_FIRST),
        .fd = fd,
        .buf_group = GI_RECV_BUFFERS_GROUP,
        .user_data = user_data,
    };
}

static inline void fill_recv(const struct gori_op *op, int fd, uint64_t user_data,
                             struct io_uring_sqe *sqe)
{
    size_t size = gi_min_size(op->as.recv.size, SEND_BYTES_MAX);
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_RECV,
        .ioprio = IORING_RECVSEND_POLL_FIRST,
        .fd = fd,
        .addr = (uintptr_t)op->as.recv.data,
        .len = (uint32_t)size,
        .user_data = user_data,
    };
}

/* MSG_WAITALL: the kernel goes on by itself after a short send: one completion is the rule. */
static inline uint32_t send_flags(const struct gori_op *op)
{
    return MSG_WAITALL | MSG_NOSIGNAL | (op->more ? MSG_MORE : 0u);
}

/* Several whole pieces: as they are where the kernel takes them so, else under a message header,
 * which it copies while it submits, as it does the pieces. */
static void fill_gathered_send(const struct gi_uring *uring, const struct gori_op *op, int fd,
                               uint64_t user_data, struct io_uring_sqe *sqe)
{
    const struct gori_slice *pieces = &op->as.send.pieces[op->as.send.index];
    uint32_t count = op->as.send.count - op->as.send.index;
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_SEND,
        .ioprio = GI_URING_IOPRIO_VECTORIZED,
        .fd = fd,
        .addr = (uintptr_t)pieces,
        .len = count,
        .msg_flags = send_flags(op),
        .user_data = user_data,
    };
    if (uring->headers != NULL) {
        struct msghdr *header = &uring->headers[sqe - uring->ring.sqes];
        *header =
            (struct msghdr){.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = count};
        sqe->opcode = IORING_OP_SENDMSG;
        sqe->ioprio = 0;
        sqe->addr = (uintptr_t)header;
        sqe->len = 1;
    }
}

static inline void fill_send(const struct gi_uring *uring, const struct gori_op *op, int fd,
                             uint64_t user_data, struct io_uring_sqe *sqe)
{
    const struct gori_slice *piece = &op->as.send.pieces[op->as.send.index];
    size_t offset = op->as.send.offset;
    if (op->as.send.count - op->as.send.index > 1 && offset == 0) {
        fill_gathered_send(uring, op, fd, user_data, sqe);
        return;
    }
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_SEND,
        .fd = fd,
        .addr = (uintptr_t)(piece->data + offset),
        .len = (uint32_t)gi_min_size(piece->size - offset, SEND_BYTES_MAX),
        .msg_flags = send_flags(op),
        .user_data = user_data,
    };
}

static void fill_accept(const struct gi_uring *uring, const struct gi_uring_slot *slot, int fd,
                        uint64_t user_data, struct io_uring_sqe *sqe)
{
    bool multishot =
        (uring->ring.features & GI_URING_ACCEPT_MULTISHOT) && !(slot->flags & GI_URING_SLOT_ONCE);
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_ACCEPT,
        .ioprio = (uint16_t)(multishot ? IORING_ACCEPT_MULTISHOT : 0),
        .fd = fd,
        .accept_flags = SOCK_CLOEXEC,
        .user_data = user_data,
    };
}

/* Tries again a little later; see calls.c. */
static void fill_timer(uint64_t user_data, struct io_uring_sqe *sqe)
{
    static const struct __kernel_timespec span = {.tv_nsec = 2 * (long long)GORI_MILLISECONDS};
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_TIMEOUT,
        .fd = -1,
        .addr = (uintptr_t)&span,
        .len = 1,
        .user_data = user_data,
    };
}

static void fill_connect(const struct gori_op *op, int fd, uint64_t user_data,
                         struct io_uring_sqe *sqe)
{
    const struct gori_addr *addr = op->as.connect.addr;
    if (gi_uring_is_call(op)) {
        fill_timer(user_data, sqe);
        return;
    }
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_CONNECT,
        .fd = fd,
        .off = addr->size,
        .addr = (uintptr_t)addr->as.native,
        .user_data = user_data,
    };
}

/* An event source waits to be ready; a file send, which calls.c does, for room in the socket. */
static void fill_poll(uint32_t events, int fd, uint64_t user_data, struct io_uring_sqe *sqe)
{
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_POLL_ADD,
        .fd = fd,
        .poll32_events = events,
        .user_data = user_data,
    };
}

void gi_uring_arm(struct gi_uring *uring, uint32_t index)
{
    struct io_uring_sqe *sqe = take_sqe(uring);
    if (GI_UNLIKELY(sqe == NULL)) {
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_REDO, index);
        return;
    }
    struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
    const struct gori_op *op = slot->owner;
    slot->generation++;
    slot->flags |= GI_URING_SLOT_KERNEL;
    uint64_t user_data = gi_uring_slots_user_data(&uring->slots, index, op->kind);
    if (GI_UNLIKELY(gi_is_file_kind(op->kind))) {
        gi_uring_fill_file(op, user_data, sqe);
        return;
    }
    int fd = (int)op->handle->native;
    switch (op->kind) {
    case GORI_OP_SEND:
        fill_send(uring, op, fd, user_data, sqe);
        break;
    case GORI_OP_RECV_MULTI:
        fill_recv_multi(uring, slot, fd, user_data, sqe);
        break;
    case GORI_OP_RECV:
        fill_recv(op, fd, user_data, sqe);
        break;
    case GORI_OP_ACCEPT:
        fill_accept(uring, slot, fd, user_data, sqe);
        break;
    case GORI_OP_CONNECT:
        fill_connect(op, fd, user_data, sqe);
        break;
    case GORI_OP_WAIT:
        fill_poll(POLLIN, fd, user_data, sqe);
        break;
    case GORI_OP_WAIT_WRITABLE:
        fill_poll(POLLOUT, fd, user_data, sqe);
        break;
    default:
        GI_ASSERT(op->kind == GORI_OP_SEND_FILE);
        fill_poll(POLLOUT, fd, user_data, sqe);
        break;
    }
}

/*
 * On a socket with O_NONBLOCK io_uring answers EAGAIN instead of waiting, but for an accept (seen
 * on 6.18; where it does, complete.c sees to it).  The mode of a listener is left alone: in another
 * loop or process a poller may count on it.  Of an event source nothing is read here.
 */
static int make_blocking(const struct gori_handle *handle)
{
    const uint8_t is_fine = GI_HANDLE_BLOCKS | GI_HANDLE_LISTENER | GI_HANDLE_SOURCE;
    return (handle->flags & is_fine) ? 0 : gi_os_set_blocking((int)handle->native, true);
}

int gi_uring_attach(struct gi_engine *engine, struct gori_handle *handle)
{
    struct gi_uring *uring = (struct gi_uring *)engine;
    int error = make_blocking(handle);
    if (error < 0) {
        return error;
    }
    uint32_t index = gi_uring_slots_take(&uring->slots, handle, GI_URING_SLOT_HANDLE);
    if (index == GI_URING_SLOT_NONE) {
        return GORI_ENOMEM;
    }
    handle->slot = index;
    handle->in_flight = 0;
    handle->reads.next = NULL;
    handle->writes.next = NULL;
    return 0;
}

int gi_uring_submit(struct gi_engine *engine, struct gori_op *op)
{
    struct gi_uring *uring = (struct gi_uring *)engine;
    if (GI_UNLIKELY(gi_is_file_kind(op->kind))) {
        return gi_uring_submit_file(uring, op);
    }
    if (GI_UNLIKELY(uring->ops_in_flight >= uring->ops_max)) {
        return GORI_ELIMIT;
    }
    uint32_t index = gi_uring_slots_take(&uring->slots, op, 0);
    if (GI_UNLIKELY(index == GI_URING_SLOT_NONE)) {
        return GORI_ENOMEM;
    }
    op->slot = index;
    op->handle->in_flight++;
    *gi_uring_note_of(op) = &op->link;
    uring->ops_in_flight++;
    if (GI_UNLIKELY(op->kind == GORI_OP_SEND_FILE || op->kind == GORI_OP_CONNECT) &&
        gi_uring_is_call(op)) {
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_CALLS, index);
    } else {
        gi_uring_arm(uring, index);
    }
    return 0;
}

void gi_uring_finish(struct gi_uring *uring, uint32_t index, int error)
{
    struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
    GI_ASSERT(!(slot->flags & GI_URING_SLOT_KERNEL));
    if (slot->queue != GI_URING_QUEUE_NONE) {
        gi_uring_slots_remove(&uring->slots, index); /* its cancel was to be asked for again */
    }
    slot->result = error;
    gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_READY, index);
}

/* Takes an operation that waits in user space out of its queue. */
static void take_from_queue(struct gi_uring *uring, uint32_t index)
{
    struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
    if (slot->queue == GI_URING_QUEUE_PARKED) {
        const struct gori_op *op = slot->owner;
        gi_uring_handle_slot(uring, op->handle)->waiting = GI_URING_SLOT_NONE;
    }
    gi_uring_slots_remove(&uring->slots, index);
}

/* Asks the kernel to end one operation.  Only a refusal is told: success shows in the victim. */
static void ask_to_end(struct gi_uring *uring, uint32_t index)
{
    struct io_uring_sqe *sqe = take_sqe(uring);
    if (GI_UNLIKELY(sqe == NULL)) {
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_REDO, index);
        return;
    }
    const struct gori_op *op = gi_uring_slots_at(&uring->slots, index)->owner;
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_ASYNC_CANCEL,
        .flags = IOSQE_CQE_SKIP_SUCCESS,
        .fd = -1,
        .addr = gi_uring_slots_user_data(&uring->slots, index, op->kind),
        .user_data = gi_uring_slots_user_data(&uring->slots, index, GI_URING_CANCEL),
    };
}

void gi_uring_cancel(struct gi_engine *engine, struct gori_op *op)
{
    struct gi_uring *uring = (struct gi_uring *)engine;
    struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, op->slot);
    GI_ASSERT(slot->owner == op);
    if (slot->queue == GI_URING_QUEUE_READY) {
        return;
    }
    slot->tries = 0;
    if (slot->flags & GI_URING_SLOT_KERNEL) {
        ask_to_end(uring, op->slot);
        return;
    }
    take_from_queue(uring, op->slot);
    gi_uring_finish(uring, op->slot, GORI_ECANCELED);
}

/*
 * Asks the kernel to end everything on the descriptor of a handle: the dear way, for when ending
 * one by one was in vain.  Its answer is a hint at best (U1), so it is asked again each turn while
 * something is left; and when that was in vain for long, the socket is shut down, after which no
 * operation on it can wait.  Not a listener: others may have it too, and would lose it.
 */
static void ask_all_to_end(struct gi_uring *uring, uint32_t index)
{
    struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
    const struct gori_handle *handle = slot->owner;
    int fd = (int)handle->native;
    bool was_in_vain = slot->tries >= CANCEL_TRIES_MAX;
    if (was_in_vain && !(handle->flags & GI_HANDLE_LISTENER)) {
        (void)shutdown(fd, SHUT_RDWR);
        return;
    }
    struct io_uring_sqe *sqe = take_sqe(uring);
    if (GI_UNLIKELY(sqe == NULL)) {
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_REDO, index);
        return;
    }
    slot->tries = (uint8_t)(slot->tries + (was_in_vain ? 0 : 1));
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_ASYNC_CANCEL,
        .fd = fd,
        .cancel_flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL,
        .user_data = gi_uring_slots_user_data(&uring->slots, index, GI_URING_CANCEL_HANDLE),
    };
}

/* Ends what is in flight in one direction of a handle that closes.  Result: whether there is. */
static bool end_noted(struct gi_uring *uring, struct gori_link *note)
{
    if (note == NULL) {
        return false;
    }
    struct gori_op *op = gori_container_of(note, struct gori_op, link);
    const struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, op->slot);
    /* Also what was asked to end before, so that no cancel in vain is the last; what waits in user
     * space is looked at in the next turn. */
    if ((slot->flags & GI_URING_SLOT_KERNEL) && slot->queue == GI_URING_QUEUE_NONE) {
        ask_to_end(uring, op->slot);
    }
    return true;
}

void gi_uring_close(struct gi_engine *engine, struct gori_handle *handle)
{
    struct gi_uring *uring = (struct gi_uring *)engine;
    struct gi_uring_slot *slot = gi_uring_handle_slot(uring, handle);
    GI_ASSERT(slot->owner == handle);
    GI_ASSERT(!(slot->flags & GI_URING_SLOT_CLOSING));
    slot->flags |= GI_URING_SLOT_CLOSING;
    if (slot->waiting != GI_URING_SLOT_NONE) {
        uint32_t parked = slot->waiting;
        take_from_queue(uring, parked);
        gi_uring_finish(uring, parked, GORI_ECANCELED);
    }
    if (handle->in_flight == 0) {
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_CLOSED, handle->slot);
        return;
    }
    uint32_t noted = end_noted(uring, handle->reads.next);
    noted += end_noted(uring, handle->writes.next);
    GI_ASSERT(noted == handle->in_flight);
}

void gi_uring_redo(struct gi_uring *uring)
{
    for (uint32_t left = gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_REDO); left > 0;
         left--) {
        uint32_t index = gi_uring_slots_pop(&uring->slots, GI_URING_QUEUE_REDO);
        struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
        if (slot->flags & GI_URING_SLOT_HANDLE) {
            ask_all_to_end(uring, index);
        } else if (slot->flags & GI_URING_SLOT_KERNEL) {
            ask_to_end(uring, index);
        } else if (gi_uring_is_ending(slot->owner)) {
            gi_uring_finish(uring, index, GORI_ECANCELED);
        } else {
            gi_uring_arm(uring, index);
        }
    }
}

void gi_uring_park(struct gi_uring *uring, uint32_t index)
{
    const struct gori_op *op = gi_uring_slots_at(&uring->slots, index)->owner;
    gi_uring_handle_slot(uring, op->handle)->waiting = index;
    gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_PARKED, index);
}

/*
 * While more than one receive waits, each gets one buffer and goes back to the end of the queue: a
 * multishot receive would take all there are, and the next one never any, turn after turn.  Never
 * more are resumed than there are buffers, so that hardly one is in vain; and none is held back
 * until there are more, because whoever holds the rest may do so for ever.
 */
void gi_uring_resume_parked(struct gi_uring *uring)
{
    uint32_t parked = gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_PARKED);
    if (GI_LIKELY(parked == 0)) {
        return;
    }
    uint32_t available = uring->recv_buffers.provided;
    bool others_wait = parked > 1;
    for (uint32_t left = gi_min_u32(parked, available); left > 0; left--) {
        uint32_t index = uring->slots.queues[GI_URING_QUEUE_PARKED].first;
        struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
        take_from_queue(uring, index);
        slot->flags &= (uint8_t)~GI_URING_SLOT_ONCE;
        slot->flags |= others_wait ? GI_URING_SLOT_ONCE : 0;
        gi_uring_arm(uring, index);
    }
}

void gi_uring_arm_wake(struct gi_uring *uring)
{
    if (GI_LIKELY(uring->wake_armed)) {
        return;
    }
    struct io_uring_sqe *sqe = take_sqe(uring);
    if (sqe == NULL) {
        return;
    }
    uring->wake_armed = true;
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_READ,
        .fd = uring->shared.wake_fd,
        .off = UINT64_MAX,
        .addr = (uintptr_t)&uring->wake_count,
        .len = sizeof(uring->wake_count),
        .user_data = GI_URING_OWN(GI_URING_WAKE),
    };
}
