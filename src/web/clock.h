/* SPDX-License-Identifier: MIT */
/*
 * The time of day, by the second, with its text for the header Date.  The clock is read when a
 * second of the loop's time has passed, so that an idle server has no timer and a busy one does not
 * ask the system for each request.  Thread: the loop's.
 */
#ifndef GI_WEB_CLOCK_H
#define GI_WEB_CLOCK_H

#include <gori/web/server.h>

#include "proto/http_date.h"

struct gi_web_clock {
    gori_web_clock_fn *read;
    void *user;
    gori_time good_until; /* of the loop's time */
    int64_t seconds;      /* since 1970 */
    uint8_t date[GI_HTTP_DATE_SIZE];
};

/** `read` may be NULL for the system's clock. */
void gi_web_clock_init(struct gi_web_clock *clock, gori_web_clock_fn *read, void *user);

/** Reads the clock anew. */
void gi_web_clock_read(struct gi_web_clock *clock, gori_time loop_now);

/** Brings `seconds` and `date` up to date. */
static inline void gi_web_clock_update(struct gi_web_clock *clock, gori_time loop_now)
{
    if (loop_now >= clock->good_until) {
        gi_web_clock_read(clock, loop_now);
    }
}

#endif
