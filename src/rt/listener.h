/* SPDX-License-Identifier: MIT */
/*
 * The inside of listeners, as far as sessions and the turn need it.  Thread: the loop's.
 */
#ifndef GI_RT_LISTENER_H
#define GI_RT_LISTENER_H

struct gori_listener;
struct gori_loop;

/** A session of the listener has closed: there may be room for another. */
void gi_listener_session_closed(struct gori_listener *listener);

/** Frees the listeners that ended in this turn (step 7). */
void gi_listener_reap_all(struct gori_loop *loop);

#endif
