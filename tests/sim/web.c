/* SPDX-License-Identifier: MIT */
/*
 * The scenario "web": the whole web server, with real files, and clients that pipeline requests and
 * check every response.
 *
 * What must hold, whatever happens: responses come in the order of the requests, with the right
 * status, length and bytes.  When nothing was cut (struct web.is_gentle) all of them come, then the
 * end.
 */
#include <gori/error.h>
#include <gori/timer.h>
#include <gori/web/server.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "lib/system.h"
#include "os/os.h"
#include "sim/run.h"

#define CLIENTS_MAX  10
#define REQUESTS_MAX 8
#define TEXT_BYTES   4096
#define HEAD_BYTES   2048
#define FILES        5

#define MODIFIED_SECONDS 1600000000 /* of every file, so that each run answers the same */

/* File n, "/fn", has these many bytes of the stream n; the last two are too large for the cache. */
static const uint32_t file_sizes[FILES] = {0, 1, 300, 3000, 20000};

/* What a client waits for. */
struct answer {
    int status;
    bool has_body;
    bool is_file; /* the body is `size` bytes of a file */
    uint32_t file;
    uint32_t first;
    uint32_t size;
};

struct web_client {
    struct web *web;
    struct sim_loop *on;
    struct gori_session *session;
    struct gori_timer timer; /* connects, sends more, resumes */
    uint32_t number;
    char text[TEXT_BYTES]; /* of all requests */
    size_t size;
    size_t sent;
    struct answer answers[REQUESTS_MAX];
    uint32_t count;
    uint32_t answered;
    char head[HEAD_BYTES];
    size_t head_size;
    bool in_body;
    uint64_t body_left;
    uint64_t body_at;
    bool leaves; /* closes before it has everything */
    bool is_ended;
    bool is_opened;
    bool is_done;
};

struct web {
    struct sim_run run;
    struct gori_web_server *server;
    struct gori_listener *listener;
    struct gori_addr addr;
    bool is_gentle;
    bool is_stopping;
    bool listener_closed;
    uint32_t client_count;
    uint32_t done_count;
    uint64_t requests; /* that the server says it has answered */
    struct web_client clients[CLIENTS_MAX];
};

static struct web web_run;

/* Files ------------------------------------------------------------------------------------ */

static bool is_made(const char *folder, const char *name, size_t size)
{
    struct gori_file_info info;
    int root;
    int error = gi_os_open_root(folder, &root);
    GI_ASSERT(error == 0);
    error = gi_os_stat_beneath(root, name, &info);
    gi_os_close_file(root);
    return error == 0 && info.size == size && info.modified_s == MODIFIED_SECONDS;
}

/* Writes one file, with a time that is always the same, unless it is there. */
static void make_file(const char *folder, uint32_t number)
{
    static uint8_t bytes[20000];
    char name[16];
    char early[40];
    char paths[2][700];
    snprintf(name, sizeof(name), "f%u", number);
    if (is_made(folder, name, file_sizes[number])) {
        return;
    }
    snprintf(early, sizeof(early), "%s.%" PRIx64, name, gi_os_entropy());
    snprintf(paths[0], sizeof(paths[0]), "%s/%s", folder, early);
    snprintf(paths[1], sizeof(paths[1]), "%s/%s", folder, name);
    sim_stream_fill(number, 0, bytes, file_sizes[number]);
    gt_write_file(folder, early, bytes, file_sizes[number]);
    gt_set_modified(paths[0], MODIFIED_SECONDS);
    gt_rename(paths[0], paths[1]);
}

/* The folder that is served, beside this program: the same files, and inodes, in every run. */
static const char *site(void)
{
    static char folder[GT_PROGRAM_BYTES + 8];
    if (folder[0] == '\0') {
        char program[GT_PROGRAM_BYTES];
        gt_program_path(program);
        snprintf(folder, sizeof(folder), "%s-site", program);
        gt_make_directory_if_missing(folder);
        for (uint32_t i = 0; i < FILES; i++) {
            make_file(folder, i);
        }
    }
    return folder;
}

/* Requests --------------------------------------------------------------------------------- */

static void add_text(struct web_client *client, const char *text)
{
    size_t size = strlen(text);
    SIM_CHECK(&client->web->run, client->size + size <= TEXT_BYTES);
    memcpy(client->text + client->size, text, size);
    client->size += size;
}

