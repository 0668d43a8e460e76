/* SPDX-License-Identifier: MIT */
/*
 * The engine over kqueue, for systems that have one, and for tests on the double
 * (tests/double/kqueue). Thread: any.
 */
#include "engine/reactor/reactor.h"

static int create(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    return gi_reactor_create(&gi_engine_kqueue, &gi_poller_kqueue, config, ret_engine);
}

static void report(struct gori_engine_report *ret_report)
{
    gi_poller_kqueue.report(ret_report);
}

const struct gi_engine_impl gi_engine_kqueue = {
    .name = "kqueue",
    .create = create,
    .report = report,
    GI_REACTOR_FUNCTIONS,
};
