/* SPDX-License-Identifier: MIT */
/*
 * The engine over epoll, for Linux.
 * Thread: any.
 */
#include "engine/reactor/reactor.h"

static int create(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    return gi_reactor_create(&gi_engine_epoll, &gi_poller_epoll, config, ret_engine);
}

static void report(struct gori_engine_report *ret_report)
{
    gi_poller_epoll.report(ret_report);
}

const struct gi_engine_impl gi_engine_epoll = {
    .name = "epoll",
    .create = create,
    .report = report,
    GI_REACTOR_FUNCTIONS,
};
