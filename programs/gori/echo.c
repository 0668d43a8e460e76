/* SPDX-License-Identifier: MIT */
/*
 * gori echo: sends back what it gets.  A slow reader is not read from until it has caught up.
 */
#include <gori/session.h>
#include <stdio.h>

#include "command.h"

static size_t echo(struct gori_session *session, struct gori_slice bytes)
{
    if (gori_session_send(session, bytes.data, bytes.size) == GORI_SEND_HIGH) {
        gori_session_pause(session);
    }
    return bytes.size;
}

static const struct gori_session_events events = {
    .on_recv = echo,
    .on_drain = gori_session_resume,
};

int command_echo(int argc, char **argv)
{
    struct server_options server = server_options_default("127.0.0.1:7007");
    gori_time idle_timeout = 0;
    const struct command command = {
        .name = "echo",
        .summary = "a server that sends back what it gets",
        .examples = "  gori echo\n"
                    "  gori echo --listen '*:7007' --workers 2 --idle-timeout 60\n"
                    "  gori echo --listen unix:/tmp/echo.sock --engine epoll\n",
        .options = {
            {"--listen", "ADDR:PORT", "where; port 0 lets the system choose (127.0.0.1:7007)",
             OPTION_ADDR, &server.listen},
            {"--workers", "N", "threads, each with its own loop (the CPUs it may use)",
             OPTION_COUNT, &server.workers},
            {"--accept-policy", "NAME", "kernel, least-connections, round-robin or single (kernel)",
             OPTION_POLICY, &server.accept_policy},
            {"--engine", "NAME", "auto, or one that 'gori doctor' lists (auto)", OPTION_ENGINE,
             &server.engine},
            {"--idle-timeout", "S", "seconds without a byte before a close (none)", OPTION_SECONDS,
             &idle_timeout},
            {"--drain-timeout", "S", "seconds that a stop waits, 0: no limit (10)", OPTION_SECONDS,
             &server.drain_timeout},
        }};
    int result = command_parse(&command, argc, argv, NULL);
    if (result != PARSED) {
        return result;
    }
    struct gori_runtime_config runtime = {0};
    struct gori_listener_config listener = {.events = &events,
                                            .options = {.idle_timeout = idle_timeout}};
    return server_run(&server, &runtime, &listener);
}
