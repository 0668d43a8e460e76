/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the web server share: a folder with files, a server for it on a loop on an
 * engine of choice, and a fixed series of requests whose answers are looked at.
 * Not for anything but tests.  Thread: one.
 */
#ifndef GT_WEB_SITE_H
#define GT_WEB_SITE_H

#include <gori/web/server.h>
#include <stdio.h>

#include "lib/session_fixture.h"
#include "lib/system.h"

#define LARGE_BYTES 100000
#define PLAY_COUNT  8

struct site {
    struct fixture f;
    struct gori_web_config config;
    struct gori_web_server *server;
    struct gori_listener *listener;
    gori_time wall; /* what the server takes for the time of day */
    char root[GT_FOLDER_BYTES];
};

static inline void write_file(const struct site *site, const char *name, size_t size)
{
    gt_write_file(site->root, name, pattern(size), size);
}

static inline gori_time wall_clock(void *user)
{
    return ((struct site *)user)->wall;
}

/** Creates the server and its listener.  Errors: those of both; nothing is left then. */
static inline int open_site(struct site *site)
{
    struct gori_listener_config listener = {.backlog = 8};
    int result = gori_web_server_create(site->f.loop, &site->config, &site->server);
    if (result < 0) {
        return result;
    }
    gori_web_server_listen_config(site->server, &listener);
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &listener.addr), 0);
    result = gori_listener_open(site->f.loop, &listener, &site->listener);
    if (result < 0) {
        gori_web_server_destroy(site->server);
        return result;
    }
    gori_listener_addr(site->listener, &site->f.addr);
    return 0;
}

/** Makes the folder and the loop; `config` may be changed before open_site. */
static inline void begin_site(struct site *site, const char *engine)
{
    const struct fixture_config fixture = {.engine = engine, .without_listener = true};
    memset(site, 0, sizeof(*site));
    gt_make_folder(site->root);
    write_file(site, "small.txt", 1000);
    write_file(site, "large.bin", LARGE_BYTES);
    begin(&site->f, &fixture);
    site->wall = 2000000000 * GORI_SECONDS;
    site->config = (struct gori_web_config){
        .allocator = &site->f.memory.allocator,
        .root = site->root,
        .wall_clock = wall_clock,
        .user = site,
    };
}

/** Ends a site whose server is destroyed, or was never made. */
static inline void end_site(struct site *site)
{
    end(&site->f);
    gt_remove_tree(site->root);
}

/** Closes the listener and the server, and ends. */
static inline void close_site(struct site *site)
{
    gori_listener_close(site->listener);
    turns(&site->f, 4);
    gori_web_server_destroy(site->server);
    turns(&site->f, 4);
    end_site(site);
}

static inline void turn_or_lack(struct site *site)
{
    int turned = gori_loop_turn(site->f.loop, 100 * GORI_MICROSECONDS);
    GT_CHECK(turned >= 0 || turned == GORI_ENOMEM);
}

/** Sends one request in two pieces and reads to the end.  Result: the status, 0 for none. */
static inline int ask(struct site *site, const char *text)
{
    struct fixture *f = &site->f;
    struct gt_peer peer;
    size_t half = strlen(text) / 2;
    int left = 4000;
    f->read_bytes = 0;
    GT_EQUAL(gt_peer_connect(&f->network, &f->addr, &peer), 0);
    while (gt_peer_connected(&peer) == GORI_EAGAIN && left-- > 0) {
        turn_or_lack(site);
    }
    bool is_sent = gt_peer_send(&peer, text, half) == (int64_t)half;
    for (int i = 0; i < 4; i++) {
        turn_or_lack(site);
    }
    is_sent = is_sent && gt_peer_send(&peer, text + half, strlen(text) - half) > 0;
    int64_t result = GORI_EAGAIN;
    while (is_sent && (result > 0 || result == GORI_EAGAIN) && left-- > 0) {
        turn_or_lack(site);
        result = peer_read(f, &peer);
    }
    GT_CHECK(left > 0);
    gt_peer_close(&peer);
    if (f->read_bytes < 12) {
        return 0;
    }
    GT_EQUAL_BYTES(f->read, 9, "HTTP/1.1 ", 9);
    return (f->read[9] - '0') * 100 + (f->read[10] - '0') * 10 + (f->read[11] - '0');
}

/** Asks for everything twice.  Result: how often, of PLAY_COUNT, it was what was asked for. */
static inline int play(struct site *site)
{
#define REST " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    static const struct {
        const char *text;
        int status;
        size_t body_bytes;
    } requests[] = {{"GET /small.txt" REST "\r\n", 200, 1000},
                    {"GET /large.bin" REST "\r\n", 200, LARGE_BYTES},
                    {"GET /none" REST "\r\n", 404, 1},
                    {"GET /small.txt" REST "Content-Length: 2\r\n\r\nab", 200, 1000}};
#undef REST
    int answered = 0;
    for (size_t i = 0; i < PLAY_COUNT; i++) {
        int status = ask(site, requests[i % 4].text);
        answered +=
            status == requests[i % 4].status && site->f.read_bytes > requests[i % 4].body_bytes;
    }
    return answered;
}

#endif
