/* SPDX-License-Identifier: MIT */
/*
 * Listeners: one accept op that runs on, and the reasons for which it does not.
 *
 *        +--> ACCEPTING --(sessions_max reached)--> FULL ------(a session closed)--+
 *        |        |                                                                |
 *        |        +--(out of descriptors or memory)--> STARVED --(timer, or a -----+
 *        |        |                                               session closed)  |
 *        +--------|----------------------------------------------------------------+
 *                 | gori_listener_close, from each of them
 *              CLOSING: what the system has queued is accepted (8), then the handle closes
 *                 | handle closed
 *              on_close, freed in step 7
 *
 *  1. At most one accept is in flight.  FULL and STARVED cancel it; what it accepted before it
 *     ended is never refused: it waits in `pending`, as it would have in the system's queue.
 *  2. Out of descriptors or memory it waits: 10 ms, doubled each time up to 1 s, from the start
 *     again after a success; or until a session of the loop closes.  Never a spin.  Counted in
 *     stats.accept_pauses.
 *  3. An error of one connection (aborted before it was accepted, say) costs nothing but another
 *     accept; the same error many times in a row is treated as 2.
 *  4. A connection for which no session can be made is closed and counted (stats.sessions_refused).
 *  5. The path of a UNIX listener is removed when it closes, if it is still the one it made.
 *  6. With an accept policy (accept_policy.h) the listener of worker 0 asks it for each connection
 *     who gets it.  The others have no socket: they are given connections, close only when nothing
 *     can be on its way to them any more, and never accept.
 *  7. Accepted sockets inherit TCP_NODELAY from the listening one, so it is set there, once.
 *  8. With keep_socket the queue of the system is not the listener's to empty: it only closes its
 *     own descriptor.  Between the last accept from a queue and the end of its socket there is
 *     always a moment in which a client connects and is then refused; a socket that goes on has
 *     none (docs/adr/0014).
 *     A socket that others may have is not given to the engine to accept from, but waited for, and
 *     accepted from here.  A kernel that accepts by itself wakes one of those that wait (seen of
 *     io_uring on 6.18); when that one is just being cancelled, its successor in another process
 *     sleeps on with a connection in the queue.  A wait wakes all.
 *  9. In CLOSING it takes what was queued before, which is as many as the queue holds, and not what
 *     clients add meanwhile: one that connects as fast as we accept would keep it from ending.  It
 *     takes them in slices, with a turn of the loop between.
 */
#include "rt/listener.h"

#include <gori/error.h>
#include <gori/listener.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "os/os.h"
#include "rt/accept_policy.h"
#include "rt/session.h"

enum {
    BACKLOG = 4096,
    SAME_ERRORS_MAX = 8,
    DRAIN_RETRIES_MAX = 100,
    DRAIN_SLICE = 64, /* connections */
    PENDING_MIN = 16,
};

#define BACK_OFF_MIN (10 * GORI_MILLISECONDS)
#define BACK_OFF_MAX GORI_SECONDS

struct gori_listener {
    struct gi_session_class *class;
    void *user;
    gori_listener_fn *on_close;
    uint32_t sessions_max; /* UINT32_MAX for none */
    bool closing;
    bool has_socket;    /* else it is given its connections: 6 */
    bool feeder_ended;  /* nothing will be given any more */
    bool keep_socket;   /* 8 */
    bool is_shared;     /* 8: waits for connections, and accepts them itself */
    bool starved;       /* waits, and stands in loop->starved_listeners */
    gori_time back_off; /* of the next time it starves */
    int last_error;
    uint32_t same_errors; /* in a row */
    uint32_t drain_retries;
    uint64_t drain_left; /* connections that may still have been queued before CLOSING: 9 */
    struct gori_op accept_op;
    struct gori_handle handle;
    struct gori_timer timer; /* of STARVED; in CLOSING, of the next look at the queue */
    struct gori_link link;   /* loop->all_listeners, at last store->reap_listeners */
    struct gori_link starved_link;
    gori_native *pending; /* accepted, and waiting for room: a ring */
    uint32_t pending_first;
    uint32_t pending_count;
    uint32_t pending_capacity;    /* a power of two, or 0 */
    struct gi_os_file_id path_id; /* of the path of a UNIX listener */
    struct gori_addr addr;
};

