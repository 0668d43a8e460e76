/* SPDX-License-Identifier: MIT */
/*
 * The scenario of the sweeps.  Contract: scenario.h.
 */
#include "fault/scenario.h"

#include <gori/block.h>
#include <gori/error.h>
#include <gori/file.h>
#include <gori/listener.h>
#include <gori/loop.h>
#include <gori/session.h>
#include <string.h>

#include "base/compiler.h"
#include "engine/sim/sim.h"
#include "lib/system.h"
#include "lib/test.h"

#define STREAM_BYTES   9000 /* that a client sends */
#define GREETING_BYTES 3000 /* of a file, that the server sends first */
#define CALM_TURNS     40   /* of the failing part, before it is declared over */

struct client {
    struct gori_session *session;
    size_t sent;
    size_t received;
    bool is_done;
    bool is_complete;
};

struct play {
    const char *engine;
    const struct gori_allocator *allocator;
    struct gi_sim *sim;
    struct gori_loop *loop;
    struct gori_listener *listener;
    struct gori_root *root;
    struct gori_file *file;
    uint8_t stream[STREAM_BYTES];
    uint8_t greeting[GREETING_BYTES];
    uint32_t served; /* server sessions that are open */
    bool listener_is_closed;
};

/* The greeting is the beginning of a file that is always there: this program. */
static void read_greeting(struct play *play)
{
    char path[GT_PROGRAM_BYTES];
    gt_program_path(path);
    FILE *stream = fopen(path, "rb");
    GT_CHECK(stream != NULL);
    GT_EQUAL(fread(play->greeting, 1, GREETING_BYTES, stream), GREETING_BYTES);
    fclose(stream);
}

static int open_greeting(struct play *play)
{
    char path[GT_PROGRAM_BYTES];
    gt_program_path(path);
    char *name = strrchr(path, '/');
    *name++ = '\0';
    int status = gori_root_open(play->allocator, path, &play->root);
    return status < 0 ? status : gori_root_open_file(play->root, name, &play->file);
}

/* The server */

static struct play *play_of(struct gori_session *session)
{
    return gori_session_user(session);
}

static void on_served_open(struct gori_session *session)
{
    struct play *play = play_of(session);
    play->served++;
    if (gori_session_send_file(session, play->file, 0, GREETING_BYTES) < 0) {
        gori_session_close(session);
    }
}

/* Leaves the last bytes of every second view, so that messages are joined, and sends by turns. */
static size_t on_served_recv(struct gori_session *session, struct gori_slice bytes)
{
    struct play *play = play_of(session);
    unsigned *count = gori_session_context(session);
    size_t size = *count % 2 == 0 && bytes.size > 1 ? bytes.size / 2 : bytes.size;
    struct gori_buffer *buffer = *count % 4 == 1 ? gori_session_retain(session) : NULL;
    struct gori_block *block = NULL;
    int status;
    if (size < bytes.size) {
        gori_session_pause(session);
        gori_session_resume(session);
    }
    if (buffer != NULL) {
        status = gori_session_send_buffer(session, buffer, (struct gori_slice){bytes.data, size});
        gori_buffer_release(buffer);
    } else if (*count % 4 == 2) {
        status = gori_block_create(play->allocator, bytes.data, size, &block);
        status = status < 0 ? status : gori_session_send_block(session, block);
        gori_block_unref(block);
    } else {
        status = gori_session_send(session, bytes.data, size);
    }
    *count += 1;
    if (status < 0) {
        gori_session_close(session);
    }
    return size;
}

static void on_served_close(struct gori_session *session, enum gori_close_reason reason, int error)
{
    (void)error;
    GT_CHECK(reason != GORI_CLOSE_TIMEOUT);
    play_of(session)->served--;
}

static const struct gori_session_events served_events = {
    .on_open = on_served_open, .on_recv = on_served_recv, .on_close = on_served_close};

static void on_listener_close(struct gori_listener *listener)
{
    struct play *play = gori_listener_user(listener);
    play->listener_is_closed = true;
}

static int open_listener(struct play *play)
{
    struct gori_listener_config config = {.events = &served_events,
                                          .options.context_bytes = sizeof(unsigned),
                                          .options.drain_timeout = 50 * GORI_MILLISECONDS,
                                          .user = play,
                                          .on_close = on_listener_close};
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &config.addr), 0);
    return gori_listener_open(play->loop, &config, &play->listener);
}

/* The clients */

struct client_context {
    struct client *client;
    struct play *play;
};

static void client_send(struct client_context *context)
{
    struct client *client = context->client;
    while (client->sent < STREAM_BYTES) {
        size_t size = gi_min_size(STREAM_BYTES - client->sent, 2500);
        int status = gori_session_send(client->session, context->play->stream + client->sent, size);
        if (status < 0) {
            gori_session_close(client->session);
            return;
        }
        client->sent += size;
    }
    gori_session_shutdown(client->session);
}

static void on_client_open(struct gori_session *session)
{
    client_send(gori_session_user(session));
}

