/* SPDX-License-Identifier: MIT */
/*
 * The load generator's parts: options, the protocol it speaks, the engine that drives connections
 * and the report. One thread, one epoll, everything of fixed size.
 */
#ifndef BENCH_LOAD_LOAD_H
#define BENCH_LOAD_LOAD_H

#include "histogram.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOAD_CONNECTIONS_MAX = 10000,
    LOAD_WATCHED_MAX = 64,
    LOAD_BATCH_BYTES_MAX = 1 << 20,
    LOAD_HEAD_BYTES_MAX = 2048,
};

/** Why a request did not end well. Every request that was sent and is not counted here was
 * answered in full, byte for byte as expected. */
enum load_error {
    LOAD_ERROR_CONNECT, /* no connection, or it was refused again */
    LOAD_ERROR_CLOSED,  /* the server ended the connection before the answer was complete */
    LOAD_ERROR_IO,      /* a reset or another failure of the socket */
    LOAD_ERROR_STATUS,  /* not 200 */
    LOAD_ERROR_FRAMING, /* not HTTP, no Content-Length, or bytes that nobody asked for */
    LOAD_ERROR_LENGTH,  /* a Content-Length other than the expected one */
    LOAD_ERROR_CONTENT, /* echoed bytes that differ */
    LOAD_ERROR_TIMEOUT, /* no complete answer in time */
    LOAD_ERROR_COUNT,
};

struct load_options {
    struct sockaddr_in target;
    const char *path;       /* http: what is asked for */
    unsigned connections;   /* open at once */
    unsigned depth;         /* requests per batch: pipelining */
    unsigned size;          /* echo: bytes per message */
    int64_t expected_size;  /* http: bytes per body; -1: any */
    bool on_command;        /* a slice for each line of standard input */
    uint64_t warmup_ns;     /* not counted */
    uint64_t duration_ns;   /* counted, after the warm-up */
    uint64_t request_count; /* stop after so many; 0: no limit */
    uint64_t timeout_ns;    /* for one batch */
    double rate;            /* requests per second over all connections; 0: closed loop */
    bool in_step;           /* closed loop: all connections send together */
    int cpu;                /* to run on; -1: anywhere */
    unsigned watched_count;
    int watched[LOAD_WATCHED_MAX]; /* processes whose run time is sampled */
};

/** What a connection has read of the answer it waits for. */
struct load_answer {
    uint64_t body_left; /* bytes */
    uint32_t head_size;
    bool in_body;
    char head[LOAD_HEAD_BYTES_MAX];
};

/** One protocol: how a batch looks and when an answer is complete. */
struct load_protocol {
    /** Writes `options->depth` requests to `batch` and returns their size in bytes, 0 if too
     * large. */
    size_t (*fill)(const struct load_options *options, char *batch);
    /** Takes received bytes; returns how many answers they completed, or -1 - enum load_error. */
    int (*take)(const struct load_options *options, struct load_answer *answer, const char *data,
                size_t size);
};

struct load_report {
    struct histogram latency;
    uint64_t requests; /* answered in full while counting */
    uint64_t elapsed_ns;
    uint64_t unsent; /* fixed rate: due while counting, but no connection was free until the end */
    uint64_t errors[LOAD_ERROR_COUNT]; /* since the start, the warm-up included */
    uint64_t server_run_ns;
};

extern const struct load_protocol load_echo_protocol;
extern const struct load_protocol load_http_protocol;

/** Parses the command line; ends the process with status 2 and one line when it is wrong. */
void load_parse_options(int argc, char **argv, struct load_options *ret_options,
                        const struct load_protocol **ret_protocol);

/** Opens the connections and warms up; returns 0, or a negative errno value.  Once per process. */
int load_start(const struct load_options *options, const struct load_protocol *protocol);

/**
 * Runs one slice: load for as long as the options say, then until the last answer is there, so that
 * nothing is in flight before and after.  Adds what it found to `report`.  Returns false when
 * failures have become the rule and no further slice makes sense.
 */
bool load_run_slice(struct load_report *report);

/** Prints the report as one line of JSON. */
void load_print_report(const struct load_options *options, const struct load_report *report);

/** The run time so far of all threads of the watched processes, kernel included, in
 * nanoseconds. */
uint64_t load_sample_run_ns(const struct load_options *options);

uint64_t load_now_ns(void);

#endif
