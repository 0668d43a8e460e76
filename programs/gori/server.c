/* SPDX-License-Identifier: MIT */
/*
 * Running a server: the part that `gori echo` and `gori serve` have in common.
 */
#include <gori/error.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"

struct server_options server_options_default(const char *listen)
{
    struct server_options options = {.engine = "auto", .drain_timeout = 10 * GORI_SECONDS};
    if (gori_addr_parse(listen, &options.listen) < 0) {
        abort(); /* a default of ours that is no address */
    }
    return options;
}

static const char *advice(int error)
{
    switch (error) {
    case GORI_EADDRINUSE:
        return "; stop the server that has it, or choose another with --listen";
    case GORI_EADDRNOTAVAIL:
        return "; choose an address of this machine, or '*', with --listen";
    case GORI_EACCESS:
    case GORI_EPERM:
        return "; choose a port above 1023, or a path you may write, with --listen";
    case GORI_ENOTFOUND:
        return "; make the folder of that path, or choose another with --listen";
    default:
        return "; 'gori doctor' tells what this machine gives";
    }
}

static int complain(const char *what, const char *name, int error)
{
    fprintf(stderr, "gori: cannot %s%s%s: %s (%s)%s\n", what, name[0] == '\0' ? "" : " ", name,
            gori_error_text(error), gori_error_name(error), advice(error));
    return EXIT_FAILED;
}

static int listen_and_run(struct gori_runtime *runtime, const struct gori_listener_config *listener)
{
    char text[GORI_ADDR_TEXT_BYTES];
    gori_addr_format(&listener->addr, text, sizeof(text));
    struct gori_addr bound;
    int result = gori_runtime_listen(runtime, listener, &bound);
    if (result < 0) {
        return complain("listen on", text, result);
    }
    gori_addr_format(&bound, text, sizeof(text));
    printf("listening on %s\n", text);
    if (fflush(stdout) != 0) {
        fprintf(stderr, "gori: cannot write to standard output; the server goes on\n");
    }
    result = gori_runtime_run(runtime);
    return result < 0 ? complain("go on serving", "", result) : EXIT_DONE;
}

int server_run(const struct server_options *options, struct gori_runtime_config *config,
               struct gori_listener_config *listener)
{
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
        return complain("start", "", result);
    }
    int code = listen_and_run(runtime, listener);
    gori_runtime_destroy(runtime);
    return code;
}
