/* SPDX-License-Identifier: MIT */
/*
 * Which engines the sweeps of this folder can be played on.
 */
#ifndef GT_FAULT_HAS_ENGINE_H
#define GT_FAULT_HAS_ENGINE_H

#include <stdbool.h>

/** Whether the engine can be had on this machine at all.  Nothing may fail meanwhile. */
bool fault_has_engine(const char *engine);

#endif
