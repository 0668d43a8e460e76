/* SPDX-License-Identifier: MIT */
/*
 * Event sources of the operating system, for all engines but sim (E11 of engine.h).
 * Thread: any.
 */
#include "os/event.h"

#include "engine/engine.h"

static int duplicate(struct gi_engine *engine, gori_native source, gori_native *ret_source)
{
    (void)engine;
    int copy;
    int error = gi_os_event_duplicate((int)source, &copy);
    if (error == 0) {
        *ret_source = copy;
    }
    return error;
}

static void close_source(struct gi_engine *engine, gori_native source)
{
    (void)engine;
    gi_os_event_close((int)source);
}

const struct gi_event_calls gi_system_events = {
    .duplicate = duplicate,
    .close = close_source,
};
