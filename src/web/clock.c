/* SPDX-License-Identifier: MIT */
/*
 * The time of day.  A clock that is set back or forward is noticed within a second.
 * Thread: the loop's.  Reading: clock_gettime(3).
 */
#include "web/clock.h"

#include <time.h>

static gori_time read_system_clock(void *user)
{
    (void)user;
#ifdef TIME_UTC
    struct timespec now;
    if (timespec_get(&now, TIME_UTC) == 0) {
        return 0;
    }
    return (gori_time)now.tv_sec * GORI_SECONDS + (gori_time)now.tv_nsec;
#else
    /* A C library of before C11: late in whichever second it is, so that it is asked again soon. */
    return (gori_time)time(NULL) * GORI_SECONDS + GORI_SECONDS / 4 * 3;
#endif
}

void gi_web_clock_init(struct gi_web_clock *clock, gori_web_clock_fn *read, void *user)
{
    *clock = (struct gi_web_clock){.read = read == NULL ? read_system_clock : read, .user = user};
}

void gi_web_clock_read(struct gi_web_clock *clock, gori_time loop_now)
{
    gori_time now = clock->read(clock->user);
    clock->seconds = (int64_t)(now / GORI_SECONDS);
    clock->good_until = loop_now + (GORI_SECONDS - now % GORI_SECONDS);
    gi_http_date_format(clock->seconds, clock->date);
}
