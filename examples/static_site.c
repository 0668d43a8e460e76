/* SPDX-License-Identifier: MIT */
/*
 * static_site: a web server for the files of a folder, in one thread, with the loop run by hand.
 * `gori serve` does the same with many workers and more options.
 *
 *     static_site_example FOLDER [ADDR:PORT]
 */
#include <gori/error.h>
#include <gori/loop.h>
#include <gori/web/server.h>
#include <stdio.h>

static int serve(struct gori_loop *loop, struct gori_web_server *server, const char *text)
{
    struct gori_listener_config config = {0};
    struct gori_listener *listener;
    int result = gori_addr_parse(text, &config.addr);
    if (result < 0) {
        return result;
    }
    gori_web_server_listen_config(server, &config);
    result = gori_listener_open(loop, &config, &listener);
    if (result < 0) {
        return result;
    }
    struct gori_addr bound;
    char name[GORI_ADDR_TEXT_BYTES];
    gori_listener_addr(listener, &bound);
    gori_addr_format(&bound, name, sizeof(name));
    printf("listening on %s\n", name);
    fflush(stdout);
    return gori_loop_run(loop);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: static_site_example FOLDER [ADDR:PORT]\n");
        return 2;
    }
    struct gori_loop *loop;
    int result = gori_loop_create(NULL, &loop);
    if (result >= 0) {
        const struct gori_web_config config = {.root = argv[1]};
        struct gori_web_server *server;
        result = gori_web_server_create(loop, &config, &server);
        if (result >= 0) {
            result = serve(loop, server, argc > 2 ? argv[2] : "127.0.0.1:8080");
            gori_web_server_destroy(server);
        }
        gori_loop_destroy(loop);
    }
    if (result < 0) {
        fprintf(stderr, "static_site: %s\n", gori_error_text(result));
    }
    return result < 0;
}
