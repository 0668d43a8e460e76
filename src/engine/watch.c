/* SPDX-License-Identifier: MIT */
/*
 * File changes of the operating system, for all engines but sim.
 * Thread: one for each watcher.
 */
#include "os/watch.h"

#include "engine/engine.h"

static int create(struct gi_engine *engine, const struct gori_allocator *allocator,
                  struct gi_watcher **ret_watcher)
{
    (void)engine;
    return gi_os_watcher_create(allocator, ret_watcher);
}

static bool is_directory(struct gi_engine *engine, const char *path)
{
    (void)engine;
    return gi_os_is_directory(path);
}

static gori_native source(const struct gi_watcher *watcher)
{
    return gi_os_watcher_source(watcher);
}

const struct gi_watch_calls gi_system_watches = {
    .create = create,
    .destroy = gi_os_watcher_destroy,
    .source = source,
    .is_directory = is_directory,
    .add = gi_os_watcher_add,
    .remove = gi_os_watcher_remove,
    .next = gi_os_watcher_next,
};
