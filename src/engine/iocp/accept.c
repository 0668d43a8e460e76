/* SPDX-License-Identifier: MIT */
/*
 * Accepting: a few AcceptEx in the kernel at once, each with a socket made before, so that
 * connections that come together do not wait for us one by one.
 *
 *  A1  The requests of an accept are in a list that begins at op.slot, in the kernel or in `came`.
 *      The op ends when it was asked to, or has FAILED, and the list is empty.
 *  A2  What was accepted is delivered, also when that came too late for the cancel: the runtime
 *      queues it, as the system would have.
 *  A3  A request knows its socket before the call, which may complete while it runs.
 * Thread: the loop's.  Reading: AcceptEx (Microsoft Learn).
 */
#include <gori/error.h>
#include <string.h>

#include "engine/iocp/iocp.h"

/* AcceptEx in the kernel for each listener. */
#define ACCEPTS 4

/* Connections in a row that may be lost before they are accepted until the op reports it. */
#define TRIES_MAX 16

static struct gi_iocp_request *request_at(struct gi_iocp *iocp, uint32_t index)
{
    return gi_iocp_requests_at(&iocp->requests, index);
}

static uint32_t count_requests(struct gi_iocp *iocp, const struct gori_op *op)
{
    uint32_t count = 0;
    for (uint32_t at = op->slot; at != GI_IOCP_REQUEST_NONE; at = request_at(iocp, at)->next) {
        count++;
    }
    return count;
}

static bool is_over(const struct gori_op *op)
{
    return gi_iocp_is_ending(op) || (op->flags & GI_IOCP_FAILED);
}

/* Takes a request out of its accept, and its socket with it.  The last one ends the op (A1). */
static void drop(struct gi_iocp *iocp, struct gi_iocp_request *request)
{
    struct gori_op *op = request->op;
    uint32_t *at = &op->slot;
    while (*at != request->index) {
        at = &request_at(iocp, *at)->next;
    }
    *at = request->next;
    if (request->accepted != INVALID_SOCKET) {
        gi_os_close(gi_os_socket_descriptor(request->accepted));
    }
    gi_iocp_requests_release(&iocp->requests, request);
}

static void end_if_over(struct gi_iocp *iocp, struct gori_op *op)
{
    if (op->slot == GI_IOCP_REQUEST_NONE && is_over(op)) {
        gi_iocp_decide(iocp, op,
                       (op->flags & GI_IOCP_FAILED) ? op->as.done.result : GORI_ECANCELED);
    }
}

/* A socket for a connection of the listener's family, which is in handle.armed. */
static int make_socket(struct gi_iocp_request *request)
{
    int fd;
    int error =
        gi_os_socket((enum gori_addr_family)request->op->handle->armed, GI_OS_BLOCKING, &fd);
    if (error < 0) {
        return error;
    }
    if (request->op->flags & GI_IOCP_NO_DELAY) {
        (void)gi_os_set_no_delay(fd, true); /* a connection without it works as well */
    }
    request->accepted = gi_os_native_socket(fd);
    return 0;
}

static enum gi_iocp_start call_accept(struct gi_iocp *iocp, struct gi_iocp_request *request,
                                      int *ret_error)
{
    memset(&request->overlapped, 0, sizeof(request->overlapped));
    DWORD bytes;
    BOOL accepted =
        iocp->calls.accept(gi_iocp_socket(request->op), request->accepted, iocp->names, 0,
                           GI_IOCP_NAME_BYTES, GI_IOCP_NAME_BYTES, &bytes, &request->overlapped);
    request->in_kernel = false;
    return gi_iocp_judge(request, !accepted, ret_error);
}

/* Conditions of one connection, not of the listener. */
static bool is_passing(int error)
{
    switch (error) {
    case GORI_ECANCELED:
    case GORI_ECONNABORTED:
    case GORI_ECONNRESET:
    case GORI_ECLOSED:
    case GORI_EHOSTUNREACH:
    case GORI_ENETUNREACH:
        return true;
    default:
        return false;
    }
}

/* A connection is there: it takes what the listener was set to, and waits to be pulled. */
static int take_connection(struct gi_iocp *iocp, struct gi_iocp_request *request)
{
    SOCKET listener = gi_iocp_socket(request->op);
    if (setsockopt(request->accepted, SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, (const char *)&listener,
                   sizeof(listener)) != 0) {
        return gi_os_error(WSAGetLastError());
    }
    request->next_came = NULL;
    if (iocp->came.first == NULL) {
        iocp->came.first = request;
    } else {
        iocp->came.last->next_came = request;
    }
    iocp->came.last = request;
    return 0;
}

/* Gives a request that is in its accept's list to the kernel.  Result: 0, or why it is not there
   (and no longer in the list). */
