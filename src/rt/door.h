/* SPDX-License-Identifier: MIT */
/*
 * A door before something that other threads use and that ends one day: a loop of a runtime. Guests
 * enter and leave; whoever closes it waits until the last one has left.  Made for short visits.
 *
 *  1. Who enters an open door finds what is behind it until he leaves.
 *  2. Nobody enters a closed one.
 *  3. Close returns when nobody is inside any more, and sees all that the guests did.
 *
 * Thread: open and close by the owner, the rest from any.  Modelled in tests/model/door_model.c.
 */
#ifndef GI_RT_DOOR_H
#define GI_RT_DOOR_H

#include <gori/base.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "os/os.h"

#define GI_DOOR_CLOSED 0x80000000U

struct gi_door {
    /* Guests, and the mark; all by read-modify-write.  A guest's leave, with release, is seen by
       the close that counts him out, with acquire; the open, with release, by the guest that
       enters. */
    struct gi_atomic_u32 state;
    struct gi_os_monitor monitor; /* where the closer waits */
};

/** A closed door. */
GORI_MUST_USE static inline int gi_door_init(struct gi_door *door)
{
    gi_atomic_u32_init(&door->state, GI_DOOR_CLOSED);
    return gi_os_monitor_init(&door->monitor);
}

static inline void gi_door_fini(struct gi_door *door)
{
    gi_os_monitor_fini(&door->monitor);
}

/** Opens a closed door. */
static inline void gi_door_open(struct gi_door *door)
{
    (void)gi_atomic_u32_sub(&door->state, GI_DOOR_CLOSED, GI_RELEASE);
}

static inline void gi_door_leave(struct gi_door *door)
{
    if (gi_atomic_u32_sub(&door->state, 1, GI_RELEASE) == (GI_DOOR_CLOSED | 1U)) {
        gi_os_monitor_lock(&door->monitor);
        gi_os_monitor_notify(&door->monitor);
        gi_os_monitor_unlock(&door->monitor);
    }
}

/** False: it is closed. */
GORI_MUST_USE static inline bool gi_door_enter(struct gi_door *door)
{
    if ((gi_atomic_u32_add(&door->state, 1, GI_ACQUIRE) & GI_DOOR_CLOSED) == 0) {
        return true;
    }
    gi_door_leave(door);
    return false;
}

/** Closes an open door and waits for the guests. */
static inline void gi_door_close(struct gi_door *door)
{
    (void)gi_atomic_u32_add(&door->state, GI_DOOR_CLOSED, GI_RELAXED);
    gi_os_monitor_lock(&door->monitor);
    while (gi_atomic_u32_load(&door->state, GI_ACQUIRE) != GI_DOOR_CLOSED) {
        gi_os_monitor_wait(&door->monitor);
    }
    gi_os_monitor_unlock(&door->monitor);
}

#endif
