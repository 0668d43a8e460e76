/* SPDX-License-Identifier: MIT */
/*
 * The engines of a build for Windows, best first.  A new engine is one more entry.
 */
#include "engine/choose.h"

const struct gi_engine_impl *const gi_system_engines[] = {
    &gi_engine_iocp,
    NULL,
};
