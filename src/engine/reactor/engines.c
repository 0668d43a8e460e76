/* SPDX-License-Identifier: MIT */
/*
 * The engines that the reactor makes, one for each poller: the door to the runtime.
 * Thread: any.
 */
#include "engine/reactor/reactor.h"

#define REACTOR_ENGINE(engine_name, create_function, report_function)                              \
    {                                                                                              \
        .name = engine_name, .sockets = &gi_system_sockets, .create = create_function,             \
        .destroy = gi_reactor_destroy, .report = report_function, .now = gi_reactor_now,           \
        .attach = gi_reactor_attach, .submit = gi_reactor_submit, .cancel = gi_reactor_cancel,     \
        .close = gi_reactor_close, .turn = gi_reactor_turn, .next = gi_reactor_next,               \
        .wake = gi_reactor_wake, .stats = gi_reactor_stats,                                        \
    }

static int create_epoll(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    return gi_reactor_create(&gi_engine_epoll, &gi_poller_epoll, config, ret_engine);
}

static int create_poll(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    return gi_reactor_create(&gi_engine_poll, &gi_poller_poll, config, ret_engine);
}

static int create_select(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    return gi_reactor_create(&gi_engine_select, &gi_poller_select, config, ret_engine);
}

static void report_epoll(struct gori_engine_report *ret_report)
{
    gi_poller_epoll.report(ret_report);
}

static void report_poll(struct gori_engine_report *ret_report)
{
    gi_poller_poll.report(ret_report);
}

static void report_select(struct gori_engine_report *ret_report)
{
    gi_poller_select.report(ret_report);
}

const struct gi_engine_impl gi_engine_epoll = REACTOR_ENGINE("epoll", create_epoll, report_epoll);
const struct gi_engine_impl gi_engine_poll = REACTOR_ENGINE("poll", create_poll, report_poll);
const struct gi_engine_impl gi_engine_select =
    REACTOR_ENGINE("select", create_select, report_select);
