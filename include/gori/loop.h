/* SPDX-License-Identifier: MIT */
/*
 * A loop: one thread's engine, timers, sessions and mailbox.  A loop owns its objects; other
 * threads reach it by posting tasks, and by nothing else.  To turn it, and to open, start or submit
 * something on it, answers GORI_EWRONGTHREAD on any other thread.  Stability: unstable until 1.0.
 */
#ifndef GORI_LOOP_H
#define GORI_LOOP_H

#include <gori/allocator.h>
#include <gori/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_block;
struct gori_loop;
struct gori_pool;
struct gori_session;
struct gori_task;

typedef void gori_task_fn(struct gori_task *task);

/** A message to a loop.  Embed it; nothing is allocated to post it. */
struct gori_task {
    /* public: set by the caller before post */
    gori_task_fn *run;
    void *user;
    /* private */
    struct gori_mailbox_node node;
};

/** How a loop is made.  Zero means the default for every field. */
struct gori_loop_config {
    const struct gori_allocator *allocator; /* default: the C library's */
    const char *engine;       /* "auto" (default), "io_uring", "epoll"; GORI_ENGINE in the
                                 environment decides for "auto" */
    uint32_t buffer_bytes;    /* size of a receive buffer, bytes; default 4096, 512 to 1 MiB */
    uint32_t buffers_max;     /* receive buffers at most; default 4096 */
    uint32_t sessions_max;    /* default 1,000,000 */
    uint32_t ops_max;         /* operations in flight at most; default 4,000,000 */
    uint32_t tasks_max;       /* tasks posted and not yet run at most; default 65,536 */
    uint32_t messages_max;    /* of gori_loop_send, on their way at most; default 4096 */
    uint32_t completions_max; /* completions delivered in one turn at most; default 1024 */
    struct gori_pool *pool;   /* whose threads do file ops where the engine cannot; outlives the
                                 loop.  Default: one of its own, when first needed; the loops of
                                 a runtime share one */
    uint8_t id_tag;           /* goes into the session ids; unique per loop of a runtime */
    void *simulation;         /* of the engine "sim" only: the simulated world it lives in */
};

/** Figures of a loop, counted since it was made unless they say "now". */
struct gori_loop_stats {
    uint64_t turns;              /* times the engine was asked */
    uint64_t completions;        /* delivered */
    uint64_t tasks;              /* run */
    uint64_t timers;             /* fired */
    uint64_t sessions_opened;    /* their on_open has run, or they were adopted */
    uint64_t sessions_closed;    /* their on_close has run; a connect that failed never opened */
    uint64_t sessions_refused;   /* accepted, and closed for want of room or memory */
    uint64_t accept_pauses;      /* times a listener backed off: out of descriptors or memory */
    uint64_t buffer_starvations; /* times a receive had to wait for a buffer */
    uint64_t stale_completions;  /* late completions that found nothing; harmless, counted */
    uint64_t messages_dropped;   /* of gori_loop_send: the session had closed, or refused them */
    uint32_t sessions_now;
    uint32_t buffers_now;      /* receive buffers that exist */
    uint32_t buffers_held_now; /* of them, held by sessions or the application */
    uint64_t send_bytes_now;   /* bytes queued for sending in all sessions */
};

/**
 * Creates a loop.  It belongs to the thread that first runs, turns or opens something on it.
 * Thread: any; with io_uring the calling thread must be the one that will run it.
 * Errors: GORI_EINVAL for a configuration out of range or an unknown engine; GORI_ENOSYS or
 * GORI_EPERM when a named engine is not to be had here ("auto" falls back instead, see
 * gori_loop_engine_reason); GORI_ENOMEM, GORI_EMFILE.
 */
GORI_API GORI_MUST_USE int gori_loop_create(const struct gori_loop_config *config,
                                            struct gori_loop **ret_loop);

/**
 * Destroys a loop: everything still open on it is closed, operations in flight are cancelled and
 * waited for, `on_close` callbacks run.  Tasks that were posted and not run are not run.
 * Calls of other threads that posted or stopped before are waited for, so that a task may be what
 * ends its loop; a call that begins while the loop is destroyed is a mistake (a runtime has
 * gori_runtime_post and _send for whoever cannot know).
 * Thread: the loop's, outside its callbacks.  NULL does nothing.
 */
GORI_API void gori_loop_destroy(struct gori_loop *loop);

/**
 * Runs the loop until gori_loop_stop.  Result: 0, or the error on which the engine gave up.
 * Thread: the loop's, outside its callbacks.
 */
GORI_API GORI_MUST_USE int gori_loop_run(struct gori_loop *loop);

/**
 * One turn: waits at most `wait` for something to happen, then delivers it.
 * Thread: the loop's, outside its callbacks.  Result: the number of callbacks that ran, or < 0.
 */
GORI_API GORI_MUST_USE int gori_loop_turn(struct gori_loop *loop, gori_time wait);

/** Makes gori_loop_run return after the current turn.  Thread: any. */
GORI_API void gori_loop_stop(struct gori_loop *loop);

/** The loop's time: read once a turn, so that everything in a turn sees the same. */
GORI_API gori_time gori_loop_now(const struct gori_loop *loop);

/**
 * Posts a task: `run` is called on the loop, after everything that the same thread posted to it
 * before, also when that thread is the loop's own.
 * Thread: any.  Memory: the task belongs to the loop until `run` is called, which may free it.
 * Errors: GORI_ELIMIT when `tasks_max` wait already, GORI_ECLOSED when the loop ends; the task is
 * then still the caller's.
 */
GORI_API GORI_MUST_USE int gori_loop_post(struct gori_loop *loop, struct gori_task *task);

/**
 * Sends a block to a session of the loop that is named by its id.  Behind everything that the same
 * thread posted or sent to the loop before, also when that thread is the loop's own.
 * Thread: any, while the loop exists.  Memory: takes its own reference; allocates nothing but once.
 * Errors: GORI_ESTALE when the session is gone; GORI_ELIMIT when `messages_max` or `tasks_max` are
 * on their way: wait, or do without; GORI_ECLOSED when the loop ends; GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_loop_send(struct gori_loop *loop, uint64_t id,
                                          struct gori_block *block);

/** The session that an id names, or NULL when it is gone.  Thread: the loop's. */
GORI_API struct gori_session *gori_loop_session(struct gori_loop *loop, uint64_t id);

/** The name of the engine in use: "io_uring", "epoll", "sim".  Thread: any. */
GORI_API const char *gori_loop_engine(const struct gori_loop *loop);

/** Why "auto" did not take the best engine, as a sentence; NULL when it did.  Thread: any. */
GORI_API const char *gori_loop_engine_reason(const struct gori_loop *loop);

/** Copies the loop's figures.  Thread: the loop's. */
GORI_API void gori_loop_read_stats(const struct gori_loop *loop, struct gori_loop_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
