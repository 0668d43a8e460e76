/* SPDX-License-Identifier: MIT */
/*
 * The engines of a build for macOS, best first; those of the tests on the double of kqueue too.
 */
#include "engine/choose.h"

const struct gi_engine_impl *const gi_system_engines[] = {
    &gi_engine_kqueue,
    &gi_engine_poll,
    &gi_engine_select,
    NULL,
};
