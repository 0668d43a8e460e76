/* SPDX-License-Identifier: MIT */
/*
 * Timers: the callbacks around the timing wheel of base/wheel.h, which holds the times.
 *
 *  1. A timer fires when the loop's now has reached its deadline, never before (the wheel keeps
 *     entries whose tick has come but whose nanosecond has not).
 *  2. All that are due fire in the order of the wheel; one that is stopped or restarted by the
 *     callback of another before its turn does not fire for its old deadline.
 *  3. A timer that is started in a timer's callback with a delay of 0 fires in the next turn.
 * Thread: the loop's.
 */
#include "rt/loop.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"

void gi_timer_start_at(struct gori_loop *loop, struct gori_timer *timer, gori_time deadline)
{
    timer->loop = loop;
    timer->period = 0;
    gi_wheel_start(&loop->wheel, &timer->entry, deadline);
}

void gori_timer_start(struct gori_loop *loop, struct gori_timer *timer, gori_time delay)
{
    GI_ASSERT(gi_loop_on_thread(loop));
    gori_time now = loop->engine->impl->now(loop->engine);
    gi_timer_start_at(loop, timer, gi_add_saturated_u64(now, delay));
}

void gori_timer_start_periodic(struct gori_loop *loop, struct gori_timer *timer, gori_time period)
{
    gori_timer_start(loop, timer, period == 0 ? 1 : period);
    timer->period = period == 0 ? 1 : period;
}

void gori_timer_stop(struct gori_timer *timer)
{
    if (timer->loop != NULL) {
        timer->period = 0;
        gi_wheel_stop(&timer->loop->wheel, &timer->entry);
    }
}

bool gori_timer_is_active(const struct gori_timer *timer)
{
    return gi_wheel_is_started(&timer->entry) || gi_link_is_linked(&timer->entry.link);
}

/* The next time of the fixed rate that lies after now: what was missed is merged into one. */
static void restart_periodic(struct gori_loop *loop, struct gori_timer *timer)
{
    gori_time missed = (loop->now - timer->entry.deadline) / timer->period;
    gori_time next = gi_add_saturated_u64(timer->entry.deadline, missed * timer->period);
    gi_wheel_start(&loop->wheel, &timer->entry, gi_add_saturated_u64(next, timer->period));
}

uint32_t gi_timer_fire_due(struct gori_loop *loop)
{
    struct gori_link expired;
    gi_list_init(&expired);
    gi_wheel_advance(&loop->wheel, loop->now, &expired);
    uint32_t fired = 0;
    for (struct gori_link *link; (link = gi_list_pop_front(&expired)) != NULL; fired++) {
        struct gori_wheel_entry *entry = gori_container_of(link, struct gori_wheel_entry, link);
        struct gori_timer *timer = gori_container_of(entry, struct gori_timer, entry);
        if (timer->period != 0) {
            restart_periodic(loop, timer);
        }
        timer->on_expire(timer);
    }
    loop->stats.timers += fired;
    return fired;
}
