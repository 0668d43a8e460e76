/* SPDX-License-Identifier: MIT */
/* The command line of the load generator; see load.h for what each option becomes. */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: bench_load echo|http ADDR:PORT [options]\n"
    "  --connections N     open at once (default 1)\n"
    "  --seconds S         counted time (default 1)\n"
    "  --warmup S          time before it that is not counted (default 0)\n"
    "  --slices stdin      say ready, run that long for each line of input, print the sums\n"
    "  --count N           stop after N answers\n"
    "  --rate N            requests per second, measured from the intended start (default: closed "
    "loop)\n"
    "  --pace free|step    closed loop: a connection sends when it was answered, or when all were\n"
    "  --timeout S         for an answer (default 5)\n"
    "  --size BYTES        echo: bytes per message (default 64)\n"
    "  --path PATH         http: what to get (default /)\n"
    "  --expect-size BYTES http: the only right Content-Length (default: any)\n"
    "  --depth N           requests sent together on a connection (default 1)\n"
    "  --cpu N             run on this CPU only\n"
    "  --watch PID[,PID]   sample the run time of these processes' threads\n";

static void die(const char *what, const char *value)
{
    (void)fprintf(stderr, "bench_load: %s: %s (see --help)\n", what, value);
    exit(2);
}

static double parse_number(const char *name, const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= least && value <= most)) {
        die(name, text);
    }
    return value;
}

static uint64_t parse_seconds(const char *name, const char *text)
{
    return (uint64_t)(parse_number(name, text, 0, 86400) * 1e9);
}

static struct sockaddr_in parse_target(const char *text)
{
    struct sockaddr_in target = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN] = "";
    const char *colon = strrchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof host) {
        die("not ADDR:PORT", text);
    }
    memcpy(host, text, (size_t)(colon - text));
    if (inet_pton(AF_INET, host, &target.sin_addr) != 1) {
        die("not an IPv4 address", text);
    }
    target.sin_port = htons((uint16_t)parse_number("port", colon + 1, 1, UINT16_MAX));
    return target;
}

static void parse_watched(const char *text, struct load_options *options)
{
    while (*text != '\0') {
        char *end;
        long process = strtol(text, &end, 10);
        if (end == text || process <= 0 || options->watched_count == LOAD_WATCHED_MAX ||
            (*end != '\0' && *end != ',')) {
            die("--watch", text);
        }
        options->watched[options->watched_count++] = (int)process;
        text = *end == ',' ? end + 1 : end;
    }
}

static bool parse_load(const char *name, const char *value, struct load_options *options)
{
    if (strcmp(name, "--connections") == 0) {
        options->connections = (unsigned)parse_number(name, value, 1, LOAD_CONNECTIONS_MAX);
    } else if (strcmp(name, "--seconds") == 0) {
        options->duration_ns = parse_seconds(name, value);
    } else if (strcmp(name, "--warmup") == 0) {
        options->warmup_ns = parse_seconds(name, value);
    } else if (strcmp(name, "--count") == 0) {
        options->request_count = (uint64_t)parse_number(name, value, 1, 1e15);
    } else if (strcmp(name, "--rate") == 0) {
        options->rate = parse_number(name, value, 0.001, 1e8);
    } else if (strcmp(name, "--slices") == 0) {
        if (strcmp(value, "stdin") != 0) {
            die(name, value);
        }
        options->on_command = true;
    } else if (strcmp(name, "--pace") == 0) {
        if (strcmp(value, "free") != 0 && strcmp(value, "step") != 0) {
            die(name, value);
        }
        options->in_step = strcmp(value, "step") == 0;
    } else if (strcmp(name, "--timeout") == 0) {
        options->timeout_ns = parse_seconds(name, value);
    } else {
        return false;
    }
    return true;
}

static bool parse_request(const char *name, const char *value, struct load_options *options)
{
    if (strcmp(name, "--size") == 0) {
        options->size = (unsigned)parse_number(name, value, 1, LOAD_BATCH_BYTES_MAX);
    } else if (strcmp(name, "--path") == 0) {
        options->path = value;
    } else if (strcmp(name, "--expect-size") == 0) {
        options->expected_size = (int64_t)parse_number(name, value, 0, 1e15);
    } else if (strcmp(name, "--depth") == 0) {
        options->depth = (unsigned)parse_number(name, value, 1, 1024);
    } else if (strcmp(name, "--cpu") == 0) {
        options->cpu = (int)parse_number(name, value, 0, 1023);
    } else if (strcmp(name, "--watch") == 0) {
        parse_watched(value, options);
    } else {
        return false;
    }
    return true;
}

void load_parse_options(int argc, char **argv, struct load_options *ret_options,
                        const struct load_protocol **ret_protocol)
{
    struct load_options options = {
        .path = "/",
        .connections = 1,
        .depth = 1,
        .size = 64,
        .expected_size = -1,
        .duration_ns = UINT64_C(1000000000),
        .timeout_ns = UINT64_C(5000000000),
        .cpu = -1,
    };
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        (void)fputs(usage, stdout);
        exit(0);
    }
    if (argc < 3 || (strcmp(argv[1], "echo") != 0 && strcmp(argv[1], "http") != 0)) {
        die("expected", "echo|http ADDR:PORT");
    }
    options.target = parse_target(argv[2]);
    for (int i = 3; i < argc; i += 2) {
        if (i + 1 == argc) {
            die("value missing", argv[i]);
        }
        if (!parse_load(argv[i], argv[i + 1], &options) &&
            !parse_request(argv[i], argv[i + 1], &options)) {
            die("unknown option", argv[i]);
        }
    }
    *ret_protocol = strcmp(argv[1], "echo") == 0 ? &load_echo_protocol : &load_http_protocol;
    *ret_options = options;
}
