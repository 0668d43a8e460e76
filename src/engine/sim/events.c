/* SPDX-License-Identifier: MIT */
/*
 * Event sources of a simulated world, and the signals of the one process in it.
 * Contract: sim.h, os/signal.h.  Thread: one.
 */
#include <gori/error.h>

#include "base/list.h"
#include "engine/sim/world.h"
#include "os/signal.h"

static int duplicate(struct gi_engine *engine, gori_native source, gori_native *ret_source)
{
    return gi_sim_source_duplicate(gi_sim_of(engine), engine, source, ret_source);
}

static void close_source(struct gi_engine *engine, gori_native source)
{
    gi_sim_close(gi_sim_of(engine), source);
}

static int signals_open(struct gi_engine *engine, struct gi_os_signal_watch *watch)
{
    struct gi_sim *sim = gi_sim_of(engine);
    int status = gi_sim_source_open(sim, engine, &watch->source);
    if (status < 0) {
        return status;
    }
    watch->wanted = 0;
    gi_atomic_u64_init(&watch->pending, 0);
    gi_list_push_back(&sim->signal_watches, &watch->link);
    return 0;
}

static void signals_close(struct gi_engine *engine, struct gi_os_signal_watch *watch)
{
    (void)engine;
    gi_list_remove(&watch->link);
}

static int signals_add(struct gi_engine *engine, struct gi_os_signal_watch *watch, int number)
{
    (void)engine;
    watch->wanted |= GI_OS_SIGNAL_BIT(number);
    return 0;
}

static void signals_remove(struct gi_engine *engine, struct gi_os_signal_watch *watch, int number)
{
    (void)engine;
    watch->wanted &= ~GI_OS_SIGNAL_BIT(number);
}

static uint64_t signals_take(struct gi_engine *engine, struct gi_os_signal_watch *watch)
{
    gi_sim_source_set(gi_sim_of(engine), watch->source, false);
    return gi_atomic_u64_exchange(&watch->pending, 0, GI_RELAXED) & watch->wanted;
}

bool gi_sim_raise(struct gi_sim *sim, int number)
{
    bool heard = false;
    gi_sim_trace(sim, "signal", number, 0, 0);
    GI_LIST_FOREACH (link, &sim->signal_watches) {
        struct gi_os_signal_watch *watch = gori_container_of(link, struct gi_os_signal_watch, link);
        if (watch->wanted & GI_OS_SIGNAL_BIT(number)) {
            uint64_t before = gi_atomic_u64_load(&watch->pending, GI_RELAXED);
            gi_atomic_u64_store(&watch->pending, before | GI_OS_SIGNAL_BIT(number), GI_RELAXED);
            gi_sim_source_set(sim, watch->source, true);
            heard = true;
        }
    }
    return heard;
}

const struct gi_event_calls gi_sim_events = {
    .duplicate = duplicate,
    .close = close_source,
    .signals_open = signals_open,
    .signals_close = signals_close,
    .signals_add = signals_add,
    .signals_remove = signals_remove,
    .signals_take = signals_take,
};
