/* SPDX-License-Identifier: MIT */
/*
 * Accept policies.
 *
 *  1. With GORI_ACCEPT_KERNEL every worker has a socket of its own on the shared port, and this
 * here only counts.  With the others worker 0 is the acceptor: it has the one socket, and hands
 *     connections over to the listeners of the others, which have none, by messages of their loops.
 *  2. A connection is counted in a seat when it is given to it, before it arrives: a burst does not
 * go to one worker because its first sessions have not opened yet.  It is counted out when its
 *     session closes, or could not be made.
 *  3. What cannot be handed over (the worker ends, or its store of messages is empty) stays with
 * the acceptor: no connection is lost between two loops.
 *  4. The acceptor's last act is gi_accept_end: a message to every other listener, behind all that
 *     was handed over before.  A listener without a socket that is closed waits for it, so that it
 *     takes everything that is still on its way.
 *
 * Thread: dispatch by the acceptor; join, leave and the counts by the worker of the seat; the rest
 * from any.
 */
#include "rt/accept_policy.h"

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "rt/listener.h"
#include "rt/loop.h"
#include "rt/runtime.h"

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
                     const struct gori_listener_config *config, struct gi_accept **ret_accept)
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
    if (accept->policy == GORI_ACCEPT_KERNEL && !gi_os_balances_ports()) {
        accept->policy = GORI_ACCEPT_SINGLE;
    }
    accept->workers = workers;
    accept->sessions_max = config->sessions_max != 0 ? config->sessions_max : UINT32_MAX;
    *ret_accept = accept;
    return 0;
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
    (void)gi_atomic_u32_sub(&role->accept->seats[role->worker].sessions, 1, GI_RELAXED);
}

/* Choosing --------------------------------------------------------------------------------- */

static bool may_take(const struct gi_accept *accept, uint32_t worker)
{
    const struct gi_accept_seat *seat = &accept->seats[worker];
    bool is_there = worker == 0 || gi_atomic_pointer_load(&seat->listener, GI_ACQUIRE) != NULL;
    return is_there && gi_atomic_u32_load(&seat->sessions, GI_RELAXED) < accept->sessions_max;
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

int gi_accept_dispatch(struct gi_accept *accept, gori_native native)
{
    uint32_t worker = choose(accept);
    if (worker == UINT32_MAX) {
        return GORI_ELIMIT;
    }
    struct gi_accept_role role = {.accept = accept, .worker = worker};
    gi_accept_count_in(&role);
    if (worker != 0 && hand_over(accept, worker, native) >= 0) {
        return GI_ACCEPT_AWAY;
    }
    if (worker != 0) {
        gi_accept_count_out(&role);
        role.worker = 0;
        gi_accept_count_in(&role);
    }
    return GI_ACCEPT_HERE;
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
