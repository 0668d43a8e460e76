/* SPDX-License-Identifier: MIT */
/*
 * The engines of a build for Linux, best first.  A new engine is one more entry.
 */
#include "engine/choose.h"

const struct gi_engine_impl *const gi_system_engines[] = {
    &gi_engine_uring, &gi_engine_epoll, &gi_engine_poll, &gi_engine_select, NULL,
};

const struct gi_engine_absent gi_absent_engines[] = {
    {"kqueue", "an engine of macOS and the BSDs; this build is for Linux"},
    {"iocp", "an engine of Windows; this build is for Linux"},
    {NULL, NULL},
};
