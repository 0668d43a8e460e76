/* SPDX-License-Identifier: MIT */
/*
 * Signals of the process, heard by as many as like to: whoever wants some opens a *watch*, which is
 * an event source, and takes from it which have come.  Not a queue: a signal that comes several
 * times before it is taken has come.
 *
 * Not by signalfd, although Linux has it: that needs the signal to be blocked in every thread,
 * those of other libraries too, and one that forgets it makes the signal kill the process.  A
 * handler needs nothing of anybody.
 *
 *  1. While somebody wants a number, its disposition is a handler of ours; with the last one it
 *     becomes what it was, unless somebody else has changed it meanwhile.  No mask is changed.
 *  2. The handler runs on any thread.  It goes through the watches under a lock, so that none of
 *     them can go meanwhile; who else takes the lock blocks all signals first, so that the handler
 *     never waits for its own thread.
 *  3. The handler does nothing in a forked child, which shares the descriptors of the watches.
 * Thread: any; one at a time for each watch.  Reading: sigaction(2), signal-safety(7).
 */
#ifndef GI_OS_SIGNAL_H
#define GI_OS_SIGNAL_H

#include <gori/base.h>
#include <stdbool.h>

#include "base/atomic.h"

/** Numbers are from 1 to this; a set of them has the bit `number - 1`. */
#define GI_OS_SIGNAL_MAX 64

#define GI_OS_SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))

/** Zero it before open. */
struct gi_os_signal_watch {
    intptr_t source;     /* ready when something may be there to take */
    intptr_t signal_end; /* what makes it ready; may be the same */
    struct gori_link link;
    uint64_t wanted;              /* a set */
    struct gi_atomic_u64 pending; /* a set, of what came and was not taken */
};

/** Whether a number is of a signal that a program may hear of: not of KILL, of a fault, of none. */
bool gi_os_signal_is_catchable(int number);

/** Opens a watch that wants nothing yet.  Errors: GORI_EMFILE, GORI_ENFILE, GORI_ENOMEM. */
int gi_os_signal_watch_open(struct gi_os_signal_watch *watch);

/** Ends a watch and what it wants; its source stays, for gi_os_event_close. */
void gi_os_signal_watch_close(struct gi_os_signal_watch *watch);

/** Wants a number; once is as good as twice.  Errors: GORI_EINVAL. */
int gi_os_signal_watch_add(struct gi_os_signal_watch *watch, int number);

void gi_os_signal_watch_remove(struct gi_os_signal_watch *watch, int number);

/** Takes the set of what has come; the source is ready again when more comes. */
uint64_t gi_os_signal_watch_take(struct gi_os_signal_watch *watch);

/** Makes the source ready for no signal.  Thread: any, also a signal handler. */
void gi_os_signal_watch_poke(struct gi_os_signal_watch *watch);

/** The set of those by which the system asks a program to end. */
uint64_t gi_os_signal_stop_set(void);

/** From now on a write to a peer that is gone is an error and no signal. */
void gi_os_signal_ignore_pipe(void);

#endif