static int run(struct gi_iocp *iocp, struct gi_iocp_request *request)
{
    for (;;) {
        int error = request->accepted == INVALID_SOCKET ? make_socket(request) : 0;
        enum gi_iocp_start started =
            error < 0 ? GI_IOCP_REFUSED : call_accept(iocp, request, &error);
        if (started == GI_IOCP_PENDING) {
            return 0;
        }
        if (started == GI_IOCP_AT_ONCE) {
            error = take_connection(iocp, request);
            if (error == 0) {
                return 0;
            }
        }
        if (!is_passing(error) || ++request->tries > TRIES_MAX) {
            drop(iocp, request);
            return error;
        }
    }
}

static int add_request(struct gi_iocp *iocp, struct gori_op *op)
{
    struct gi_iocp_request *request = gi_iocp_requests_take(&iocp->requests, op, op->handle->slot);
    if (request == NULL) {
        return GORI_ENOMEM;
    }
    request->next = op->slot;
    op->slot = request->index;
    return run(iocp, request);
}

/* Has as many in the kernel as there should be.  An error counts when there is none at all. */
static int refill(struct gi_iocp *iocp, struct gori_op *op)
{
    for (uint32_t count = count_requests(iocp, op); count < ACCEPTS; count++) {
        int error = add_request(iocp, op);
        if (error < 0) {
            return op->slot == GI_IOCP_REQUEST_NONE ? error : 0;
        }
    }
    return 0;
}

static void ask_all_to_end(struct gi_iocp *iocp, const struct gori_op *op)
{
    for (uint32_t at = op->slot; at != GI_IOCP_REQUEST_NONE; at = request_at(iocp, at)->next) {
        struct gi_iocp_request *request = request_at(iocp, at);
        if (request->in_kernel) {
            (void)CancelIoEx((HANDLE)op->handle->native, &request->overlapped); /* I3 */
        }
    }
}

/* The op has failed: what is still in the kernel must come back first. */
static void fail(struct gi_iocp *iocp, struct gori_op *op, int error)
{
    if (!(op->flags & GI_IOCP_FAILED)) {
        op->flags |= GI_IOCP_FAILED;
        op->as.done.result = error;
        ask_all_to_end(iocp, op);
    }
    end_if_over(iocp, op);
}

static bool is_no_delay(SOCKET listener)
{
    DWORD on = 0;
    int size = sizeof(on);
    return getsockopt(listener, IPPROTO_TCP, TCP_NODELAY, (char *)&on, &size) == 0 && on != 0;
}

int gi_iocp_accept_start(struct gi_iocp *iocp, struct gori_op *op)
{
    struct gori_handle *handle = op->handle;
    struct gori_addr addr;
    int error = gi_os_local_addr((int)handle->native, &addr);
    if (error < 0) {
        return error;
    }
    handle->armed = (uint8_t)gori_addr_family(&addr);
    op->flags |= is_no_delay(gi_iocp_socket(op)) ? GI_IOCP_NO_DELAY : 0;
    error = refill(iocp, op);
    if (error < 0) {
        return error;
    }
    handle->in_flight++;
    gi_list_push_back(&handle->reads, &op->link);
    return 0;
}

void gi_iocp_accept_cancel(struct gi_iocp *iocp, struct gori_op *op)
{
    ask_all_to_end(iocp, op);
    end_if_over(iocp, op);
}

void gi_iocp_accept_absorb(struct gi_iocp *iocp, struct gi_iocp_request *request, int error)
{
    struct gori_op *op = request->op;
    if (error == 0) {
        error = take_connection(iocp, request);
        if (error == 0) {
            return;
        }
    }
    if (is_over(op)) {
        drop(iocp, request);
        end_if_over(iocp, op);
        return;
    }
    /* A socket that was meant for a connection that is gone cannot be used for another. */
    gi_os_close(gi_os_socket_descriptor(request->accepted));
    request->accepted = INVALID_SOCKET;
    if (is_passing(error) && ++request->tries <= TRIES_MAX) {
        error = run(iocp, request);
    } else {
        drop(iocp, request);
    }
    if (error < 0 && op->slot == GI_IOCP_REQUEST_NONE) {
        fail(iocp, op, error);
    }
}

bool gi_iocp_accept_next(struct gi_iocp *iocp, struct gi_completion *ret_completion)
{
    struct gi_iocp_request *request = iocp->came.first;
    if (GI_LIKELY(request == NULL)) {
        return false;
    }
    iocp->came.first = request->next_came;
    struct gori_op *op = request->op;
    *ret_completion = (struct gi_completion){
        .op = op, .what = {.result = 0, .accepted = (gori_native)request->accepted}};
    request->accepted = INVALID_SOCKET;
    drop(iocp, request);
    if (!is_over(op)) {
        int error = refill(iocp, op);
        if (error < 0) {
            fail(iocp, op, error);
        }
    }
    end_if_over(iocp, op);
    return true;
}
