/* SPDX-License-Identifier: MIT */
/*
 * What comes back from the kernel, and what it means for an op.
 * Thread: the loop's.  Reading: WSAGetOverlappedResult (Microsoft Learn).
 */
#include <gori/error.h>

#include "engine/iocp/iocp.h"

void gi_iocp_schedule(struct gi_iocp *iocp, struct gori_handle *handle)
{
    struct gori_op *op = gi_iocp_first(&handle->reads);
    if (op == NULL || !(op->flags & GI_IOCP_READABLE) || gi_link_is_linked(&handle->link)) {
        return;
    }
    if (GI_LIKELY(handle->budget > 0)) {
        gi_list_push_back(&iocp->ready, &handle->link);
        return;
    }
    handle->budget = GI_IOCP_BUDGET;
    gi_list_push_back(&iocp->later, &handle->link);
}

void gi_iocp_decide(struct gi_iocp *iocp, struct gori_op *op, int64_t result)
{
    if (op->flags & GI_IOCP_READABLE) {
        /* `ready`, `later` or `starved`; a handle is there for its receive only. */
        op->flags &= (uint8_t)~GI_IOCP_READABLE;
        if (gi_link_is_linked(&op->handle->link)) {
            gi_list_remove(&op->handle->link);
        }
    }
    gi_list_remove(&op->link);
    op->flags |= GI_IOCP_DECIDED;
    op->as.done.result = result;
    gi_list_push_back(&iocp->done, &op->link);
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

/* What has become of a send of either kind: its result, or GORI_EAGAIN when there is more to do. */
static int64_t judge_send(struct gori_op *op, size_t bytes)
{
    if (op->kind == GORI_OP_SEND) {
        if (advance(op, bytes)) {
            return (int64_t)op->as.send.progress;
        }
        return gi_iocp_is_ending(op) ? GORI_ECANCELED : GORI_EAGAIN;
    }
    op->as.send_file.progress += bytes;
    if (op->as.send_file.progress == op->as.send_file.size) {
        return (int64_t)op->as.send_file.size;
    }
    if (bytes == 0) {
        return GORI_ETRUNCATED; /* TransmitFile sends what the file has, and says so */
    }
    return gi_iocp_is_ending(op) ? GORI_ECANCELED : GORI_EAGAIN;
}

/* Tells Winsock that the socket is a connected one; until then it has no peer and no shutdown. */
static int64_t judge_connect(struct gori_op *op)
{
    int failed = setsockopt(gi_iocp_socket(op), SOL_SOCKET, SO_UPDATE_CONNECT_CONTEXT, NULL, 0);
    return failed == 0 ? 0 : gi_os_error(WSAGetLastError());
}

static int64_t judge_success(struct gori_op *op, size_t bytes)
{
    switch (op->kind) {
    case GORI_OP_RECV:
        return bytes == 0 && gi_os_was_reset((int)op->handle->native) ? GORI_ECONNRESET
                                                                      : (int64_t)bytes;
    case GORI_OP_CONNECT:
        return judge_connect(op);
    default:
        return judge_send(op, bytes);
    }
}

bool gi_iocp_absorb(struct gi_iocp *iocp, struct gi_iocp_request *request, size_t bytes, int error)
{
    struct gori_op *op = request->op;
    if (error == GORI_ECANCELED && !gi_iocp_is_ending(op)) {
        error = GORI_ECONNABORTED; /* nobody here asked for it */
    }
    if (error == GORI_ECLOSED && (op->kind == GORI_OP_SEND || op->kind == GORI_OP_SEND_FILE)) {
        error = GORI_EPIPE; /* it was connected, and is not any more */
    }
    if (error == 0 && op->kind == GORI_OP_RECV_MULTI && !gi_iocp_is_ending(op)) {
        gi_iocp_requests_release(&iocp->requests, request);
        op->flags |= GI_IOCP_READABLE;
        gi_iocp_schedule(iocp, op->handle);
        return false;
    }
    int64_t result = error;
    if (error == 0) {
        result = op->kind == GORI_OP_RECV_MULTI ? GORI_ECANCELED : judge_success(op, bytes);
    }
    if (result == GORI_EAGAIN) {
        return true;
    }
    gi_iocp_requests_release(&iocp->requests, request);
    gi_iocp_decide(iocp, op, result);
    return false;
}

/* The error of a packet, 0 for success.  Only Winsock knows how to read it. */
static int error_of(const struct gi_iocp_request *request)
{
    if ((LONG)request->overlapped.Internal >= 0) {
        return 0;
    }
    DWORD bytes;
    DWORD flags;
    OVERLAPPED *overlapped = (OVERLAPPED *)(uintptr_t)&request->overlapped;
    BOOL succeeded =
        WSAGetOverlappedResult(gi_iocp_socket(request->op), overlapped, &bytes, FALSE, &flags);
    return succeeded ? 0 : gi_os_error(WSAGetLastError());
}

void gi_iocp_take_packet(struct gi_iocp *iocp, const OVERLAPPED_ENTRY *packet)
{
    struct gi_iocp_request *request =
        packet->lpOverlapped == NULL
            ? NULL
            : gori_container_of(packet->lpOverlapped, struct gi_iocp_request, overlapped);
    if (GI_UNLIKELY(request == NULL || !request->in_kernel ||
                    request->key != packet->lpCompletionKey)) {
        iocp->stats.stale_completions++;
        return;
    }
    request->in_kernel = false;
    struct gori_op *op = request->op;
    if (op->kind == GORI_OP_WAIT) {
        gi_iocp_wait_absorb(iocp, request);
        return;
    }
    if (gi_is_file_kind(op->kind)) {
        gi_iocp_absorb_file(iocp, request, packet->dwNumberOfBytesTransferred);
        return;
    }
    op->handle->budget = GI_IOCP_BUDGET;
    int error = error_of(request);
    if (op->kind == GORI_OP_ACCEPT) {
        gi_iocp_accept_absorb(iocp, request, error);
    } else if (gi_iocp_absorb(iocp, request, packet->dwNumberOfBytesTransferred, error)) {
        gi_iocp_run(iocp, request);
    }
}