static void add_request(struct web_client *client, const char *method, uint32_t file,
                        const char *more)
{
    char text[300];
    snprintf(text, sizeof(text), "%s /f%u HTTP/1.1\r\nHost: sim\r\n%s\r\n", method, file, more);
    add_text(client, text);
}

static void expect(struct web_client *client, struct answer answer)
{
    client->answers[client->count++] = answer;
}

static void add_range(struct web_client *client, uint32_t file)
{
    char text[100];
    uint32_t first = sim_below(&client->web->run, file_sizes[file]);
    uint32_t last = first + sim_below(&client->web->run, file_sizes[file] - first);
    snprintf(text, sizeof(text), "Range: bytes=%u-%u\r\n", first, last);
    add_request(client, "GET", file, text);
    expect(client, (struct answer){206, true, true, file, first, last - first + 1});
}

static void add_random_request(struct web_client *client)
{
    struct sim_run *run = &client->web->run;
    uint32_t file = sim_below(run, FILES);
    uint32_t size = file_sizes[file];
    switch (sim_below(run, 6)) {
    case 0:
        add_request(client, "HEAD", file, "");
        expect(client, (struct answer){200, false, true, file, 0, size});
        break;
    case 1:
        add_range(client, 1 + sim_below(run, FILES - 1)); /* not of the empty one */
        break;
    case 2:
        add_request(client, "GET", file, "If-Modified-Since: Fri, 01 Jan 2021 00:00:00 GMT\r\n");
        expect(client, (struct answer){304, false, false, file, 0, 0});
        break;
    case 3:
        add_request(client, "GET", 99, "");
        expect(client, (struct answer){404, true, false, 0, 0, 0});
        break;
    default:
        add_request(client, "GET", file, "");
        expect(client, (struct answer){200, true, true, file, 0, size});
        break;
    }
}

static void add_last_request(struct web_client *client)
{
    if (sim_once_in(&client->web->run, 4)) {
        add_text(client, "GET /f1 HTTP/1.1\r\nHost sim\r\n\r\n");
        expect(client, (struct answer){400, true, false, 0, 0, 0});
        return;
    }
    add_request(client, "GET", 3, "Connection: close\r\n");
    expect(client, (struct answer){200, true, true, 3, 0, file_sizes[3]});
}

/* Responses -------------------------------------------------------------------------------- */

static uint64_t length_of(const char *head)
{
    const char *line = strstr(head, "\r\nContent-Length: ");
    return line != NULL ? strtoull(line + sizeof("\r\nContent-Length: ") - 1, NULL, 10) : 0;
}

static void answer_is_complete(struct web_client *client)
{
    client->in_body = false;
    client->head_size = 0;
    client->answered++;
}

/* The head is complete: is it the one that has to come? */
static void check_head(struct web_client *client)
{
    struct sim_run *run = &client->web->run;
    struct answer *answer = &client->answers[client->answered];
    client->head[client->head_size] = '\0';
    SIM_CHECK(run, strncmp(client->head, "HTTP/1.1 ", 9) == 0);
    long status = strtol(client->head + 9, NULL, 10);
    if (status == 408 && !client->web->is_gentle) {
        /* We were too slow: it is the last answer, instead of the one that we wait for. */
        *answer = (struct answer){408, true, false, 0, 0, 0};
        client->count = client->answered + 1;
    } else if (status == 503 && !client->web->is_gentle) {
        *answer = (struct answer){503, answer->has_body || answer->status == 304, false, 0, 0, 0};
    }
    SIM_CHECK(run, status == answer->status);
    uint64_t length = length_of(client->head);
    SIM_CHECK(run, !answer->is_file || length == answer->size);
    client->body_left = answer->has_body ? length : 0;
    client->body_at = answer->first;
    client->in_body = true;
    if (client->body_left == 0) {
        answer_is_complete(client);
    }
}

static size_t take_head(struct web_client *client, struct gori_slice bytes)
{
    struct sim_run *run = &client->web->run;
    SIM_CHECK(run, client->answered < client->count);
    for (size_t i = 0; i < bytes.size; i++) {
        SIM_CHECK(run, client->head_size < HEAD_BYTES - 1);
        client->head[client->head_size++] = (char)bytes.data[i];
        if (client->head_size >= 4 &&
            memcmp(client->head + client->head_size - 4, "\r\n\r\n", 4) == 0) {
            check_head(client);
            return i + 1;
        }
    }
    return bytes.size;
}

