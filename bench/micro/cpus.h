/* SPDX-License-Identifier: MIT */
/*
 * Which CPUs a micro bench may use, and taking one of them: what is measured between two threads is
 * measured between two CPUs.
 */
#ifndef BENCH_MICRO_CPUS_H
#define BENCH_MICRO_CPUS_H

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

struct micro_cpus {
    size_t first;
    size_t last;
};

/** The first and the last CPU that this process may use, which it knows as long as it uses all. */
static inline struct micro_cpus micro_find_cpus(void)
{
    struct micro_cpus found = {0, 0};
    cpu_set_t usable;
    CPU_ZERO(&usable);
    (void)sched_getaffinity(0, sizeof usable, &usable);
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0;) {
        if (CPU_ISSET(cpu, &usable)) {
            found.last = cpu > found.last ? cpu : found.last;
            found.first = cpu;
        }
    }
    return found;
}

/** The calling thread stays there from now on. */
static inline void micro_take_cpu(size_t cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

#endif
