/* SPDX-License-Identifier: MIT */
/*
 * The steps of operations: the system calls themselves, and what their answers mean for an op and
 * for the readiness of its handle.  When a step is made is decided elsewhere.
 * Thread: the loop's.  Reading: epoll(7), "Questions and answers" 9; accept(2), "Error handling".
 */
#include <gori/error.h>
#include <poll.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "engine/reactor/reactor.h"

/* Connections in a row that may be lost before they are accepted until the op reports it. */
#define ACCEPT_TRIES_MAX 16

/* Bytes of a file in one step: enough to fill any socket buffer, short enough for the others. */
#define FILE_STEP_BYTES (1u << 20)

/* The system moves no more at once (MAX_RW_COUNT of Linux); only then short does not mean full. */
#define SEND_STEP_BYTES 0x7ffff000

static int fd_of(const struct gori_op *op)
{
    return (int)op->handle->native;
}

static void clear_ready(struct gori_op *op, uint32_t bit)
{
    op->handle->ready &= (uint8_t)~bit;
}

/* A receive that did not fill its room has emptied the socket (R2). */
static void note_received(struct gori_op *op, int64_t received, size_t room)
{
    if ((size_t)received < room && !(op->handle->ready & GI_POLL_DRAIN)) {
        clear_ready(op, GI_POLL_READ);
    }
}

/* Conditions of one connection in the queue, not of the listener. */
static bool is_passing(int error)
{
    switch (error) {
    case GORI_ECONNABORTED:
    case GORI_ECONNRESET:
    case GORI_EPROTO:
    case GORI_EPERM:
    case GORI_ENOTSUP:
    case GORI_EHOSTUNREACH:
    case GORI_ENETUNREACH:
        return true;
    default:
        return false;
    }
}

static enum gi_step step_accept(struct gori_op *op, struct gori_completion *ret_what)
{
    int fd = -1;
    int error = 0;
    for (int i = 0; i < ACCEPT_TRIES_MAX; i++) {
        error = gi_os_accept_now(fd_of(op), GI_OS_BLOCKING, &fd);
        if (!is_passing(error)) {
            break;
        }
    }
    if (error == GORI_EAGAIN) {
        clear_ready(op, GI_POLL_READ);
        return GI_STEP_BLOCKED;
    }
    gi_reactor_fill(ret_what, error, error < 0);
    if (error < 0) {
        return GI_STEP_DONE;
    }
    ret_what->accepted = fd;
    return GI_STEP_MORE;
}

static enum gi_step step_receive(struct gori_op *op, struct gori_completion *ret_what)
{
    int64_t result = gi_os_receive(fd_of(op), op->as.recv.data, op->as.recv.size);
    if (result == GORI_EAGAIN) {
        clear_ready(op, GI_POLL_READ);
        return GI_STEP_BLOCKED;
    }
    if (result > 0) {
        note_received(op, result, op->as.recv.size);
    }
    gi_reactor_fill(ret_what, result, true);
    return GI_STEP_DONE;
}

static enum gi_step step_receive_multi(struct gi_buffers *buffers, struct gori_op *op,
                                       struct gori_completion *ret_what)
{
    struct gori_buffer *buffer = gi_buffers_lend(buffers);
    if (GI_UNLIKELY(buffer == NULL)) {
        return GI_STEP_STARVED;
    }
    int64_t result = gi_os_receive(fd_of(op), buffer->data, buffers->buffer_bytes);
    if (GI_LIKELY(result > 0)) {
        note_received(op, result, buffers->buffer_bytes);
        gi_buffers_deliver(buffers, buffer);
        gi_reactor_fill(ret_what, result, false);
        ret_what->buffer = buffer;
        ret_what->data.data = buffer->data;
        ret_what->data.size = (size_t)result;
        return GI_STEP_MORE;
    }
    gi_buffers_unlend(buffers, buffer);
    if (result == GORI_EAGAIN) {
        clear_ready(op, GI_POLL_READ);
        return GI_STEP_BLOCKED;
    }
    gi_reactor_fill(ret_what, result, true);
    return GI_STEP_DONE;
}

/* Asked anew: whoever emptied or filled the source since its bit was set told nobody (R2). */
static enum gi_step step_wait(struct gori_op *op, uint32_t bit, int64_t *ret_result)
{
    struct pollfd entry = {.fd = fd_of(op), .events = bit == GI_POLL_READ ? POLLIN : POLLOUT};
    int result = gi_os_poll(&entry, 1, 0);
    if (result == 0) {
        clear_ready(op, bit);
        return GI_STEP_BLOCKED;
    }
    *ret_result = result < 0 ? result : 0;
    return GI_STEP_DONE;
}

