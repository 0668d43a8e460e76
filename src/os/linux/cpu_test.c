/* SPDX-License-Identifier: MIT */
/*
 * CPUs: the affinity of the machine, and quotas from made-up control groups.
 */
#include "lib/test.h"

#include "os/linux/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "os/os.h"

static void write_file(const char *root, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s%s", root, name);
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(path, 0755);
        *at = '/';
    }
    FILE *file = fopen(path, "we");
    GT_CHECK(file != NULL);
    GT_CHECK(fputs(text, file) >= 0);
    GT_EQUAL(fclose(file), 0);
}

static void make_root(char *folder)
{
    GT_CHECK(mkdtemp(folder) != NULL);
}

static void remove_root(const char *root)
{
    char command[128];
    GT_EQUAL(strncmp(root, "/tmp/gori-cpu-", 14), 0);
    (void)snprintf(command, sizeof(command), "rm -r '%s'", root);
    GT_EQUAL(system(command), 0);
}

GT_TEST(os_cpu_quota_version_2)
{
    char root[] = "/tmp/gori-cpu-XXXXXX";
    make_root(root);
    GT_EQUAL(gi_os_cpu_quota(root), UINT32_MAX);
    write_file(root, "/proc/self/cgroup", "0::/a/b\n");
    GT_EQUAL(gi_os_cpu_quota(root), UINT32_MAX);
    write_file(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    GT_EQUAL(gi_os_cpu_quota(root), UINT32_MAX);
    write_file(root, "/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    GT_EQUAL(gi_os_cpu_quota(root), 2);
    write_file(root, "/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
    GT_EQUAL(gi_os_cpu_quota(root), 1);
    write_file(root, "/sys/fs/cgroup/a/b/cpu.max", "nonsense\n");
    write_file(root, "/sys/fs/cgroup/a/cpu.max", "1 0\n");
    GT_EQUAL(gi_os_cpu_quota(root), UINT32_MAX);
    remove_root(root);
}

GT_TEST(os_cpu_quota_version_1)
{
    char root[] = "/tmp/gori-cpu-XXXXXX";
    make_root(root);
    write_file(root, "/proc/self/cgroup", "5:memory:/m\n4:cpuset:/s\n3:cpuacct,cpu:/g\n0::/\n");
    write_file(root, "/sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "-1\n");
    write_file(root, "/sys/fs/cgroup/cpu/g/cpu.cfs_period_us", "100000\n");
    GT_EQUAL(gi_os_cpu_quota(root), UINT32_MAX);
    write_file(root, "/sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "300001\n");
    GT_EQUAL(gi_os_cpu_quota(root), 4);
    remove_root(root);
}

GT_TEST(os_cpu_quota_survives_nonsense)
{
    static const char *const lines[] = {
        "", "\n", ":", "::", "0:", "0::", "0::x", "0::/a/b", "x:y:z", "1:,,,:/x", "1:cpu:/"};
    char root[] = "/tmp/gori-cpu-XXXXXX";
    make_root(root);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        write_file(root, "/proc/self/cgroup", lines[i]);
        GT_EQUAL(gi_os_cpu_quota(root), UINT32_MAX);
    }
    remove_root(root);
}

GT_TEST(os_pin_binds_to_one_of_the_cpus)
{
    uint32_t count = gi_os_cpu_count();
    GT_CHECK(count >= 1);
    for (uint32_t i = 0; i < 5; i++) {
        cpu_set_t set;
        GT_EQUAL(gi_os_pin(i), 0);
        GT_EQUAL(sched_getaffinity(0, sizeof(set), &set), 0);
        GT_EQUAL(CPU_COUNT(&set), 1);
        GT_EQUAL(gi_os_cpu_count(), count);
    }
}

GT_MAIN()