static size_t take_body(struct web_client *client, struct gori_slice bytes)
{
    const struct answer *answer = &client->answers[client->answered];
    size_t size = (size_t)gi_min_u64(bytes.size, client->body_left);
    SIM_CHECK(&client->web->run,
              !answer->is_file ||
                  sim_stream_matches(answer->file, client->body_at, bytes.data, size));
    client->body_at += size;
    client->body_left -= size;
    if (client->body_left == 0) {
        answer_is_complete(client);
    }
    return size;
}

/* Clients ---------------------------------------------------------------------------------- */

static struct web_client *client_of(struct gori_session *session)
{
    struct web_client *client = gori_session_user(session);
    SIM_CHECK(&client->web->run, client->session == session && !client->is_done);
    return client;
}

static void again(struct web_client *client)
{
    gori_time delay = gi_random_below(&client->web->run.random, 3 * GORI_MILLISECONDS);
    gori_timer_start(client->on->loop, &client->timer, delay);
}

static void client_done(struct web_client *client)
{
    SIM_CHECK(&client->web->run, !client->is_done);
    client->is_done = true;
    client->web->done_count++;
    gori_timer_stop(&client->timer);
}

static void send_more(struct web_client *client)
{
    struct sim_run *run = &client->web->run;
    if (client->sent == client->size) {
        return;
    }
    size_t size = 1 + sim_below(run, (uint32_t)(client->size - client->sent));
    int status = gori_session_send(client->session, client->text + client->sent, size);
    if (status < 0) {
        gori_session_close(client->session);
        return;
    }
    client->sent += size;
    if (client->leaves && sim_once_in(run, 3)) {
        gori_session_close(client->session);
        return;
    }
    again(client);
}

static void on_open(struct gori_session *session)
{
    struct web_client *client = client_of(session);
    client->is_opened = true;
    send_more(client);
}

static size_t on_recv(struct gori_session *session, struct gori_slice bytes)
{
    struct web_client *client = client_of(session);
    struct gori_slice rest = bytes;
    while (rest.size > 0) {
        size_t size = client->in_body ? take_body(client, rest) : take_head(client, rest);
        rest.data += size;
        rest.size -= size;
    }
    if (sim_once_in(&client->web->run, 6)) {
        gori_session_pause(session);
        again(client);
    }
    return bytes.size;
}

static void on_eof(struct gori_session *session)
{
    struct web_client *client = client_of(session);
    client->is_ended = true;
    gori_session_close(session);
}

static void on_close(struct gori_session *session, enum gori_close_reason reason, int error)
{
    struct web_client *client = client_of(session);
    struct web *web = client->web;
    (void)error;
    bool must_have_all = web->is_gentle && !web->is_stopping && !client->leaves &&
                         client->is_opened && reason != GORI_CLOSE_SHUTDOWN;
    SIM_CHECK(&web->run, !must_have_all || (client->is_ended && client->answered == client->count));
    client_done(client);
}

static const struct gori_session_events client_events = {
    .on_open = on_open, .on_recv = on_recv, .on_eof = on_eof, .on_close = on_close};

static void on_timer(struct gori_timer *timer)
{
    struct web_client *client = gori_container_of(timer, struct web_client, timer);
    if (client->session != NULL) {
        gori_session_resume(client->session);
        if (client->is_opened) {
            send_more(client);
        }
        return;
    }
    struct gori_session_options options = {.idle_timeout =
                                               client->web->is_gentle ? 0 : 20 * GORI_SECONDS};
    if (gori_session_connect(client->on->loop, &client->web->addr, &client_events, &options, client,
                             &client->session) < 0) {
        client_done(client);
    }
}

static void client_init(struct web *web, uint32_t number)
{
    struct sim_run *run = &web->run;
    struct web_client *client = &web->clients[number];
    uint32_t loop = run->loop_count == 1 ? 0 : 1 + sim_below(run, run->loop_count - 1);
    client->web = web;
    client->number = number;
    client->on = &run->loops[loop];
    client->timer.on_expire = on_timer;
    client->leaves = sim_once_in(run, 6);
    for (uint32_t i = sim_below(run, REQUESTS_MAX); i > 0; i--) {
        add_random_request(client);
    }
    add_last_request(client);
    again(client);
}

