/* SPDX-License-Identifier: MIT */
/*
 * Accept policies.
 *
 *  1. With GORI_ACCEPT_KERNEL every worker has a socket of its own on the shared port, and this
 *     here only counts.  With the others worker 0 is the acceptor: it has the one socket, and hands
 *     connections over to the listeners of the others, which have none, by messages of their loops.
 *  2. A connection is counted in a seat when it is given to it, before it arrives: a burst does not
 *     go to one worker because its first sessions have not opened yet.  It is counted out when its
 *     session closes, or could not be made.
 *  3. What cannot be handed over, since the worker ends, the acceptor serves itself: no connection
 *     is lost between two loops.
 *  4. The acceptor's last act is gi_accept_end: a message to every other listener, behind all that
 *     was handed over before.  A listener without a socket that is closed waits for it, so that it
 *     takes everything that is still on its way.  What the system has queued when the acceptor
 *     closes it serves itself: the others are ending too, some may have ended, and each of these
 *     connections is only to be answered once and ended.  With keep_socket there is none of it.
 *  5. Nobody has room while every worker has its sessions_max, while the mailbox of the one whose
 *     turn it is is full, and before all workers are there.  Then the connection stays with the
 *     acceptor, which accepts no more.  It says that it waits and chooses once more; whoever makes
 *     room does that first and looks whether it waits then.  Both are sequentially consistent, so
 *     one of them sees the other.  Of a full mailbox nobody tells: there the acceptor's timer
 *     looks.
 *  6. Nobody balances where the system does not spread connections over the sockets of a port, nor
 *     where there is one socket only, of a UNIX path or from outside: workers that wait on it
 *     together are woken in the order in which they came, and the first gets everything.  There
 *     KERNEL is as LEAST.
 *
 * Thread: dispatch and wait by the acceptor; join, leave and the counts by the worker of the seat;
 * the rest from any.
 */
#include "rt/accept_policy.h"

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "rt/listener.h"
#include "rt/loop.h"
#include "rt/runtime.h"

enum {
    WAIT_NONE = 0,
    WAIT_FOR_ROOM = 1, /* the acceptor says so */
    WAIT_TOLD = 2,     /* `room` is posted, and not yet run */
};

/* Room ------------------------------------------------------------------------------------- */

/* On the acceptor's loop. */
static void there_is_room(struct gori_task *task)
{
    struct gi_accept *accept = task->user;
    gi_atomic_u32_store(&accept->waiting, WAIT_NONE, GI_SEQ_CST);
    struct gori_loop *loop = gi_runtime_enter(accept->runtime, 0);
    if (loop != NULL) {
        gi_runtime_leave(accept->runtime, 0);
        gi_listener_retry_starved(loop); /* it is ours: it stays as long as we run on it */
    }
}

/* From one state to the next; false: it was in another. */
static bool change_waiting(struct gi_accept *accept, uint32_t from, uint32_t to)
{
    uint32_t expected = from;
    while (!gi_atomic_u32_compare_exchange(&accept->waiting, &expected, to, GI_SEQ_CST)) {
        if (expected != from) {
            return false;
        }
    }
    return true;
}

void gi_accept_wait(struct gi_accept *accept)
{
    (void)change_waiting(accept, WAIT_NONE, WAIT_FOR_ROOM);
}

/* After room was made (5). */
static void made_room(struct gi_accept *accept)
{
    if (gi_atomic_u32_load(&accept->waiting, GI_SEQ_CST) != WAIT_FOR_ROOM ||
        !change_waiting(accept, WAIT_FOR_ROOM, WAIT_TOLD)) {
        return;
    }
    struct gori_loop *loop = gi_runtime_enter(accept->runtime, 0);
    if (loop != NULL) {
        (void)gi_loop_post_owed(loop, &accept->room); /* fails when it ends: nobody waits then */
        gi_runtime_leave(accept->runtime, 0);
    }
}

/* Making ----------------------------------------------------------------------------------- */

static size_t accept_bytes(uint32_t workers)
{
    return sizeof(struct gi_accept) + workers * sizeof(struct gi_accept_seat);
}

static bool is_known(enum gori_accept_policy policy)
{
    return policy == GORI_ACCEPT_KERNEL || policy == GORI_ACCEPT_LEAST ||
           policy == GORI_ACCEPT_ROUND_ROBIN || policy == GORI_ACCEPT_SINGLE;
}

