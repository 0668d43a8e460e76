/* SPDX-License-Identifier: MIT */
/*
 * The engine contract: what the runtime asks of an operating system, in completions.  One folder
 * beside this file per implementation: reactor/ (completion made from readiness, over a poller),
 * uring/ (native), sim/ (a simulated kernel).  The runtime knows no other door.
 *
 * Contract, beside the ten rules of <gori/op.h>, which every engine keeps:
 *
 *  E1  An engine belongs to one thread, the loop's.  Only `wake` may be called from others.
 *  E2  A turn flushes what was submitted, waits at most until the deadline (not at all when there
 *      is something to deliver already), and harvests.  It delivers nothing itself: the runtime
 *      pulls completions with `next`, as many as its budget allows; the rest stay for later, in
 *      order, and keep the next turn from waiting.
 *  E3  `next` fills one completion and forgets it.  After `is_last` the engine holds no pointer to
 *      the op any more, so that the callback may submit it again or free it.  After a handle's
 *      `closed` it holds no pointer to the handle.
 *  E4  Per handle there is at most one receive and one send in flight; the runtime never submits a
 *      second (it answers GORI_EBUSY itself).  The bytes of the completions of a receive are in the
 *      order of the stream; the end of the stream and errors come after all bytes.
 *  E5  `close` may be called with ops in flight: all complete (cancelled, or with what they did),
 *      then the descriptor is closed, then one completion with `closed` set is delivered.  Nothing
 *      of it happens inside `close`.  A peer sees the end of the stream (or the reset) promptly,
 *      also when receives were in flight.
 *  E6  No pointer goes to a kernel.  A late completion finds nothing and is counted as stale.
 *  E7  Receive buffers come from `buffers`, the loop's pool, only when there is data.  Out of them,
 *      a receive is parked and resumed by the engine itself, in turn, when some are back; it does
 *      not complete and does not spin.
 *  E8  Passing conditions are the engine's own business: EINTR, EAGAIN, a full queue, an overflow,
 *      a short write.  GORI_EMFILE, GORI_ENFILE, GORI_ENOBUFS and GORI_ENOMEM of an accept are not:
 *      they end the op and reach the runtime, which backs off.
 *  E9  A socket whose accept was cancelled too late is closed by the engine, never leaked.
 *  E10 `wake` makes the current or the next waiting turn return, at least once per call, and is
 *      cheap when many come together.  It allocates nothing and may be called until `destroy`.
 *  E11 A handle with GI_HANDLE_SOURCE is no socket but an event source: what the system lets a
 *      thread wait for.  GORI_OP_WAIT, and GORI_OP_WAIT_WRITABLE where there is such a thing, are
 *      its only ops, one of each at a time; they complete with 0 once the source is ready, at once
 *      when it is ready already, and take nothing from it.  The engine leaves the mode of the
 *      source alone, and closes it with the handle.  Whoever empties a source tells nobody: an
 *      engine that remembers readiness asks the system again before it completes.
 *  E12 File ops (the kinds GORI_OP_FILE_…, inside a struct gori_file_op) have no handle.  An engine
 *      is given those whose bit is in `native_kinds`; it knows descriptors, not files.  It goes on
 *      after short reads and writes, fills `descriptor` and `info` of an open and `info` of a stat,
 *      and leaves no descriptor open of an op that fails.  Undoing an open that was cancelled too
 *      late is the runtime's business.
 */
#ifndef GI_ENGINE_ENGINE_H
#define GI_ENGINE_ENGINE_H

#include <gori/addr.h>
#include <gori/allocator.h>
#include <gori/base.h>
#include <gori/engine.h>
#include <gori/op.h>
#include <gori/process.h>
#include <stdbool.h>

#include "engine/buffers.h"
#include "engine/file_op.h"

struct gi_engine;
struct gi_os_place;
struct gi_watch_record;
struct gi_watcher;
struct gi_os_process;
struct gi_os_signal_watch;

/** What an engine is made of. */
struct gi_engine_config {
    const struct gori_allocator *allocator;
    struct gi_buffers *buffers; /* the loop's pool; outlives the engine */
    uint32_t ops_max;           /* operations in flight at most */
    void *simulation;           /* of sim only: struct gi_sim * */
};

/** One delivery: either of an op, or the end of a handle. */
struct gi_completion {
    struct gori_op *op;          /* NULL when `closed` is set */
    struct gori_handle *closed;  /* a handle whose close is complete */
    struct gori_completion what; /* of the op */
};

/** Connections that the system queues for a listener when nobody says otherwise; it may cap them.
 */
