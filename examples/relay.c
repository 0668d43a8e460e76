/* SPDX-License-Identifier: MIT */
/*
 * relay: connects everybody who comes to one other server, and passes bytes both ways.  Each end of
 * the stream passes on its own; a slow reader slows its writer; bytes are not copied where they
 * come in one piece.
 *
 *     relay_example TARGET_ADDR:PORT [ADDR:PORT]
 */
#include <gori/error.h>
#include <gori/op.h>
#include <gori/runtime.h>
#include <stdio.h>

/* Comes with each session, of either side. */
struct half {
    struct gori_session *other; /* NULL once it is closed */
};

static struct gori_session *other_of(struct gori_session *session)
{
    struct half *half = gori_session_context(session);
    return half->other;
}

static size_t pass(struct gori_session *session, struct gori_slice bytes)
{
    struct gori_session *other = other_of(session);
    if (other == NULL) {
        return bytes.size;
    }
    int result;
    struct gori_buffer *buffer = gori_session_retain(session);
    if (buffer != NULL) {
        result = gori_session_send_buffer(other, buffer, bytes);
        gori_buffer_release(buffer);
    } else {
        result = gori_session_send(other, bytes.data, bytes.size); /* joined of several pieces */
    }
    if (result == GORI_SEND_HIGH) {
        gori_session_pause(session);
    } else if (result < 0) {
        gori_session_close(session);
    }
    return bytes.size;
}

static void pass_end(struct gori_session *session)
{
    if (other_of(session) != NULL) {
        gori_session_shutdown(other_of(session));
    }
}

static void drained(struct gori_session *session)
{
    if (other_of(session) != NULL) {
        gori_session_resume(other_of(session));
    }
}

/* One side is gone: the other gets what is still queued for it, or the reset as well. */
static void closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    (void)error;
    struct gori_session *other = other_of(session);
    if (other == NULL) {
        return;
    }
    struct half *half = gori_session_context(other);
    half->other = NULL;
    if (reason == GORI_CLOSE_RESET || reason == GORI_CLOSE_CONNECT) {
        gori_session_reset(other);
    } else {
        gori_session_close_after_flush(other);
    }
}

/* The target has accepted: now the client's bytes have where to go. */
static void connected(struct gori_session *session)
{
    drained(session);
}

static void accepted(struct gori_session *client)
{
    static const struct gori_session_events events = {
        .on_open = connected,
        .on_recv = pass,
        .on_eof = pass_end,
        .on_drain = drained,
        .on_close = closed,
    };
    const struct gori_session_options options = {.context_bytes = sizeof(struct half)};
    struct gori_session *upstream;
    if (gori_session_connect(gori_session_loop(client), gori_session_user(client), &events,
                             &options, NULL, &upstream) < 0) {
        gori_session_reset(client);
        return;
    }
    struct half *client_half = gori_session_context(client);
    struct half *upstream_half = gori_session_context(upstream);
    client_half->other = upstream;
    upstream_half->other = client;
    gori_session_pause(client);
}

static int serve(struct gori_runtime *runtime, struct gori_addr *target, const char *text)
{
    static const struct gori_session_events events = {
        .on_open = accepted,
        .on_recv = pass,
        .on_eof = pass_end,
        .on_drain = drained,
        .on_close = closed,
    };
    struct gori_listener_config listener = {
        .events = &events,
        .options = {.context_bytes = sizeof(struct half)},
        .user = target,
    };
    int result = gori_addr_parse(text, &listener.addr);
    if (result < 0) {
        return result;
    }
    struct gori_addr bound;
    result = gori_runtime_listen(runtime, &listener, &bound);
    if (result < 0) {
        return result;
    }
    char name[GORI_ADDR_TEXT_BYTES];
    gori_addr_format(&bound, name, sizeof(name));
    printf("listening on %s\n", name);
    fflush(stdout);
    return gori_runtime_run(runtime);
}

int main(int argc, char **argv)
{
    struct gori_addr target;
    if (argc < 2 || gori_addr_parse(argv[1], &target) < 0) {
        fprintf(stderr, "usage: relay_example TARGET_ADDR:PORT [ADDR:PORT]\n");
        return 2;
    }
    const struct gori_runtime_config config = {.handle_signals = true};
    struct gori_runtime *runtime;
    int result = gori_runtime_create(&config, &runtime);
    if (result >= 0) {
        result = serve(runtime, &target, argc > 2 ? argv[2] : "127.0.0.1:7020");
        gori_runtime_destroy(runtime);
    }
    if (result < 0) {
        fprintf(stderr, "relay: %s\n", gori_error_text(result));
    }
    return result < 0;
}