static struct gori_loop *loop_of(const struct gori_listener *listener)
{
    return listener->class->loop;
}

static bool is_dispatcher(const struct gori_listener *listener)
{
    return listener->class->role.accept != NULL && listener->has_socket &&
           listener->class->role.accept->policy != GORI_ACCEPT_KERNEL;
}

static bool has_room(const struct gori_listener *listener)
{
    /* For a dispatcher the policy knows. */
    return listener->class->sessions < listener->sessions_max || is_dispatcher(listener);
}

static bool wants_to_accept(const struct gori_listener *listener)
{
    return listener->has_socket && !listener->closing && !listener->starved &&
           listener->pending_count == 0 && has_room(listener);
}

/* Backs off: the timer, or a session that closes, ends it. */
static void starve(struct gori_listener *listener)
{
    if (listener->closing || listener->starved) {
        return;
    }
    struct gori_loop *loop = loop_of(listener);
    loop->stats.accept_pauses++;
    listener->starved = true;
    gi_list_push_back(&loop->starved_listeners, &listener->starved_link);
    gi_timer_start_at(loop, &listener->timer, gi_add_saturated_u64(loop->now, listener->back_off));
    listener->back_off = gi_min_u64(2 * listener->back_off, BACK_OFF_MAX);
    gori_op_cancel(&listener->accept_op);
    if (is_dispatcher(listener)) {
        gi_accept_wait(listener->class->role.accept);
    }
}

static void end_starving(struct gori_listener *listener)
{
    if (listener->starved) {
        listener->starved = false;
        gi_list_remove(&listener->starved_link);
        gori_timer_stop(&listener->timer);
    }
}

/* Accepts on, unless it does or must not. */
static void accept_on(struct gori_listener *listener)
{
    if (!wants_to_accept(listener) || gori_op_is_active(&listener->accept_op)) {
        return;
    }
    int result = listener->is_shared ? gori_op_wait(&listener->accept_op, &listener->handle)
                                     : gori_op_accept(&listener->accept_op, &listener->handle);
    if (result < 0) {
        starve(listener);
    }
}

/* Also after the listener has ended. */
static void count_out(const struct gi_session_class *class)
{
    if (class->role.accept != NULL) {
        gi_accept_count_out(&class->role);
    }
}

static void accepted_well(struct gori_listener *listener)
{
    listener->back_off = BACK_OFF_MIN;
    listener->same_errors = 0;
}

/* Makes a session of a socket that is counted in; or starves, when that is not possible now. */
static void open_here(struct gori_listener *listener, gori_native native)
{
    struct gori_loop *loop = loop_of(listener);
    int result = gi_session_accept(listener->class, listener->user, native);
    if (result < 0) {
        loop->stats.sessions_refused++;
        gori_native_close(loop, native);
        count_out(listener->class);
        starve(listener);
        return;
    }
    accepted_well(listener);
}

static bool grow_pending(struct gori_listener *listener)
{
    const struct gori_allocator *allocator = loop_of(listener)->allocator;
    uint32_t capacity = gi_max_u32(PENDING_MIN, 2 * listener->pending_capacity);
    gori_native *grown = gi_alloc(allocator, capacity * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < listener->pending_count; i++) {
        uint32_t index = (listener->pending_first + i) & (listener->pending_capacity - 1);
        grown[i] = listener->pending[index];
    }
    gi_free(allocator, listener->pending, listener->pending_capacity * sizeof(*grown));
    listener->pending = grown;
    listener->pending_first = 0;
    listener->pending_capacity = capacity;
    return true;
}

/* Room for one more that waits; or it is refused. */
static bool make_place(struct gori_listener *listener, gori_native native)
{
    if (listener->pending_count < listener->pending_capacity || grow_pending(listener)) {
        return true;
    }
    loop_of(listener)->stats.sessions_refused++;
    gori_native_close(loop_of(listener), native);
    if (!listener->has_socket) {
        count_out(listener->class);
    }
    return false;
}