int gi_accept_create(const struct gori_allocator *allocator, struct gori_runtime *runtime,
                     const struct gori_listener_config *config, bool one_socket,
                     struct gi_accept **ret_accept)
{
    uint32_t workers = gori_runtime_workers(runtime);
    if (!is_known(config->accept_policy)) {
        return GORI_EINVAL;
    }
    struct gi_accept *accept = gi_alloc_zero(allocator, accept_bytes(workers));
    if (accept == NULL) {
        return GORI_ENOMEM;
    }
    int result = gi_os_monitor_init(&accept->monitor);
    if (result < 0) {
        gi_free(allocator, accept, accept_bytes(workers));
        return result;
    }
    accept->runtime = runtime;
    accept->policy = config->accept_policy;
    if (accept->policy == GORI_ACCEPT_KERNEL && (one_socket || !gi_os_balances_ports())) {
        accept->policy = GORI_ACCEPT_LEAST;
    }
    accept->workers = workers;
    accept->room = (struct gori_task){.run = there_is_room, .user = accept};
    accept->sessions_max = config->sessions_max != 0 ? config->sessions_max : UINT32_MAX;
    *ret_accept = accept;
    return 0;
}

void gi_accept_begin(struct gi_accept *accept)
{
    accept->has_ended = false;
    gi_atomic_u32_store(&accept->joined, 0, GI_RELAXED);
    gi_atomic_u32_store(&accept->waiting, WAIT_NONE, GI_RELAXED);
    for (uint32_t i = 0; i < accept->workers; i++) {
        gi_atomic_pointer_store(&accept->seats[i].listener, NULL, GI_RELAXED);
        gi_atomic_u32_store(&accept->seats[i].sessions, 0, GI_RELAXED);
    }
}

void gi_accept_destroy(const struct gori_allocator *allocator, struct gi_accept *accept)
{
    if (accept != NULL) {
        gi_os_monitor_fini(&accept->monitor);
        gi_free(allocator, accept, accept_bytes(accept->workers));
    }
}

bool gi_accept_has_socket(const struct gi_accept *accept, uint32_t worker)
{
    return accept->policy == GORI_ACCEPT_KERNEL || worker == 0;
}

/* Seats ------------------------------------------------------------------------------------ */

bool gi_accept_join(const struct gi_accept_role *role, struct gori_listener *listener)
{
    struct gi_accept *accept = role->accept;
    gi_os_monitor_lock(&accept->monitor);
    bool has_ended = accept->has_ended;
    if (!has_ended) {
        gi_atomic_pointer_store(&accept->seats[role->worker].listener, listener, GI_RELEASE);
    }
    gi_os_monitor_unlock(&accept->monitor);
    (void)gi_atomic_u32_add(&accept->joined, 1, GI_SEQ_CST);
    made_room(accept);
    return !has_ended;
}

void gi_accept_leave(const struct gi_accept_role *role)
{
    struct gi_accept *accept = role->accept;
    gi_os_monitor_lock(&accept->monitor);
    gi_atomic_pointer_store(&accept->seats[role->worker].listener, NULL, GI_RELEASE);
    gi_os_monitor_unlock(&accept->monitor);
}

void gi_accept_count_in(const struct gi_accept_role *role)
{
    struct gi_accept_seat *seat = &role->accept->seats[role->worker];
    (void)gi_atomic_u32_add(&seat->sessions, 1, GI_RELAXED);
    (void)gi_atomic_u64_add(&seat->accepted, 1, GI_RELAXED);
}

void gi_accept_count_out(const struct gi_accept_role *role)
{
    (void)gi_atomic_u32_sub(&role->accept->seats[role->worker].sessions, 1, GI_SEQ_CST);
    made_room(role->accept);
}

/* Choosing --------------------------------------------------------------------------------- */

static bool may_take(const struct gi_accept *accept, uint32_t worker)
{
    const struct gi_accept_seat *seat = &accept->seats[worker];
    bool is_there = worker == 0 || gi_atomic_pointer_load(&seat->listener, GI_ACQUIRE) != NULL;
    return is_there && gi_atomic_u32_load(&seat->sessions, GI_SEQ_CST) < accept->sessions_max;
}

/* Whether a worker that has so many is better than the best so far. */
static bool is_better(const struct gi_accept *accept, uint32_t worker, uint32_t sessions,
                      uint32_t best_worker, uint32_t best_sessions)
{
    if (best_worker == UINT32_MAX) {
        return true;
    }
    if (accept->policy == GORI_ACCEPT_SINGLE && (worker == 0 || best_worker == 0)) {
        return best_worker == 0; /* the acceptor serves only when nobody else can */
    }
    return accept->policy != GORI_ACCEPT_ROUND_ROBIN && sessions < best_sessions;
}

/* The worker to give a connection to, UINT32_MAX when none has room.  Ties go round. */
static uint32_t choose(struct gi_accept *accept)
{
    if (gi_atomic_u32_load(&accept->joined, GI_SEQ_CST) + 1 < accept->workers) {
        return UINT32_MAX; /* they come: a start that fails ends the run */
    }
    uint32_t best_worker = UINT32_MAX;
    uint32_t best_sessions = UINT32_MAX;
    for (uint32_t i = 0; i < accept->workers; i++) {
        uint32_t worker = (accept->next + i) % accept->workers;
        uint32_t sessions = gi_atomic_u32_load(&accept->seats[worker].sessions, GI_RELAXED);
        if (may_take(accept, worker) &&
            is_better(accept, worker, sessions, best_worker, best_sessions)) {
            best_worker = worker;
            best_sessions = sessions;
        }
    }
    if (best_worker != UINT32_MAX) {
        accept->next = (best_worker + 1) % accept->workers;
    }
    return best_worker;
}

