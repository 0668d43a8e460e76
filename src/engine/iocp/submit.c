/* SPDX-License-Identifier: MIT */
/*
 * Ops on their way to the kernel, and out again: submit, cancel, close.
 * Thread: the loop's.  Reading: WSARecv, WSASend, ConnectEx, TransmitFile, CancelIoEx.
 */
#include <gori/error.h>
#include <limits.h>
#include <string.h>

#include "engine/iocp/iocp.h"

/* Bytes of a file in one TransmitFile, which takes less than 2 GiB. */
#define FILE_BYTES_MAX (1u << 30)

enum gi_iocp_start gi_iocp_judge(struct gi_iocp_request *request, bool failed, int *ret_error)
{
    int code = failed ? WSAGetLastError() : 0;
    if (failed && code != WSA_IO_PENDING) {
        *ret_error = gi_os_error(code);
        return GI_IOCP_REFUSED;
    }
    if (!failed && (request->op->handle->ready & GI_IOCP_SKIP)) {
        return GI_IOCP_AT_ONCE;
    }
    request->in_kernel = true;
    return GI_IOCP_PENDING;
}

static enum gi_iocp_start receive(struct gi_iocp_request *request, int *ret_error)
{
    struct gori_op *op = request->op;
    WSABUF room = {0}; /* of no bytes: it completes when there is something to read (I4) */
    if (op->kind == GORI_OP_RECV) {
        room.buf = op->as.recv.data;
        room.len = (ULONG)gi_min_size(op->as.recv.size, INT_MAX);
    }
    DWORD flags = 0;
    int result = WSARecv(gi_iocp_socket(op), &room, 1, NULL, &flags, &request->overlapped, NULL);
    return gi_iocp_judge(request, result != 0, ret_error);
}

static enum gi_iocp_start send_pieces(struct gi_iocp_request *request, int *ret_error)
{
    struct gori_op *op = request->op;
    WSABUF vector[GORI_SEND_PIECES_MAX]; /* Winsock copies it before the call returns */
    size_t left = INT_MAX;
    uint32_t index = op->as.send.index;
    uint32_t count = op->as.send.count - index;
    for (uint32_t i = 0; i < count; i++) {
        const struct gori_slice *piece = &op->as.send.pieces[index + i];
        size_t from = i == 0 ? op->as.send.offset : 0;
        size_t size = gi_min_size(piece->size - from, left);
        vector[i].buf = (char *)(uintptr_t)piece->data + from;
        vector[i].len = (ULONG)size;
        left -= size;
    }
    int result = WSASend(gi_iocp_socket(op), vector, count, NULL, 0, &request->overlapped, NULL);
    return gi_iocp_judge(request, result != 0, ret_error);
}

static enum gi_iocp_start send_file(const struct gi_iocp *iocp, struct gi_iocp_request *request,
                                    int *ret_error)
{
    struct gori_op *op = request->op;
    uint64_t place = op->as.send_file.offset + op->as.send_file.progress;
    uint64_t left = op->as.send_file.size - op->as.send_file.progress;
    request->overlapped.Offset = (DWORD)place;
    request->overlapped.OffsetHigh = (DWORD)(place >> 32);
    BOOL sent = iocp->calls.transmit_file(gi_iocp_socket(op), gi_os_handle(op->as.send_file.file),
                                          (DWORD)gi_min_u64(left, FILE_BYTES_MAX), 0,
                                          &request->overlapped, NULL, TF_USE_KERNEL_APC);
    return gi_iocp_judge(request, !sent, ret_error);
}

/* ConnectEx wants a socket that is bound; to where, does not matter. */
static int bind_anywhere(SOCKET native, enum gori_addr_family family)
{
    SOCKADDR_STORAGE any = {0};
    bool is_ipv6 = family == GORI_ADDR_IPV6;
    any.ss_family = is_ipv6 ? AF_INET6 : AF_INET;
    int size = is_ipv6 ? sizeof(SOCKADDR_IN6) : sizeof(SOCKADDR_IN);
    if (bind(native, (const SOCKADDR *)&any, size) == 0 || WSAGetLastError() == WSAEINVAL) {
        return 0; /* WSAEINVAL: it is bound already */
    }
    return gi_os_error(WSAGetLastError());
}

static enum gi_iocp_start connect_to(const struct gi_iocp *iocp, struct gi_iocp_request *request,
                                     int *ret_error)
{
    struct gori_op *op = request->op;
    const struct gori_addr *addr = op->as.connect.addr;
    int error = bind_anywhere(gi_iocp_socket(op), gori_addr_family(addr));
    if (error < 0) {
        *ret_error = error;
        return GI_IOCP_REFUSED;
    }
    BOOL connected =
        iocp->calls.connect(gi_iocp_socket(op), (const SOCKADDR *)(const void *)addr->as.native,
                            (int)addr->size, NULL, 0, NULL, &request->overlapped);
    return gi_iocp_judge(request, !connected, ret_error);
}

/* ConnectEx knows no UNIX paths.  Their connects are over at once: the peer's queue has room, or
   the answer is no. */
static int connect_unix(const struct gori_op *op)
{
    int result = gi_os_connect((int)op->handle->native, op->as.connect.addr);
    return result == 1 ? GORI_EAGAIN : result;
}