/* Before all that wait, for one whose turn it was. */
static void keep_first(struct gori_listener *listener, gori_native native)
{
    if (!make_place(listener, native)) {
        return;
    }
    listener->pending_first = (listener->pending_first - 1) & (listener->pending_capacity - 1);
    listener->pending[listener->pending_first] = native;
    listener->pending_count++;
}

static void keep_pending(struct gori_listener *listener, gori_native native)
{
    if (!make_place(listener, native)) {
        return;
    }
    uint32_t index =
        (listener->pending_first + listener->pending_count) & (listener->pending_capacity - 1);
    listener->pending[index] = native;
    listener->pending_count++;
}

/* Gives an accepted socket to whom it belongs.  When nobody has room, it waits here. */
static void open_session(struct gori_listener *listener, gori_native native)
{
    if (is_dispatcher(listener) && !listener->closing) {
        int result = gi_accept_dispatch(listener->class->role.accept, native);
        if (result == GI_ACCEPT_AWAY) {
            accepted_well(listener);
            return;
        }
        if (result < 0) {
            keep_first(listener, native);
            starve(listener);
            return;
        }
    } else if (listener->class->role.accept != NULL && listener->has_socket) {
        gi_accept_count_in(&listener->class->role);
    }
    open_here(listener, native);
}

/* Opens what waits, as far as there is room; all of it when the listener closes. */
static void open_pending(struct gori_listener *listener)
{
    while (listener->pending_count > 0 &&
           (listener->closing || (!listener->starved && has_room(listener)))) {
        gori_native native = listener->pending[listener->pending_first];
        listener->pending_first = (listener->pending_first + 1) & (listener->pending_capacity - 1);
        listener->pending_count--;
        open_session(listener, native);
    }
}

static void take(struct gori_listener *listener, gori_native native)
{
    bool must_wait = listener->starved || listener->pending_count > 0 || !has_room(listener);
    if (must_wait && !listener->closing) {
        keep_pending(listener, native);
    } else {
        open_session(listener, native);
    }
    if (!wants_to_accept(listener)) {
        gori_op_cancel(&listener->accept_op);
    }
}

static bool is_shortage(int error)
{
    return error == GORI_EMFILE || error == GORI_ENFILE || error == GORI_ENOBUFS ||
           error == GORI_ENOMEM || error == GORI_ELIMIT;
}

/* Whether the same error has come too many times in a row. */
static bool is_stubborn(struct gori_listener *listener, int error)
{
    listener->same_errors = error == listener->last_error ? listener->same_errors + 1 : 1;
    listener->last_error = error;
    return listener->same_errors >= SAME_ERRORS_MAX;
}

/* Takes a slice of what the system has queued (9).  Result: whether that was the last. */
static bool drain_system_queue(struct gori_listener *listener, gori_time *ret_next)
{
    struct gori_loop *loop = loop_of(listener);
    struct gi_engine *engine = loop->engine;
    listener->same_errors = 0;
    *ret_next = loop->now;
    for (uint32_t taken = 0; taken < DRAIN_SLICE && listener->drain_left > 0;) {
        if (listener->keep_socket || loop->session_store.ended ||
            listener->handle.state != GI_HANDLE_OPEN) {
            return true;
        }
        gori_native native = GORI_NATIVE_NONE;
        int result = engine->impl->sockets->accept(engine, listener->handle.native, &native);
        if (result >= 0) {
            taken++;
            listener->drain_left--;
            open_session(listener, native);
        } else if (is_shortage(result) && listener->drain_retries < DRAIN_RETRIES_MAX) {
            listener->drain_retries++;
            *ret_next = gi_add_saturated_u64(loop->now, BACK_OFF_MIN);
            return false;
        } else if (result == GORI_EAGAIN || is_stubborn(listener, result)) {
            return true;
        }
    }
    return listener->drain_left == 0;
}

