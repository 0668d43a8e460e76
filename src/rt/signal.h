/* SPDX-License-Identifier: MIT */
/*
 * The signals of a loop, for loop.c.
 */
#ifndef GI_RT_SIGNAL_H
#define GI_RT_SIGNAL_H

struct gori_loop;

/** At destroy: every watcher is stopped.  The handle stays, for the loop to close. */
void gi_signals_stop_all(struct gori_loop *loop);

/** At the end of destroy, when the handle is closed. */
void gi_signals_free(struct gori_loop *loop);

#endif
