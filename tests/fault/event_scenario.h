/* SPDX-License-Identifier: MIT */
/*
 * The scenario of signals and children that the sweeps of this folder run again and again, each
 * time with another failure in it: a signal is watched and comes, and a child copies bytes from a
 * session to another.
 *
 * It checks by itself that a child that could be started is told of once when it ends, that
 * everything works when the failure is over, and that nothing is left at the end: no memory, no
 * descriptor, no child.
 */
#ifndef GT_FAULT_EVENT_SCENARIO_H
#define GT_FAULT_EVENT_SCENARIO_H

#include <stdbool.h>

#include "base/fault_alloc.h"

/** Called when the failing part ends: no failure may happen after it. */
typedef void event_calm_fn(void *user);

/** How the failing part went. */
struct event_result {
    int error;      /* of the first call to the runtime that failed; 0 for none */
    bool has_heard; /* of the signal */
    bool is_whole;  /* the child got, and gave back, everything, and ended well */
};

struct event_result event_scenario_play(const char *engine, struct gi_fault_alloc *memory,
                                        event_calm_fn *calm, void *user);

#endif