static void finish(struct gori_listener *listener);

/* In CLOSING, when no accept is in flight any more. */
static void close_handle(struct gori_listener *listener)
{
    GI_ASSERT(listener->closing);
    open_pending(listener);
    if (!listener->has_socket) {
        finish(listener);
        return;
    }
    gori_time next;
    if (drain_system_queue(listener, &next)) {
        gori_handle_close(&listener->handle);
    } else {
        gi_timer_start_at(loop_of(listener), &listener->timer, next);
    }
}

static void accept_ended(struct gori_listener *listener, int64_t result)
{
    if (listener->closing) {
        close_handle(listener);
        return;
    }
    int error = result < 0 ? (int)result : 0;
    bool is_passing = error == 0 || error == GORI_ECANCELED;
    if (!is_passing && (is_shortage(error) || is_stubborn(listener, error))) {
        starve(listener);
    }
    accept_on(listener);
}

static void accept_done(struct gori_op *op, const struct gori_completion *completion)
{
    struct gori_listener *listener = gori_container_of(op, struct gori_listener, accept_op);
    if (completion->accepted != GORI_NATIVE_NONE) {
        take(listener, completion->accepted);
    }
    if (completion->is_last) {
        accept_ended(listener, completion->result);
    }
}

/* A slice of what a shared socket has queued.  Result: 0, or the error that ended it. */
static int accept_slice(struct gori_listener *listener)
{
    struct gi_engine *engine = loop_of(listener)->engine;
    for (uint32_t taken = 0; taken < DRAIN_SLICE && wants_to_accept(listener); taken++) {
        gori_native native = GORI_NATIVE_NONE;
        int result = engine->impl->sockets->accept(engine, listener->handle.native, &native);
        if (result < 0) {
            return result == GORI_EAGAIN ? 0 : result;
        }
        take(listener, native);
    }
    return 0;
}

static void wait_done(struct gori_op *op, const struct gori_completion *completion)
{
    struct gori_listener *listener = gori_container_of(op, struct gori_listener, accept_op);
    accept_ended(listener, completion->result < 0 ? completion->result : accept_slice(listener));
}

static void timer_expired(struct gori_timer *timer)
{
    struct gori_listener *listener = gori_container_of(timer, struct gori_listener, timer);
    if (listener->closing) {
        close_handle(listener);
        return;
    }
    end_starving(listener);
    open_pending(listener);
    accept_on(listener);
}

/* The last of a listener but its memory. */
static void finish(struct gori_listener *listener)
{
    struct gi_session_store *store = &loop_of(listener)->session_store;
    end_starving(listener);
    gori_timer_stop(&listener->timer);
    listener->closing = true;
    open_pending(listener);
    if (is_dispatcher(listener)) {
        gi_accept_end(listener->class->role.accept);
    } else if (!listener->has_socket) {
        gi_accept_leave(&listener->class->role);
    }
    gi_list_remove(&listener->link);
    if (listener->on_close != NULL) {
        listener->on_close(listener);
    }
    listener->class->listener = NULL;
    gi_list_push_back(&store->reap_listeners, &listener->link);
}

static void handle_closed(struct gori_handle *handle)
{
    finish(gori_container_of(handle, struct gori_listener, handle));
}

static void free_listener(struct gori_listener *listener)
{
    struct gori_loop *loop = loop_of(listener);
    gi_session_class_unref(&loop->session_store, listener->class);
    gi_free(loop->allocator, listener->pending,
            listener->pending_capacity * sizeof(*listener->pending));
    gi_free(loop->allocator, listener, sizeof(*listener));
}

void gi_listener_reap_all(struct gori_loop *loop)
{
    struct gori_link *list = &loop->session_store.reap_listeners;
    for (struct gori_link *link; (link = gi_list_pop_front(list)) != NULL;) {
        free_listener(gori_container_of(link, struct gori_listener, link));
    }
}

void gi_listener_session_closed(const struct gi_session_class *class)
{
    count_out(class);
    if (class->listener != NULL) {
        open_pending(class->listener);
        accept_on(class->listener);
    }
}

