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

/** An engine that a build does not have. */
struct gi_engine_absent {
    const char *name;
    const char *reason; /* a sentence without its end */
};

/** Those that this build does not have, without a name at the end: engines_SYSTEM.c. */
extern const struct gi_engine_absent gi_absent_engines[];

/** The engines of a build. */
struct gi_engine_list {
    const struct gi_engine_impl *const *impls; /* best first, NULL at the end */
    const struct gi_engine_absent *absent;     /* without a name at the end; or NULL */
    const struct gi_engine_impl *simulated;    /* by name only, never probed; or NULL */
};

/**
 * As gi_engine_choose; `name` NULL or "" means "auto", and the environment is not looked at.
 * Errors: GORI_EINVAL for a name that no engine has, GORI_ENOSYS for one that is absent.
 */
int gi_engine_choose_from(const struct gi_engine_list *list, const char *name,
                          const struct gi_engine_config *config,
                          struct gi_engine_choice *ret_choice);

#endif
