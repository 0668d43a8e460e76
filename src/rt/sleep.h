/* SPDX-License-Identifier: MIT */
/*
 * How a loop falls asleep without missing a message, and who wakes it.  Small and on its own, so
 * that the model checker can go through it (tests/model/sleep_model.c).
 *
 *  1. A sender makes its message known and then interrupts; the loop begins to sleep and then looks
 *     for messages.  Both are exchanges on one variable, so one comes first: either the sender
 *     finds the loop asleep and owes it a wake, or the loop's exchange reads what the sender's
 *     wrote, and with it sees the message.
 *  2. Whoever changes asleep to awake owes the one wake; more senders owe none.
 *  3. The loop ends only a sleep that it began.  A store at any other time would hide from its next
 *     exchange that of a sender.
 */
#ifndef GI_RT_SLEEP_H
#define GI_RT_SLEEP_H

#include <stdbool.h>

#include "base/atomic.h"

struct gi_sleep {
    struct gi_atomic_bool asleep;
};

/** From now on senders owe a wake.  The loop looks for messages after this (1).  Thread: its. */
static inline void gi_sleep_begin(struct gi_sleep *sleep)
{
    (void)gi_atomic_bool_exchange(&sleep->asleep, true, GI_ACQ_REL);
}

/** After gi_sleep_begin only (3).  Thread: the loop's. */
static inline void gi_sleep_end(struct gi_sleep *sleep)
{
    gi_atomic_bool_store(&sleep->asleep, false, GI_RELAXED);
}

/** After a message was made known.  True: the caller owes the wake.  Thread: any. */
static inline bool gi_sleep_interrupt(struct gi_sleep *sleep)
{
    return gi_atomic_bool_exchange(&sleep->asleep, false, GI_ACQ_REL);
}

/** A glance, for a sender that may not be the first, and the first may not have interrupted yet.
 *  Thread: any. */
static inline bool gi_sleep_is_asleep(const struct gi_sleep *sleep)
{
    return gi_atomic_bool_load(&sleep->asleep, GI_RELAXED);
}

#endif
