/* SPDX-License-Identifier: MIT */
/*
 * Watchers of signals: a loop has one watch of the process's signals (os/signal.h), one handle for
 * it, and one wait in flight from its first watcher until its end.
 *
 *  1. A started watcher is in `watchers`, or in `later` while those before it are called.  So one
 *     may be stopped by the callback of another, and one that is started there is not called.
 *  2. The watch wants a number while a watcher of the loop does.
 *  3. A wait that could not be submitted again, for want of memory, is submitted by time: what came
 *     meanwhile is kept by the watch.
 * Thread: the loop's.
 */
#include "rt/signal.h"

#include <gori/error.h>
#include <gori/signal.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "os/signal.h"
#include "rt/loop.h"

#define RETRY_TIME (5 * GORI_MILLISECONDS)

struct gi_signals {
    struct gori_loop *loop;
    struct gi_os_signal_watch watch;
    struct gori_handle handle;
    struct gori_op wait;
    struct gori_timer retry;
    struct gori_link watchers;
    struct gori_link later;
};

static const struct gi_event_calls *calls_of(const struct gori_loop *loop)
{
    return loop->engine->impl->events;
}

static void submit_again(struct gi_signals *signals)
{
    if (gori_op_wait(&signals->wait, &signals->handle) < 0) {
        gori_timer_start(signals->loop, &signals->retry, RETRY_TIME);
    }
}

static void on_retry(struct gori_timer *timer)
{
    submit_again(timer->user);
}

static void deliver(struct gi_signals *signals, uint64_t came)
{
    struct gori_link *link;
    gi_list_move_all(&signals->watchers, &signals->later);
    while ((link = gi_list_pop_front(&signals->later)) != NULL) {
        struct gori_signal *signal = gori_container_of(link, struct gori_signal, link);
        gi_list_push_back(&signals->watchers, link);
        if (came & GI_OS_SIGNAL_BIT(signal->number)) {
            signal->on_signal(signal);
        }
    }
}

static void on_ready(struct gori_op *op, const struct gori_completion *completion)
{
    (void)completion; /* an error may be of this wait only: the next one shows */
    struct gi_signals *signals = op->user;
    if (signals->handle.state != GI_HANDLE_OPEN) {
        return; /* the loop ends */
    }
    uint64_t came = calls_of(signals->loop)->signals_take(signals->loop->engine, &signals->watch);
    submit_again(signals);
    deliver(signals, came);
}

static int open_signals(struct gori_loop *loop, struct gi_signals *signals)
{
    const struct gi_event_calls *calls = calls_of(loop);
    int result = calls->signals_open(loop->engine, &signals->watch);
    if (result < 0) {
        return result;
    }
    result = gi_handle_adopt_source(loop, signals->watch.source, &signals->handle);
    if (result < 0) {
        calls->signals_close(loop->engine, &signals->watch);
        calls->close(loop->engine, signals->watch.source);
        return result;
    }
    signals->loop = loop;
    signals->wait.on_complete = on_ready;
    signals->wait.user = signals;
    signals->retry.on_expire = on_retry;
    signals->retry.user = signals;
    gi_list_init(&signals->watchers);
    gi_list_init(&signals->later);
    loop->signals = signals;
    return 0;
}

/* Has the loop hear of signals: the watch, and the wait in flight. */
static int prepare(struct gori_loop *loop)
{
    if (loop->signals == NULL) {
        struct gi_signals *signals = gi_alloc_zero(loop->allocator, sizeof(*signals));
        if (signals == NULL) {
            return GORI_ENOMEM;
        }
        int result = open_signals(loop, signals);
        if (result < 0) {
            gi_free(loop->allocator, signals, sizeof(*signals));
            return result;
        }
    }
    struct gi_signals *signals = loop->signals;
    bool is_waited_for = gori_op_is_active(&signals->wait) || gori_timer_is_active(&signals->retry);
    return is_waited_for ? 0 : gori_op_wait(&signals->wait, &signals->handle);
}

int gori_signal_start(struct gori_loop *loop, struct gori_signal *signal, int number)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (gori_signal_is_active(signal)) {
        return GORI_EBUSY;
    }
    if (signal->on_signal == NULL || !gi_os_signal_is_catchable(number)) {
        return GORI_EINVAL;
    }
    int result = prepare(loop);
    if (result == 0) {
        result = calls_of(loop)->signals_add(loop->engine, &loop->signals->watch, number);
    }
    if (result < 0) {
        return result;
    }
    signal->loop = loop;
    signal->number = number;
    gi_list_push_back(&loop->signals->watchers, &signal->link);
    return 0;
}

static bool is_wanted(const struct gori_link *watchers, int number)
{
    GI_LIST_FOREACH (link, watchers) {
        if (gori_container_of(link, struct gori_signal, link)->number == number) {
            return true;
        }
    }
    return false;
}

void gori_signal_stop(struct gori_signal *signal)
{
    if (!gori_signal_is_active(signal)) {
        return;
    }
    struct gori_loop *loop = signal->loop;
    struct gi_signals *signals = loop->signals;
    GI_ASSERT(gi_loop_on_thread(loop));
    gi_list_remove(&signal->link);
    if (!is_wanted(&signals->watchers, signal->number) &&
        !is_wanted(&signals->later, signal->number)) {
        calls_of(loop)->signals_remove(loop->engine, &signals->watch, signal->number);
    }
}

bool gori_signal_is_active(const struct gori_signal *signal)
{
    return gi_link_is_linked(&signal->link);
}

void gi_signals_stop_all(struct gori_loop *loop)
{
    if (loop->signals == NULL) {
        return;
    }
    struct gori_link *link;
    while ((link = gi_list_first(&loop->signals->watchers)) != NULL) {
        gori_signal_stop(gori_container_of(link, struct gori_signal, link));
    }
    gori_timer_stop(&loop->signals->retry);
    /* Nobody writes to its source any more: the loop may close it. */
    calls_of(loop)->signals_close(loop->engine, &loop->signals->watch);
}

void gi_signals_free(struct gori_loop *loop)
{
    if (loop->signals != NULL) {
        GI_ASSERT(loop->signals->handle.state == GI_HANDLE_FREE);
        gi_free(loop->allocator, loop->signals, sizeof(*loop->signals));
    }
}
