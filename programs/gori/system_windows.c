/* SPDX-License-Identifier: MIT */
/*
 * The program's own questions to Windows.  Thread: any.
 */
#include "system.h"

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <sys/stat.h>
#include <windows.h>

#define HANDLES_MAX 16711680u /* of one process, as documented */

uint64_t system_descriptors_max(void)
{
    return HANDLES_MAX;
}

typedef LONG(WINAPI version_fn)(OSVERSIONINFOW *ret_version);

void system_describe(struct system_description *ret_description)
{
    /* GetVersionEx tells a program without a manifest an old version. */
    OSVERSIONINFOW version = {.dwOSVersionInfoSize = sizeof(version)};
    FARPROC found = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlGetVersion");
    version_fn *get_version = (version_fn *)(void (*)(void))found;
    if (get_version != NULL) {
        (void)get_version(&version);
    }
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    snprintf(ret_description->name, SYSTEM_NAME_BYTES, "Windows");
    snprintf(ret_description->release, SYSTEM_NAME_BYTES, "%lu.%lu.%lu", version.dwMajorVersion,
             version.dwMinorVersion, version.dwBuildNumber);
    bool is_arm = system.wProcessorArchitecture == PROCESSOR_ARCHITECTURE_ARM64;
    snprintf(ret_description->machine, SYSTEM_NAME_BYTES, "%s", is_arm ? "arm64" : "x86_64");
    ret_description->cpus = (long)system.dwNumberOfProcessors;
}

void system_limits(struct system_limit ret_limits[SYSTEM_LIMITS])
{
    ret_limits[0] = (struct system_limit){.name = "descriptors",
                                          .text = "connections and open files of one process",
                                          .soft = HANDLES_MAX,
                                          .hard = HANDLES_MAX};
    ret_limits[1] = (struct system_limit){.name = "locked_memory_bytes",
                                          .text = "what operations in flight pin",
                                          .soft = UINT64_MAX,
                                          .hard = UINT64_MAX};
}

int system_open_append(const char *name)
{
    return _open(name, _O_WRONLY | _O_APPEND | _O_CREAT | _O_BINARY | _O_NOINHERIT,
                 _S_IREAD | _S_IWRITE);
}

void system_expect_full_files(void)
{
    /* There is no such limit. */
}

int system_take_sockets(void)
{
    return 0; /* nor such a supervisor */
}

bool system_split_time(time_t seconds, struct tm *ret_parts)
{
    return gmtime_s(ret_parts, &seconds) == 0;
}
