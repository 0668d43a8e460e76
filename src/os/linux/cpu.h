/* SPDX-License-Identifier: MIT */
/*
 * The CPU quota of the control group, from the files below a root; a header of its own so that the
 * test can show it made-up files.  Everybody else asks gi_os_cpu_count.  Thread: any.
 */
#ifndef GI_OS_LINUX_CPU_H
#define GI_OS_LINUX_CPU_H

#include <stdint.h>

/** CPUs that the groups of this process may use, rounded up; UINT32_MAX where none limits it. */
uint32_t gi_os_cpu_quota(const char *root);

#endif
