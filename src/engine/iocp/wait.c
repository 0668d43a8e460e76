/* SPDX-License-Identifier: MIT */
/*
 * Waiting for event sources (I7).  The watch is of the system's thread pool, which puts up to 63
 * objects on one of its threads, and says once that the object was signalled.
 * Thread: the loop's, but for `report`.
 * Reading: RegisterWaitForSingleObject, UnregisterWaitEx (Microsoft Learn).
 */
#include <gori/error.h>
#include <string.h>

#include "engine/iocp/iocp.h"

/* On a thread of the system's.  The request stays where it is until its packet is taken. */
static void CALLBACK report(void *context, BOOLEAN timed_out)
{
    (void)timed_out; /* never: it waits without end */
    struct gi_iocp_request *request = context;
    HANDLE port = request->port;
    ULONG_PTR key = request->key;
    /* Pairs with the load in gi_iocp_wait_cancel. */
    gi_atomic_bool_store(&request->posted, true, GI_RELEASE);
    /* It fails only while the system is out of memory for a packet, which must not be lost. */
    while (!PostQueuedCompletionStatus(port, 0, key, &request->overlapped)) {
        Sleep(1);
    }
}

int gi_iocp_wait_start(struct gi_iocp *iocp, struct gi_iocp_request *request)
{
    memset(&request->overlapped, 0, sizeof(request->overlapped));
    request->port = iocp->port;
    gi_atomic_bool_init(&request->posted, false);
    request->in_kernel = true;
    HANDLE source = (HANDLE)request->op->handle->native;
    if (!RegisterWaitForSingleObject(&request->wait, source, report, request, INFINITE,
                                     WT_EXECUTEINWAITTHREAD | WT_EXECUTEONLYONCE)) {
        request->in_kernel = false;
        return gi_os_error((int)GetLastError());
    }
    return 0;
}

/* Ends the watch.  When this returns, nothing of it runs and nothing of it will. */
static void call_off(struct gi_iocp_request *request)
{
    BOOL ended = UnregisterWaitEx(request->wait, INVALID_HANDLE_VALUE);
    /* Wine waits for the function to return, and then may still count its thread as busy. */
    GI_ASSERT(ended || GetLastError() == ERROR_IO_PENDING);
    request->wait = NULL;
}

void gi_iocp_wait_cancel(struct gi_iocp *iocp, struct gi_iocp_request *request)
{
    if (request->wait == NULL) {
        return; /* called off before, by a cancel that lost */
    }
    call_off(request);
    if (gi_atomic_bool_load(&request->posted, GI_ACQUIRE)) {
        return; /* lost: the packet is in the port */
    }
    struct gori_op *op = request->op;
    request->in_kernel = false;
    gi_iocp_requests_release(&iocp->requests, request);
    gi_iocp_decide(iocp, op, GORI_ECANCELED);
}

void gi_iocp_wait_absorb(struct gi_iocp *iocp, struct gi_iocp_request *request)
{
    struct gori_op *op = request->op;
    if (request->wait != NULL) {
        call_off(request);
    }
    gi_iocp_requests_release(&iocp->requests, request);
    gi_iocp_decide(iocp, op, 0);
}
