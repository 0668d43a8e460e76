/* SPDX-License-Identifier: MIT */
/*
 * The choice of an engine over a given list, for choose.c and its test; everybody else asks
 * gi_engine_choose.  Thread: any.
 */
#ifndef GI_ENGINE_CHOOSE_H
#define GI_ENGINE_CHOOSE_H

#include "engine/engine.h"

/** Those of the system that this build is for, best first, NULL at the end: engines_SYSTEM.c. */
extern const struct gi_engine_impl *const gi_system_engines[];

/** The engines of a build. */
struct gi_engine_list {
    const struct gi_engine_impl *const *impls; /* best first, NULL at the end */
    const struct gi_engine_impl *simulated;    /* by name only, never probed; or NULL */
};

/** As gi_engine_choose; `name` NULL or "" means "auto", and the environment is not looked at. */
int gi_engine_choose_from(const struct gi_engine_list *list, const char *name,
                          const struct gi_engine_config *config,
                          struct gi_engine_choice *ret_choice);

#endif
