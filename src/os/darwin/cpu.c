/* SPDX-License-Identifier: MIT */
/*
 * CPUs of macOS: how many there are.  The system decides who runs where and lets nobody bind to
 * one. Thread: any.  Reading: sysctl(3).
 */
#include <gori/error.h>
#include <sys/types.h>

#include <sys/sysctl.h>

#include "os/os.h"

uint32_t gi_os_cpu_count(void)
{
    int count = 0;
    size_t size = sizeof(count);
    bool known = sysctlbyname("hw.activecpu", &count, &size, NULL, 0) == 0 && count > 0;
    return known ? (uint32_t)count : 1;
}

int gi_os_pin(uint32_t index)
{
    (void)index;
    return GORI_ENOTSUP;
}
