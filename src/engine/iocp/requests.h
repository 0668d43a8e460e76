/* SPDX-License-Identifier: MIT */
/*
 * Requests: what the kernel is given a pointer to, so that it must not move or be used again while
 * it may still be written to.  They are made in chunks that stay where they are until the engine
 * goes, and are named by an index.
 * Thread: the loop's.
 */
#ifndef GI_ENGINE_IOCP_REQUESTS_H
#define GI_ENGINE_IOCP_REQUESTS_H

#include "os/windows/system.h"

#include <gori/allocator.h>
#include <stdbool.h>

#include "base/atomic.h"

struct gori_op;

#define GI_IOCP_REQUEST_NONE UINT32_MAX

struct gi_iocp_request {
    OVERLAPPED overlapped;
    struct gori_op *op; /* NULL while it is free */
    uint32_t key;       /* under which its packet comes */
    SOCKET accepted;    /* of an accept: made before, connected when the packet says so */
    uint32_t index;
    uint32_t next;                     /* in the free list, in the list of an accept */
    struct gi_iocp_request *next_came; /* in `came` */
    uint32_t tries;                    /* errors in a row */
    bool in_kernel;
    HANDLE wait;                  /* of a wait: what watches the source */
    HANDLE port;                  /* and where its packet is posted to */
    struct gi_atomic_bool posted; /* it is: set by a thread of the system's (I7) */
};

struct gi_iocp_chunk;

struct gi_iocp_requests {
    const struct gori_allocator *allocator;
    struct gi_iocp_chunk **chunks;
    uint32_t chunk_count;
    uint32_t chunk_capacity;
    uint32_t first_free;
    uint32_t used; /* taken and not released */
};

/** A queue of requests by next_came. */
struct gi_iocp_request_queue {
    struct gi_iocp_request *first;
    struct gi_iocp_request *last;
};

void gi_iocp_requests_init(struct gi_iocp_requests *requests,
                           const struct gori_allocator *allocator);

/** Asserts that none is used. */
void gi_iocp_requests_fini(struct gi_iocp_requests *requests);

/** A request for an op, or NULL without memory for one. */
struct gi_iocp_request *gi_iocp_requests_take(struct gi_iocp_requests *requests, struct gori_op *op,
                                              uint32_t key);

/** Gives it back; the kernel has nothing of it any more. */
void gi_iocp_requests_release(struct gi_iocp_requests *requests, struct gi_iocp_request *request);

struct gi_iocp_request *gi_iocp_requests_at(struct gi_iocp_requests *requests, uint32_t index);

#endif
