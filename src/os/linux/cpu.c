/* SPDX-License-Identifier: MIT */
/*
 * Which CPUs the process may use: its affinity, narrowed by the quota of its control groups.  The
 * set is read once, before any worker has bound itself to one CPU of it.
 * Thread: any.  Reading: sched_setaffinity(2), cgroups(7), the kernel's cgroup-v2.rst.
 */
#include "os/linux/cpu.h"

#include <errno.h>
#include <gori/error.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "os/os.h"

#define CPU_SETS     8 /* of 1024 CPUs each */
#define PATH_BYTES   1024
#define GROUPS_FILE  "/proc/self/cgroup"
#define GROUPS_MOUNT "/sys/fs/cgroup"

/* Filled once, then only read. */
static cpu_set_t g_cpus[CPU_SETS];
static pthread_once_t g_cpus_once = PTHREAD_ONCE_INIT;

static void read_cpus(void)
{
    if (sched_getaffinity(0, sizeof(g_cpus), g_cpus) != 0) {
        CPU_ZERO_S(sizeof(g_cpus), g_cpus);
        CPU_SET_S(0, sizeof(g_cpus), g_cpus);
    }
}

static uint32_t affinity_count(void)
{
    (void)pthread_once(&g_cpus_once, read_cpus);
    int count = CPU_COUNT_S(sizeof(g_cpus), g_cpus);
    return count > 0 ? (uint32_t)count : 1;
}

/* Reads the first line of a small file; false when there is none. */
static bool read_line(const char *path, char *ret_line, size_t line_bytes)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool read = fgets(ret_line, (int)line_bytes, file) != NULL;
    (void)fclose(file);
    return read;
}

static uint32_t divide(int64_t quota_us, int64_t period_us)
{
    if (quota_us <= 0 || period_us <= 0) {
        return UINT32_MAX;
    }
    int64_t count = (quota_us - 1) / period_us + 1;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* cgroup 2: "QUOTA PERIOD" or "max PERIOD" in cpu.max. */
static uint32_t quota_of_v2(const char *folder)
{
    char path[PATH_BYTES + 32];
    char line[64];
    (void)snprintf(path, sizeof(path), "%s/cpu.max", folder);
    if (!read_line(path, line, sizeof(line)) || strncmp(line, "max", 3) == 0) {
        return UINT32_MAX;
    }
    char *end;
    int64_t quota_us = strtoll(line, &end, 10);
    return divide(quota_us, strtoll(end, NULL, 10));
}

/* cgroup 1: one number in each of two files; a quota of -1 is none. */
static uint32_t quota_of_v1(const char *folder)
{
    char path[PATH_BYTES + 32];
    char quota[32];
    char period[32];
    (void)snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, quota, sizeof(quota))) {
        return UINT32_MAX;
    }
    (void)snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, period, sizeof(period))) {
        return UINT32_MAX;
    }
    return divide(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* The smallest quota on the way from a group up to the top: each limits what is below it. */
static uint32_t quota_upwards(char *folder, size_t top_size, uint32_t (*quota_of)(const char *))
{
    uint32_t count = quota_of(folder);
    while (strlen(folder) > top_size) {
        *strrchr(folder, '/') = '\0';
        count = gi_min_u32(count, quota_of(folder));
    }
    return count;
}

/* Whether a controller is in a list such as "cpu,cpuacct". */
static bool lists_cpu(const char *controllers)
{
    for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        size_t size = strcspn(at, ",");
        if (size == 3 && memcmp(at, "cpu", 3) == 0) {
            return true;
        }
    }
    return false;
}

/* One line of /proc/self/cgroup: "ID:CONTROLLERS:/GROUP"; no controllers is version 2. */
static uint32_t quota_of_line(const char *root, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL || group[1] != '/') {
        return UINT32_MAX;
    }
    *group++ = '\0';
    controllers++;
    bool is_v2 = *controllers == '\0';
    if (!is_v2 && !lists_cpu(controllers)) {
        return UINT32_MAX;
    }
    char folder[PATH_BYTES];
    int top = snprintf(folder, sizeof(folder), "%s" GROUPS_MOUNT "%s", root, is_v2 ? "" : "/cpu");
    size_t top_size = (size_t)top;
    if (top < 0 || top_size + strlen(group) >= sizeof(folder)) {
        return UINT32_MAX;
    }
    memcpy(folder + top_size, group, strlen(group) + 1);
    return quota_upwards(folder, top_size, is_v2 ? quota_of_v2 : quota_of_v1);
}

uint32_t gi_os_cpu_quota(const char *root)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s" GROUPS_FILE, root);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return UINT32_MAX;
    }
    uint32_t count = UINT32_MAX;
    char line[PATH_BYTES];
    while (fgets(line, sizeof(line), file) != NULL) {
        count = gi_min_u32(count, quota_of_line(root, line));
    }
    (void)fclose(file);
    return count;
}

uint32_t gi_os_cpu_count(void)
{
    return gi_min_u32(affinity_count(), gi_os_cpu_quota(""));
}

int gi_os_pin(uint32_t index)
{
    uint32_t left = index % affinity_count();
    for (size_t cpu = 0; cpu < sizeof(g_cpus) * 8; cpu++) {
        if (!CPU_ISSET_S(cpu, sizeof(g_cpus), g_cpus)) {
            continue;
        }
        if (left == 0) {
            cpu_set_t one[CPU_SETS];
            CPU_ZERO_S(sizeof(one), one);
            CPU_SET_S(cpu, sizeof(one), one);
            return sched_setaffinity(0, sizeof(one), one) == 0 ? 0 : gi_os_error(errno);
        }
        left--;
    }
    return GORI_EINVAL;
}