#define GI_BACKLOG 4096

/** What a listening socket is like. */
struct gi_listen_options {
    uint32_t backlog;
    bool reuse_port;
    bool ipv6_only;
    bool no_delay; /* for the connections, from the first one on */
};

/** Figures that an engine counts for gori_loop_stats. */
struct gi_engine_stats {
    uint64_t waits;             /* times it asked the kernel */
    uint64_t stale_completions; /* late ones that found nothing */
};

/** Which end of a socket is asked for. */
enum gi_socket_end { GI_SOCKET_LOCAL, GI_SOCKET_PEER };

/**
 * Socket calls that do not wait: the operating system's (src/engine/socket.c) for all real engines,
 * the simulator's own for sim.  Results are GORI_E… values.  `engine` may be NULL for the real
 * ones, which need none: the runtime binds its ports before any loop exists.
 */
struct gi_socket_calls {
    int (*listen)(struct gi_engine *engine, const struct gori_addr *addr,
                  const struct gi_listen_options *options, gori_native *ret_native);
    int (*open)(struct gi_engine *engine, enum gori_addr_family family, gori_native *ret_native);
    /* One connection out of a listener's queue, GORI_EAGAIN when there is none. */
    int (*accept)(struct gi_engine *engine, gori_native listener, gori_native *ret_native);
    int (*shutdown_send)(struct gi_engine *engine, gori_native native);
    int (*set_no_delay)(struct gi_engine *engine, gori_native native, bool on);
    int (*set_reset_on_close)(struct gi_engine *engine, gori_native native);
    int (*addr)(struct gi_engine *engine, gori_native native, enum gi_socket_end end,
                struct gori_addr *ret_addr);
    void (*close)(struct gi_engine *engine, gori_native native);
};

/**
 * Calls on event sources (E11): the operating system's (src/engine/event.c) for all real engines,
 * the simulator's own for sim.  Results are GORI_E… values.
 */
struct gi_event_calls {
    /* Another name of the same source, that is closed by itself. */
    int (*duplicate)(struct gi_engine *engine, gori_native source, gori_native *ret_source);
    void (*close)(struct gi_engine *engine, gori_native source);
    /* As the functions of os/signal.h, of the process that the engine lives in. */
    int (*signals_open)(struct gi_engine *engine, struct gi_os_signal_watch *watch);
    void (*signals_close)(struct gi_engine *engine, struct gi_os_signal_watch *watch);
    int (*signals_add)(struct gi_engine *engine, struct gi_os_signal_watch *watch, int number);
    void (*signals_remove)(struct gi_engine *engine, struct gi_os_signal_watch *watch, int number);
    uint64_t (*signals_take)(struct gi_engine *engine, struct gi_os_signal_watch *watch);
    /* As the functions of os/process.h. */
    int (*process_spawn)(struct gi_engine *engine, const struct gori_process_config *config,
                         struct gi_os_process *process, gori_native ret_pipes[GORI_STDIO_COUNT]);
    int (*process_take)(struct gi_engine *engine, struct gi_os_process *process,
                        struct gori_exit *ret_exit);
    int (*process_kill)(struct gi_engine *engine, struct gi_os_process *process, int number);
    void (*process_end)(struct gi_engine *engine, struct gi_os_process *process);
    void (*process_close)(struct gi_engine *engine, struct gi_os_process *process);
};

/**
 * File changes (os/watch.h): the operating system's (src/engine/watch.c) for all real engines, the
 * simulator's own for sim.  The source of a watcher is of whoever puts it on a loop: `destroy`
 * leaves it open, and no call but `destroy` comes after it was closed.
 */
struct gi_watch_calls {
    int (*create)(struct gi_engine *engine, const struct gori_allocator *allocator,
                  struct gi_watcher **ret_watcher);
    void (*destroy)(struct gi_watcher *watcher);
    gori_native (*source)(const struct gi_watcher *watcher);
    bool (*is_directory)(struct gi_engine *engine, const char *path);
    int (*add)(struct gi_watcher *watcher, const char *directory, const char *name,
               struct gi_os_place *place, struct gi_os_place **ret_place);
    void (*remove)(struct gi_watcher *watcher, struct gi_os_place *place);
    int (*next)(struct gi_watcher *watcher, struct gi_watch_record *ret_record);
};

/**
 * Calls on open files that block: the operating system's for all real engines, the simulator's own
 * for sim.  `place` is gi_engine.files_place.  Thread: any.
 */
