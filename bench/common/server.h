/* SPDX-License-Identifier: MIT */
/*
 * What the small servers of bench/ share: the command line and ready line of gori's own programs,
 * one SO_REUSEPORT listener and one thread per worker, and the end at SIGTERM. It holds nothing
 * that runs per request: each contestant's loop is in its own file, whole.
 */
#ifndef BENCH_COMMON_SERVER_H
#define BENCH_COMMON_SERVER_H

#ifdef __cplusplus
extern "C" {
#endif

/** Serves the blocking listening socket `listener` on the calling thread, for ever. */
typedef void bench_worker_fn(int listener);

/** Parses `--listen ADDR:PORT --workers N`, listens, prints `listening on ADDR:PORT`, runs
 * `worker` on N threads and returns the exit status once SIGTERM or SIGINT arrives. `--engine
 * NAME` is accepted and ignored, so that every contestant is started by the same command line. */
int bench_server_main(int argc, char **argv, bench_worker_fn *worker);

/** Prints `what` and the text of `error` (an errno value) and ends the process with status 1. */
void bench_die(const char *what, int error) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#endif
