/* SPDX-License-Identifier: MIT */
/*
 * The engines over poll and select, for every system that has sockets as POSIX knows them.  Those
 * over what only some systems have are in files of their own: engine_epoll.c, engine_kqueue.c.
 * Thread: any.
 */
#include "engine/reactor/reactor.h"

static int create_poll(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    return gi_reactor_create(&gi_engine_poll, &gi_poller_poll, config, ret_engine);
}

static int create_select(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    return gi_reactor_create(&gi_engine_select, &gi_poller_select, config, ret_engine);
}

static void report_poll(struct gori_engine_report *ret_report)
{
    gi_poller_poll.report(ret_report);
}

static void report_select(struct gori_engine_report *ret_report)
{
    gi_poller_select.report(ret_report);
}

const struct gi_engine_impl gi_engine_poll = {
    .name = "poll",
    .create = create_poll,
    .report = report_poll,
    GI_REACTOR_FUNCTIONS,
};

const struct gi_engine_impl gi_engine_select = {
    .name = "select",
    .create = create_select,
    .report = report_select,
    GI_REACTOR_FUNCTIONS,
};
