/* SPDX-License-Identifier: MIT */
/*
 * CPUs that this process may use: its affinity mask, and the hard cap of a job object, which is how
 * containers of Windows are kept small.  The mask is one processor group's, so a machine of more
 * than 64 CPUs counts as the 64 of the group that the process was put into.
 * Thread: any.  Reading: "Processor Groups", JOBOBJECT_CPU_RATE_CONTROL_INFORMATION.
 */
#include <gori/error.h>

#include "base/compiler.h"
#include "os/os.h"
#include "os/windows/system.h"

#define CPU_RATE_WHOLE 10000u /* the rate of a job that may use the whole machine */

static uint64_t affinity(void)
{
    DWORD_PTR of_process = 0;
    DWORD_PTR of_system = 0;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &of_process, &of_system)) {
        return 1;
    }
    return of_process != 0 ? of_process : 1; /* 0: its threads are in several groups */
}

static uint32_t count_bits(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

/* The cap in whole CPUs, rounded up; UINT32_MAX when there is none. */
static uint32_t job_cap(void)
{
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate = {0};
    const DWORD cap = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
    if (!QueryInformationJobObject(NULL, JobObjectCpuRateControlInformation, &rate, sizeof(rate),
                                   NULL) ||
        (rate.ControlFlags & cap) != cap || rate.CpuRate == 0) {
        return UINT32_MAX;
    }
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    uint64_t share = (uint64_t)rate.CpuRate * system.dwNumberOfProcessors;
    return (uint32_t)((share + CPU_RATE_WHOLE - 1) / CPU_RATE_WHOLE);
}

uint32_t gi_os_cpu_count(void)
{
    return gi_min_u32(count_bits(affinity()), job_cap());
}

int gi_os_pin(uint32_t index)
{
    uint64_t mask = affinity();
    uint32_t left = index % count_bits(mask);
    for (; left > 0; left--) {
        mask &= mask - 1;
    }
    uint64_t lowest = mask & -mask;
    return SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)lowest) != 0
               ? 0
               : gi_os_error((int)GetLastError());
}