static size_t on_client_recv(struct gori_session *session, struct gori_slice bytes)
{
    struct client_context *context = gori_session_user(session);
    struct client *client = context->client;
    GT_CHECK(client->received + bytes.size <= GREETING_BYTES + STREAM_BYTES);
    for (size_t i = 0; i < bytes.size; i++) {
        size_t at = client->received + i;
        GT_EQUAL(bytes.data[i], at < GREETING_BYTES ? context->play->greeting[at]
                                                    : context->play->stream[at - GREETING_BYTES]);
    }
    client->received += bytes.size;
    return bytes.size;
}

static void on_client_eof(struct gori_session *session)
{
    struct client_context *context = gori_session_user(session);
    context->client->is_complete = context->client->received == GREETING_BYTES + STREAM_BYTES;
    gori_session_close(session);
}

static void on_client_close(struct gori_session *session, enum gori_close_reason reason, int error)
{
    struct client_context *context = gori_session_user(session);
    (void)error;
    GT_CHECK(!context->client->is_done);
    GT_CHECK(reason != GORI_CLOSE_TIMEOUT);
    context->client->is_done = true;
}

static const struct gori_session_events client_events = {.on_open = on_client_open,
                                                         .on_recv = on_client_recv,
                                                         .on_eof = on_client_eof,
                                                         .on_close = on_client_close};

static int client_connect(struct client_context *context)
{
    struct gori_addr addr;
    struct gori_session_options options = {.idle_timeout = 20 * GORI_SECONDS,
                                           .drain_timeout = 50 * GORI_MILLISECONDS};
    gori_listener_addr(context->play->listener, &addr);
    return gori_session_connect(context->play->loop, &addr, &client_events, &options, context,
                                &context->client->session);
}

/* The play */

static void turn(struct play *play, gori_time wait)
{
    GT_CHECK(gori_loop_turn(play->loop, wait) >= 0);
}

static bool are_done(const struct client *clients, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!clients[i].is_done) {
            return false;
        }
    }
    return true;
}

/* Clients while failures may happen, and when those are over, until all are done. */
static void play_clients(struct play *play, struct scenario_result *result, scenario_calm_fn *calm,
                         void *user)
{
    struct client clients[SCENARIO_CLIENTS] = {{0}};
    struct client_context contexts[SCENARIO_CLIENTS];
    for (uint32_t i = 0; i < SCENARIO_CLIENTS; i++) {
        contexts[i] = (struct client_context){&clients[i], play};
        int status = client_connect(&contexts[i]);
        if (status < 0) {
            result->error = result->error < 0 ? result->error : status;
            clients[i].is_done = true;
        }
    }
    for (uint32_t i = 0; !are_done(clients, SCENARIO_CLIENTS); i++) {
        if (i == CALM_TURNS) {
            calm(user); /* what fails for ever may keep clients from their end for ever */
        }
        turn(play, i < CALM_TURNS ? 5 * GORI_MILLISECONDS : GORI_SECONDS);
    }
    calm(user);
    for (uint32_t i = 0; i < SCENARIO_CLIENTS; i++) {
        result->completed += clients[i].is_complete;
        result->failed += !clients[i].is_complete;
    }
}

/* One more client, after all failures: it is served as if nothing had been. */
static void play_afterwards(struct play *play)
{
    struct client client = {0};
    struct client_context context = {&client, play};
    GT_EQUAL(client_connect(&context), 0);
    while (!client.is_done) {
        turn(play, GORI_SECONDS);
    }
    GT_CHECK(client.is_complete);
    gori_listener_close(play->listener);
    while (!play->listener_is_closed || play->served > 0) {
        turn(play, GORI_SECONDS);
    }
}

static int create_loop(struct play *play)
{
    struct gori_loop_config config = {.allocator = play->allocator,
                                      .engine = play->engine,
                                      .buffer_bytes = 1024,
                                      .buffers_max = 64,
                                      .simulation = play->sim};
    return gori_loop_create(&config, &play->loop);
}

struct scenario_result scenario_play(const char *engine, struct gi_fault_alloc *memory,
                                     scenario_calm_fn *calm, void *user)
{
    static struct play play;
    struct scenario_result result = {0};
    play = (struct play){.engine = engine, .allocator = &memory->allocator};
    read_greeting(&play);
    for (size_t i = 0; i < STREAM_BYTES; i++) {
        play.stream[i] = (uint8_t)(i * 7 + i / 256);
    }
    if (strcmp(engine, "sim") == 0) {
        struct gi_sim_config config = {.completions_max = 64};
        GT_EQUAL(gi_sim_create(gori_allocator_default(), &config, &play.sim), 0);
    }
    result.error = create_loop(&play);
    result.error = result.error < 0 ? result.error : open_greeting(&play);
    result.error = result.error < 0 ? result.error : open_listener(&play);
    if (result.error == 0) {
        play_clients(&play, &result, calm, user);
        play_afterwards(&play);
    }
    calm(user);
    gori_file_unref(play.file);
    gori_root_close(play.root);
    gori_loop_destroy(play.loop);
    gi_sim_destroy(play.sim);
    GT_EQUAL(gi_fault_alloc_live_blocks(memory), 0);
    return result;
}
