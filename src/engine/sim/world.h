/* SPDX-License-Identifier: MIT */
/*
 * The inside of a simulated world, for the files of this folder: world.c (clock, events, actors,
 * trace), network.c (sockets and connections), files.c (names that are watched), events.c
 * (signals, children), engine.c (completions).
 *
 * A connection has two ends; an end outlives its socket, as in TCP: what was written before a close
 * still arrives.  Bytes go from an end's `out` through the network into the other end's `in`, one
 * event at a time for each direction, so that they stay in order.
 *
 *  N1  A socket is named by the lowest free number, as POSIX does, so that numbers are reused at
 *      once.
 *  N2  A connection is freed when both its ends are closed, not before.
 *  N3  An end that is `dead` (it sent or got a reset) neither sends nor gets anything any more.
 * Thread: one.
 */
#ifndef GI_ENGINE_SIM_WORLD_H
#define GI_ENGINE_SIM_WORLD_H

#include "base/random.h"
#include "engine/sim/sim.h"

#define GI_SIM_NATIVE_FROM 1048576 /* no descriptor of the machine is as high by chance */
#define GI_SIM_FILES_FROM  2097152 /* and of files: no socket is */
#define GI_SIM_TRACE_COUNT 256     /* events kept; a power of two */

struct gi_sim_trace_entry {
    gori_time time;
    const char *what;
    int64_t values[3];
};

/** A queue of bytes with a capacity. */
struct gi_sim_ring {
    uint8_t *data;
    uint32_t capacity;
    uint32_t first;
    uint32_t size;
};

struct gi_sim_end {
    struct gi_sim_connection *connection;
    struct gi_sim_socket *socket; /* NULL while it waits to be accepted, and after close */
    struct gori_link pending;     /* in the queue of a listener */
    struct gori_addr local;
    struct gori_addr peer;
    struct gi_sim_ring in;
    struct gi_sim_ring out;
    struct gi_sim_event pump; /* the network takes from `out` */
    struct gi_sim_event cut;  /* a reset arrives here */
    int error;                /* told once, as by SO_ERROR */
    bool shut;                /* our direction is ended: nothing is added to `out` */
    bool end_sent;            /* and that has arrived at the other end */
    bool ended;               /* the other end's has arrived here */
    bool dead;                /* N3 */
    bool closed;
};

struct gi_sim_connection {
    struct gori_link link;
    uint32_t number;
    bool slow;
    struct gi_sim_end ends[2]; /* of who connected, of who accepted */
};

enum gi_sim_socket_kind {
    GI_SIM_FRESH,
    GI_SIM_CONNECTING,
    GI_SIM_REFUSED, /* the connect failed; `connect_error` says how */
    GI_SIM_STREAM,
    GI_SIM_LISTENER,
    GI_SIM_SOURCE
};

/** What all names of an event source share. */
struct gi_sim_source {
    uint32_t names;
    bool is_ready;
    bool is_full; /* takes nothing */
};

struct gi_sim_socket {
    gori_native native;
    struct gi_engine *engine; /* NULL: a scripted peer's */
    enum gori_addr_family family;
    enum gi_sim_socket_kind kind;
    uint32_t send_bytes;
    uint32_t recv_bytes;
    bool reset_on_close;
    struct gi_sim_end *end; /* of a stream */
    struct gi_sim_source *source;
    struct gori_addr addr; /* a listener's own, or where a connect goes */
    /* connecting */
    struct gi_sim *sim;
    struct gi_sim_event attempt;
    uint32_t attempts;
    int connect_error;
    /* listener */
    struct gori_link pending; /* ends to accept, in order */
    uint32_t pending_count;
    struct gi_listen_options options;
};

/** A UNIX path that was bound once: connecting to it is refused, not "not found". */
struct gi_sim_path {
    struct gori_link link;
    struct gori_addr addr;
};

