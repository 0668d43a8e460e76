/* SPDX-License-Identifier: MIT */
/*
 * Event sources of the operating system, for all engines but sim (E11 of engine.h).
 * Thread: any.
 */
#include "os/event.h"

#include "engine/engine.h"
#include "os/process.h"
#include "os/signal.h"

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

static int signals_open(struct gi_engine *engine, struct gi_os_signal_watch *watch)
{
    (void)engine;
    return gi_os_signal_watch_open(watch);
}

static void signals_close(struct gi_engine *engine, struct gi_os_signal_watch *watch)
{
    (void)engine;
    gi_os_signal_watch_close(watch);
}

static int signals_add(struct gi_engine *engine, struct gi_os_signal_watch *watch, int number)
{
    (void)engine;
    return gi_os_signal_watch_add(watch, number);
}

static void signals_remove(struct gi_engine *engine, struct gi_os_signal_watch *watch, int number)
{
    (void)engine;
    gi_os_signal_watch_remove(watch, number);
}

static uint64_t signals_take(struct gi_engine *engine, struct gi_os_signal_watch *watch)
{
    (void)engine;
    return gi_os_signal_watch_take(watch);
}

static int process_spawn(struct gi_engine *engine, const struct gori_process_config *config,
                         struct gi_os_process *process, gori_native ret_pipes[GORI_STDIO_COUNT])
{
    (void)engine;
    return gi_os_process_spawn(config, process, ret_pipes);
}

static int process_take(struct gi_engine *engine, struct gi_os_process *process,
                        struct gori_exit *ret_exit)
{
    (void)engine;
    return gi_os_process_take(process, ret_exit);
}

static int process_kill(struct gi_engine *engine, struct gi_os_process *process, int number)
{
    (void)engine;
    return gi_os_process_kill(process, number);
}

static void process_end(struct gi_engine *engine, struct gi_os_process *process)
{
    (void)engine;
    gi_os_process_end(process);
}

static void process_close(struct gi_engine *engine, struct gi_os_process *process)
{
    (void)engine;
    gi_os_process_close(process);
}

const struct gi_event_calls gi_system_events = {
    .duplicate = duplicate,
    .close = close_source,
    .signals_open = signals_open,
    .signals_close = signals_close,
    .signals_add = signals_add,
    .signals_remove = signals_remove,
    .signals_take = signals_take,
    .process_spawn = process_spawn,
    .process_take = process_take,
    .process_kill = process_kill,
    .process_end = process_end,
    .process_close = process_close,
};
