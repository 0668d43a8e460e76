/* SPDX-License-Identifier: MIT */
/*
 * Limits of the process.  Windows has one for handles, the same for every process, and none for
 * locked memory that would concern us: what overlapped operations lock is bounded by the pool.
 * Thread: any.  Reading: "Kernel Objects" (Microsoft Learn): 2^24 handles a process.
 */
#include "os/os.h"

#define HANDLES_MAX ((1u << 24) - (1u << 16)) /* as documented, 16,711,680 */

void gi_os_limits_get(struct gi_os_limits *ret_limits)
{
    *ret_limits = (struct gi_os_limits){
        .descriptors_soft = HANDLES_MAX,
        .descriptors_hard = HANDLES_MAX,
        .memlock_soft = UINT64_MAX,
        .memlock_hard = UINT64_MAX,
        .memlock_exempt = true,
    };
}

void gi_os_limits_raise(void)
{
    /* They are where they can be. */
}
