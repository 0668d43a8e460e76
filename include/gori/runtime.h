/* SPDX-License-Identifier: MIT */
/*
 * A runtime: N workers, each a thread with its own loop and its own listener on the shared port,
 * sharing nothing.  Its stop is graceful: listeners end without refusing what the system queued,
 * sessions drain until a deadline, then are closed, then the loops end.  With sockets that are kept
 * it can be run again, or another process go on in its place, and no client notices
 * (docs/adr/0014).
 * Stability: unstable until 1.0.
 */
#ifndef GORI_RUNTIME_H
#define GORI_RUNTIME_H

#include <gori/listener.h>
#include <gori/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_runtime;

/** How a runtime is made.  Zero means the default for every field. */
struct gori_runtime_config {
    struct gori_loop_config loop; /* of every worker; id_tag is set by the runtime */
    uint32_t workers;             /* default: the CPUs this process may use; at most 255 */
    gori_time drain_timeout;      /* graceful stop: from stop to forced closes; default 10 s */
    bool pin;                     /* bind each worker to one of those CPUs */
    bool handle_signals;          /* SIGTERM and SIGINT stop it, a second one at once; from
                                     create on, so that none that comes before the run is lost */
    /** Runs on each worker before it accepts; < 0 fails the start.  May be NULL. */
    int (*on_start)(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop);
    /**
     * Runs on each worker for each address, before its listener opens: it may change this worker's
     * copy of the config, such as `events` and `user`, but not the address.  May be NULL.
     */
    void (*on_listen)(struct gori_runtime *runtime, uint32_t worker,
                      struct gori_listener_config *config);
    /**
     * Runs once in each run, when all workers have started and accept, on the thread of
     * gori_runtime_run: the moment to say "ready".  Not when one of them failed.  May be NULL.
     */
    void (*on_ready)(struct gori_runtime *runtime);
    /**
     * Runs on each worker when a graceful stop begins, for what the application must end itself
     * (idle keep-alive connections, say).  Sessions still open at the deadline are closed with
     * GORI_CLOSE_SHUTDOWN.  NULL: every session is closed after its flush.
     */
    void (*on_stop)(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop);
    /** Runs on each worker after its last session, before its loop is destroyed.  May be NULL. */
    void (*on_end)(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop);
    void *user;
};

/** Connections of one worker, over all addresses of gori_runtime_listen. */
struct gori_worker_stats {
    uint64_t accepted;     /* given to it since the start */
    uint64_t handed_over;  /* of them, those that another worker had accepted */
    uint32_t sessions_now; /* of them, those that have not closed */
};

/**
 * Creates a runtime; no thread starts yet.  Thread: any.  Errors: GORI_EINVAL, GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_runtime_create(const struct gori_runtime_config *config,
                                               struct gori_runtime **ret_runtime);

/**
 * Binds an address for every worker, before gori_runtime_run; may be called for several addresses.
 * The port is open when this returns, so that `ret_addr` (may be NULL) holds the real one.
 * Workers share the port among themselves; with `reuse_port` also with other processes of the same
 * user.  With `keep_socket` the port stays open until the runtime is destroyed, across runs; else
 * the first run closes it, when it stops.
 * Errors: as gori_listener_open; GORI_EADDRINUSE; GORI_ENOTSUP for `keep_socket` on Windows.
 */
GORI_API GORI_MUST_USE int gori_runtime_listen(struct gori_runtime *runtime,
                                               const struct gori_listener_config *config,
                                               struct gori_addr *ret_addr);

/**
 * As gori_runtime_listen, with a stream socket that listens already: from another process, or a
 * supervisor.  The workers share it.  `addr`, `backlog` and the like of the config are not looked
 * at.  Thread: the one that created the runtime.
 * Memory: on success the runtime owns `native`, on failure the caller still does.
 * Errors: GORI_EINVAL when it does not listen; as gori_runtime_listen.
 */
GORI_API GORI_MUST_USE int gori_runtime_adopt(struct gori_runtime *runtime, gori_native native,
                                              const struct gori_listener_config *config,
                                              struct gori_addr *ret_addr);

/**
 * The sockets that the runtime keeps (`keep_socket`), numbered from 0 on; GORI_NATIVE_NONE behind
 * the last.  For handing them to another process; they stay the runtime's.
 * Thread: the one that created the runtime.
 */
GORI_API gori_native gori_runtime_socket(const struct gori_runtime *runtime, uint32_t index);

/**
 * Starts the workers, waits until they have stopped, and returns 0, or the first error of a worker.
 * May be called again when every address was given with `keep_socket`: the ports stayed open, and
 * what the system has queued since is served.
 * Thread: the one that created the runtime.
 * Errors: GORI_ECLOSED when a port was closed by the run before; those of the workers.
 */
GORI_API GORI_MUST_USE int gori_runtime_run(struct gori_runtime *runtime);

/**
 * Begins a graceful stop; a second call closes everything at once.  One that comes while nothing
 * runs is not lost: the next run ends as soon as it has begun.  Thread: any, while the runtime
 * exists.
 */
GORI_API void gori_runtime_stop(struct gori_runtime *runtime);

/** Destroys a runtime that does not run.  NULL does nothing.  Thread: the one that created it. */
GORI_API void gori_runtime_destroy(struct gori_runtime *runtime);

/** The number of workers. */
GORI_API uint32_t gori_runtime_workers(const struct gori_runtime *runtime);

/**
 * The addresses of gori_runtime_listen and gori_runtime_adopt, numbered from 0 on in that order.
 * Errors: GORI_ENOTFOUND behind the last.
 */
GORI_API GORI_MUST_USE int gori_runtime_addr(const struct gori_runtime *runtime, uint32_t index,
                                             struct gori_addr *ret_addr);

/** The loop of a worker, NULL while it is not running.  Post to it from any thread. */
GORI_API struct gori_loop *gori_runtime_loop(struct gori_runtime *runtime, uint32_t worker);

/**
 * Posts a task to a worker's loop, as gori_loop_post, and knows by itself whether that still runs.
 * Thread: any, while the runtime exists.
 * Errors: GORI_ELIMIT; GORI_ECLOSED when the worker has not started or has ended; GORI_EINVAL (no
 * such worker); the task is then still the caller's.
 */
GORI_API GORI_MUST_USE int gori_runtime_post(struct gori_runtime *runtime, uint32_t worker,
                                             struct gori_task *task);

/**
 * Sends a block to a session of any worker by its id, as gori_loop_send: in order for each sender,
 * bounded, and with an error for a session that is gone or a worker that has ended.
 * Thread: any, while the runtime exists.
 * Errors: GORI_ESTALE, GORI_ELIMIT, GORI_ECLOSED, GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_runtime_send(struct gori_runtime *runtime, uint64_t id,
                                             struct gori_block *block);

/** Copies the figures of a worker, zeros when there is none.  Thread: any. */
GORI_API void gori_runtime_read_stats(const struct gori_runtime *runtime, uint32_t worker,
                                      struct gori_worker_stats *ret_stats);

/** The pointer given in the config. */
GORI_API void *gori_runtime_user(const struct gori_runtime *runtime);

#ifdef __cplusplus
}
#endif

#endif
