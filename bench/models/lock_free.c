/* SPDX-License-Identifier: MIT */
/*
 * model_lock_free: one epoll that all workers wait in, and a map of sessions without a lock.  A
 * session is handled by one worker at a time: its state is one atomic word, and an event that comes
 * meanwhile makes that worker look again.
 *
 * The map keeps ids in slots of open addressing: an empty slot, or one of which the session is
 * gone, is claimed by compare and exchange.  Ids are never used twice, so no two workers claim a
 * slot for the same one.  Memory of sessions is kept until the process ends: whoever has just
 * looked one up may still touch it.  A real server needs reclamation on top, and pays for it.
 */
#include "model.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BATCH = 16, EMPTY = 0, GONE = 1, IDS_FROM = 2, IDLE = 0, BUSY = 1, AGAIN = 2 };

struct shared_session {
    struct session base;
    _Atomic uint32_t state;
};

static struct {
    _Atomic uint64_t id;
    _Atomic(struct shared_session *) session;
} map[MAP_SLOTS];

static _Atomic uint64_t last_id = IDS_FROM;
static int poller = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Whoever asks for an id has it from epoll, which got it after this. */
static void insert(struct shared_session *session)
{
    for (uint32_t at = model_hash(session->base.id);; at = (at + 1) % MAP_SLOTS) {
        uint64_t found = atomic_load_explicit(&map[at].id, memory_order_relaxed);
        if (found <= GONE &&
            atomic_compare_exchange_strong(&map[at].id, &found, session->base.id)) {
            atomic_store_explicit(&map[at].session, session, memory_order_release);
            return;
        }
    }
}

static uint32_t find(uint64_t id)
{
    uint32_t at = model_hash(id);
    uint64_t found;
    while ((found = atomic_load_explicit(&map[at].id, memory_order_acquire)) != id) {
        if (found == EMPTY) {
            return MAP_SLOTS;
        }
        at = (at + 1) % MAP_SLOTS;
    }
    return at;
}

static struct shared_session *get(uint64_t id)
{
    uint32_t at = find(id);
    return at == MAP_SLOTS ? NULL : atomic_load_explicit(&map[at].session, memory_order_acquire);
}

/* By the worker that has the session. */
static void end(struct shared_session *session)
{
    uint32_t at = find(session->base.id);
    atomic_store_explicit(&map[at].session, NULL, memory_order_relaxed);
    atomic_store_explicit(&map[at].id, GONE, memory_order_release);
    (void)close(session->base.fd);
}

/* Whether the caller has the session now; else whoever has it looks again. */
static bool begin(struct shared_session *session)
{
    uint32_t state = IDLE;
    while (!atomic_compare_exchange_weak_explicit(&session->state, &state,
                                                  state == IDLE ? BUSY : AGAIN,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
        if (state == AGAIN) {
            return false;
        }
    }
    return state == IDLE;
}

static bool finish(struct shared_session *session)
{
    uint32_t state = BUSY;
    if (atomic_compare_exchange_strong_explicit(&session->state, &state, IDLE, memory_order_acq_rel,
                                                memory_order_acquire)) {
        return true;
    }
    atomic_store_explicit(&session->state, BUSY, memory_order_relaxed);
    return false;
}

static void handle(uint64_t id, char *buffer)
{
    struct shared_session *session = get(id);
    if (session == NULL || !begin(session)) {
        return;
    }
    do {
        if (!model_answer(&session->base, buffer)) {
            end(session); /* and stays busy: a late event finds nothing to do */
            return;
        }
    } while (!finish(session));
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
    session->base.id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed);
    session->base.fd = fd;
    insert(session);
    model_watch(poller, fd, session->base.id, EPOLLIN | EPOLLET);
}

static void open_poller(void)
{
    poller = model_poller();
}

static void serve(int listener)
{
    static _Thread_local char buffer[BUFFER_BYTES];
    struct epoll_event events[BATCH];
    (void)pthread_once(&once, open_poller);
    model_watch(poller, listener, MODEL_LISTENER | (uint64_t)listener, EPOLLIN);
    for (;;) {
        int count = epoll_wait(poller, events, BATCH, -1);
        for (int i = 0; i < count; i++) {
            uint64_t event = events[i].data.u64;
            if (event & MODEL_LISTENER) {
                open_session((int)(event & ~MODEL_LISTENER));
            } else {
                handle(event, buffer);
            }
        }
    }
}

int main(int argc, char **argv)
{
    return bench_server_main(argc, argv, serve);
}
