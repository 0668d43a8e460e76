/* SPDX-License-Identifier: MIT */
/*
 * Sessions from outside: making and freeing their memory, their ids, and the calls that only ask.
 * How a session lives stands in session_life.c, receiving in session_receive.c, sending in
 * session_send.c, its limits of time in session_timer.c; here nothing changes state.
 *
 *  1. A session has an id from its creation to just before its on_close; so loop->sessions counts
 *     what is not closed, and sessions_max limits it.
 *  2. Its memory holds one reference on its class, whose pool it comes from.
 *  3. What is asked of a session after its end answers GORI_ECLOSED, or as it was last.
 */
#include "rt/session.h"

#include <gori/error.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "rt/listener.h"

int gi_session_create(struct gi_session_class *class, void *user, struct gori_session **ret_session)
{
    struct gori_loop *loop = class->loop;
    if (loop->session_store.ended) {
        return GORI_ECLOSED;
    }
    struct gori_session *session = gi_pool_acquire(&class->pool);
    if (session == NULL) {
        return GORI_ENOMEM;
    }
    memset(session, 0, sizeof(*session) + class->options.context_bytes);
    int result = gi_id_table_insert(&loop->sessions, session, &session->id);
    if (result < 0) {
        gi_pool_release(&class->pool, session);
        return result;
    }
    session->class = class;
    session->handle.user = user;
    session->handle.on_close = gi_session_handle_closed;
    session->recv_op.on_complete = gi_session_recv_done;
    session->timer.on_expire = gi_session_timer_expired;
    session->total_at = GORI_NEVER;
    session->deadline_at = GORI_NEVER;
    session->progress_at = loop->now;
    gori_session_set_idle_timeout(session, class->options.idle_timeout);
    gi_session_class_ref(class);
    class->sessions++;
    loop->stats.sessions_now++;
    *ret_session = session;
    return 0;
}

void gi_session_discard(struct gori_session *session)
{
    struct gi_session_class *class = session->class;
    GI_ASSERT(session->handle.state == GI_HANDLE_FREE);
    (void)gi_id_table_remove(&class->loop->sessions, session->id); /* it is the session */
    class->loop->stats.sessions_now--;
    class->sessions--;
    gi_pool_release(&class->pool, session);
    gi_session_class_unref(&class->loop->session_store, class);
}

/* A session in the state opening that has its socket. */
static int create_with(struct gi_session_class *class, void *user, gori_native native,
                       struct gori_session **ret_session)
{
    struct gori_session *session;
    int result = gi_session_create(class, user, &session);
    if (result < 0) {
        return result;
    }
    result = gi_handle_attach(class->loop, native, GI_HANDLE_BLOCKS, &session->handle);
    if (result < 0) {
        gi_session_discard(session);
        return result;
    }
    *ret_session = session;
    return 0;
}

int gi_session_accept(struct gi_session_class *class, void *user, gori_native native)
{
    struct gori_session *session;
    int result = create_with(class, user, native, &session);
    if (result == 0) {
        gi_session_opened(session);
    }
    return result;
}

int gi_session_adopt(struct gi_session_class *class, void *user, gori_native native,
                     struct gori_session **ret_session)
{
    struct gori_session *session;
    int result = create_with(class, user, native, &session);
    if (result < 0) {
        return result;
    }
    struct gi_engine *engine = class->loop->engine;
    /* A socket that refuses the option works without it. */
    (void)engine->impl->sockets->set_no_delay(engine, native, !class->options.delay);
    gi_session_begin(session);
    gi_session_start_timer(session);
    gi_session_receive(session);
    *ret_session = session;
    return 0;
}

static void free_session(struct gori_session *session)
{
    struct gi_session_class *class = session->class;
    gi_pool_release(&class->pool, session);
    gi_session_class_unref(&class->loop->session_store, class);
}

void gi_session_reap(struct gori_session *session)
{
    GI_ASSERT(session->state == GI_SESSION_CLOSED);
    GI_ASSERT(session->references == 0);
    gi_list_push_back(&gi_session_store(session)->reap, &session->handle.open);
}

void gi_session_reap_all(struct gori_loop *loop)
{
    struct gi_session_store *store = &loop->session_store;
    for (struct gori_link *link; (link = gi_list_pop_front(&store->reap)) != NULL;) {
        struct gori_handle *handle = gori_container_of(link, struct gori_handle, open);
        free_session(gi_session_of_handle(handle));
    }
    gi_listener_reap_all(loop);
}

gori_time gi_session_clock(const struct gori_session *session)
{
    struct gi_engine *engine = session->class->loop->engine;
    return engine->impl->now(engine);
}

uint64_t gori_session_id(const struct gori_session *session)
{
    return session->id;
}

bool gori_session_id_is_live(struct gori_loop *loop, uint64_t id)
{
    return gi_id_table_is_live(&loop->sessions, id);
}

struct gori_session *gori_loop_session(struct gori_loop *loop, uint64_t id)
{
    return gi_id_table_get(&loop->sessions, id);
}

struct gori_loop *gori_session_loop(const struct gori_session *session)
{
    return session->class->loop;
}

void *gori_session_user(const struct gori_session *session)
{
    return session->handle.user;
}

void gori_session_set_user(struct gori_session *session, void *user)
{
    session->handle.user = user;
}

void *gori_session_context(struct gori_session *session)
{
    return session->class->options.context_bytes > 0 ? session + 1 : NULL;
}

static int ask_addr(const struct gori_session *session, enum gi_socket_end end,
                    struct gori_addr *ret_addr)
{
    if (session->state >= GI_SESSION_ENDING) {
        return GORI_ECLOSED;
    }
    struct gi_engine *engine = session->class->loop->engine;
    return engine->impl->sockets->addr(engine, session->handle.native, end, ret_addr);
}

int gori_session_peer(const struct gori_session *session, struct gori_addr *ret_addr)
{
    if (session->state == GI_SESSION_OPENING) {
        *ret_addr = *(const struct gori_addr *)session->send_op.user;
        return 0;
    }
    return ask_addr(session, GI_SOCKET_PEER, ret_addr);
}

int gori_session_local(const struct gori_session *session, struct gori_addr *ret_addr)
{
    return ask_addr(session, GI_SOCKET_LOCAL, ret_addr);
}

void gori_session_ref(struct gori_session *session)
{
    GI_ASSERT(session->references < UINT32_MAX);
    session->references++;
}

void gori_session_unref(struct gori_session *session)
{
    GI_ASSERT(session->references > 0);
    session->references--;
    if (session->references == 0 && session->state == GI_SESSION_CLOSED) {
        gi_session_reap(session);
    }
}

const char *gori_close_reason_name(enum gori_close_reason reason)
{
    static const char *const names[] = {
        [GORI_CLOSE_LOCAL] = "local",         [GORI_CLOSE_PEER] = "peer",
        [GORI_CLOSE_RESET] = "reset",         [GORI_CLOSE_ERROR] = "error",
        [GORI_CLOSE_CONNECT] = "connect",     [GORI_CLOSE_TIMEOUT] = "timeout",
        [GORI_CLOSE_SLOW] = "slow",           [GORI_CLOSE_TOO_LARGE] = "too large",
        [GORI_CLOSE_TRUNCATED] = "truncated", [GORI_CLOSE_SHUTDOWN] = "shutdown",
    };
    size_t index = (size_t)reason;
    return index < GI_ARRAY_COUNT(names) && names[index] != NULL ? names[index] : "unknown";
}
