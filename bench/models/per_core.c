/* SPDX-License-Identifier: MIT */
/*
 * model_per_core: every worker has a loop, a listener and sessions of its own, and shares nothing.
 * The model of gori.
 */
#include "model.h"
#include "plain_map.h"

struct core {
    int poller;
    int listener;
    uint64_t last_id;
    struct plain_map map;
    char buffer[BUFFER_BYTES];
};

static void open_session(struct core *core)
{
    int fd = model_accept(core->listener);
    if (fd < 0) {
        return;
    }
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        bench_die("calloc", ENOMEM);
    }
    session->id = ++core->last_id;
    session->fd = fd;
    plain_map_insert(&core->map, session);
    model_watch(core->poller, fd, session->id, EPOLLIN | EPOLLET);
}

static void handle(struct core *core, uint64_t id)
{
    struct session *session = plain_map_get(&core->map, id);
    if (session != NULL && !model_answer(session, core->buffer)) {
        plain_map_remove(&core->map, id);
        (void)close(session->fd);
        free(session);
    }
}

static void serve(int listener)
{
    struct epoll_event events[EVENTS_MAX];
    struct core *core = calloc(1, sizeof *core);
    if (core == NULL) {
        bench_die("calloc", ENOMEM);
    }
    core->listener = listener;
    core->poller = model_poller();
    model_watch(core->poller, listener, MODEL_LISTENER, EPOLLIN);
    for (;;) {
        int count = epoll_wait(core->poller, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 == MODEL_LISTENER) {
                open_session(core);
            } else {
                handle(core, events[i].data.u64);
            }
        }
    }
}

int main(int argc, char **argv)
{
    return bench_server_main(argc, argv, serve);
}
