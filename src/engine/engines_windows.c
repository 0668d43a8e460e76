/* SPDX-License-Identifier: MIT */
/*
 * The engines of a build for Windows, best first.  A new engine is one more entry.
 */
#include "engine/choose.h"

const struct gi_engine_impl *const gi_system_engines[] = {
    &gi_engine_iocp,
    NULL,
};

const struct gi_engine_absent gi_absent_engines[] = {
    {"io_uring", "an engine of Linux; this build is for Windows"},
    {"epoll", "an engine of Linux; this build is for Windows"},
    {"kqueue", "an engine of macOS and the BSDs; this build is for Windows"},
    {"poll", "waits for descriptors, of which completion ports know more; not built for Windows"},
    {"select", "waits for descriptors, of which completion ports know more; not built for Windows"},
    {NULL, NULL},
};