void gi_listener_retry_starved(struct gori_loop *loop)
{
    for (struct gori_link *link; (link = gi_list_first(&loop->starved_listeners)) != NULL;) {
        struct gori_listener *listener =
            gori_container_of(link, struct gori_listener, starved_link);
        end_starving(listener);
        open_pending(listener);
        accept_on(listener);
        if (listener->starved) {
            return; /* starved again at once: nothing has changed */
        }
    }
}

/* Neither names in the file system nor duplicates are to be had in the simulator. */
static bool is_of_system(const struct gori_loop *loop)
{
    return loop->engine->impl->sockets == &gi_system_sockets;
}

static bool has_path(const struct gori_listener *listener)
{
    return gori_addr_family(&listener->addr) == GORI_ADDR_UNIX && is_of_system(loop_of(listener));
}

void gori_listener_close(struct gori_listener *listener)
{
    if (listener->closing) {
        return;
    }
    end_starving(listener);
    listener->closing = true;
    if (has_path(listener) && !listener->keep_socket) {
        gi_os_remove_socket_path(&listener->addr, &listener->path_id);
    }
    if (gori_op_is_active(&listener->accept_op)) {
        gori_op_cancel(&listener->accept_op);
    } else if (listener->has_socket || listener->feeder_ended) {
        gori_timer_start(loop_of(listener), &listener->timer, 0);
    }
}

int gori_listener_release(struct gori_listener *listener, gori_native *ret_native)
{
    if (listener->closing || !listener->has_socket) {
        return GORI_ECLOSED;
    }
    if (!is_of_system(loop_of(listener)) || !gi_os_shares_sockets()) {
        return GORI_ENOTSUP;
    }
    int copy;
    int result = gi_os_duplicate((int)listener->handle.native, &copy);
    if (result < 0) {
        return result;
    }
    listener->keep_socket = true;
    gori_listener_close(listener);
    *ret_native = copy;
    return 0;
}

void gi_listener_give(struct gori_listener *listener, gori_native native)
{
    take(listener, native);
}

void gi_listener_feeder_ended(struct gori_listener *listener)
{
    listener->feeder_ended = true;
    if (listener->closing) {
        gori_timer_start(loop_of(listener), &listener->timer, 0);
    }
}

void gi_listener_end_all(struct gori_loop *loop)
{
    gi_listener_close_all(loop);
    GI_LIST_FOREACH_SAFE (link, &loop->all_listeners) {
        struct gori_listener *listener = gori_container_of(link, struct gori_listener, link);
        if (!listener->has_socket) {
            finish(listener);
        }
    }
}

void gi_listener_close_all(struct gori_loop *loop)
{
    GI_LIST_FOREACH (link, &loop->all_listeners) {
        gori_listener_close(gori_container_of(link, struct gori_listener, link));
    }
}

static uint32_t backlog_of(const struct gori_listener_config *config)
{
    return config->backlog != 0 ? config->backlog : BACKLOG;
}

static void init_listener(struct gori_listener *listener, const struct gori_listener_config *config)
{
    listener->drain_left = (uint64_t)backlog_of(config) + 1; /* Linux queues one more than asked */
    listener->user = config->user;
    listener->on_close = config->on_close;
    listener->sessions_max = config->sessions_max != 0 ? config->sessions_max : UINT32_MAX;
    listener->keep_socket = config->keep_socket;
    listener->back_off = BACK_OFF_MIN;
    listener->handle.on_close = handle_closed;
    listener->timer.on_expire = timer_expired;
}

static int create(struct gori_loop *loop, const struct gori_listener_config *config,
                  struct gori_listener **ret_listener)
{
    struct gori_listener *listener = gi_alloc_zero(loop->allocator, sizeof(*listener));
    if (listener == NULL) {
        return GORI_ENOMEM;
    }
    const struct gi_session_class_config class_config = {
        .loop = loop,
        .events = config->events,
        .options = &config->options,
        .session_bytes = sizeof(struct gori_session),
    };
    int result = gi_session_class_create(&loop->session_store, &class_config, &listener->class);
    if (result < 0) {
        gi_free(loop->allocator, listener, sizeof(*listener));
        return result;
    }
    listener->class->listener = listener;
    init_listener(listener, config);
    *ret_listener = listener;
    return 0;
}

