/* SPDX-License-Identifier: MIT */
/*
 * Running a server: the part that `gori echo` and `gori serve` have in common.
 */
#include <gori/error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

struct server_options server_options_default(const char *listen)
{
    struct server_options options = {.engine = "auto", .drain_timeout = 10 * GORI_SECONDS};
    if (gori_addr_parse(listen, &options.listen) < 0) {
        abort(); /* a default of ours that is no address */
    }
    return options;
}

/* What to do about an address that cannot be had. */
static const char *advice(int error)
{
    switch (error) {
    case GORI_EADDRINUSE:
        return "stop the server that has it, or choose another with --listen";
    case GORI_EADDRNOTAVAIL:
        return "choose an address of this machine, or '*', with --listen";
    case GORI_EACCESS:
    case GORI_EPERM:
        return "choose a port above 1023, or a path that you may write, with --listen";
    case GORI_ENOTFOUND:
        return "make the folder of that path, or choose another with --listen";
    default:
        return "choose another with --listen";
    }
}

static int complain(const char *what, int error, const char *remedy)
{
    fprintf(stderr, "gori: cannot %s: %s (%s); %s\n", what, gori_error_text(error),
            gori_error_name(error), remedy);
    return EXIT_FAILED;
}

/* An engine that was asked for by name is tried before the server says that it listens. */
static int check_engine(const struct server_options *options)
{
    const char *name = options->engine;
    const char *from_environment = getenv("GORI_ENGINE");
    if (strcmp(name, "auto") == 0) {
        name = from_environment == NULL || from_environment[0] == '\0' ? "auto" : from_environment;
    }
    if (strcmp(name, "auto") == 0) {
        return EXIT_DONE;
    }
    const struct gori_loop_config config = {.engine = name};
    struct gori_loop *loop;
    int result = gori_loop_create(&config, &loop);
    if (result < 0) {
        char what[64];
        snprintf(what, sizeof(what), "use the engine %s", name);
        return complain(what, result, "'gori doctor' says why, and auto takes what works");
    }
    gori_loop_destroy(loop);
    return EXIT_DONE;
}

static int listen_and_run(struct gori_runtime *runtime, const struct gori_listener_config *listener)
{
    char text[GORI_ADDR_TEXT_BYTES];
    gori_addr_format(&listener->addr, text, sizeof(text));
    struct gori_addr bound;
    int result = gori_runtime_listen(runtime, listener, &bound);
    if (result < 0) {
        char what[sizeof(text) + 16];
        snprintf(what, sizeof(what), "listen on %s", text);
        return complain(what, result, advice(result));
    }
    gori_addr_format(&bound, text, sizeof(text));
    printf("listening on %s\n", text);
    if (fflush(stdout) != 0) {
        fprintf(stderr, "gori: cannot write to standard output; the server goes on\n");
    }
    result = gori_runtime_run(runtime);
    return result < 0
               ? complain("go on serving", result, "'gori doctor' says what this machine gives")
               : EXIT_DONE;
}

int server_run(const struct server_options *options, struct gori_runtime_config *config,
               struct gori_listener_config *listener)
{
    int code = check_engine(options);
    if (code != EXIT_DONE) {
        return code;
    }
    config->workers = options->workers;
    config->loop.engine = options->engine;
    config->drain_timeout = options->drain_timeout;
    config->handle_signals = true;
    listener->addr = options->listen;
    listener->accept_policy = options->accept_policy;
    struct gori_runtime *runtime;
    int result = gori_runtime_create(config, &runtime);
    if (result == GORI_EINVAL) {
        fprintf(stderr, "gori: --workers is at most 255; give a smaller number, or none\n");
        return EXIT_USAGE;
    }
    if (result < 0) {
        return complain("start", result, "'gori doctor' says what this machine gives");
    }
    code = listen_and_run(runtime, listener);
    gori_runtime_destroy(runtime);
    return code;
}
