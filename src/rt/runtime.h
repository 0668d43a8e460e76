/* SPDX-License-Identifier: MIT */
/*
 * The inside of a runtime, for accept_policy.c: using the loop of another worker while it is there.
 * Thread: any.
 */
#ifndef GI_RT_RUNTIME_H
#define GI_RT_RUNTIME_H

#include <gori/runtime.h>

/** The loop of a worker, which stays until gi_runtime_leave; NULL when it is not there. */
struct gori_loop *gi_runtime_enter(struct gori_runtime *runtime, uint32_t worker);

/** After gi_runtime_enter that did not answer NULL. */
void gi_runtime_leave(struct gori_runtime *runtime, uint32_t worker);

#endif
