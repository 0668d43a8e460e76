/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes of files: overlapped calls, one piece at a time, whose packets come to the
 * engine's port.  Everything else that file ops do has no overlapped call, and is done on threads
 * of the pool; closing too, after the last packet.
 *
 * A file has no key of its own: a request is used again only after its packet has come (I1), so
 * that one key for all files tells enough.  What succeeds at once has its packet like all others.
 * Thread: the loop's.  Reading: ReadFile, WriteFile (Microsoft Learn).
 */
#include <gori/error.h>
#include <string.h>

#include "engine/iocp/iocp.h"

#define IO_BYTES_MAX (1u << 30) /* in one call */

int gi_iocp_attach_file(struct gi_engine *engine, int descriptor)
{
    const struct gi_iocp *iocp = gi_iocp_of(engine);
    HANDLE port = CreateIoCompletionPort(gi_os_handle(descriptor), iocp->port, GI_IOCP_KEY_FILE, 0);
    return port != NULL ? 0 : gi_os_error((int)GetLastError());
}

static void decide(struct gi_iocp *iocp, struct gi_iocp_request *request, int64_t result)
{
    struct gori_op *op = request->op;
    gi_iocp_requests_release(&iocp->requests, request);
    op->flags |= GI_IOCP_DECIDED;
    op->as.done.result = result;
    gi_list_push_back(&iocp->done, &op->link);
}

/* What the end of a call means; `code` is the system's, 0 for success. */
static int64_t judge(struct gori_file_op *op, size_t bytes, DWORD code)
{
    bool reads = op->op.kind == GORI_OP_FILE_READ;
    if (reads && (code == ERROR_HANDLE_EOF || (code == 0 && bytes == 0))) {
        return (int64_t)op->progress;
    }
    if (code != 0) {
        return gi_os_error((int)code);
    }
    if (bytes == 0) {
        return GORI_EIO;
    }
    if (gi_file_op_advance(op, bytes)) {
        return (int64_t)op->progress;
    }
    return op->op.state == GI_OP_CANCELING ? GORI_ECANCELED : GORI_EAGAIN;
}

static void run(struct gi_iocp *iocp, struct gi_iocp_request *request)
{
    struct gori_file_op *op = gi_file_op_of(request->op);
    HANDLE file = gi_os_handle(op->descriptor);
    const struct gori_slice *piece = gi_file_op_pieces(op);
    uint8_t *data = (uint8_t *)(uintptr_t)piece->data + op->piece_offset;
    DWORD size = (DWORD)gi_min_size(piece->size - op->piece_offset, IO_BYTES_MAX);
    bool appends = (op->open_flags & GI_OS_FILE_APPEND) != 0;
    uint64_t place = appends ? UINT64_MAX : gi_file_op_place(op);
    memset(&request->overlapped, 0, sizeof(request->overlapped));
    request->overlapped.Offset = (DWORD)place;
    request->overlapped.OffsetHigh = (DWORD)(place >> 32);
    BOOL good = op->op.kind == GORI_OP_FILE_READ
                    ? ReadFile(file, data, size, NULL, &request->overlapped)
                    : WriteFile(file, data, size, NULL, &request->overlapped);
    DWORD code = good ? ERROR_IO_PENDING : GetLastError();
    if (code == ERROR_IO_PENDING) {
        request->in_kernel = true;
        return;
    }
    decide(iocp, request, judge(op, 0, code));
}

int gi_iocp_submit_file(struct gi_iocp *iocp, struct gori_op *op)
{
    struct gi_iocp_request *request = gi_iocp_requests_take(&iocp->requests, op, GI_IOCP_KEY_FILE);
    if (request == NULL) {
        return GORI_ENOMEM;
    }
    op->slot = request->index;
    run(iocp, request);
    return 0;
}

void gi_iocp_cancel_file(struct gi_iocp *iocp, struct gori_op *op)
{
    struct gi_iocp_request *request = gi_iocp_requests_at(&iocp->requests, op->slot);
    GI_ASSERT(request->in_kernel);
    /* ERROR_NOT_FOUND: it is over, and its packet says how (I3). */
    (void)CancelIoEx(gi_os_handle(gi_file_op_of(op)->descriptor), &request->overlapped);
}

void gi_iocp_absorb_file(struct gi_iocp *iocp, struct gi_iocp_request *request, size_t bytes)
{
    struct gori_file_op *op = gi_file_op_of(request->op);
    DWORD code = 0;
    if ((LONG)request->overlapped.Internal < 0) {
        DWORD moved;
        HANDLE file = gi_os_handle(op->descriptor);
        code = GetOverlappedResult(file, &request->overlapped, &moved, FALSE) ? 0 : GetLastError();
    }
    int64_t result = judge(op, bytes, code);
    if (result == GORI_EAGAIN && code == 0) {
        run(iocp, request);
    } else {
        decide(iocp, request, result);
    }
}
