/* SPDX-License-Identifier: MIT */
/*
 * A simulated world for the engine "sim": one virtual clock, one network, and as many loops as one
 * likes, all on one thread and all decided by one seed.  Not a model of speed.
 *
 *  W1  The same seed, configuration and calls give the same world, to the last event: two runs have
 *      the same gi_sim_hash.  Nothing is read from the machine but the bytes of files that are
 *      sent.
 *  W2  The clock moves forward only, and only when nothing else can happen (or a fault makes it
 *      jump).
 *  W3  A zeroed configuration is calm: no fault, no delay; what is sent has arrived when the call
 *      returns.  Every fault is switched on by itself.
 *  W4  What breaks a rule of engine.h (a second receive on a handle, a submit on a closing one, a
 *      socket nobody owns, one left open at the end) stops the program with the seed and the last
 *      events.  A world in which nothing can ever happen again is such a violation too.
 *  W5  The world's own memory never fails (it is asserted): only the engines' may, which is the one
 *      that a fault sweep is after.
 * Thread: one.  Reading list: README.md here, engine/engine.h.
 */
#ifndef GI_ENGINE_SIM_SIM_H
#define GI_ENGINE_SIM_SIM_H

#include <gori/addr.h>
#include <gori/allocator.h>
#include <gori/base.h>
#include <gori/op.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "engine/engine.h"

struct gi_sim;
struct gi_sim_event;

/** How often each fault happens, in 1000 chances.  Zero: never. */
struct gi_sim_faults {
    uint16_t short_recv;   /* a receive takes fewer bytes than there are */
    uint16_t short_send;   /* a send goes on in pieces, with pauses */
    uint16_t segment;      /* the network hands over fewer bytes than it could */
    uint16_t shuffle;      /* a completion overtakes those of other streams; ops run in any order */
    uint16_t late;         /* an op does nothing for a while although it could */
    uint16_t late_submit;  /* an op reaches the kernel a turn later (a full submission queue) */
    uint16_t cancel_lost;  /* a cancelled op first does what it can */
    uint16_t cancel_late;  /* a cancel takes effect a while later */
    uint16_t stale;        /* the completion of an op that is over comes again */
    uint16_t starve;       /* a receive finds no buffer although there are some */
    uint16_t spurious;     /* a turn ends for no reason */
    uint16_t jump;         /* the clock goes on by up to `jump_max` more than it should */
    uint16_t submit_error; /* a submit answers GORI_ENOMEM */
    uint16_t open_error;   /* a socket cannot be made: EMFILE, ENFILE, ENOBUFS or ENOMEM */
    uint16_t accept_error; /* the same, when there is a connection to accept */
    uint16_t abort;        /* a connection that was reset in the queue is GORI_ECONNABORTED */
    uint16_t refuse;       /* a connect is refused although somebody listens */
    uint16_t reset;        /* the network cuts a connection while it hands over bytes */
    uint16_t slow;         /* a connection is slow: long delays, few bytes at a time */
    uint16_t short_look;   /* a look at changes of files ends before all were told */
    uint16_t file_error;   /* an op on a file fails: EIO, ENOSPC, or what an open may say */
    uint16_t discard;      /* a reset throws away what was received before it and not yet read */
};

/** What a world is like.  Zero means the default, or none, for every field. */
struct gi_sim_config {
    uint64_t seed;
    uint32_t descriptors_max; /* sockets of all loops together; default 65,536 */
    uint32_t completions_max; /* places in the completion queue of an engine; default 4096 */
    uint32_t changes_max;     /* of files, that a watcher has not been told yet; default 16,384 */
    uint32_t burst_max;       /* completions that one op gives in a turn at most; default 16 */
    uint32_t send_bytes_min;  /* size of a socket's buffers, chosen anew for each; default 64 KiB */
    uint32_t send_bytes_max;
    uint32_t recv_bytes_min;
    uint32_t recv_bytes_max;
    uint64_t file_bytes_max; /* of all files together; default 1 GiB */
    gori_time delay_min;     /* time that bytes, connects and resets are under way; default none */
    gori_time delay_max;
    gori_time turn_cost;      /* time that each turn takes; default none */
    gori_time jump_max;       /* default 1 s */
    uint32_t submit_fails_at; /* the n-th submit answers GORI_ENOMEM, from 1; default none */
    struct gi_sim_faults faults;
};

