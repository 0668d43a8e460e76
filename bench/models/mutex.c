/* SPDX-License-Identifier: MIT */
/*
 * model_mutex: one loop that all workers run, as with several threads in one asio io_context.  A
 * mutex guards its queue of events and its map of sessions.  One worker at a time waits in epoll;
 * the others take events from the queue, or wait for some.  A session is handled by one worker at a
 * time; an event that comes meanwhile makes that worker look again.
 */
#include "model.h"
#include "plain_map.h"

#include <pthread.h>

enum { QUEUE_SLOTS = 1 << 16 };

struct shared_session {
    struct session base;
    bool busy;
    bool again;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t has_work;
    int poller;
    bool polled; /* somebody waits in epoll */
    uint32_t sleepers;
    uint64_t last_id;
    uint32_t head;
    uint32_t tail;
    uint64_t queue[QUEUE_SLOTS];
    struct plain_map map;
} loop = {.mutex = PTHREAD_MUTEX_INITIALIZER, .has_work = PTHREAD_COND_INITIALIZER, .poller = -1};

/* Under the mutex, as all until `serve`, but for the waiting itself. */
static void poll_events(void)
{
    struct epoll_event events[EVENTS_MAX];
    loop.polled = true;
    pthread_mutex_unlock(&loop.mutex);
    int count = epoll_wait(loop.poller, events, EVENTS_MAX, -1);
    pthread_mutex_lock(&loop.mutex);
    loop.polled = false;
    for (int i = 0; i < count; i++) {
        if (loop.tail - loop.head == QUEUE_SLOTS) {
            bench_die("more events than the queue holds", ENOBUFS);
        }
        loop.queue[loop.tail++ % QUEUE_SLOTS] = events[i].data.u64;
    }
}

static uint64_t next_event(void)
{
    while (loop.head == loop.tail) {
        if (!loop.polled) {
            poll_events();
        } else {
            loop.sleepers++;
            pthread_cond_wait(&loop.has_work, &loop.mutex);
            loop.sleepers--;
        }
    }
    uint64_t event = loop.queue[loop.head++ % QUEUE_SLOTS];
    /* Another one for the rest of the queue; or to wait in epoll while this one works. */
    if (loop.sleepers > 0 && (loop.head != loop.tail || !loop.polled)) {
        pthread_cond_signal(&loop.has_work);
    }
    return event;
}

static struct shared_session *begin(uint64_t id)
{
    struct shared_session *session = (struct shared_session *)plain_map_get(&loop.map, id);
    if (session == NULL) {
        return NULL;
    }
    if (session->busy) {
        session->again = true;
        return NULL;
    }
    session->busy = true;
    return session;
}

static void finish(struct shared_session *session, bool goes_on)
{
    if (!goes_on) {
        plain_map_remove(&loop.map, session->base.id);
        (void)close(session->base.fd);
        free(session);
        return;
    }
    session->busy = false;
    if (session->again) {
        session->again = false;
        loop.queue[loop.tail++ % QUEUE_SLOTS] = session->base.id;
    }
}

static void open_session(int listener)
{
    int fd = model_accept(listener);
    if (fd < 0) {
        return;
    }
    struct shared_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        bench_die("calloc", ENOMEM);
    }
    session->base.id = ++loop.last_id;
    session->base.fd = fd;
    plain_map_insert(&loop.map, &session->base);
    model_watch(loop.poller, fd, session->base.id, EPOLLIN | EPOLLET);
}

static void serve(int listener)
{
    static _Thread_local char buffer[BUFFER_BYTES];
    pthread_mutex_lock(&loop.mutex);
    if (loop.poller < 0) {
        loop.poller = model_poller();
    }
    model_watch(loop.poller, listener, MODEL_LISTENER | (uint64_t)listener, EPOLLIN);
    for (;;) {
        uint64_t event = next_event();
        if (event & MODEL_LISTENER) {
            open_session((int)(event & ~MODEL_LISTENER));
            continue;
        }
        struct shared_session *session = begin(event);
        if (session != NULL) {
            pthread_mutex_unlock(&loop.mutex);
            bool goes_on = model_answer(&session->base, buffer);
            pthread_mutex_lock(&loop.mutex);
            finish(session, goes_on);
        }
    }
}

int main(int argc, char **argv)
{
    return bench_server_main(argc, argv, serve);
}
