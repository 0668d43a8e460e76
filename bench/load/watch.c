/* SPDX-License-Identifier: MIT */
/*
 * The run time of other processes, thread by thread, from the scheduler's own account. It counts
 * time in the kernel as well, and io_uring's worker threads, which are threads of their process.
 * The time of threads that ended between two samples is lost; servers under measurement keep
 * theirs. A thread that is running is accounted up to its last tick, so a sample is exact only
 * while all of them sleep; the engine sees to that.
 */
#include "load.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t sample_thread_ns(int tasks, const char *thread)
{
    char path[64];
    char text[64];
    if (snprintf(path, sizeof path, "%s/schedstat", thread) >= (int)sizeof path) {
        return 0;
    }
    int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t size = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[size > 0 ? size : 0] = '\0';
    return strtoull(text, NULL, 10);
}

static uint64_t sample_process_ns(int process)
{
    char path[64];
    uint64_t total_ns = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *tasks = opendir(path);
    if (tasks == NULL) {
        return 0;
    }
    const struct dirent *entry;
    while ((entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] != '.') {
            total_ns += sample_thread_ns(dirfd(tasks), entry->d_name);
        }
    }
    (void)closedir(tasks);
    return total_ns;
}

uint64_t load_sample_run_ns(const struct load_options *options)
{
    uint64_t total_ns = 0;
    for (unsigned i = 0; i < options->watched_count; i++) {
        total_ns += sample_process_ns(options->watched[i]);
    }
    return total_ns;
}