/* Handing over ----------------------------------------------------------------------------- */

static void arrive(struct gori_task *task)
{
    struct gi_message *message = gori_container_of(task, struct gi_message, task);
    struct gori_loop *loop = message->task.user;
    struct gori_listener *listener = message->as.handover.listener;
    gori_native native = message->as.handover.native;
    gi_message_release(&loop->shared.messages, message);
    gi_listener_give(listener, native);
}

/* The loop was destroyed before its time: its sessions were closed, and this is one. */
static void drop(struct gi_message *message)
{
    struct gori_loop *loop = message->task.user;
    gori_native_close(loop, message->as.handover.native);
}

static int post(struct gori_loop *loop, struct gori_listener *listener, gori_native native)
{
    struct gi_message *message;
    int result = gi_message_acquire(&loop->shared.messages, &message);
    if (result < 0) {
        return result;
    }
    message->task = (struct gori_task){.run = arrive, .user = loop};
    message->drop = drop;
    message->as.handover.native = native;
    message->as.handover.listener = listener;
    result = gori_loop_post(loop, &message->task);
    if (result < 0) {
        gi_message_release(&loop->shared.messages, message);
    }
    return result;
}

static int hand_over(struct gi_accept *accept, uint32_t worker, gori_native native)
{
    struct gori_loop *loop = gi_runtime_enter(accept->runtime, worker);
    if (loop == NULL) {
        return GORI_ECLOSED;
    }
    struct gi_accept_seat *seat = &accept->seats[worker];
    struct gori_listener *listener = gi_atomic_pointer_load(&seat->listener, GI_ACQUIRE);
    /* Counted first: its peer may have an answer before this goes on. */
    (void)gi_atomic_u64_add(&seat->handed_over, 1, GI_RELAXED);
    int result = listener != NULL ? post(loop, listener, native) : GORI_ECLOSED;
    if (result < 0) {
        (void)gi_atomic_u64_sub(&seat->handed_over, 1, GI_RELAXED);
    }
    gi_runtime_leave(accept->runtime, worker);
    return result;
}

/* Counts it out of a seat that it never reached. */
static void take_back(const struct gi_accept_role *role)
{
    struct gi_accept_seat *seat = &role->accept->seats[role->worker];
    (void)gi_atomic_u32_sub(&seat->sessions, 1, GI_RELAXED);
    (void)gi_atomic_u64_sub(&seat->accepted, 1, GI_RELAXED);
}

static int try_to_dispatch(struct gi_accept *accept, gori_native native)
{
    uint32_t next = accept->next;
    struct gi_accept_role role = {.accept = accept, .worker = choose(accept)};
    if (role.worker == UINT32_MAX) {
        return GORI_ELIMIT;
    }
    gi_accept_count_in(&role);
    if (role.worker == 0) {
        return GI_ACCEPT_HERE;
    }
    int result = hand_over(accept, role.worker, native);
    if (result >= 0) {
        return GI_ACCEPT_AWAY;
    }
    take_back(&role);
    if (result != GORI_ECLOSED) {
        accept->next = next; /* it is still its turn */
        return GORI_ELIMIT;
    }
    role.worker = 0;
    gi_accept_count_in(&role);
    return GI_ACCEPT_HERE;
}

int gi_accept_dispatch(struct gi_accept *accept, gori_native native)
{
    int result = try_to_dispatch(accept, native);
    if (result < 0) {
        gi_accept_wait(accept);
        result = try_to_dispatch(accept, native);
    }
    return result;
}

/* The end ---------------------------------------------------------------------------------- */

static void end_listener(struct gori_task *task)
{
    gi_listener_feeder_ended(task->user);
}

void gi_accept_end(struct gi_accept *accept)
{
    gi_os_monitor_lock(&accept->monitor);
    bool is_first = !accept->has_ended;
    accept->has_ended = true;
    for (uint32_t i = 1; is_first && i < accept->workers; i++) {
        struct gi_accept_seat *seat = &accept->seats[i];
        struct gori_listener *listener = gi_atomic_pointer_load(&seat->listener, GI_ACQUIRE);
        struct gori_loop *loop = listener != NULL ? gi_runtime_enter(accept->runtime, i) : NULL;
        if (loop != NULL) {
            seat->end = (struct gori_task){.run = end_listener, .user = listener};
            (void)gi_loop_post_owed(loop, &seat->end);
            gi_runtime_leave(accept->runtime, i);
        }
    }
    gi_os_monitor_unlock(&accept->monitor);
}
