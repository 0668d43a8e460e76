/* SPDX-License-Identifier: MIT */
/*
 * Time and randomness of the system.  The monotonic clock does not count the time a machine is
 * suspended, which is what idle timeouts want.
 * Thread: any.  Reading: clock_gettime(2), getentropy(3).
 */
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <sys/random.h>

#include "base/assert.h"
#include "os/os.h"

/* On macOS the clock of that name counts the time asleep. */
#ifdef __APPLE__
#define CLOCK_AWAKE CLOCK_UPTIME_RAW
#else
#define CLOCK_AWAKE CLOCK_MONOTONIC
#endif

static struct timespec read_clock(clockid_t clock)
{
    struct timespec now;
    int failed = clock_gettime(clock, &now);
    GI_ASSERT(failed == 0);
    return now;
}

gori_time gi_os_now(void)
{
    struct timespec now = read_clock(CLOCK_AWAKE);
    return (gori_time)now.tv_sec * GORI_SECONDS + (gori_time)now.tv_nsec;
}

int64_t gi_os_calendar_seconds(void)
{
    return (int64_t)read_clock(CLOCK_REALTIME).tv_sec;
}

uint64_t gi_os_entropy(void)
{
    uint64_t bits = 0;
    if (getentropy(&bits, sizeof(bits)) == 0) {
        return bits;
    }
    /* A filter may refuse getrandom.  What asks here needs seeds that differ, not secrets. */
    struct timespec now = read_clock(CLOCK_REALTIME);
    bits = ((uint64_t)now.tv_sec << 30) ^ (uint64_t)now.tv_nsec ^ ((uint64_t)getpid() << 48);
    return bits * 0x9e3779b97f4a7c15u ^ gi_os_now();
}
