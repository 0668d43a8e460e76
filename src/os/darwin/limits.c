/* SPDX-License-Identifier: MIT */
/*
 * Limits of the process on macOS.  The hard limit of descriptors is often "none", but more than
 * kern.maxfilesperproc are refused; and nobody is free from the limit of locked memory.
 * Thread: any.  Reading: getrlimit(2), sysctl(3).
 */
#include <sys/types.h>

#include <sys/resource.h>
#include <sys/sysctl.h>

#include "base/compiler.h"
#include "os/os.h"

static uint64_t value_of(rlim_t limit)
{
    return limit == RLIM_INFINITY ? UINT64_MAX : limit;
}

static uint64_t descriptors_possible(void)
{
    int count = 0;
    size_t size = sizeof(count);
    bool known = sysctlbyname("kern.maxfilesperproc", &count, &size, NULL, 0) == 0 && count > 0;
    return known ? (uint64_t)count : 10240;
}

void gi_os_limits_get(struct gi_os_limits *ret_limits)
{
    struct rlimit descriptors = {0};
    struct rlimit memlock = {0};
    (void)getrlimit(RLIMIT_NOFILE, &descriptors);
    (void)getrlimit(RLIMIT_MEMLOCK, &memlock);
    *ret_limits = (struct gi_os_limits){
        .descriptors_soft = value_of(descriptors.rlim_cur),
        .descriptors_hard = gi_min_u64(value_of(descriptors.rlim_max), descriptors_possible()),
        .memlock_soft = value_of(memlock.rlim_cur),
        .memlock_hard = value_of(memlock.rlim_max),
        .memlock_exempt = false,
    };
}

void gi_os_limits_raise(void)
{
    struct gi_os_limits limits;
    struct rlimit descriptors;
    gi_os_limits_get(&limits);
    if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0 &&
        limits.descriptors_soft < limits.descriptors_hard) {
        descriptors.rlim_cur = (rlim_t)limits.descriptors_hard;
        (void)setrlimit(RLIMIT_NOFILE, &descriptors); /* best effort: who reads limits sees it */
    }
}
