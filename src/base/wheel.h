/* SPDX-License-Identifier: MIT */
/*
 * A hierarchical timing wheel over `struct gori_wheel_entry`: start, stop and restart in constant
 * time, whatever the number of entries and however far the deadline.  It knows no clock: time comes
 * in as an argument.  Entries are embedded in objects of others and start as zeros.
 * Thread: one.  Contract: wheel.c.
 */
#ifndef GI_BASE_WHEEL_H
#define GI_BASE_WHEEL_H

#include <gori/base.h>
#include <stdbool.h>

#define GI_WHEEL_TICK_BITS   16 /* a tick is 65,536 ns */
#define GI_WHEEL_DIGIT_BITS  6
#define GI_WHEEL_SLOT_COUNT  (1U << GI_WHEEL_DIGIT_BITS)
#define GI_WHEEL_LEVEL_COUNT 8U

struct gi_wheel {
    gori_time now;                           /* the latest time it was told */
    uint64_t tick;                           /* the tick that `now` is in, counted by its end */
    uint64_t occupied[GI_WHEEL_LEVEL_COUNT]; /* a bit for each slot that is not empty */
    struct gori_link due;                    /* started with a deadline that had passed */
    struct gori_link slots[GI_WHEEL_LEVEL_COUNT][GI_WHEEL_SLOT_COUNT];
};

/** Makes an empty wheel.  It is 8 KiB and holds pointers to itself: do not move it. */
void gi_wheel_init(struct gi_wheel *wheel, gori_time now);

/**
 * Starts `entry`, or starts it anew when it runs already (or has expired and still stands in the
 * list of gi_wheel_advance).  A deadline that has passed expires at the next advance; GORI_NEVER
 * does not expire and is the same as gi_wheel_stop.
 */
void gi_wheel_start(struct gi_wheel *wheel, struct gori_wheel_entry *entry, gori_time deadline);

/**
 * Stops `entry`: it will not expire; if it stands in the list of gi_wheel_advance it is taken out
 * of that.  Does nothing when it is neither.
 */
void gi_wheel_stop(struct gi_wheel *wheel, struct gori_wheel_entry *entry);

/** Whether `entry` is in the wheel: started, not stopped, not expired. */
static inline bool gi_wheel_is_started(const struct gori_wheel_entry *entry)
{
    return entry->slot != 0;
}

/**
 * Until when to wait at most: a time not later than the earliest deadline rounded up to the tick,
 * and later than the last advance; 0 when something is due already, GORI_NEVER when the wheel is
 * empty.
 */
gori_time gi_wheel_next(const struct gi_wheel *wheel);

/**
 * Tells the time and appends every entry whose deadline is <= `now` to the list `expired`, by its
 * `link`, in order of ticks, within a tick in order of start.  A `now` before the last one counts
 * as the last one.  Appended entries are no longer in the wheel; their links are the caller's.
 */
void gi_wheel_advance(struct gi_wheel *wheel, gori_time now, struct gori_link *expired);

/** Whether nothing is started. */
bool gi_wheel_is_empty(const struct gi_wheel *wheel);

#endif
