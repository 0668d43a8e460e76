/* SPDX-License-Identifier: MIT */
/*
 * An address of a runtime with the sockets that are bound to it.  Not what is done with it: that is
 * the listeners', one for each worker, and the accept policy's.
 *
 *  1. The sockets exist from bind or adopt on: the system queues connections before, between and
 *     after the runs of the workers.
 *  2. There is one for each worker that accepts (gi_accept_has_socket): for each with the policy of
 *     the kernel, and else for worker 0.  Of a UNIX path, and of what came from outside, there is
 *     only one, and the policy is another.
 *  3. A worker takes its socket for a run.  With keep_socket it gets a duplicate, and the port has
 *     the socket until it is destroyed: nothing that is queued ends with a run.  Else the socket is
 *     the worker's, which closes it.
 *
 * Thread: the one that created the runtime, but for gi_port_take, which is that of the worker.
 */
#ifndef GI_RT_PORT_H
#define GI_RT_PORT_H

#include <gori/allocator.h>
#include <gori/listener.h>
#include <gori/op.h>
#include <stdbool.h>

struct gi_accept;
struct gori_runtime;

struct gi_port {
    const struct gori_allocator *allocator;
    struct gori_link link;              /* of the runtime's ports */
    struct gori_listener_config config; /* `addr` is the one that it got */
    struct gi_accept *accept;
    uint32_t workers;
    uint32_t socket_count; /* sockets, not duplicates of one */
    gori_native natives[]; /* of the workers; NONE where there is none, or not any more */
};

/** Binds `config->addr` for the workers of a runtime.  Errors: as gori_runtime_listen. */
GORI_MUST_USE int gi_port_bind(const struct gori_allocator *allocator, struct gori_runtime *runtime,
                               const struct gori_listener_config *config,
                               struct gi_port **ret_port);

/** The same with a socket that listens already.  On failure it is still the caller's. */
GORI_MUST_USE int gi_port_adopt(const struct gori_allocator *allocator,
                                struct gori_runtime *runtime,
                                const struct gori_listener_config *config, gori_native native,
                                struct gi_port **ret_port);

/** Closes what is left of it.  NULL does nothing. */
void gi_port_destroy(struct gi_port *port);

/** Whether every worker that needs a socket can have one. */
bool gi_port_is_open(const struct gi_port *port);

/**
 * The socket of a worker for a run, now the caller's; NONE for one that is given its connections.
 * Errors: GORI_EMFILE and the like.
 */
GORI_MUST_USE int gi_port_take(struct gi_port *port, uint32_t worker, gori_native *ret_native);

#endif
