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

const struct gi_engine_absent gi_absent_engines[] = {
    {"io_uring", "an engine of Linux; this build is for macOS"},
    {"epoll", "an engine of Linux; this build is for macOS"},
    {"iocp", "an engine of Windows; this build is for macOS"},
    {NULL, NULL},
};
