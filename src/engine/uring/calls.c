/* SPDX-License-Identifier: MIT */
/*
 * What the engine does by system calls of its own, a bounded amount a turn, because io_uring has no
 * such thing or does it badly; io_uring then only says when to go on.
 *
 * File sends: there is no sendfile, and splice runs on a thread of its own for each.  The socket
 * does not block just during the call; a poll says when it takes more.
 *
 * Connects to UNIX servers: with the server's queue full io_uring waits on a thread of its own,
 * where no cancel reaches it (seen on 6.18).  No event tells when there is room, so a timer does.
 * Thread: the loop's.  Reading: sendfile(2), unix(7).
 */

#include <gori/error.h>

#include "base/assert.h"
#include "engine/uring/uring.h"
#include "os/os.h"

#define PIECE_BYTES (256u << 10) /* of one file in a turn */
#define TURN_BYTES  (1u << 20)   /* of all files in a turn */

/* Sends at most `size` bytes.  Result: bytes, or an error. */
static int64_t send_piece(const struct gori_op *op, size_t size)
{
    int fd = (int)op->handle->native;
    int64_t sent = gi_os_set_blocking(fd, false);
    if (sent < 0) {
        return sent;
    }
    sent = gi_os_send_file(fd, op->as.send_file.file,
                           op->as.send_file.offset + op->as.send_file.progress, size);
    int error = gi_os_set_blocking(fd, true);
    return error < 0 ? error : sent;
}

/* Sends a piece of one file, and puts its slot where it belongs next.  Result: bytes sent. */
static size_t send_on(struct gi_uring *uring, uint32_t index)
{
    struct gori_op *op = gi_uring_slots_at(&uring->slots, index)->owner;
    uint64_t left = op->as.send_file.size - op->as.send_file.progress;
    size_t size = (size_t)gi_min_u64(left, PIECE_BYTES);
    int64_t sent = size > 0 ? send_piece(op, size) : 0;
    if (sent == GORI_EAGAIN) {
        gi_uring_arm(uring, index);
        return 0;
    }
    if (sent < 0) {
        gi_uring_finish(uring, index, (int)sent);
        return 0;
    }
    op->as.send_file.progress += (uint64_t)sent;
    if (op->as.send_file.progress == op->as.send_file.size) {
        gi_uring_finish(uring, index, 0);
    } else if (sent == 0) {
        gi_uring_finish(uring, index, GORI_ETRUNCATED);
    } else if ((size_t)sent < size) {
        gi_uring_arm(uring, index); /* the socket is full, or the file has become shorter */
    } else {
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_CALLS, index);
    }
    return (size_t)sent;
}

static void connect_on(struct gi_uring *uring, uint32_t index)
{
    const struct gori_op *op = gi_uring_slots_at(&uring->slots, index)->owner;
    int fd = (int)op->handle->native;
    int result = gi_os_set_blocking(fd, false);
    if (result >= 0) {
        result = gi_os_connect(fd, op->as.connect.addr);
        (void)gi_os_set_blocking(fd, true);
    }
    if (result == GORI_EAGAIN) {
        gi_uring_arm(uring, index); /* the queue is full: a timer */
    } else {
        gi_uring_finish(uring, index, result < 0 ? result : 0);
    }
}

bool gi_uring_is_call(const struct gori_op *op)
{
    return op->kind == GORI_OP_SEND_FILE ||
           (op->kind == GORI_OP_CONNECT && gori_addr_family(op->as.connect.addr) == GORI_ADDR_UNIX);
}

void gi_uring_make_calls(struct gi_uring *uring)
{
    size_t sent = 0;
    uint32_t left = gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_CALLS);
    while (left > 0 && sent < TURN_BYTES) {
        uint32_t index = gi_uring_slots_pop(&uring->slots, GI_URING_QUEUE_CALLS);
        const struct gori_op *op = gi_uring_slots_at(&uring->slots, index)->owner;
        if (gi_uring_is_ending(op)) {
            gi_uring_finish(uring, index, GORI_ECANCELED);
        } else if (op->kind == GORI_OP_CONNECT) {
            connect_on(uring, index);
        } else {
            sent += send_on(uring, index);
        }
        left--;
    }
}
