/* SPDX-License-Identifier: MIT */
/*
 * The inside of the reactor: completions made from readiness, for the files of this folder only.
 *
 * A handle is in at most one list, by handle.link; an op in at most one, by op.link:
 *
 *      submit ──> handle.reads / handle.writes ──step──> the caller of `next`
 *         │                    └──cancel, close──┐
 *         └──────done at once──────────────────> done ──> the caller of `next`
 *
 *      ready     may make progress now; `next` does one step of one handle when it is pulled
 *      later     has had its share of this turn; ready again in the next one
 *      starved   receives, and the buffers are out; ready again, in order, as some return
 *      retry     waits for what no event tells (a UNIX peer's full queue); asked again by time
 *      closing   has no op any more; the next pull closes it
 *
 *  R1  Nothing is read or accepted before it is delivered: `next` makes the system call.  So no
 *      completion of a multishot op is ever stored, a pause acts at once, and a receive buffer is
 *      taken only when its bytes go to the application.
 *  R2  A bit of handle.ready means: the system has said so, and no call has answered GORI_EAGAIN
 *      since.  Only then a call is made.  A receive that was not filled clears the bit too, unless
 *      DRAIN says that the end, an error or urgent data is there, for which no further edge comes.
 *      An event source is emptied by others, who clear no bit: a wait asks the system once more.
 *  R3  A handle with an op and its bit is in `ready` or `later`, or parked in `starved` or `retry`:
 *      an edge is never lost.
 *  R4  A handle is in `closing` only when in_flight is 0; it is closed after the last completion of
 *      its ops has been delivered.
 *  R5  Between two polls there is at most one turn that does not poll, so that what was ready first
 *      cannot keep out what becomes ready.
 * Thread: the loop's, but for wake.
 */
#ifndef GI_ENGINE_REACTOR_REACTOR_H
#define GI_ENGINE_REACTOR_REACTOR_H

#include "base/atomic.h"
#include "base/list.h"
#include "engine/engine.h"
#include "engine/reactor/poller.h"
#include "engine/reactor/slots.h"
#include "os/os.h"

/* Bits of gori_handle.ready: GI_POLL_READ, GI_POLL_WRITE, GI_POLL_DRAIN, and these. */
#define GI_REACTOR_NONBLOCKING 0x10 /* the socket's mode is known to be so */
#define GI_REACTOR_PARKED      0x20 /* in `starved` or `retry` */

/* A bit of gori_op.flags: the result is decided, the op is in `done`. */
#define GI_REACTOR_DECIDED 0x01

/* Steps of one handle in one turn. */
#define GI_REACTOR_BUDGET 16

#define GI_REACTOR_EVENTS_MAX 256

struct gi_reactor {
    struct gi_engine base;
    const struct gori_allocator *allocator;
    struct gi_buffers *buffers;
    struct gi_poller *poller;
    struct gi_slots slots;
    struct gori_link ready;
    struct gori_link later;
    struct gori_link starved;
    struct gori_link retry;
    struct gori_link closing;
    struct gori_link done; /* of ops */
    struct gi_engine_stats stats;
    bool is_edge;           /* the poller is */
    bool ready_first;       /* `next` looked into `ready` before the other lists */
    bool polled;            /* the last turn did */
    struct gi_os_wake wake; /* unless the poller can wake */
    struct gi_poller_event events[GI_REACTOR_EVENTS_MAX];
    uint8_t apart[GI_CACHE_LINE];       /* others write what follows */
    struct gi_atomic_bool wake_pending; /* signalled and not yet seen */
};

/** How far one step of an op went. */
enum gi_step {
    GI_STEP_DONE,    /* it is complete */
    GI_STEP_MORE,    /* one completion of a multishot op is there */
    GI_STEP_AGAIN,   /* it moved; let others have a turn */
    GI_STEP_BLOCKED, /* the readiness bit is cleared */
    GI_STEP_STARVED, /* there is no receive buffer */
    GI_STEP_RETRY    /* ask again later: no event will come */
};

static inline struct gi_reactor *gi_reactor_of(struct gi_engine *engine)
{
    return gori_container_of(engine, struct gi_reactor, base);
}

