/* SPDX-License-Identifier: MIT */
/*
 * Limits of the process: descriptors and locked memory.
 * Thread: any.  Reading: getrlimit(2), capabilities(7).
 */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

_Static_assert(RLIM_INFINITY == UINT64_MAX, "no limit is UINT64_MAX");

/* Whether the effective set has CAP_IPC_LOCK, which frees from the limit of locked memory. */
static bool may_lock_memory(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    return (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

void gi_os_limits_get(struct gi_os_limits *ret_limits)
{
    struct rlimit descriptors = {0};
    struct rlimit memlock = {0};
    (void)getrlimit(RLIMIT_NOFILE, &descriptors);
    (void)getrlimit(RLIMIT_MEMLOCK, &memlock);
    *ret_limits = (struct gi_os_limits){
        .descriptors_soft = descriptors.rlim_cur,
        .descriptors_hard = descriptors.rlim_max,
        .memlock_soft = memlock.rlim_cur,
        .memlock_hard = memlock.rlim_max,
        .memlock_exempt = may_lock_memory(),
    };
}

static void raise_to_hard(unsigned resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(resource, &limit); /* best effort: the reader of limits sees what is */
    }
}

void gi_os_limits_raise(void)
{
    raise_to_hard(RLIMIT_NOFILE);
    raise_to_hard(RLIMIT_MEMLOCK);
}
