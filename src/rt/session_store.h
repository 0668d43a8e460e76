/* SPDX-License-Identifier: MIT */
/*
 * What the sessions of one loop share: the kinds of session, their memory, and the lists that the
 * turn walks.  It is a member of the loop and knows neither loop nor session from inside.
 * Thread: the loop's.  Contract: session_store.c.
 */
#ifndef GI_RT_SESSION_STORE_H
#define GI_RT_SESSION_STORE_H

#include <gori/session.h>

#include "base/pool.h"
#include "rt/accept_policy.h"
#include "rt/receive_queue.h"
#include "rt/send_queue.h"

struct gori_listener;

/**
 * A kind of session: what all sessions of one listener, or of equal connects, have in common, so
 * that a session itself stays small.
 */
struct gi_session_class {
    const struct gori_session_events *events;
    struct gori_loop *loop;
    struct gori_session_options options; /* with the defaults filled in */
    struct gori_listener *listener;      /* NULL: of connects, or the listener has closed */
    struct gi_accept_role role;          /* by which its sessions are counted, or none */
    uint32_t sessions;                   /* not closed */
    uint32_t references;                 /* the listener, and every session that has memory */
    struct gi_pool pool;                 /* memory of sessions with their context */
    struct gori_link link;               /* in store->classes, when it is of connects */
};

/** A list of sessions that a step of the turn works on; by one link, without removal. */
struct gi_session_list {
    struct gori_session *first;
    struct gori_session *last;
};

struct gi_session_store {
    const struct gori_allocator *allocator;
    struct gori_session *shown;       /* whose on_recv runs now, or NULL */
    struct gori_buffer *shown_buffer; /* what holds its view; NULL when it is assembled */
    struct gi_session_list flush;     /* sessions with something to send (step 6) */
    struct gi_session_list redeliver; /* sessions that were resumed (step 5) */
    struct gori_link reap;            /* sessions to free (step 7), by their handle's `open` */
    struct gori_link reap_listeners;  /* the same for listeners */
    struct gi_send_pools send;
    struct gi_pool receive_queues;
    struct gi_pool addresses; /* of connects under way */
    struct gi_assembly_cache assemblies;
    struct gori_link classes; /* of connects, the last used first */
    uint32_t idle_classes;    /* of them, those without a session */
    bool ended;               /* no session begins any more */
};

/** Makes an empty store; allocates nothing yet. */
GORI_MUST_USE int gi_session_store_init(struct gi_session_store *store,
                                        const struct gori_allocator *allocator);

/** Frees everything.  Asserts that no session and no listener is left. */
void gi_session_store_fini(struct gi_session_store *store);

/** What a class is made of. */
struct gi_session_class_config {
    struct gori_loop *loop;
    const struct gori_session_events *events;
    const struct gori_session_options *options; /* NULL: the defaults */
    size_t session_bytes;                       /* without context */
};

/** A new class with one reference.  Errors: GORI_EINVAL (events, options), GORI_ENOMEM. */
GORI_MUST_USE int gi_session_class_create(struct gi_session_store *store,
                                          const struct gi_session_class_config *config,
                                          struct gi_session_class **ret_class);

/** The class of equal connects, made at the first of them.  Otherwise as gi_session_class_create.
 */
GORI_MUST_USE int gi_session_class_find(struct gi_session_store *store,
                                        const struct gi_session_class_config *config,
                                        struct gi_session_class **ret_class);

static inline void gi_session_class_ref(struct gi_session_class *class)
{
    class->references++;
}

/** Gives a reference up.  A class of connects without one is kept for a while, others are freed. */
void gi_session_class_unref(struct gi_session_store *store, struct gi_session_class *class);

#endif