static enum gi_iocp_start start(struct gi_iocp *iocp, struct gi_iocp_request *request,
                                int *ret_error)
{
    memset(&request->overlapped, 0, sizeof(request->overlapped));
    switch (request->op->kind) {
    case GORI_OP_RECV:
    case GORI_OP_RECV_MULTI:
        return receive(request, ret_error);
    case GORI_OP_SEND:
        return send_pieces(request, ret_error);
    case GORI_OP_SEND_FILE:
        return send_file(iocp, request, ret_error);
    default:
        GI_ASSERT(request->op->kind == GORI_OP_CONNECT);
        return connect_to(iocp, request, ret_error);
    }
}

void gi_iocp_run(struct gi_iocp *iocp, struct gi_iocp_request *request)
{
    bool go_on = true;
    while (go_on) {
        int error = 0;
        enum gi_iocp_start started = start(iocp, request, &error);
        if (started == GI_IOCP_PENDING) {
            return;
        }
        size_t bytes = started == GI_IOCP_AT_ONCE ? request->overlapped.InternalHigh : 0;
        go_on = gi_iocp_absorb(iocp, request, bytes, error);
    }
}

static struct gi_iocp_request *take_request(struct gi_iocp *iocp, struct gori_op *op)
{
    struct gi_iocp_request *request = gi_iocp_requests_take(&iocp->requests, op, op->handle->slot);
    op->slot = request != NULL ? request->index : GI_IOCP_REQUEST_NONE;
    return request;
}

void gi_iocp_arm(struct gi_iocp *iocp, struct gori_op *op)
{
    op->flags &= (uint8_t)~GI_IOCP_READABLE;
    struct gi_iocp_request *request = take_request(iocp, op);
    if (request == NULL) {
        gi_iocp_decide(iocp, op, GORI_ENOMEM);
        return;
    }
    gi_iocp_run(iocp, request);
}

static bool is_write(const struct gori_op *op)
{
    return op->kind == GORI_OP_SEND || op->kind == GORI_OP_SEND_FILE || op->kind == GORI_OP_CONNECT;
}

static int submit_wait(struct gi_iocp *iocp, struct gori_op *op)
{
    struct gi_iocp_request *request = take_request(iocp, op);
    if (request == NULL) {
        return GORI_ENOMEM;
    }
    int error = gi_iocp_wait_start(iocp, request);
    if (error < 0) {
        gi_iocp_requests_release(&iocp->requests, request);
        return error;
    }
    op->handle->in_flight++;
    gi_list_push_back(&op->handle->reads, &op->link);
    return 0;
}

int gi_iocp_submit(struct gi_engine *engine, struct gori_op *op)
{
    struct gi_iocp *iocp = gi_iocp_of(engine);
    struct gori_handle *handle = op->handle;
    op->flags = 0;
    op->slot = GI_IOCP_REQUEST_NONE;
    if (gi_is_file_kind(op->kind)) {
        return gi_iocp_submit_file(iocp, op);
    }
    if (op->kind == GORI_OP_ACCEPT) {
        return gi_iocp_accept_start(iocp, op);
    }
    if (op->kind == GORI_OP_WAIT) {
        return submit_wait(iocp, op);
    }
    if (op->kind == GORI_OP_WAIT_WRITABLE) {
        return GORI_ENOTSUP;
    }
    bool at_once =
        op->kind == GORI_OP_CONNECT && gori_addr_family(op->as.connect.addr) == GORI_ADDR_UNIX;
    struct gi_iocp_request *request = at_once ? NULL : take_request(iocp, op);
    if (request == NULL && !at_once) {
        return GORI_ENOMEM;
    }
    handle->in_flight++;
    gi_list_push_back(is_write(op) ? &handle->writes : &handle->reads, &op->link);
    if (at_once) {
        gi_iocp_decide(iocp, op, connect_unix(op));
    } else {
        gi_iocp_run(iocp, request);
    }
    return 0;
}

void gi_iocp_cancel(struct gi_engine *engine, struct gori_op *op)
{
    struct gi_iocp *iocp = gi_iocp_of(engine);
    if (op->flags & GI_IOCP_DECIDED) {
        return;
    }
    if (op->kind == GORI_OP_ACCEPT) {
        gi_iocp_accept_cancel(iocp, op);
        return;
    }
    if (gi_is_file_kind(op->kind)) {
        gi_iocp_cancel_file(iocp, op);
        return;
    }
    if (op->flags & GI_IOCP_READABLE) {
        gi_iocp_decide(iocp, op, GORI_ECANCELED);
        return;
    }
    struct gi_iocp_request *request = gi_iocp_requests_at(&iocp->requests, op->slot);
    GI_ASSERT(request->in_kernel);
    if (op->kind == GORI_OP_WAIT) {
        gi_iocp_wait_cancel(iocp, request);
        return;
    }
    /* ERROR_NOT_FOUND: it is over, and its packet says how.  Either way one comes (I3). */
    (void)CancelIoEx((HANDLE)op->handle->native, &request->overlapped);
}

static void cancel_all(struct gi_engine *engine, struct gori_link *ops)
{
    GI_LIST_FOREACH_SAFE (link, ops) {
        gi_iocp_cancel(engine, gori_container_of(link, struct gori_op, link));
    }
}

void gi_iocp_close(struct gi_engine *engine, struct gori_handle *handle)
{
    struct gi_iocp *iocp = gi_iocp_of(engine);
    GI_ASSERT(handle->state == GI_HANDLE_CLOSING);
    cancel_all(engine, &handle->reads);
    cancel_all(engine, &handle->writes);
    if (handle->in_flight == 0) {
        gi_list_push_back(&iocp->closing, &handle->link);
    }
}
