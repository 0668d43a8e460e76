/* SPDX-License-Identifier: MIT */
/*
 * The scenario that the sweeps of this folder run again and again, each time with another failure
 * in it: an echo server that greets with a file, and clients, on one loop of any engine.
 *
 * It checks by itself that bytes are right, that every session ends once and none by a timeout,
 * that the server serves as before when the failure is over, and that nothing is left at the end.
 */
#ifndef GT_FAULT_SCENARIO_H
#define GT_FAULT_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault_alloc.h"

/** How the part of the scenario went in which failures may happen. */
struct scenario_result {
    int error;          /* of the first call to the runtime that failed; 0 for none */
    uint32_t completed; /* clients that got back all they had sent */
    uint32_t failed;    /* clients that did not */
};

#define SCENARIO_CLIENTS 3

/** Called when the failing part ends: no failure may happen after it. */
typedef void scenario_calm_fn(void *user);

/** Plays it.  Whatever may fail is armed by the caller before. */
struct scenario_result scenario_play(const char *engine, struct gi_fault_alloc *memory,
                                     scenario_calm_fn *calm, void *user);

#endif