/** The op at the head of a handle's list, or NULL. */
static inline struct gori_op *gi_reactor_first(const struct gori_link *list)
{
    struct gori_link *link = gi_list_first(list);
    return link != NULL ? gori_container_of(link, struct gori_op, link) : NULL;
}

/** A completion without a receive buffer. */
static inline void gi_reactor_fill(struct gori_completion *ret_what, int64_t result, bool is_last)
{
    ret_what->result = result;
    ret_what->is_last = is_last;
    ret_what->accepted = GORI_NATIVE_NONE;
    ret_what->buffer = NULL;
    ret_what->data.data = NULL;
    ret_what->data.size = 0;
}

/* Of io.c. */

/** One step of a receive or an accept; fills `ret_what` for DONE and MORE. */
enum gi_step gi_reactor_read(struct gi_reactor *reactor, struct gori_op *op,
                             struct gori_completion *ret_what);

/** One step of a send or a connect; fills `ret_result` for DONE. */
enum gi_step gi_reactor_write(struct gori_op *op, int64_t *ret_result);

/* Of submit.c. */

int gi_reactor_submit(struct gi_engine *engine, struct gori_op *op);
void gi_reactor_cancel(struct gi_engine *engine, struct gori_op *op);
void gi_reactor_close(struct gi_engine *engine, struct gori_handle *handle);

/* Of schedule.c. */

/** Tells a level poller what is waited for. */
void gi_reactor_watch(struct gi_reactor *reactor, struct gori_handle *handle);

/** Puts a handle that may make progress into `ready` or `later`, if it is in no list. */
void gi_reactor_enqueue(struct gi_reactor *reactor, struct gori_handle *handle);

/** Whether an op of a handle has its bit. */
static inline bool gi_reactor_may_step(const struct gori_handle *handle)
{
    return ((handle->ready & GI_POLL_READ) && !gi_list_is_empty(&handle->reads)) ||
           ((handle->ready & GI_POLL_WRITE) && !gi_list_is_empty(&handle->writes));
}

/** Puts a handle where its ops and its readiness say (R3). */
static inline void gi_reactor_schedule(struct gi_reactor *reactor, struct gori_handle *handle)
{
    if (!reactor->is_edge) {
        gi_reactor_watch(reactor, handle);
    }
    if (gi_reactor_may_step(handle)) {
        gi_reactor_enqueue(reactor, handle);
    }
}

/** Puts a handle that is in no list into `starved` or `retry`. */
void gi_reactor_park(struct gi_reactor *reactor, struct gori_handle *handle,
                     struct gori_link *list);

/** Takes in what the poller said of a handle. */
void gi_reactor_note(struct gi_reactor *reactor, struct gori_handle *handle, uint32_t mask);

/** Makes up to `count` parked handles ready, the longest parked first. */
void gi_reactor_resume(struct gi_reactor *reactor, struct gori_link *list, uint32_t count);

/* Of next.c. */

bool gi_reactor_next(struct gi_engine *engine, struct gi_completion *ret_completion);

/* Of reactor.c. */

int gi_reactor_create(const struct gi_engine_impl *impl, const struct gi_poller_impl *poller_impl,
                      const struct gi_engine_config *config, struct gi_engine **ret_engine);
void gi_reactor_destroy(struct gi_engine *engine);
gori_time gi_reactor_now(struct gi_engine *engine);
int gi_reactor_attach(struct gi_engine *engine, struct gori_handle *handle);
int gi_reactor_turn(struct gi_engine *engine, gori_time deadline);
void gi_reactor_wake(struct gi_engine *engine);
void gi_reactor_stats(const struct gi_engine *engine, struct gi_engine_stats *ret_stats);

/** The functions of an engine; its file adds the name, and what makes and reports its poller. */
#define GI_REACTOR_FUNCTIONS                                                                       \
    .sockets = &gi_system_sockets, .events = &gi_system_events, .watches = &gi_system_watches,     \
    .files = &gi_system_files, .destroy = gi_reactor_destroy, .now = gi_reactor_now,               \
    .attach = gi_reactor_attach, .submit = gi_reactor_submit, .cancel = gi_reactor_cancel,         \
    .close = gi_reactor_close, .turn = gi_reactor_turn, .next = gi_reactor_next,                   \
    .wake = gi_reactor_wake, .stats = gi_reactor_stats

#endif
