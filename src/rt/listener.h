/* SPDX-License-Identifier: MIT */
/*
 * The inside of listeners, as far as sessions and the turn need it.  Thread: the loop's.
 */
#ifndef GI_RT_LISTENER_H
#define GI_RT_LISTENER_H

#include <gori/op.h>

struct gi_accept_role;
struct gi_session_class;
struct gori_listener;
struct gori_listener_config;
struct gori_loop;

/** A session of this class has closed: if its listener is there, it may have room for another. */
void gi_listener_session_closed(const struct gi_session_class *class);

/**
 * A listener on a socket that is bound already (rt/runtime.c binds before the loops exist), or,
 * with GORI_NATIVE_NONE, one that gets its connections by gi_listener_give.  `role` (NULL: none) is
 * its part in an accept policy.  On failure the caller still owns `native`.
 */
int gi_listener_adopt(struct gori_loop *loop, const struct gori_listener_config *config,
                      gori_native native, const struct gi_accept_role *role,
                      struct gori_listener **ret_listener);

/** Another loop's listener hands over a connection that is counted already. */
void gi_listener_give(struct gori_listener *listener, gori_native native);

/** Nothing will be given any more: a listener without a socket that is closed may end. */
void gi_listener_feeder_ended(struct gori_listener *listener);

/** Frees the listeners that ended in this turn (step 7). */
void gi_listener_reap_all(struct gori_loop *loop);

#endif