static enum gi_step step_wait_readable(struct gori_op *op, struct gori_completion *ret_what)
{
    int64_t result = 0;
    enum gi_step step = step_wait(op, GI_POLL_READ, &result);
    gi_reactor_fill(ret_what, result, true);
    return step;
}

enum gi_step gi_reactor_read(struct gi_reactor *reactor, struct gori_op *op,
                             struct gori_completion *ret_what)
{
    GI_ASSERT(op->handle->ready & GI_POLL_READ);
    switch (op->kind) {
    case GORI_OP_RECV_MULTI:
        return step_receive_multi(reactor->buffers, op, ret_what);
    case GORI_OP_RECV:
        return step_receive(op, ret_what);
    case GORI_OP_WAIT:
        return step_wait_readable(op, ret_what);
    default:
        GI_ASSERT(op->kind == GORI_OP_ACCEPT);
        return step_accept(op, ret_what);
    }
}

static enum gi_step step_connect(struct gori_op *op, int64_t *ret_result)
{
    int result = gi_os_connect(fd_of(op), op->as.connect.addr);
    if (result == GORI_EAGAIN) {
        return GI_STEP_RETRY;
    }
    if (result == 1) {
        clear_ready(op, GI_POLL_WRITE);
        return GI_STEP_BLOCKED;
    }
    *ret_result = result;
    return GI_STEP_DONE;
}

/* Moves the op's place behind `sent` bytes and pieces without any.  True when all is sent. */
static bool advance(struct gori_op *op, size_t sent)
{
    op->as.send.progress += sent;
    size_t left = sent;
    while (op->as.send.index < op->as.send.count) {
        size_t piece_left = op->as.send.pieces[op->as.send.index].size - op->as.send.offset;
        if (left < piece_left) {
            op->as.send.offset += left;
            return false;
        }
        left -= piece_left;
        op->as.send.index++;
        op->as.send.offset = 0;
    }
    GI_ASSERT(left == 0);
    return true;
}

static enum gi_step step_send(struct gori_op *op, int64_t *ret_result)
{
    bool all_sent = op->as.send.pieces[op->as.send.index].size == 0 && advance(op, 0);
    while (!all_sent) {
        uint32_t index = op->as.send.index;
        int64_t sent = gi_os_send(fd_of(op), op->as.send.pieces + index, op->as.send.count - index,
                                  op->as.send.offset, op->more);
        if (sent < 0 && sent != GORI_EAGAIN) {
            *ret_result = sent;
            return GI_STEP_DONE;
        }
        all_sent = sent >= 0 && advance(op, (size_t)sent);
        if (!all_sent && sent < SEND_STEP_BYTES) {
            clear_ready(op, GI_POLL_WRITE);
            return GI_STEP_BLOCKED;
        }
    }
    *ret_result = (int64_t)op->as.send.progress;
    return GI_STEP_DONE;
}

static enum gi_step step_send_file(struct gori_op *op, int64_t *ret_result)
{
    uint64_t left = op->as.send_file.size - op->as.send_file.progress;
    int64_t sent = gi_os_send_file(fd_of(op), op->as.send_file.file,
                                   op->as.send_file.offset + op->as.send_file.progress,
                                   gi_min_size(left, FILE_STEP_BYTES));
    if (sent == GORI_EAGAIN) {
        clear_ready(op, GI_POLL_WRITE);
        return GI_STEP_BLOCKED;
    }
    if (sent <= 0) {
        *ret_result = sent == 0 ? GORI_ETRUNCATED : sent;
        return GI_STEP_DONE;
    }
    op->as.send_file.progress += (uint64_t)sent;
    if (op->as.send_file.progress < op->as.send_file.size) {
        return GI_STEP_AGAIN;
    }
    *ret_result = (int64_t)op->as.send_file.progress;
    return GI_STEP_DONE;
}

enum gi_step gi_reactor_write(struct gori_op *op, int64_t *ret_result)
{
    GI_ASSERT(op->handle->ready & GI_POLL_WRITE);
    switch (op->kind) {
    case GORI_OP_SEND:
        return step_send(op, ret_result);
    case GORI_OP_SEND_FILE:
        return step_send_file(op, ret_result);
    case GORI_OP_WAIT_WRITABLE:
        return step_wait(op, GI_POLL_WRITE, ret_result);
    default:
        GI_ASSERT(op->kind == GORI_OP_CONNECT);
        return step_connect(op, ret_result);
    }
}
