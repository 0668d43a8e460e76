/* SPDX-License-Identifier: MIT */
/*
 * gori serve: a web server for the files of a folder.  One web server for each worker; they share
 * nothing but the disk.
 */
#include <errno.h>
#include <gori/error.h>
#include <gori/file.h>
#include <gori/web/server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access_log.h"
#include "command.h"
#include "system.h"

/* Of the descriptors that the process may have, one in so many may be a file that is kept open. */
#define OPEN_FILES_SHARE 8u
#define OPEN_FILES_MAX   1024u

/* What a runtime has at most. */
#define WORKERS_MAX 255

struct worker {
    struct gori_web_server *server;
    struct access_log log;
};

struct serve {
    struct gori_web_config web;
    struct worker *workers;
    int log_descriptor; /* -1: no log */
};

/* Descriptors are for connections first. */
static uint32_t open_files(uint32_t workers)
{
    uint64_t share = system_descriptors_max() / OPEN_FILES_SHARE / workers;
    return share < 1 ? 1 : share > OPEN_FILES_MAX ? OPEN_FILES_MAX : (uint32_t)share;
}

static int start(struct gori_runtime *runtime, uint32_t index, struct gori_loop *loop)
{
    struct serve *serve = gori_runtime_user(runtime);
    struct worker *worker = &serve->workers[index];
    struct gori_web_config config = serve->web;
    if (serve->log_descriptor >= 0) {
        access_log_start(&worker->log, loop, serve->log_descriptor);
        config.on_access = access_log_write;
        config.user = &worker->log;
    }
    config.cache_open_files = open_files(gori_runtime_workers(runtime));
    return gori_web_server_create(loop, &config, &worker->server);
}

static void configure(struct gori_runtime *runtime, uint32_t index,
                      struct gori_listener_config *config)
{
    struct serve *serve = gori_runtime_user(runtime);
    gori_web_server_listen_config(serve->workers[index].server, config);
}

static void stop(struct gori_runtime *runtime, uint32_t index, struct gori_loop *loop)
{
    (void)loop;
    struct serve *serve = gori_runtime_user(runtime);
    gori_web_server_stop(serve->workers[index].server);
}

static void end(struct gori_runtime *runtime, uint32_t index, struct gori_loop *loop)
{
    (void)loop;
    struct serve *serve = gori_runtime_user(runtime);
    struct worker *worker = &serve->workers[index];
    gori_web_server_destroy(worker->server);
    worker->server = NULL;
    if (serve->log_descriptor >= 0) {
        access_log_end(&worker->log);
    }
}

/* Before anything starts: whether the folder can be served at all. */
static int check_folder(const char *folder)
{
    struct gori_root *root;
    int result = gori_root_open(NULL, folder, &root);
    if (result < 0) {
        fprintf(stderr, "gori serve: cannot serve '%s': %s; name a folder that can be read\n",
                folder, gori_error_text(result));
        return EXIT_USAGE;
    }
    gori_root_close(root);
    return EXIT_DONE;
}

static void complain_of_log(const char *name, int error)
{
    const char *why = error == ENXIO ? "nobody reads from it" : strerror(error);
    const char *remedy =
        error == ENXIO ? "start its reader first" : "name a file that can be written";
    fprintf(stderr, "gori serve: cannot open the access log '%s': %s; %s\n", name, why, remedy);
}

static int run(const struct server_options *options, struct serve *serve)
{
    struct gori_runtime_config runtime = {
        .on_start = start,
        .on_listen = configure,
        .on_stop = stop,
        .on_end = end,
        .user = serve,
    };
    struct gori_listener_config listener = {0}; /* `configure` fills it in for each worker */
    serve->workers = calloc(WORKERS_MAX, sizeof(*serve->workers));
    if (serve->workers == NULL) {
        fprintf(stderr, "gori serve: out of memory\n");
        return EXIT_FAILED;
    }
    int code = server_run(options, &runtime, &listener);
    free(serve->workers);
    return code;
}

int command_serve(int argc, char **argv)
{
    struct server_options server = server_options_default("127.0.0.1:8080");
    struct serve serve = {.web = {.cache_bytes = 64 << 20}, .log_descriptor = -1};
    struct gori_web_config *web = &serve.web;
    const char *log_name = NULL;
    uint64_t cache_file_bytes = 16 << 10;
    const struct command command = {
        .name = "serve",
        .summary = "a web server for the files of a folder",
        .operand = "DIR",
        .examples = "  gori serve .\n"
                    "  gori serve site --listen '*:8080' --workers 2 --access-log access.log\n"
                    "  gori serve site --engine epoll --idle-timeout 5 --cache-bytes 256m\n",
        .options = {
            {"--listen", "ADDR:PORT", "where; port 0 lets the system choose (127.0.0.1:8080)",
             OPTION_ADDR, &server.listen},
            {"--workers", "N", "threads, each with its own loop (the CPUs it may use)",
             OPTION_COUNT, &server.workers},
            {"--accept-policy", "NAME", "kernel, least-connections, round-robin or single (kernel)",
             OPTION_POLICY, &server.accept_policy},
            {"--engine", "NAME", "auto, or one that 'gori doctor' lists (auto)", OPTION_ENGINE,
             &server.engine},
            {"--idle-timeout", "S", "seconds without a byte before a close, 0: none (60)",
             OPTION_SECONDS, &web->idle_timeout},
            {"--header-timeout", "S", "seconds for a request to arrive, 0: no limit (10)",
             OPTION_SECONDS, &web->header_timeout},
            {"--drain-timeout", "S", "seconds that a stop waits, 0: no limit (10)", OPTION_SECONDS,
             &server.drain_timeout},
            {"--cache-bytes", "N", "memory of each worker for hot files (64m)", OPTION_BYTES,
             &web->cache_bytes},
            {"--cache-file-bytes", "N", "larger files are sent from the disk (16k)", OPTION_BYTES,
             &cache_file_bytes},
            {"--revalidate", "S", "seconds until a change of a file is seen, 0: none (1)",
             OPTION_SECONDS, &web->revalidate},
            {"--hidden", NULL, "serve names that begin with a dot", OPTION_FLAG,
             &web->hidden_files},
            {"--access-log", "FILE", "a line for each request; - is standard output (none)",
             OPTION_TEXT, &log_name},
        }};
    int result = command_parse(&command, argc, argv, &web->root);
    if (result != PARSED) {
        return result;
    }
    if (cache_file_bytes > 64 << 20) {
        fprintf(stderr, "gori serve: --cache-file-bytes is at most 64m\n");
        return EXIT_USAGE;
    }
    /* None is less than a byte; in the configuration 0 would mean the default. */
    web->cache_file_bytes = cache_file_bytes == 0 ? 1 : (uint32_t)cache_file_bytes;
    web->cache_bytes = web->cache_bytes == 0 ? 1 : web->cache_bytes;
    web->revalidate = web->revalidate == GORI_NEVER ? 1 : web->revalidate; /* 0: always ask */
    result = check_folder(web->root);
    if (result != EXIT_DONE) {
        return result;
    }
    if (log_name != NULL) {
        serve.log_descriptor = access_log_open(log_name);
        if (serve.log_descriptor < 0) {
            complain_of_log(log_name, errno);
            return EXIT_FAILED;
        }
    }
    return run(&server, &serve);
}