/* The run ---------------------------------------------------------------------------------- */

static gori_time wall_clock(void *user)
{
    (void)user;
    return 1700000000 * GORI_SECONDS;
}

static void on_listener_close(struct gori_listener *listener)
{
    (void)listener;
    web_run.listener_closed = true;
}

static int open_server(struct web *web)
{
    struct gori_web_config config = {.allocator = &web->run.memory.allocator,
                                     .root = site(),
                                     .wall_clock = wall_clock,
                                     .cache_file_bytes = 1000,
                                     .cache_files = 1 + sim_below(&web->run, 8),
                                     .cache_open_files = 1 + sim_below(&web->run, 3)};
    config.idle_timeout = web->is_gentle ? 10000 * GORI_SECONDS : 10 * GORI_SECONDS;
    config.header_timeout = web->is_gentle ? 10000 * GORI_SECONDS : GORI_SECONDS;
    int status = gori_web_server_create(web->run.loops[0].loop, &config, &web->server);
    if (status < 0) {
        return status;
    }
    struct gori_listener_config listener = {.addr = web->addr, .on_close = on_listener_close};
    listener.options.drain_timeout = web->is_gentle ? 10000 * GORI_SECONDS : 0;
    gori_web_server_listen_config(web->server, &listener);
    return gori_listener_open(web->run.loops[0].loop, &listener, &web->listener);
}

static void add_loops(struct web *web)
{
    uint32_t count = 1 + sim_below(&web->run, 3);
    for (uint32_t i = 0; i < count; i++) {
        struct gori_loop_config config = {
            .buffer_bytes = 512U << sim_below(&web->run, 4),
            .buffers_max = count == 1 ? 400 : 1 + sim_below(&web->run, 40),
            .completions_max = 1 + sim_below(&web->run, 64),
        };
        struct sim_loop *loop;
        int status = sim_run_add_loop(&web->run, &config, &loop);
        SIM_CHECK(&web->run, status == 0);
    }
}

static bool clients_are_done(void *user)
{
    struct web *web = user;
    return web->done_count == web->client_count;
}

static bool enough_steps(void *user)
{
    struct web *web = user;
    return clients_are_done(web) || sim_once_in(&web->run, 200);
}

static bool server_is_done(void *user)
{
    struct web *web = user;
    struct gori_web_stats stats;
    gori_web_server_stats(web->server, &stats);
    return web->listener_closed && stats.connections_now == 0 && clients_are_done(web);
}

static uint64_t play_web(uint64_t seed)
{
    struct web *web = &web_run;
    struct sim_run *run = &web->run;
    memset(web, 0, sizeof(*web));
    sim_run_begin(run, seed);
    const struct gi_sim_faults *faults = &run->config.faults;
    web->client_count = 1 + sim_below(run, CLIENTS_MAX);
    add_loops(web);
    web->is_gentle = !sim_run_arm(run) && faults->reset == 0 && faults->submit_error == 0;
    int status = gori_addr_parse("127.0.0.1:80", &web->addr);
    SIM_CHECK(run, status == 0);
    if (open_server(web) < 0) {
        gori_web_server_destroy(web->server);
        return sim_run_end(run); /* no descriptor for it: a fault */
    }
    for (uint32_t i = 0; i < web->client_count; i++) {
        client_init(web, i);
    }
    if (sim_once_in(run, 4)) {
        sim_run_until(run, enough_steps, web);
    } else {
        sim_run_until(run, clients_are_done, web);
    }
    web->is_stopping = true;
    gori_web_server_stop(web->server);
    gori_listener_close(web->listener);
    if (sim_once_in(run, 4)) {
        gori_loop_turn(run->loops[0].loop, 0) < 0 ? SIM_CHECK(run, false) : (void)0;
    } else {
        sim_run_until(run, server_is_done, web);
    }
    gori_web_server_destroy(web->server);
    return sim_run_end(run);
}

const struct sim_scenario sim_web = {.name = "web", .seeds = 300, .play = play_web};
