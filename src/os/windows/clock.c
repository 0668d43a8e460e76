/* SPDX-License-Identifier: MIT */
/*
 * Time and randomness of Windows.  The monotonic clock is the performance counter, which every
 * supported version keeps the same on all processors and never turns back.
 * Thread: any.  Reading: "Acquiring high-resolution time stamps" (Microsoft Learn).
 */
#include "os/os.h"
#include "os/windows/system.h"

#include <bcrypt.h>

/* The calendar of Windows counts 100 ns from 1601. */
#define TICKS_PER_SECOND 10000000
#define SECONDS_TO_1970  INT64_C(11644473600)

gori_time gi_os_now(void)
{
    LARGE_INTEGER frequency;
    LARGE_INTEGER counter;
    /* Neither call can fail since Windows XP; the frequency is read from a page of memory. */
    (void)QueryPerformanceFrequency(&frequency);
    (void)QueryPerformanceCounter(&counter);
    uint64_t per_second = (uint64_t)frequency.QuadPart;
    uint64_t count = (uint64_t)counter.QuadPart;
    /* In two parts, because count * 10^9 is over 64 bits after half an hour of a 10 MHz counter. */
    return count / per_second * GORI_SECONDS + count % per_second * GORI_SECONDS / per_second;
}

static uint64_t read_calendar(void)
{
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    return (uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime;
}

int64_t gi_os_calendar_seconds(void)
{
    return (int64_t)(read_calendar() / TICKS_PER_SECOND) - SECONDS_TO_1970;
}

uint64_t gi_os_entropy(void)
{
    uint64_t bits = 0;
    if (BCryptGenRandom(NULL, (PUCHAR)&bits, sizeof(bits), BCRYPT_USE_SYSTEM_PREFERRED_RNG) >= 0) {
        return bits;
    }
    /* Without it the system is all but broken.  What asks here needs seeds that differ. */
    bits = read_calendar() ^ (uint64_t)GetCurrentProcessId() << 48;
    return bits * 0x9e3779b97f4a7c15u ^ gi_os_now();
}
