/* SPDX-License-Identifier: MIT */
/*
 * Running a server: the part that `gori echo` and `gori serve` have in common.
 */
#include <gori/error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "system.h"

struct server_options server_options_default(const char *default_listen)
{
    return (struct server_options){
        .default_listen = default_listen, .engine = "auto", .drain_timeout = 10 * GORI_SECONDS};
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

/* All workers accept. */
static void tell_addresses(struct gori_runtime *runtime)
{
    struct gori_addr addr;
    for (uint32_t i = 0; gori_runtime_addr(runtime, i, &addr) >= 0; i++) {
        char text[GORI_ADDR_TEXT_BYTES];
        gori_addr_format(&addr, text, sizeof(text));
        printf("listening on %s\n", text);
    }
    if (fflush(stdout) != 0) {
        fprintf(stderr, "gori: cannot write to standard output; the server goes on\n");
        clearerr(stdout);
    }
}

static int listen_at(struct gori_runtime *runtime, const struct server_options *options,
                     struct gori_listener_config *listener)
{
    listener->addr = options->listen;
    if (gori_addr_family(&listener->addr) == GORI_ADDR_NONE &&
        gori_addr_parse(options->default_listen, &listener->addr) < 0) {
        abort(); /* a default of ours that is no address */
    }
    int result = gori_runtime_listen(runtime, listener, NULL);
    if (result < 0) {
        char text[GORI_ADDR_TEXT_BYTES];
        char what[sizeof(text) + 16];
        gori_addr_format(&listener->addr, text, sizeof(text));
        snprintf(what, sizeof(what), "listen on %s", text);
        return complain(what, result, advice(result));
    }
    return EXIT_DONE;
}

/* What a supervisor opened is left open: it, or the next of us, goes on with what is queued. */
static int take_over(struct gori_runtime *runtime, int socket_count,
                     struct gori_listener_config *listener)
{
    listener->keep_socket = true;
    for (int i = 0; i < socket_count; i++) {
        int descriptor = SYSTEM_SOCKETS_FIRST + i;
        int result = gori_runtime_adopt(runtime, descriptor, listener, NULL);
        if (result < 0) {
            char what[64];
            snprintf(what, sizeof(what), "serve descriptor %d of LISTEN_FDS", descriptor);
            return complain(what, result, "give stream sockets that listen");
        }
    }
    return EXIT_DONE;
}

/* How many sockets there are instead of an address; or -1, and the complaint is made. */
static int find_sockets(const struct server_options *options)
{
    int count = system_take_sockets();
    if (count < 0) {
        fprintf(stderr, "gori: LISTEN_FDS is not a number of open descriptors from %d on\n",
                SYSTEM_SOCKETS_FIRST);
    } else if (count > 0 && gori_addr_family(&options->listen) != GORI_ADDR_NONE) {
        fprintf(stderr, "gori: LISTEN_FDS says where to listen already; leave --listen out\n");
        count = -1;
    }
    return count;
}

static int listen_and_run(struct gori_runtime *runtime, const struct server_options *options,
                          struct gori_listener_config *listener)
{
    int sockets = find_sockets(options);
    if (sockets < 0) {
        return EXIT_USAGE;
    }
    listener->accept_policy = options->accept_policy;
    int code =
        sockets > 0 ? take_over(runtime, sockets, listener) : listen_at(runtime, options, listener);
    if (code != EXIT_DONE) {
        return code;
    }
    int result = gori_runtime_run(runtime);
    return result < 0 ? complain("serve", result, "'gori doctor' says what this machine gives")
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
    config->on_ready = tell_addresses;
    struct gori_runtime *runtime;
    int result = gori_runtime_create(config, &runtime);
    if (result == GORI_EINVAL) {
        fprintf(stderr, "gori: --workers is at most 255; give a smaller number, or none\n");
        return EXIT_USAGE;
    }
    if (result < 0) {
        return complain("start", result, "'gori doctor' says what this machine gives");
    }
    code = listen_and_run(runtime, options, listener);
    system_ignore_stops();
    gori_runtime_destroy(runtime);
    return code;
}