struct gi_sim {
    const struct gori_allocator *allocator;
    struct gi_sim_config config; /* with the defaults filled in */
    struct gi_random random;
    gori_time now;
    struct gi_sim_stats stats;
    /* events: a binary heap by (time, sequence) */
    struct gi_sim_event **events;
    uint32_t event_count;
    uint32_t event_capacity;
    uint64_t next_sequence;
    /* network */
    struct gi_sim_socket **sockets; /* by number */
    uint32_t socket_capacity;
    struct gori_link connections;
    struct gori_link paths;
    uint32_t next_connection;
    uint16_t next_port;
    struct gori_addr any_ipv4; /* 0.0.0.0:0 */
    struct gori_addr any_ipv6; /* [::]:0 */
    /* files */
    struct gori_link files;
    struct gori_link watchers;
    uint32_t watch_pair;    /* of the latest rename */
    struct gori_link nodes; /* of struct gi_sim_node */
    struct gi_sim_open_file *open_files;
    uint32_t open_file_capacity;
    uint64_t next_node;
    /* its one process */
    struct gori_link signal_watches; /* of struct gi_os_signal_watch */
    struct gori_link children;       /* of struct sim_child */
    int64_t last_child;
    gi_sim_program_fn *run_program;
    void *programs_user;
    /* loops */
    struct gori_link engines; /* of struct sim_engine, by its link */
    struct gori_link actors;
    struct gi_sim_actor *running;
    uint64_t submits;
    /* trace */
    uint64_t hash;
    struct gi_sim_trace_entry trace[GI_SIM_TRACE_COUNT];
};

/** Whether a fault of so many chances in 1000 happens now. */
bool gi_sim_chance(struct gi_sim *sim, uint16_t per_mille);

/** A number of bytes from 1 to `size`, small ones more often. */
size_t gi_sim_cut_size(struct gi_sim *sim, size_t size);

/** Time of the next event, GORI_NEVER without one. */
gori_time gi_sim_next_event(const struct gi_sim *sim);

/** Moves the clock to `time` (or beyond, by a jump) and runs what is due. */
void gi_sim_advance(struct gi_sim *sim, gori_time time);

/** Runs what is due now. */
void gi_sim_run_due(struct gi_sim *sim);

/* Of engine.c, for the stepping and the dump, and for events.c. */
struct gi_sim *gi_sim_of(struct gi_engine *engine);
bool gi_sim_engine_has_work(struct gi_engine *engine);
gori_time gi_sim_engine_next_time(struct gi_engine *engine);
void gi_sim_engine_dump(const struct gori_link *link);

/* Of files.c: the calls of os/watch.h. */
struct gi_os_place;
struct gi_watch_record;
struct gi_watcher;
int gi_sim_watcher_create(struct gi_sim *sim, struct gi_engine *engine,
                          const struct gori_allocator *allocator, struct gi_watcher **ret_watcher);
void gi_sim_watcher_destroy(struct gi_watcher *watcher);
gori_native gi_sim_watcher_source(const struct gi_watcher *watcher);
bool gi_sim_is_directory(struct gi_sim *sim, const char *path);
int gi_sim_watcher_add(struct gi_watcher *watcher, const char *directory, const char *name,
                       struct gi_os_place *place, struct gi_os_place **ret_place);
void gi_sim_watcher_remove(struct gi_watcher *watcher, struct gi_os_place *place);
int gi_sim_watcher_next(struct gi_watcher *watcher, struct gi_watch_record *ret_record);
void gi_sim_files_fini(struct gi_sim *sim);
/* Of events.c. */
extern const struct gi_event_calls gi_sim_events;

/* Of disk.c. */

/** What an op on a file comes to now: a result, or GORI_EAGAIN when it goes on later. */
int64_t gi_sim_file_work(struct gi_sim *sim, struct gori_file_op *op);
int64_t gi_sim_file_read(struct gi_sim *sim, int descriptor, void *data, size_t size,
                         uint64_t offset);
int gi_sim_file_close(struct gi_sim *sim, int descriptor);
/** A name is another one from now on, or none (NULL). */
void gi_sim_disk_rename(struct gi_sim *sim, const char *from, const char *to);
void gi_sim_disk_fini(struct gi_sim *sim);
extern const struct gi_file_calls gi_sim_files;

/* Of network.c. */
void gi_sim_network_dump(const struct gi_sim *sim);
void gi_sim_network_fini(struct gi_sim *sim);

#endif
