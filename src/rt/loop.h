/* SPDX-License-Identifier: MIT */
/*
 * The inside of a loop, for the files of src/rt only.
 *
 * One turn, in this order (loop.c):
 *   1. the engine's turn: what was submitted goes to the kernel in one call, which also waits, at
 *      most until the next timer, and not at all when work is left over;
 *   2. completions, up to `completions_max`: each runs its op's callback;
 *   3. timers that are due;
 *   4. tasks that other threads, or this one, have posted before the turn; then jobs, when the loop
 *      is attached to a scheduler, for as long as that allows;
 *   5. sessions that were resumed are shown what they had not consumed;
 *   6. sessions that produced something submit one gathered send each;
 *   7. memory of what ended in this turn is freed.
 *
 * Invariants:
 *  L1  Callbacks run in 2 to 5 only, never inside a call of the application.
 *  L2  Nothing that ended in a turn is freed before step 7 of it: pointers taken in a callback stay
 *      good until the loop asks the engine again.
 *  L3  The loop sleeps, in the sense of rt/sleep.h, only while the engine may wait.  A poster
 *      pushes first and interrupts then; the loop begins its sleep first and looks at the mailbox
 *      then: no wake is lost.
 *  L4  A loop's memory is freed when no call touches it any more that posted what was taken, or
 *      whose stop was seen (rt/callers.h).
 * Thread: the loop's, but for the members in `shared`.
 */
#ifndef GI_RT_LOOP_H
#define GI_RT_LOOP_H

#include <gori/loop.h>
#include <gori/op.h>
#include <gori/timer.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "base/id_table.h"
#include "base/mailbox.h"
#include "base/pool.h"
#include "base/wheel.h"
#include "engine/buffers.h"
#include "engine/engine.h"
#include "rt/callers.h"
#include "rt/message.h"
#include "rt/session_store.h"
#include "rt/sleep.h"

struct gi_job_worker;
struct gi_watch_store;
struct gi_signals;

struct gori_loop {
    struct gi_engine *engine;
    gori_time now;
    struct gi_wheel wheel;
    struct gi_buffers buffers;
    struct gi_id_table sessions;           /* id -> struct gori_session */
    struct gi_session_store session_store; /* what sessions share; the lists of steps 5 to 7 */
    struct gori_link all_listeners;
    struct gori_link starved_listeners; /* waiting for a descriptor to become free */
    const struct gori_allocator *allocator;
    struct gori_loop_config config; /* with the defaults filled in */
    struct gori_loop_stats stats;
    const char *fallback_reason;
    struct gori_link works;           /* submitted to a pool and not yet done (blocking_pool.c) */
    struct gori_link file_ops;        /* in flight (file_op.h) */
    struct gori_link file_waiting;    /* of them, those without a place in the pool yet */
    struct gori_pool *own_pool;       /* made when it was first needed, or NULL */
    uint32_t file_works;              /* file ops in the pool */
    struct gori_link all_handles;     /* attached and not yet closed, those of sessions too */
    struct gori_mailbox_node *tasks;  /* taken from the mailbox and not yet run */
    struct gi_signals *signals;       /* from the first watcher of a signal on (signal.c) */
    struct gi_job_worker *job_worker; /* of the scheduler it is attached to (rt/job.h), or NULL */
    struct gi_watch_store *watches;   /* of files (watch.c); NULL until the first */
    void *memory;                     /* what the allocator gave: it is not aligned as we are */
    uint64_t
        takes; /* from the mailbox that found something: as many posts were told it was empty */
    uint32_t ops_active;
    bool work_left; /* the turn's budget ran out: do not wait */
    bool running;   /* inside a turn */
    struct {
        struct gi_mailbox mailbox;        /* any thread pushes, the loop takes */
        struct gi_sleep sleep;            /* L3 */
        struct gi_callers callers;        /* L4 */
        struct gi_message_store messages; /* any thread takes, mostly the loop gives back */
        struct gi_atomic_bool stop;       /* gori_loop_stop */
        struct gi_atomic_size thread; /* of the loop, 0 until it first runs or opens something */
    } shared;
};

/** Whether the caller is on the loop's thread.  The first caller makes its thread the loop's. */
bool gi_loop_on_thread(struct gori_loop *loop);

/** Ends the wait of a loop that sleeps; costs one exchange when it does not.  Thread: any. */
void gi_loop_wake(struct gori_loop *loop);

/**
 * Posts a task for which there is always room: the answer to something that was accepted.
 * Thread: any.  Errors: GORI_ECLOSED.
 */
int gi_loop_post_owed(struct gori_loop *loop, struct gori_task *task);

/**
 * Puts an event source on a loop, for gori_op_wait (op.c).  On success the loop owns it and closes
 * it with the handle, on failure the caller still does.
 */
int gi_handle_adopt_source(struct gori_loop *loop, gori_native source, struct gori_handle *handle);

/** gori_handle_adopt with GI_HANDLE_… that are known of the socket (op.c). */
GORI_MUST_USE int gi_handle_attach(struct gori_loop *loop, gori_native native, uint8_t flags,
                                   struct gori_handle *handle);

/** Hands a completion to its callback (op.c). */
void gi_op_dispatch(struct gori_loop *loop, const struct gi_completion *completion);

/* Of file_op.c. */
void gi_file_op_dispatch(struct gori_op *op, int64_t result);
void gi_file_op_end_all(struct gori_loop *loop); /* at destroy: asks all, completes some */

/** Starts a timer for an absolute time, without asking the clock (timer.c). */
void gi_timer_start_at(struct gori_loop *loop, struct gori_timer *timer, gori_time deadline);

/** Fires what is due.  Result: the number of callbacks that ran. */
uint32_t gi_timer_fire_due(struct gori_loop *loop);

/* Of session.c, called by the turn. */
void gi_session_redeliver_all(struct gori_loop *loop); /* step 5 */
void gi_session_flush_all(struct gori_loop *loop);     /* step 6 */
void gi_session_reap_all(struct gori_loop *loop);      /* step 7 */
void gi_session_close_all(struct gori_loop *loop);     /* at destroy: GORI_CLOSE_SHUTDOWN */

/* Of session.c, called by a graceful stop: every session closes after its flush. */
void gi_session_close_idle(struct gori_loop *loop);

/* Of blocking_pool.c, at destroy: every work ends here, or leaves the loop. */
void gi_work_end_all(struct gori_loop *loop);

/* Of watch.c, at destroy: before handles are closed, no callback comes any more; and after. */
void gi_watch_end_all(struct gori_loop *loop);
void gi_watch_fini(struct gori_loop *loop);

/* Of listener.c. */
void gi_listener_close_all(struct gori_loop *loop);
void gi_listener_end_all(struct gori_loop *loop); /* at destroy: nobody will hand over any more */
void gi_listener_retry_starved(struct gori_loop *loop); /* a descriptor was freed */

#endif
