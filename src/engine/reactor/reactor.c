/* SPDX-License-Identifier: MIT */
/*
 * The reactor's life and its turn: waiting for readiness, and being woken.  The lists and their
 * invariants are in reactor.h, the doors to the runtime are engines.c and engine_….c.
 * Thread: the loop's, but for gi_reactor_wake.
 */
#include "engine/reactor/reactor.h"

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"

/* The token of the wake descriptor: number 0, which no handle has. */
#define WAKE_TOKEN 0

/* How long to wait before asking again for what no event tells. */
#define RETRY_TIME (5 * GORI_MILLISECONDS)

static bool poller_wakes(const struct gi_reactor *reactor)
{
    return reactor->poller->impl->add_wake != NULL;
}

static int open_wake(struct gi_reactor *reactor)
{
    struct gi_poller *poller = reactor->poller;
    if (poller_wakes(reactor)) {
        return poller->impl->add_wake(poller, WAKE_TOKEN);
    }
    int error = gi_os_wake_open(&reactor->wake);
    if (error < 0) {
        return error;
    }
    error = poller->impl->add(poller, reactor->wake.read_fd, WAKE_TOKEN);
    if (error < 0) {
        gi_os_wake_close(&reactor->wake);
        return error;
    }
    if (!reactor->is_edge) {
        poller->impl->set(poller, reactor->wake.read_fd, WAKE_TOKEN, GI_POLL_READ);
    }
    return 0;
}

static int open_descriptors(struct gi_reactor *reactor, const struct gi_poller_impl *poller_impl)
{
    int error = poller_impl->create(reactor->allocator, &reactor->poller);
    if (error < 0) {
        return error;
    }
    error = open_wake(reactor);
    if (error < 0) {
        poller_impl->destroy(reactor->poller);
    }
    return error;
}

int gi_reactor_create(const struct gi_engine_impl *impl, const struct gi_poller_impl *poller_impl,
                      const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    struct gi_reactor *reactor = gi_alloc_zero(config->allocator, sizeof(*reactor));
    if (reactor == NULL) {
        return GORI_ENOMEM;
    }
    reactor->base.impl = impl;
    reactor->allocator = config->allocator;
    reactor->buffers = config->buffers;
    reactor->is_edge = poller_impl->is_edge;
    struct gori_link *const lists[] = {&reactor->ready, &reactor->later,   &reactor->starved,
                                       &reactor->retry, &reactor->closing, &reactor->done};
    for (size_t i = 0; i < GI_ARRAY_COUNT(lists); i++) {
        gi_list_init(lists[i]);
    }
    gi_slots_init(&reactor->slots, config->allocator);
    gi_atomic_bool_init(&reactor->wake_pending, false);
    int error = open_descriptors(reactor, poller_impl);
    if (error < 0) {
        gi_free(config->allocator, reactor, sizeof(*reactor));
        return error;
    }
    *ret_engine = &reactor->base;
    return 0;
}

void gi_reactor_destroy(struct gi_engine *engine)
{
    struct gi_reactor *reactor = gi_reactor_of(engine);
    gi_slots_fini(&reactor->slots);
    if (!poller_wakes(reactor)) {
        gi_os_wake_close(&reactor->wake);
    }
    reactor->poller->impl->destroy(reactor->poller);
    gi_free(reactor->allocator, reactor, sizeof(*reactor));
}

gori_time gi_reactor_now(struct gi_engine *engine)
{
    (void)engine;
    return gi_os_now();
}

int gi_reactor_attach(struct gi_engine *engine, struct gori_handle *handle)
{
    struct gi_reactor *reactor = gi_reactor_of(engine);
    uint32_t slot;
    int error = gi_slots_acquire(&reactor->slots, handle, &slot);
    if (error < 0) {
        return error;
    }
    struct gi_poller *poller = reactor->poller;
    error = poller->impl->add(poller, (int)handle->native, gi_slots_token(&reactor->slots, slot));
    if (error < 0) {
        gi_slots_release(&reactor->slots, slot);
        return error;
    }
    handle->slot = slot;
    handle->in_flight = 0;
    handle->ready = GI_POLL_WRITE; /* true of all but the unconnected; the first call corrects it */
    handle->armed = 0;
    handle->budget = GI_REACTOR_BUDGET;
    handle->link = (struct gori_link){0};
    gi_list_init(&handle->reads);
    gi_list_init(&handle->writes);
    return 0;
}

