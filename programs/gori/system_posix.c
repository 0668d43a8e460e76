/* SPDX-License-Identifier: MIT */
/*
 * The program's own questions to a POSIX system.  Thread: any.
 */
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

static uint64_t value_of(rlim_t limit)
{
    return limit == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit;
}

bool system_read_arguments(int *argc, char ***argv)
{
    (void)argc; /* bytes, as they are */
    (void)argv;
    return true;
}

uint64_t system_descriptors_max(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? value_of(limit.rlim_max) : UINT64_MAX;
}

void system_describe(struct system_description *ret_description)
{
    struct utsname system = {0};
    (void)uname(&system);
    snprintf(ret_description->name, SYSTEM_NAME_BYTES, "%s", system.sysname);
    snprintf(ret_description->release, SYSTEM_NAME_BYTES, "%s", system.release);
    snprintf(ret_description->machine, SYSTEM_NAME_BYTES, "%s", system.machine);
    ret_description->cpus = sysconf(_SC_NPROCESSORS_ONLN);
}

static struct system_limit read_limit(struct rlimit limit, const char *name, const char *text)
{
    return (struct system_limit){.name = name,
                                 .text = text,
                                 .soft = value_of(limit.rlim_cur),
                                 .hard = value_of(limit.rlim_max)};
}

void system_limits(struct system_limit ret_limits[SYSTEM_LIMITS])
{
    struct rlimit files = {RLIM_INFINITY, RLIM_INFINITY}; /* on failure: no limit known */
    struct rlimit locked = {RLIM_INFINITY, RLIM_INFINITY};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    (void)getrlimit(RLIMIT_MEMLOCK, &locked);
    ret_limits[0] = read_limit(files, "descriptors", "connections and open files of one process");
    ret_limits[1] = read_limit(locked, "locked_memory_bytes",
                               "rings and buffers shared with the kernel, per user");
}

int system_open_append(const char *name)
{
    return open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
}

void system_expect_full_files(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGXFSZ, &ignore, NULL);
}

/* A whole decimal number of the environment; -1 for none, -2 for what is none. */
static long read_environment(const char *name)
{
    const char *text = getenv(name);
    if (text == NULL) {
        return -1;
    }
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 ? value : -2;
}

void system_ignore_stops(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGTERM, &ignore, NULL);
    (void)sigaction(SIGINT, &ignore, NULL);
}

int system_take_sockets(void)
{
    bool are_ours = read_environment("LISTEN_PID") == (long)getpid();
    long count = read_environment("LISTEN_FDS");
    if (!are_ours || count == -1) {
        return 0;
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (count < 0 || count > INT_MAX - SYSTEM_SOCKETS_FIRST) {
        return -1;
    }
    for (int i = 0; i < (int)count; i++) {
        if (fcntl(SYSTEM_SOCKETS_FIRST + i, F_SETFD, FD_CLOEXEC) < 0) {
            return -1;
        }
    }
    return (int)count;
}

bool system_split_time(time_t seconds, struct tm *ret_parts)
{
    return gmtime_r(&seconds, ret_parts) != NULL;
}
