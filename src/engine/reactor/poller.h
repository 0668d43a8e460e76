/* SPDX-License-Identifier: MIT */
/*
 * A poller: says which descriptors are ready.  It knows descriptors and tokens and nothing else: no
 * handles, no operations.  poller_epoll.c is one; another is one more file, and an engine made of
 * it as in engine_epoll.c.
 *
 *  P1  A token is opaque but for its low 32 bits: a small number, of one descriptor at a time, so
 *      that a poller may keep a table by it.
 *  P2  An edge poller tells each change of a descriptor once, in all directions, from `add` on;
 *      `set` is never called.  A level poller tells what is ready in the directions of the last
 *      `set`, each time it is asked, and nothing for a descriptor without directions (no error
 *      either: nobody is there to take it, and the thread would spin).
 *  P3  After `remove` an event of that token may still come once; the reactor ignores it.
 *  P4  `wait` never returns early but for an event or a signal (or after a while, because it has to
 *      ask again for something), and never later than asked by more than the system's own grain.
 *  P5  A descriptor is closed right after its `remove`, before the next `wait`.
 * Thread: the loop's.
 */
#ifndef GI_ENGINE_REACTOR_POLLER_H
#define GI_ENGINE_REACTOR_POLLER_H

#include <gori/allocator.h>
#include <gori/base.h>
#include <gori/engine.h>
#include <stdbool.h>

#define GI_POLL_READ  0x1
#define GI_POLL_WRITE 0x2
#define GI_POLL_DRAIN                                                                              \
    0x4 /* the end, an error or urgent data is there: a short read is not the end */

struct gi_poller_event {
    uint64_t token;
    uint32_t mask; /* GI_POLL_… */
};

struct gi_poller;

struct gi_poller_impl {
    bool is_edge;
    int (*create)(const struct gori_allocator *allocator, struct gi_poller **ret_poller);
    void (*destroy)(struct gi_poller *poller);
    /* Errors: GORI_ENOMEM; GORI_ELIMIT when it cannot watch this descriptor; of the system. */
    int (*add)(struct gi_poller *poller, int fd, uint64_t token);
    /* Level pollers only: watch READ and WRITE as in `mask`.  Cannot fail. */
    void (*set)(struct gi_poller *poller, int fd, uint64_t token, uint32_t mask);
    void (*remove)(struct gi_poller *poller, int fd, uint64_t token);
    /* Where the system itself can wake a wait, both; else NULL, and a descriptor does it. */
    int (*add_wake)(struct gi_poller *poller, uint64_t token);
    void (*wake)(struct gi_poller *poller); /* from any thread; `token` is READ once, as an edge */
    /* Waits at most `timeout` (GORI_NEVER: without end).  Result: events; 0 after a signal too. */
    int (*wait)(struct gi_poller *poller, gori_time timeout, struct gi_poller_event *ret_events,
                uint32_t events_max);
    void (*report)(struct gori_engine_report *ret_report);
};

/** Every poller begins with this. */
struct gi_poller {
    const struct gi_poller_impl *impl;
};

extern const struct gi_poller_impl gi_poller_epoll;
extern const struct gi_poller_impl gi_poller_kqueue;
extern const struct gi_poller_impl gi_poller_poll;
extern const struct gi_poller_impl gi_poller_select;

#endif