/** Figures of a world. */
struct gi_sim_stats {
    uint64_t events;       /* traced */
    uint64_t bytes;        /* handed over by the network */
    uint64_t connections;  /* made */
    uint64_t resets;       /* cut by the fault `reset` */
    uint64_t overflows;    /* times a full completion queue stopped a multishot op */
    uint64_t cancels_lost; /* cancels that came too late */
    uint64_t stale;        /* completions made up by the fault `stale` */
    uint32_t connections_now;
    uint32_t descriptors_now; /* sockets of the loops */
    uint32_t files_now;       /* open */
    uint64_t file_bytes_now;  /* of all files together */
    uint32_t peers_now;       /* sockets of nobody's loop: the scripted peers' */
};

/** Creates a world.  Errors: GORI_EINVAL (a minimum above its maximum), GORI_ENOMEM. */
GORI_MUST_USE int gi_sim_create(const struct gori_allocator *allocator,
                                const struct gi_sim_config *config, struct gi_sim **ret_sim);

/** Ends a world.  No loop is left in it, and no socket: otherwise that is a violation. */
void gi_sim_destroy(struct gi_sim *sim);

gori_time gi_sim_now(const struct gi_sim *sim);
void gi_sim_stats(const struct gi_sim *sim, struct gi_sim_stats *ret_stats);

/** A number that depends on every event so far. */
uint64_t gi_sim_hash(const struct gi_sim *sim);

/* Stepping: several loops in one world ---------------------------------------------------- */

/**
 * Somebody who is given turns: a loop.  `run` makes one turn of it, with any wait; while it runs
 * the engine does not wait but notes until when it would have.
 */
struct gi_sim_actor {
    void (*run)(struct gi_sim_actor *actor);
    bool (*has_work)(const struct gi_sim_actor *actor); /* beside its engine; may be NULL */
    void *user;
    /* private */
    struct gori_link link;
    struct gi_engine *engine; /* the one whose turn was made in `run` */
    gori_time deadline;       /* it waits until then */
    bool waits;
};

void gi_sim_add(struct gi_sim *sim, struct gi_sim_actor *actor);
void gi_sim_remove(struct gi_sim *sim, struct gi_sim_actor *actor);

/**
 * One step: gives a turn to one of the actors that have something to do, chosen by the seed, or
 * moves the clock when none has.  Result: false when nothing can ever happen again.
 */
bool gi_sim_step(struct gi_sim *sim);

/* Events of the harness ------------------------------------------------------------------- */

typedef void gi_sim_event_fn(struct gi_sim *sim, struct gi_sim_event *event);

/** Something that happens later.  Embed it; zero it before its first use. */
struct gi_sim_event {
    gori_time time;
    uint64_t sequence; /* breaks ties: what was scheduled first happens first */
    uint32_t place;    /* 1 + index in the heap, 0 when it is not scheduled */
    gi_sim_event_fn *run;
};

/** Runs `run` when `delay` has passed; an event that is scheduled already is moved. */
void gi_sim_schedule(struct gi_sim *sim, struct gi_sim_event *event, gori_time delay,
                     gi_sim_event_fn *run);
void gi_sim_unschedule(struct gi_sim *sim, struct gi_sim_event *event);

/* Trace and violations --------------------------------------------------------------------- */

/** Notes an event; `what` is static text. */
void gi_sim_trace(struct gi_sim *sim, const char *what, int64_t a, int64_t b, int64_t c);

/** Prints seed, time, hash, sockets, operations and the last events to standard error. */
void gi_sim_dump(const struct gi_sim *sim);

/** A violation: prints `what`, gi_sim_dump, and aborts. */
GI_NORETURN void gi_sim_fail(const struct gi_sim *sim, const char *what);

/* Sockets: of the engines, and of scripted peers ------------------------------------------- */

/* Bytes, the end of the stream, or an error; a connection to accept; a source that is ready. */
#define GI_SIM_READABLE 0x1
#define GI_SIM_WRITABLE 0x2 /* room, or an error */
#define GI_SIM_ENDED    0x4 /* the peer's end of the stream has arrived (bytes may stand before) */
#define GI_SIM_RESET    0x8 /* the connection was reset */

/*
 * All as the system's non-blocking calls of the same name: GORI_EAGAIN when it cannot be now.
 * `engine` owns the socket and suffers the faults; NULL for a scripted peer, who suffers none.
 * A connect is asked again until it answers 0 or its error.
 */
