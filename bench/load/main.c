/* SPDX-License-Identifier: MIT */
/*
 * bench_load: puts load on an echo or HTTP server and reports what came of it; see --help. Exit
 * status: 0 when it ran (the report says how many requests failed), 1 when it could not, 2 for
 * wrong usage.
 */
#include "load.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0) {
        (void)fprintf(stderr, "bench_load: cannot run on CPU %d only\n", cpu);
    }
}

/* One line of standard input; false at its end. */
static bool wait_for_command(void)
{
    char line[64];
    return fgets(line, sizeof line, stdin) != NULL;
}

int main(int argc, char **argv)
{
    static struct load_report report;
    struct load_options options;
    const struct load_protocol *protocol;
    load_parse_options(argc, argv, &options, &protocol);
    if (options.cpu >= 0) {
        pin(options.cpu);
    }
    int error = load_start(&options, protocol);
    if (error < 0) {
        (void)fprintf(stderr, "bench_load: %s\n", strerror(-error));
        return 1;
    }
    if (options.on_command) {
        printf("ready\n");
        (void)fflush(stdout);
    }
    bool more = true;
    while (more && (!options.on_command || wait_for_command())) {
        more = load_run_slice(&report) && options.on_command;
        load_print_report(&options, &report);
    }
    return 0;
}
