/* SPDX-License-Identifier: MIT */
/*
 * The scenario of the sweeps over file ops: on one loop of any engine a file is made, written,
 * synced, cut, asked for, read and closed, one op after the other.  It goes on to the close when
 * one fails, and checks that afterwards all works as before and nothing is left.
 */
#ifndef GT_FAULT_FILE_SCENARIO_H
#define GT_FAULT_FILE_SCENARIO_H

#include "base/fault_alloc.h"
#include "fault/scenario.h"

/** Between the two things may fail. */
struct file_scenario_hooks {
    scenario_calm_fn *arm;
    scenario_calm_fn *calm;
    void *user;
};

/** Plays it.  Result: 0, or the first error of a call or an op. */
int file_scenario_play(const char *engine, struct gi_fault_alloc *memory,
                       const struct file_scenario_hooks *hooks);

#endif
