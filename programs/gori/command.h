/* SPDX-License-Identifier: MIT */
/*
 * What the subcommands of gori share: a table of options read from a command line, help made from
 * the same table, and running a server until it is told to stop.  Exit codes: 0 done, 1 failed,
 * 2 wrong usage (one line on standard error that says what and how).
 */
#ifndef GORI_PROGRAM_COMMAND_H
#define GORI_PROGRAM_COMMAND_H

#include <gori/addr.h>
#include <gori/base.h>
#include <gori/listener.h>
#include <gori/runtime.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    PARSED = -1 /* of command_parse: go on */
};

enum option_kind {
    OPTION_FLAG,    /* bool */
    OPTION_TEXT,    /* const char * */
    OPTION_COUNT,   /* uint32_t, at least 1 */
    OPTION_BYTES,   /* uint64_t; k, m and g multiply by 1024 */
    OPTION_SECONDS, /* gori_time; a decimal number of seconds, 0 for no limit */
    OPTION_ADDR,    /* struct gori_addr */
    OPTION_POLICY,  /* enum gori_accept_policy */
    OPTION_ENGINE   /* const char *, checked against what this build has */
};

struct option {
    const char *name;     /* with its dashes */
    const char *argument; /* what help calls its value, NULL for a flag */
    const char *help;
    enum option_kind kind;
    void *target; /* of the kind's type */
};

#define COMMAND_OPTIONS_MAX 24

struct command {
    const char *name;
    const char *summary;                        /* one line */
    const char *operand;                        /* what help calls the one operand, NULL for none */
    const char *examples;                       /* whole lines, each ended */
    struct option options[COMMAND_OPTIONS_MAX]; /* ended by one without a name */
};

/**
 * Reads `argv` (without the program's and the command's name).  Prints help or the complaint
 * itself. Result: PARSED, or the exit code.
 */
int command_parse(const struct command *command, int argc, char **argv, const char **ret_operand);

/** What a server command was asked for. */
struct server_options {
    struct gori_addr listen;    /* GORI_ADDR_NONE: nobody said */
    const char *default_listen; /* an address of ours */
    uint32_t workers;
    const char *engine;
    enum gori_accept_policy accept_policy;
    gori_time drain_timeout;
};

/** How the common server options start out. */
struct server_options server_options_default(const char *default_listen);

/**
 * Listens, on the sockets of a supervisor if it gave some (LISTEN_FDS), and runs until SIGTERM or
 * SIGINT (a second one ends it at once).  Prints the line "listening on ADDR:PORT", one for each
 * address, when all workers accept.  `config.loop`, `config.workers` and the like are set from
 * `options`; the rest is the caller's.  Result: an exit code.
 */
int server_run(const struct server_options *options, struct gori_runtime_config *config,
               struct gori_listener_config *listener);

int command_doctor(int argc, char **argv);
int command_echo(int argc, char **argv);
int command_serve(int argc, char **argv);

#endif
