/* SPDX-License-Identifier: MIT */
/*
 * The inside of the IOCP engine, for the files of this folder only.
 *
 *   engine.c   life, the turn, wake          submit.c     what goes to the kernel
 *   next.c     what the runtime pulls        complete.c   what comes back
 *   accept.c   connections                   requests.c   the memory of what is in flight
 *   files.c    reads and writes of files
 *   wait.c     event sources                 probe.c      what is to be had on this machine
 *
 * Where an operation is; an op is in at most one list by op.link, a handle by handle.link:
 *
 *   submit ──> KERNEL ──packet, or at once──> done ──> delivered
 *                ^ │
 *                │ └─ RECV_MULTI: something to read ──> handle in `ready` ──step──> delivered
 *                └────────────── nothing left ────────────────┘   │ no buffer
 *                                                              `starved` ── buffers are back
 *
 *  I1  An OVERLAPPED and what it points to live in a request, whose memory never moves.  A request
 *      is used again only after its packet has come: the kernel never writes into another's.
 *  I2  A packet is believed when its request is in the kernel and its key is the one that the
 *      handle was given when it was attached; keys are numbers, and none comes again before four
 *      thousand million others.  What is not believed is counted as stale.
 *  I3  An op in the kernel ends by its packet only.  A cancel asks; ERROR_NOT_FOUND means that the
 *      packet is on its way.
 *  I4  A multishot receive waits with a receive of no bytes: it pins no memory, and what comes is
 *      read, into a buffer of the pool, when it is pulled.
 *  I5  What succeeds at once has no packet (handle.ready has SKIP) or has one like all others.
 *  I6  A socket is closed when its handle has nothing in flight, so that its number is used again
 *      only after all that was said about the old one.
 *  I7  A port knows nothing of event sources.  A thread of the system's waits for one and posts the
 *      packet of the request, once.  A cancel calls that thread off and waits until it is out of
 *      the way; from then on `posted` does not change, and says whether a packet comes.
 * Thread: the loop's, but for wake.
 */
#ifndef GI_ENGINE_IOCP_IOCP_H
#define GI_ENGINE_IOCP_IOCP_H

#include "os/windows/system.h"

#include "base/atomic.h"
#include "base/list.h"
#include "engine/engine.h"
#include "engine/iocp/probe.h"
#include "engine/iocp/requests.h"
#include "os/os.h"

/* Bits of gori_handle.ready. */
#define GI_IOCP_SKIP 0x01 /* what succeeds at once has no packet */

/* Bits of gori_op.flags. */
#define GI_IOCP_DECIDED  0x01 /* in `done`: its result is in op.as.done */
#define GI_IOCP_READABLE 0x02 /* a multishot receive that may read now; not in the kernel */
#define GI_IOCP_FAILED   0x04 /* an accept that ends, with what is in op.as.done */
#define GI_IOCP_NO_DELAY 0x08 /* an accept whose connections do not gather small sends */

/* Reads of one handle in one turn: a sender that never stops must leave time for the others. */
#define GI_IOCP_BUDGET 32

#define GI_IOCP_PACKETS_MAX 256

/* The completion key of a wake; no handle has it. */
#define GI_IOCP_KEY_WAKE 0u

/* The one of all files; no handle has it either. */
#define GI_IOCP_KEY_FILE UINT32_MAX

/* Room for an address as AcceptEx writes it: 16 bytes more than the largest has. */
#define GI_IOCP_NAME_BYTES (sizeof(SOCKADDR_STORAGE) + 16)

struct gi_iocp {
    struct gi_engine base;
    const struct gori_allocator *allocator;
    struct gi_buffers *buffers;
    HANDLE port;
    struct gi_iocp_calls calls;
    struct gi_iocp_requests requests;
    uint32_t last_key;
    struct gori_link ready;            /* handles that may read */
    struct gori_link later;            /* that have had their share of this turn */
    struct gori_link starved;          /* that wait for a buffer */
    struct gori_link closing;          /* that have nothing in flight any more */
    struct gori_link done;             /* ops whose result is decided */
    struct gi_iocp_request_queue came; /* accepts with a connection */
    bool ready_first;                  /* `next` looked into `ready` before the others */
    bool accepted_first;               /* and into `came` before `done` */
    bool polled;                       /* the last turn did */
    struct gi_engine_stats stats;
    uint8_t names[2 * GI_IOCP_NAME_BYTES]; /* of all accepts at once: nobody reads it */
    OVERLAPPED_ENTRY packets[GI_IOCP_PACKETS_MAX];
    uint8_t apart[GI_CACHE_LINE];       /* others write what follows */
    struct gi_atomic_bool wake_pending; /* posted and not yet seen */
};

