/* SPDX-License-Identifier: MIT */
/*
 * Which worker gets a connection: one object for each address of a runtime, with a seat for every
 * worker.  Contract: accept_policy.c.
 */
#ifndef GI_RT_ACCEPT_POLICY_H
#define GI_RT_ACCEPT_POLICY_H

#include <gori/listener.h>
#include <gori/loop.h>
#include <gori/op.h>
#include <gori/runtime.h>

#include "base/atomic.h"
#include "os/os.h"

/* What gi_accept_dispatch answers beside errors. */
#define GI_ACCEPT_HERE 0 /* the acceptor keeps it; it is counted */
#define GI_ACCEPT_AWAY 1 /* it is on its way to another worker */

/** What one worker has of an address. */
struct gi_accept_seat {
    struct gi_atomic_pointer listener; /* who takes what is handed over; NULL: nobody */
    struct gi_atomic_u32 sessions;     /* given to it and not closed */
    struct gi_atomic_u64 accepted;     /* given to it in all */
    struct gi_atomic_u64 handed_over;  /* of them, those that another worker had accepted */
    struct gori_task end;              /* tells it that nothing will be handed over any more */
};

struct gi_accept {
    struct gori_runtime *runtime;
    enum gori_accept_policy policy; /* never GORI_ACCEPT_KERNEL where nobody balances: 6 */
    uint32_t workers;
    uint32_t sessions_max;
    uint32_t next;                /* of the acceptor: where the next choice begins */
    struct gi_atomic_u32 joined;  /* listeners that took a seat so far */
    struct gi_atomic_u32 waiting; /* 5 of accept_policy.c */
    struct gori_task room;        /* tells the acceptor that somebody has room */
    struct gi_os_monitor monitor; /* guards the coming of listeners and the end of the acceptor */
    bool has_ended;
    struct gi_accept_seat seats[];
};

/** A listener's part in it. */
struct gi_accept_role {
    struct gi_accept *accept;
    uint32_t worker;
};

/** `one_socket`: the address cannot have a socket for each worker. */
GORI_MUST_USE int gi_accept_create(const struct gori_allocator *allocator,
                                   struct gori_runtime *runtime,
                                   const struct gori_listener_config *config, bool one_socket,
                                   struct gi_accept **ret_accept);

/** Before each run: nobody has joined, ended, or waits.  Counts of what was accepted go on. */
void gi_accept_begin(struct gi_accept *accept);

void gi_accept_destroy(const struct gori_allocator *allocator, struct gi_accept *accept);

/** Whether this worker has a socket of its own, or gets what others accept. */
bool gi_accept_has_socket(const struct gi_accept *accept, uint32_t worker);

/** A listener without a socket takes its seat.  False: nothing will ever be handed over. */
bool gi_accept_join(const struct gi_accept_role *role, struct gori_listener *listener);

/** It leaves: nothing is handed to it after this. */
void gi_accept_leave(const struct gi_accept_role *role);

/** A connection is given to a worker, and one of its sessions has closed. */
void gi_accept_count_in(const struct gi_accept_role *role);
void gi_accept_count_out(const struct gi_accept_role *role);

/**
 * The acceptor has got a connection.  Result: GI_ACCEPT_HERE, GI_ACCEPT_AWAY, or GORI_ELIMIT when
 * nobody can take it now: it waits at the acceptor then, which is told of room (gi_accept_wait).
 */
int gi_accept_dispatch(struct gi_accept *accept, gori_native native);

/** The acceptor's starved listeners are asked again when any session of the address has closed. */
void gi_accept_wait(struct gi_accept *accept);

/** The acceptor hands nothing over any more; the other listeners may end.  More than once is fine.
 */
void gi_accept_end(struct gi_accept *accept);

#endif
