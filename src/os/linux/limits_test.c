/* SPDX-License-Identifier: MIT */
/*
 * Limits: raising takes the soft ones to the hard ones and changes nothing else.
 */
#include "lib/test.h"

#include <sys/resource.h>

#include "os/os.h"

GT_TEST(os_limits_are_raised_to_the_hard_ones)
{
    struct rlimit limit;
    GT_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 16;
    GT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct gi_os_limits limits;
    gi_os_limits_get(&limits);
    GT_EQUAL(limits.descriptors_soft, 16);
    GT_EQUAL(limits.descriptors_hard, limit.rlim_max);
    gi_os_limits_raise();
    gi_os_limits_get(&limits);
    GT_EQUAL(limits.descriptors_soft, limit.rlim_max);
    GT_EQUAL(limits.memlock_soft, limits.memlock_hard);
}

GT_MAIN()
