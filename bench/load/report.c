/* SPDX-License-Identifier: MIT */
/* Prints what a run of the load generator found, as one line of JSON. */
#include "load.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const error_names[LOAD_ERROR_COUNT] = {
    [LOAD_ERROR_CONNECT] = "connect", [LOAD_ERROR_CLOSED] = "closed",
    [LOAD_ERROR_IO] = "io",           [LOAD_ERROR_STATUS] = "status",
    [LOAD_ERROR_FRAMING] = "framing", [LOAD_ERROR_LENGTH] = "length",
    [LOAD_ERROR_CONTENT] = "content", [LOAD_ERROR_TIMEOUT] = "timeout",
};

void load_print_report(const struct load_options *options, const struct load_report *report)
{
    double seconds = (double)report->elapsed_ns / 1e9;
    uint64_t total = 0;
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++) {
        total += report->errors[i];
    }
    printf("{\"requests\": %" PRIu64 ", \"seconds\": %.6f, \"rps\": %.1f", report->requests,
           seconds, seconds > 0 ? (double)report->requests / seconds : 0);
    printf(", \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64 ", \"p999_ns\": %" PRIu64
           ", \"max_ns\": %" PRIu64,
           histogram_quantile(&report->latency, 500000),
           histogram_quantile(&report->latency, 990000),
           histogram_quantile(&report->latency, 999000), report->latency.max);
    printf(", \"connections\": %u, \"depth\": %u, \"rate\": %.1f, \"unsent\": %" PRIu64,
           options->connections, options->depth, options->rate, report->unsent);
    if (options->watched_count > 0) {
        printf(", \"server_run_ns\": %" PRIu64, report->server_run_ns);
    }
    printf(", \"errors\": %" PRIu64 ", \"error_kinds\": {", total);
    const char *separator = "";
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++) {
        if (report->errors[i] > 0) {
            printf("%s\"%s\": %" PRIu64, separator, error_names[i], report->errors[i]);
            separator = ", ";
        }
    }
    printf("}}\n");
    (void)fflush(stdout);
}
