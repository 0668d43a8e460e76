/* SPDX-License-Identifier: MIT */
/*
 * The scenario of watches that the sweeps of this folder run again and again, each time with
 * another failure in it: a folder and a file in it are watched, and changed.
 *
 * It checks by itself that a watch that could be started is told of what happens when the failure
 * is over, that one that could not be can be started then, and that nothing is left at the end.
 */
#ifndef GT_FAULT_WATCH_SCENARIO_H
#define GT_FAULT_WATCH_SCENARIO_H

#include <stdbool.h>

#include "base/fault_alloc.h"

/** Called when the failing part ends: no failure may happen after it. */
typedef void watch_calm_fn(void *user);

/** Plays it.  Result: of the first call to the runtime that failed, 0 for none. */
int watch_scenario_play(const char *engine, struct gi_fault_alloc *memory, watch_calm_fn *calm,
                        void *user);

#endif