static inline struct gi_iocp *gi_iocp_of(const struct gi_engine *engine)
{
    return gori_container_of((uintptr_t)engine, struct gi_iocp, base);
}

/** Whether an op was asked to end, itself or with its handle. */
static inline bool gi_iocp_is_ending(const struct gori_op *op)
{
    return op->state == GI_OP_CANCELING || op->handle->state == GI_HANDLE_CLOSING;
}

static inline SOCKET gi_iocp_socket(const struct gori_op *op)
{
    return (SOCKET)op->handle->native;
}

/** The op at the head of a handle's list, or NULL. */
static inline struct gori_op *gi_iocp_first(const struct gori_link *list)
{
    struct gori_link *link = gi_list_first(list);
    return link != NULL ? gori_container_of(link, struct gori_op, link) : NULL;
}

/** How the start of a request went. */
enum gi_iocp_start {
    GI_IOCP_PENDING, /* its packet will come */
    GI_IOCP_AT_ONCE, /* it succeeded and has no packet */
    GI_IOCP_REFUSED  /* it failed and has no packet */
};

/* submit.c */
int gi_iocp_submit(struct gi_engine *engine, struct gori_op *op);
void gi_iocp_cancel(struct gi_engine *engine, struct gori_op *op);
void gi_iocp_close(struct gi_engine *engine, struct gori_handle *handle);

/** Gives a request to the kernel, again as long as that takes less than all, and what comes of it
 * at once to gi_iocp_absorb. */
void gi_iocp_run(struct gi_iocp *iocp, struct gi_iocp_request *request);

/** Lets a multishot receive wait for bytes.  Without memory for that the op ends. */
void gi_iocp_arm(struct gi_iocp *iocp, struct gori_op *op);

/** What the answer of Winsock to an overlapped call means; `failed` as the call said. */
enum gi_iocp_start gi_iocp_judge(struct gi_iocp_request *request, bool failed, int *ret_error);

/* complete.c */

/** Takes in a packet. */
void gi_iocp_take_packet(struct gi_iocp *iocp, const OVERLAPPED_ENTRY *packet);

/** Takes in how a request ended.  True when it has to go on: gi_iocp_run. */
bool gi_iocp_absorb(struct gi_iocp *iocp, struct gi_iocp_request *request, size_t bytes, int error);

/** The op's result is decided: it leaves the handle's list and waits in `done`. */
void gi_iocp_decide(struct gi_iocp *iocp, struct gori_op *op, int64_t result);

/** Puts a handle that is in no list where its receive and its budget say. */
void gi_iocp_schedule(struct gi_iocp *iocp, struct gori_handle *handle);

/* accept.c */

/** Begins: with one request in the kernel at least, or an error. */
int gi_iocp_accept_start(struct gi_iocp *iocp, struct gori_op *op);

/** Asks all of an accept to end. */
void gi_iocp_accept_cancel(struct gi_iocp *iocp, struct gori_op *op);

/** Takes in how one accept of several ended. */
void gi_iocp_accept_absorb(struct gi_iocp *iocp, struct gi_iocp_request *request, int error);

/** Takes the next connection out of `came`.  False when there is none. */
bool gi_iocp_accept_next(struct gi_iocp *iocp, struct gi_completion *ret_completion);

/* wait.c */

/** Begins to watch the source of a wait.  On failure the request is still the caller's. */
int gi_iocp_wait_start(struct gi_iocp *iocp, struct gi_iocp_request *request);

/** Asks a wait to end. */
void gi_iocp_wait_cancel(struct gi_iocp *iocp, struct gi_iocp_request *request);

/** Takes in the packet of a wait. */
void gi_iocp_wait_absorb(struct gi_iocp *iocp, struct gi_iocp_request *request);

/* files.c: what is read and written of files */
int gi_iocp_attach_file(struct gi_engine *engine, int descriptor);
int gi_iocp_submit_file(struct gi_iocp *iocp, struct gori_op *op);
void gi_iocp_cancel_file(struct gi_iocp *iocp, struct gori_op *op);
void gi_iocp_absorb_file(struct gi_iocp *iocp, struct gi_iocp_request *request, size_t bytes);

/* next.c */
bool gi_iocp_next(struct gi_engine *engine, struct gi_completion *ret_completion);

#endif