static int adopt(struct gori_loop *loop, const struct gori_listener_config *config,
                 gori_native native, const struct gi_accept_role *role, bool is_shared,
                 struct gori_listener **ret_listener)
{
    struct gori_listener *listener;
    int result = create(loop, config, &listener);
    if (result < 0) {
        return result;
    }
    listener->class->role = role != NULL ? *role : (struct gi_accept_role){0};
    listener->has_socket = native != GORI_NATIVE_NONE;
    if (!listener->has_socket) {
        listener->addr = config->addr;
        listener->feeder_ended = !gi_accept_join(role, listener);
        gi_list_push_back(&loop->all_listeners, &listener->link);
        *ret_listener = listener;
        return 0;
    }
    struct gi_engine *engine = loop->engine;
    const struct gi_socket_calls *sockets = engine->impl->sockets;
    listener->addr = config->addr;
    /* Neither is worth failing for: the address is the one that was asked for. */
    (void)sockets->addr(engine, native, GI_SOCKET_LOCAL, &listener->addr);
    (void)sockets->set_no_delay(engine, native, !config->options.delay);
    if (has_path(listener)) {
        gi_os_socket_path_id(&listener->addr, &listener->path_id);
    }
    listener->is_shared = is_shared;
    listener->accept_op.on_complete = is_shared ? wait_done : accept_done;
    uint8_t flags = GI_HANDLE_LISTENER | (is_shared ? GI_HANDLE_SOURCE : 0);
    result = gi_handle_attach(loop, native, flags, &listener->handle);
    if (result < 0) {
        free_listener(listener);
        return result;
    }
    gi_list_push_back(&loop->all_listeners, &listener->link);
    accept_on(listener);
    *ret_listener = listener;
    return 0;
}

int gi_listener_adopt(struct gori_loop *loop, const struct gori_listener_config *config,
                      gori_native native, const struct gi_accept_role *role,
                      struct gori_listener **ret_listener)
{
    return adopt(loop, config, native, role, config->keep_socket, ret_listener);
}

int gori_listener_adopt(struct gori_loop *loop, gori_native native,
                        const struct gori_listener_config *config,
                        struct gori_listener **ret_listener)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (!is_of_system(loop)) {
        return GORI_ENOTSUP;
    }
    if (config->events == NULL || native == GORI_NATIVE_NONE) {
        return GORI_EINVAL;
    }
    int result = gi_os_check_listening((int)native);
    return result < 0 ? result : adopt(loop, config, native, NULL, true, ret_listener);
}

int gori_listener_open(struct gori_loop *loop, const struct gori_listener_config *config,
                       struct gori_listener **ret_listener)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (config->events == NULL || gori_addr_family(&config->addr) == GORI_ADDR_NONE) {
        return GORI_EINVAL;
    }
    const struct gi_listen_options options = {
        .backlog = backlog_of(config),
        .reuse_port = config->reuse_port,
        .ipv6_only = config->ipv6_only,
        .no_delay = !config->options.delay,
    };
    const struct gi_socket_calls *sockets = loop->engine->impl->sockets;
    gori_native native;
    int result = sockets->listen(loop->engine, &config->addr, &options, &native);
    if (result < 0) {
        return result;
    }
    result = gi_listener_adopt(loop, config, native, NULL, ret_listener);
    if (result < 0) {
        sockets->close(loop->engine, native);
    }
    return result;
}

void gori_listener_addr(const struct gori_listener *listener, struct gori_addr *ret_addr)
{
    *ret_addr = listener->addr;
}

uint32_t gori_listener_sessions(const struct gori_listener *listener)
{
    return listener->class->sessions;
}

void *gori_listener_user(const struct gori_listener *listener)
{
    return listener->user;
}
