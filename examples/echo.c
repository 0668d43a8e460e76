/* SPDX-License-Identifier: MIT */
/*
 * echo: sends back what it gets, on every CPU, until SIGTERM.  The smallest server that also treats
 * a slow reader well.
 *
 *     echo_example [ADDR:PORT]
 */
#include <gori/error.h>
#include <gori/runtime.h>
#include <stdio.h>

/* What was received is sent back.  A peer that does not read what we send is not read from. */
static size_t echo(struct gori_session *session, struct gori_slice bytes)
{
    int sent = gori_session_send(session, bytes.data, bytes.size);
    if (sent == GORI_SEND_HIGH) {
        gori_session_pause(session); /* until on_drain */
    }
    return bytes.size; /* how much was consumed: all of it */
}

static const struct gori_session_events events = {
    .on_recv = echo,
    .on_drain = gori_session_resume,
};

static int serve(struct gori_runtime *runtime, const char *text)
{
    struct gori_listener_config listener = {.events = &events};
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
    struct gori_runtime_config config = {.handle_signals = true};
    struct gori_runtime *runtime;
    int result = gori_runtime_create(&config, &runtime);
    if (result >= 0) {
        result = serve(runtime, argc > 1 ? argv[1] : "127.0.0.1:7007");
        gori_runtime_destroy(runtime);
    }
    if (result < 0) {
        fprintf(stderr, "echo: %s\n", gori_error_text(result));
    }
    return result < 0;
}
