/* SPDX-License-Identifier: MIT */
/*
 * The program's own questions to Windows.  Thread: any.
 */
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <windows.h>

#include <shellapi.h>

#define NAME_CHARS  4096
#define HANDLES_MAX 16711680u /* of one process, as documented */

/* Writes the UTF-8 of `wide` at `to`, or only counts it when that is NULL; terminator included. */
static int to_utf8(const wchar_t *wide, char *to, int room)
{
    return WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, to, room, NULL, NULL);
}

/* Pointers and, behind them, the texts; NULL when one is none, or without memory.  Never freed. */
static char **copy_arguments(wchar_t **wide, int count)
{
    size_t size = ((size_t)count + 1) * sizeof(char *);
    size_t text_at = size;
    for (int i = 0; i < count; i++) {
        int bytes = to_utf8(wide[i], NULL, 0);
        if (bytes <= 0) {
            return NULL;
        }
        size += (size_t)bytes;
    }
    char **copies = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, size);
    if (copies == NULL) {
        return NULL;
    }
    char *text = (char *)copies + text_at;
    for (int i = 0; i < count; i++) {
        copies[i] = text;
        text += to_utf8(wide[i], text, INT_MAX);
    }
    return copies;
}

bool system_read_arguments(int *argc, char ***argv)
{
    int count = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    if (wide == NULL) {
        return false;
    }
    char **copies = copy_arguments(wide, count);
    LocalFree(wide);
    if (copies == NULL) {
        return false;
    }
    *argc = count;
    *argv = copies;
    return true;
}

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
    wchar_t wide[NAME_CHARS];
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, name, -1, wide, NAME_CHARS) == 0) {
        errno = ENOENT;
        return -1;
    }
    return _wopen(wide, _O_WRONLY | _O_APPEND | _O_CREAT | _O_BINARY | _O_NOINHERIT,
                  _S_IREAD | _S_IWRITE);
}

void system_expect_full_files(void)
{
    /* There is no such limit. */
}

void system_ignore_stops(void)
{
    (void)SetConsoleCtrlHandler(NULL, TRUE);
}

int system_take_sockets(void)
{
    return 0; /* nor such a supervisor */
}

bool system_split_time(time_t seconds, struct tm *ret_parts)
{
    return gmtime_s(ret_parts, &seconds) == 0;
}