int gi_sim_open(struct gi_sim *sim, struct gi_engine *engine, enum gori_addr_family family,
                gori_native *ret_native);
int gi_sim_listen(struct gi_sim *sim, struct gi_engine *engine, const struct gori_addr *addr,
                  const struct gi_listen_options *options, gori_native *ret_native);
int gi_sim_accept(struct gi_sim *sim, gori_native listener, gori_native *ret_native);
int gi_sim_connect(struct gi_sim *sim, gori_native native, const struct gori_addr *addr);
int64_t gi_sim_recv(struct gi_sim *sim, gori_native native, void *data, size_t size);
int64_t gi_sim_send(struct gi_sim *sim, gori_native native, const void *data, size_t size);
int gi_sim_shutdown_send(struct gi_sim *sim, gori_native native);
void gi_sim_set_reset_on_close(struct gi_sim *sim, gori_native native);
int gi_sim_set_buffers(struct gi_sim *sim, gori_native native, uint32_t send_bytes,
                       uint32_t recv_bytes);
int gi_sim_addr(struct gi_sim *sim, gori_native native, enum gi_socket_end end,
                struct gori_addr *ret_addr);
uint32_t gi_sim_ready(struct gi_sim *sim, gori_native native);
void gi_sim_close(struct gi_sim *sim, gori_native native);

/* Event sources ---------------------------------------------------------------------------- */

/*
 * A source stays ready, under all its names, until somebody says that it is not.  It is readable
 * when it is ready, writable unless it is full, and is closed, each name for itself, by
 * gi_sim_close.  `engine` as for sockets.
 */
int gi_sim_source_open(struct gi_sim *sim, struct gi_engine *engine, gori_native *ret_source);
int gi_sim_source_duplicate(struct gi_sim *sim, struct gi_engine *engine, gori_native source,
                            gori_native *ret_source);
void gi_sim_source_set(struct gi_sim *sim, gori_native source, bool is_ready);
void gi_sim_source_fill(struct gi_sim *sim, gori_native source, bool is_full);

/* Files, as far as they can be watched ----------------------------------------------------- */

/*
 * Names; their content is disk.c's.  The directory of a path is what stands before its last '/'.
 * Only directories that were made can be watched; files need none.
 */
void gi_sim_directory_make(struct gi_sim *sim, const char *path); /* which is new */
void gi_sim_file_write(struct gi_sim *sim, const char *path);     /* makes it if need be */
int gi_sim_file_touch(struct gi_sim *sim, const char *path);      /* attributes */
int gi_sim_file_remove(struct gi_sim *sim, const char *path);     /* or a directory */
int gi_sim_file_rename(struct gi_sim *sim, const char *from, const char *to);
/**
 * A signal for the process that all loops of the world are in.  Result: whether anybody hears of
 * it; when nobody does, a real one would take its default action.
 */
bool gi_sim_raise(struct gi_sim *sim, int number);

/**
 * Plays the programs of the world.  Called by a spawn, which answers what this does; `id` names the
 * child from then on, and `stdio` has its ends of pipes, which are scripted peers and are the
 * callee's, or GORI_NATIVE_NONE.  Without one no program is found.
 */
typedef int gi_sim_program_fn(struct gi_sim *sim, const struct gori_process_config *config,
                              int64_t id, const gori_native stdio[GORI_STDIO_COUNT]);
void gi_sim_set_programs(struct gi_sim *sim, gi_sim_program_fn *run, void *user);
void *gi_sim_programs_user(const struct gi_sim *sim);

/** A child ends, when it has not yet. */
void gi_sim_exit(struct gi_sim *sim, int64_t id, int status, int signal);

/** Two sockets that are connected: of a loop's, and of a scripted peer's. */
int gi_sim_pair(struct gi_sim *sim, struct gi_engine *engine, gori_native *ret_ours,
                gori_native *ret_theirs);

/* Files: what loops open in this world, in memory (disk.c) ---------------------------------- */

/** Makes a folder, "/" in front; the one it is in is there already. */
void gi_sim_make_folder(struct gi_sim *sim, const char *path);

/** From here on all files together have no more room than that. */
void gi_sim_limit_files(struct gi_sim *sim, uint64_t bytes);

#endif