struct gi_file_calls {
    int64_t (*read)(void *place, int descriptor, void *data, size_t size, uint64_t offset);
    int (*close)(void *place, int descriptor);
};

/** One implementation. */
struct gi_engine_impl {
    const char *name;
    const struct gi_socket_calls *sockets;
    const struct gi_event_calls *events;
    const struct gi_watch_calls *watches;
    const struct gi_file_calls *files;
    /** Brings a file that was just opened to the engine; NULL where that is nothing. */
    int (*attach_file)(struct gi_engine *engine, int descriptor);
    /** GORI_ENOSYS or GORI_EPERM: not to be had here, another engine may be tried. */
    int (*create)(const struct gi_engine_config *config, struct gi_engine **ret_engine);
    /** Nothing is in flight any more: the runtime has closed all handles and seen them closed. */
    void (*destroy)(struct gi_engine *engine);
    void (*report)(struct gori_engine_report *ret_report);
    gori_time (*now)(struct gi_engine *engine);
    /** Takes over `handle->native`.  On failure the caller still owns it. */
    int (*attach)(struct gi_engine *engine, struct gori_handle *handle);
    /** The op's kind, handle and arguments are filled in.  Errors: GORI_ELIMIT, GORI_ENOMEM. */
    int (*submit)(struct gi_engine *engine, struct gori_op *op);
    void (*cancel)(struct gi_engine *engine, struct gori_op *op);
    void (*close)(struct gi_engine *engine, struct gori_handle *handle);
    int (*turn)(struct gi_engine *engine, gori_time deadline);
    bool (*next)(struct gi_engine *engine, struct gi_completion *ret_completion);
    void (*wake)(struct gi_engine *engine);
    void (*stats)(const struct gi_engine *engine, struct gi_engine_stats *ret_stats);
};

/** Every engine begins with this. */
struct gi_engine {
    const struct gi_engine_impl *impl;
    uint32_t native_kinds; /* file ops that it takes (GI_KIND_BIT); a pool does the others */
    void *files_place;
};

/** Values of gori_op.state: who holds the op.  Owned by rt/op.c and the engines. */
enum gi_op_state {
    GI_OP_IDLE = 0,      /* the caller's */
    GI_OP_SUBMITTED = 1, /* the engine's */
    GI_OP_CANCELING = 2  /* the engine's, and asked to end */
};

/** Values of gori_handle.state. */
enum gi_handle_state {
    GI_HANDLE_FREE = 0, /* never opened, or closed */
    GI_HANDLE_OPEN = 1,
    GI_HANDLE_CLOSING = 2 /* no new ops; `closed` will come */
};

/** Bits of gori_handle.flags, set by rt/op.c; the last three before `attach`. */
#define GI_HANDLE_RECEIVING 0x01 /* a receive is in flight */
#define GI_HANDLE_SENDING   0x02 /* a send is in flight */
#define GI_HANDLE_LISTENER  0x04 /* it may be shared with others, who count on its mode */
#define GI_HANDLE_SOURCE    0x08 /* E11; for good */
#define GI_HANDLE_BLOCKS    0x10 /* made by us, in blocking mode, and never out of our hands */

extern const struct gi_engine_impl gi_engine_uring;
extern const struct gi_engine_impl gi_engine_epoll;
extern const struct gi_engine_impl gi_engine_kqueue;
extern const struct gi_engine_impl gi_engine_poll;
extern const struct gi_engine_impl gi_engine_select;
extern const struct gi_engine_impl gi_engine_iocp;
extern const struct gi_engine_impl gi_engine_sim;

/** The socket and file calls of the operating system. */
extern const struct gi_socket_calls gi_system_sockets;
extern const struct gi_file_calls gi_system_files;

/** What the operating system knows of event sources. */
extern const struct gi_event_calls gi_system_events;

/** What the operating system tells of file changes. */
extern const struct gi_watch_calls gi_system_watches;

/** How `auto` chose. */
struct gi_engine_choice {
    struct gi_engine *engine;
    const char *fallback_reason; /* NULL, or a static sentence */
};

/**
 * Creates the engine `name`; "auto", NULL and "" mean GORI_ENGINE from the environment, and without
 * it the best that works here: io_uring, else epoll where io_uring is refused (GORI_ENOSYS,
 * GORI_EPERM).  Lack of memory or descriptors is no reason to fall: it is the error.
 * Errors: GORI_EINVAL for an unknown name, and those of `create`.
 */
int gi_engine_choose(const char *name, const struct gi_engine_config *config,
                     struct gi_engine_choice *ret_choice);

#endif