/* Pairs with the exchange in gi_reactor_wake: what was done before a wake that found the flag set
   is seen by whoever called this turn. */
static void note_wake(struct gi_reactor *reactor)
{
    if (!reactor->is_edge) {
        gi_os_wake_clear(&reactor->wake); /* first, or a wake in between would be cleared too */
    }
    (void)gi_atomic_bool_exchange(&reactor->wake_pending, false, GI_ACQ_REL);
}

static int poll_events(struct gi_reactor *reactor, gori_time timeout)
{
    struct gi_poller *poller = reactor->poller;
    reactor->stats.waits++;
    int count = poller->impl->wait(poller, timeout, reactor->events, GI_REACTOR_EVENTS_MAX);
    for (int i = 0; i < count; i++) {
        uint64_t token = reactor->events[i].token;
        if (GI_UNLIKELY(token == WAKE_TOKEN)) {
            note_wake(reactor);
            continue;
        }
        struct gori_handle *handle = gi_slots_find(&reactor->slots, token);
        if (GI_UNLIKELY(handle == NULL)) {
            reactor->stats.stale_completions++;
            continue;
        }
        gi_reactor_note(reactor, handle, reactor->events[i].mask);
    }
    return count < 0 ? count : 0;
}

static bool has_work(const struct gi_reactor *reactor)
{
    return !gi_list_is_empty(&reactor->ready) || !gi_list_is_empty(&reactor->done) ||
           !gi_list_is_empty(&reactor->closing);
}

/* Receives wait although the pool may still grow: there was no memory for it. */
static bool lacks_memory(const struct gi_reactor *reactor)
{
    return !gi_list_is_empty(&reactor->starved) && reactor->buffers->free_count == 0 &&
           gi_buffers_can_lend(reactor->buffers);
}

static gori_time time_until(const struct gi_reactor *reactor, gori_time deadline)
{
    bool must_retry = !gi_list_is_empty(&reactor->retry) || lacks_memory(reactor);
    if (deadline == 0 || (deadline == GORI_NEVER && !must_retry)) {
        return deadline;
    }
    gori_time now = gi_os_now();
    if (must_retry) {
        deadline = gi_min_u64(deadline, now + RETRY_TIME);
    }
    return deadline > now ? deadline - now : 0;
}

int gi_reactor_turn(struct gi_engine *engine, gori_time deadline)
{
    struct gi_reactor *reactor = gi_reactor_of(engine);
    gi_list_move_all(&reactor->later, &reactor->ready);
    gi_reactor_resume(reactor, &reactor->starved, reactor->buffers->free_count);
    bool work = has_work(reactor);
    if (work && reactor->polled) {
        reactor->polled = false;
        return 0;
    }
    reactor->polled = true;
    int result = poll_events(reactor, work ? 0 : time_until(reactor, deadline));
    if (lacks_memory(reactor)) {
        gi_reactor_resume(reactor, &reactor->starved, 1);
    }
    if (GI_UNLIKELY(!gi_list_is_empty(&reactor->retry))) {
        gi_reactor_resume(reactor, &reactor->retry, UINT32_MAX);
    }
    return result;
}

void gi_reactor_wake(struct gi_engine *engine)
{
    struct gi_reactor *reactor = gi_reactor_of(engine);
    /* Pairs with note_wake.  One signal is enough for all wakes until it is seen. */
    if (gi_atomic_bool_exchange(&reactor->wake_pending, true, GI_ACQ_REL)) {
        return;
    }
    if (poller_wakes(reactor)) {
        reactor->poller->impl->wake(reactor->poller);
    } else {
        gi_os_wake_signal(&reactor->wake);
    }
}

void gi_reactor_stats(const struct gi_engine *engine, struct gi_engine_stats *ret_stats)
{
    const struct gi_reactor *reactor =
        gori_container_of((struct gi_engine *)(uintptr_t)engine, struct gi_reactor, base);
    *ret_stats = reactor->stats;
}
