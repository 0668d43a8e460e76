/* SPDX-License-Identifier: MIT */
/*
 * The scenario "ops": the ten rules of <gori/op.h> without sessions.  Connections whose owners
 * submit, cancel, shut, close and reset at any time, also inside of callbacks, on memory that is
 * freed at the first moment at which the contract allows it, so that the address sanitizer sees who
 * comes later.
 *
 * What must hold, whatever happens: a submitted op completes once for the last time and not after
 * that, on_close comes once and last; what is received continues the stream where it was, also over
 * cancelled receives; nothing runs inside of a call.
 */
#include <gori/error.h>
#include <gori/op.h>
#include <gori/timer.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/list.h"
#include "rt/loop.h"
#include "sim/run.h"

#define CLIENTS_MAX  12
#define BUFFER_BYTES 3000
#define PIECES_MAX   6
#define TICKS_MAX    40
#define HELD_MAX     4

struct ops;

/* One end of a connection. */
struct link_end {
    struct ops *ops;
    struct sim_loop *on;
    struct gori_link link;
    struct gori_handle handle;
    struct gori_op *recv; /* in flight, or NULL */
    struct gori_op *send;
    struct gori_timer timer;
    uint32_t in_stream;
    uint32_t out_stream;
    uint64_t received;
    uint64_t sent;
    uint64_t wanted; /* bytes that it wants to send */
    uint32_t ticks;
    bool is_connected;
    bool is_ended;   /* the other end's stream is over, or broken */
    bool is_spoiled; /* a send did not do all: what follows would have a gap */
    bool is_shut;
    bool is_closing;
    uint8_t in[BUFFER_BYTES];
    uint8_t out[BUFFER_BYTES];
    struct gori_slice pieces[PIECES_MAX];
};

struct ops {
    struct sim_run run;
    struct gori_handle listener;
    struct gori_op accept;
    struct gori_timer accept_timer;
    struct gori_timer start_timer; /* the next client connects */
    struct gori_addr addr;
    struct gori_link ends;
    uint32_t to_connect;
    bool in_call; /* inside of a call to the runtime */
    bool is_over; /* accept no more */
    bool listener_closed;
    uint64_t submitted;
    uint64_t completed;
    struct gori_buffer *held[HELD_MAX]; /* of loop 0 */
};

static struct ops ops_run;

static gori_time short_delay(struct ops *ops)
{
    return gi_random_below(&ops->run.random, 2 * GORI_MILLISECONDS);
}

static void check_callback(const struct ops *ops)
{
    SIM_CHECK(&ops->run, !ops->in_call);
}

/* Ops on memory of their own --------------------------------------------------------------- */

static struct gori_op *op_new(struct link_end *end, gori_op_fn *on_complete)
{
    struct gori_op *op = gi_alloc_zero(&end->ops->run.memory.allocator, sizeof(*op));
    GI_ASSERT(op != NULL);
    op->on_complete = on_complete;
    op->user = end;
    return op;
}

static void op_free(struct ops *ops, struct gori_op *op)
{
    gi_free(&ops->run.memory.allocator, op, sizeof(*op));
}

/* What a submit answered: the op is in flight, or gone. */
static struct gori_op *op_submitted(struct ops *ops, struct gori_op *op, int status)
{
    ops->in_call = false;
    if (status == 0) {
        ops->submitted++;
        return op;
    }
    SIM_CHECK(&ops->run, status == GORI_ENOMEM || status == GORI_ECLOSED);
    op_free(ops, op);
    return NULL;
}

/* Ends --------------------------------------------------------------------------------------- */

static void on_tick(struct gori_timer *timer);
static void act(struct link_end *end);

static struct link_end *end_new(struct ops *ops, struct sim_loop *on, bool is_client)
{
    struct link_end *end = gi_alloc_zero(&ops->run.memory.allocator, sizeof(*end));
    GI_ASSERT(end != NULL);
    end->ops = ops;
    end->on = on;
    end->timer.on_expire = on_tick;
    end->out_stream = is_client ? 1 : 2;
    end->in_stream = is_client ? 2 : 1;
    end->wanted = sim_below(&ops->run, 20000);
    end->is_connected = !is_client;
    gi_list_push_back(&ops->ends, &end->link);
    return end;
}

static void end_free(struct link_end *end)
{
    gori_timer_stop(&end->timer);
    gi_list_remove(&end->link);
    gi_free(&end->ops->run.memory.allocator, end, sizeof(*end));
}

static void on_end_close(struct gori_handle *handle)
{
    struct link_end *end = gori_container_of(handle, struct link_end, handle);
    check_callback(end->ops);
    SIM_CHECK(&end->ops->run, end->recv == NULL && end->send == NULL);
    end_free(end);
}

static void end_close(struct link_end *end)
{
    struct ops *ops = end->ops;
    end->is_closing = true;
    ops->in_call = true;
    if (sim_once_in(&ops->run, 3)) {
        gori_handle_reset(&end->handle);
    } else {
        gori_handle_close(&end->handle);
    }
    if (sim_once_in(&ops->run, 3)) {
        gori_handle_close(&end->handle); /* twice is the same as once */
    }
    ops->in_call = false;
}

/* Receiving ---------------------------------------------------------------------------------- */

/* Holds a buffer of the first loop for a while, in place of another one. */
static void hold_or_release(struct link_end *end, struct gori_buffer *buffer)
{
    struct ops *ops = end->ops;
    uint32_t place = sim_below(&ops->run, HELD_MAX);
    if (end->on->index != 0 || ops->is_over || sim_once_in(&ops->run, 2)) {
        gori_buffer_release(buffer);
        return;
    }
    if (ops->held[place] != NULL) {
        gori_buffer_release(ops->held[place]);
    }
    ops->held[place] = buffer;
}

static void take_bytes(struct link_end *end, const struct gori_completion *completion)
{
    struct sim_run *run = &end->ops->run;
    size_t size = (size_t)completion->result;
    const uint8_t *data = completion->buffer != NULL ? completion->data.data : end->in;
    SIM_CHECK(run, completion->buffer == NULL || completion->data.size == size);
    SIM_CHECK(run, sim_stream_matches(end->in_stream, end->received, data, size));
    end->received += size;
    if (completion->buffer != NULL) {
        hold_or_release(end, completion->buffer);
    }
}

static void on_recv(struct gori_op *op, const struct gori_completion *completion)
{
    struct link_end *end = op->user;
    struct ops *ops = end->ops;
    check_callback(ops);
    SIM_CHECK(&ops->run, end->recv == op && gori_op_is_active(op) == !completion->is_last);
    bool is_multi = op->kind == GORI_OP_RECV_MULTI;
    if (completion->result > 0) {
        SIM_CHECK(&ops->run, completion->is_last == !is_multi);
        take_bytes(end, completion);
    } else {
        SIM_CHECK(&ops->run, completion->is_last && completion->buffer == NULL);
        end->is_ended |= completion->result != GORI_ECANCELED;
    }
    if (completion->is_last) {
        ops->completed++;
        end->recv = NULL;
        op_free(ops, op);
    }
    act(end);
}

static void start_recv(struct link_end *end)
{
    struct ops *ops = end->ops;
    struct gori_op *op = op_new(end, on_recv);
    int status;
    ops->in_call = true;
    if (sim_once_in(&ops->run, 2)) {
        size_t size = 1 + sim_below(&ops->run, BUFFER_BYTES);
        status = gori_op_recv(op, &end->handle, end->in, size);
    } else {
        status = gori_op_recv_multi(op, &end->handle);
    }
    end->recv = op_submitted(ops, op, status);
}

/* Sending ------------------------------------------------------------------------------------ */

static void on_send(struct gori_op *op, const struct gori_completion *completion)
{
    struct link_end *end = op->user;
    struct ops *ops = end->ops;
    check_callback(ops);
    SIM_CHECK(&ops->run, end->send == op && completion->is_last && !gori_op_is_active(op));
    size_t size = 0;
    for (uint32_t i = 0; i < op->as.send.count; i++) {
        size += end->pieces[i].size;
    }
    SIM_CHECK(&ops->run, completion->result < 0 || (size_t)completion->result == size);
    end->sent += size;
    end->is_spoiled |= completion->result < 0;
    ops->completed++;
    end->send = NULL;
    op_free(ops, op);
    act(end);
}

static void start_send(struct link_end *end)
{
    struct ops *ops = end->ops;
    uint64_t left = gi_min_u64(end->wanted - end->sent, BUFFER_BYTES);
    uint32_t count = 1 + sim_below(&ops->run, PIECES_MAX);
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t piece = sim_below(&ops->run, (uint32_t)(left - size) + 1);
        end->pieces[i] = (struct gori_slice){.data = end->out + size, .size = piece};
        size += piece;
    }
    sim_stream_fill(end->out_stream, end->sent, end->out, size);
    struct gori_op *op = op_new(end, on_send);
    ops->in_call = true;
    end->send = op_submitted(ops, op, gori_op_send(op, &end->handle, end->pieces, count));
}

/* Connecting and accepting ------------------------------------------------------------------- */

static void on_connect(struct gori_op *op, const struct gori_completion *completion)
{
    struct link_end *end = op->user;
    check_callback(end->ops);
    SIM_CHECK(&end->ops->run, end->send == op && completion->is_last);
    end->is_connected = completion->result == 0;
    end->ops->completed++;
    end->send = NULL;
    op_free(end->ops, op);
    if (end->is_connected) {
        act(end);
    } else if (!end->is_closing) {
        end_close(end);
    }
}

static void start_client(struct ops *ops)
{
    uint32_t loop = sim_below(&ops->run, ops->run.loop_count);
    struct link_end *end = end_new(ops, &ops->run.loops[loop], true);
    enum gori_addr_family family = gori_addr_family(&ops->addr);
    ops->to_connect--;
    if (gori_handle_open(end->on->loop, family, &end->handle) < 0) {
        end_free(end);
        return;
    }
    end->handle.on_close = on_end_close;
    gori_timer_start(end->on->loop, &end->timer, short_delay(ops));
    struct gori_op *op = op_new(end, on_connect);
    ops->in_call = true;
    end->send = op_submitted(ops, op, gori_op_connect(op, &end->handle, &ops->addr));
    if (end->send == NULL) {
        end_close(end);
    }
}

static void on_start_timer(struct gori_timer *timer)
{
    struct ops *ops = gori_container_of(timer, struct ops, start_timer);
    start_client(ops);
    if (ops->to_connect > 0) {
        gori_timer_start(ops->run.loops[0].loop, timer, 3 * short_delay(ops));
    }
}

static void take_accepted(struct ops *ops, gori_native native)
{
    struct link_end *end = end_new(ops, &ops->run.loops[0], false);
    if (ops->is_over || gori_handle_adopt(end->on->loop, native, &end->handle) < 0) {
        gori_native_close(end->on->loop, native);
        end_free(end);
        return;
    }
    end->handle.on_close = on_end_close;
    gori_timer_start(end->on->loop, &end->timer, 0);
}

static void start_accept(struct ops *ops)
{
    int status = gori_op_accept(&ops->accept, &ops->listener);
    if (status == 0) {
        ops->submitted++;
    } else {
        gori_timer_start(ops->run.loops[0].loop, &ops->accept_timer, short_delay(ops));
    }
}

static void on_accept(struct gori_op *op, const struct gori_completion *completion)
{
    struct ops *ops = op->user;
    check_callback(ops);
    if (completion->accepted != GORI_NATIVE_NONE) {
        SIM_CHECK(&ops->run, completion->result >= 0);
        take_accepted(ops, completion->accepted);
    } else {
        SIM_CHECK(&ops->run, completion->is_last && completion->result < 0);
    }
    if (completion->is_last) {
        ops->completed++;
    }
    if (completion->is_last && !ops->is_over) {
        gori_timer_start(ops->run.loops[0].loop, &ops->accept_timer, short_delay(ops));
    } else if (sim_once_in(&ops->run, 6)) {
        gori_op_cancel(op);
    }
}

static void on_accept_timer(struct gori_timer *timer)
{
    struct ops *ops = gori_container_of(timer, struct ops, accept_timer);
    if (!gori_op_is_active(&ops->accept) && !ops->is_over) {
        start_accept(ops);
    }
}

static void on_listener_close(struct gori_handle *handle)
{
    struct ops *ops = gori_container_of(handle, struct ops, listener);
    SIM_CHECK(&ops->run, !gori_op_is_active(&ops->accept) && !ops->listener_closed);
    ops->listener_closed = true;
}

/* What an owner does: anything that is allowed ------------------------------------------------ */

static void cancel_some(struct link_end *end)
{
    struct ops *ops = end->ops;
    ops->in_call = true;
    if (end->recv != NULL && sim_once_in(&ops->run, 4)) {
        gori_op_cancel(end->recv);
    }
    if (end->send != NULL && sim_once_in(&ops->run, 12)) {
        gori_op_cancel(end->send);
        gori_op_cancel(end->send); /* asking twice is asking once */
    }
    ops->in_call = false;
}

static void act(struct link_end *end)
{
    struct ops *ops = end->ops;
    struct sim_run *run = &ops->run;
    if (end->is_closing || !end->is_connected) {
        return;
    }
    if (sim_once_in(run, 40) || end->ticks > TICKS_MAX) {
        end_close(end);
        return;
    }
    if (end->recv == NULL && !end->is_ended && sim_once_in(run, 2)) {
        start_recv(end);
    }
    if (end->send == NULL && !end->is_spoiled && !end->is_shut) {
        if (end->sent < end->wanted) {
            start_send(end);
        } else {
            end->is_shut = gori_handle_shutdown(&end->handle) == 0;
        }
    }
    cancel_some(end);
}

static void on_tick(struct gori_timer *timer)
{
    struct link_end *end = gori_container_of(timer, struct link_end, timer);
    end->ticks++;
    gori_timer_start(end->on->loop, &end->timer, short_delay(end->ops));
    if (!end->is_connected && end->ticks > TICKS_MAX && !end->is_closing) {
        end_close(end);
        return;
    }
    act(end);
}

/* The run ------------------------------------------------------------------------------------ */

static bool clients_are_done(void *user)
{
    const struct ops *ops = user;
    return ops->to_connect == 0 && gi_list_is_empty(&ops->ends);
}

static bool enough_steps(void *user)
{
    struct ops *ops = user;
    return clients_are_done(ops) || sim_once_in(&ops->run, 200);
}

static bool listener_is_closed(void *user)
{
    struct ops *ops = user;
    return ops->listener_closed && gi_list_is_empty(&ops->ends);
}

static void release_held(struct ops *ops)
{
    for (uint32_t i = 0; i < HELD_MAX; i++) {
        if (ops->held[i] != NULL) {
            gori_buffer_release(ops->held[i]);
            ops->held[i] = NULL;
        }
    }
}

static void add_loops(struct ops *ops)
{
    uint32_t count = 1 + sim_below(&ops->run, 3);
    for (uint32_t i = 0; i < count; i++) {
        struct gori_loop_config config = {
            .buffer_bytes = 512U << sim_below(&ops->run, 3),
            .buffers_max = 1 + HELD_MAX + sim_below(&ops->run, 10),
            .completions_max = 1 + sim_below(&ops->run, 20),
        };
        struct sim_loop *loop;
        int status = sim_run_add_loop(&ops->run, &config, &loop);
        SIM_CHECK(&ops->run, status == 0);
    }
}

static bool open_listener(struct ops *ops)
{
    gori_native native;
    struct gi_engine *engine = ops->run.loops[0].loop->engine;
    struct gi_listen_options options = {.backlog = 1 + sim_below(&ops->run, 8)};
    int status = gori_addr_parse("127.0.0.1:9", &ops->addr);
    SIM_CHECK(&ops->run, status == 0);
    if (engine->impl->sockets->listen(engine, &ops->addr, &options, &native) < 0) {
        return false;
    }
    status = gori_handle_adopt(ops->run.loops[0].loop, native, &ops->listener);
    SIM_CHECK(&ops->run, status == 0);
    ops->listener.on_close = on_listener_close;
    ops->accept.on_complete = on_accept;
    ops->accept.user = ops;
    ops->accept_timer.on_expire = on_accept_timer;
    ops->start_timer.on_expire = on_start_timer;
    gori_timer_start(ops->run.loops[0].loop, &ops->start_timer, 0);
    start_accept(ops);
    return true;
}

static uint64_t play_ops(uint64_t seed)
{
    struct ops *ops = &ops_run;
    memset(ops, 0, sizeof(*ops));
    gi_list_init(&ops->ends);
    sim_run_begin(&ops->run, seed);
    ops->to_connect = 1 + sim_below(&ops->run, CLIENTS_MAX);
    add_loops(ops);
    if (!open_listener(ops)) {
        return sim_run_end(&ops->run);
    }
    bool is_abrupt = sim_once_in(&ops->run, 4);
    sim_run_until(&ops->run, is_abrupt ? enough_steps : clients_are_done, ops);
    ops->is_over = true;
    release_held(ops);
    gori_timer_stop(&ops->accept_timer);
    gori_timer_stop(&ops->start_timer);
    gori_handle_close(&ops->listener);
    if (!is_abrupt) {
        sim_run_until(&ops->run, listener_is_closed, ops);
    }
    for (uint32_t i = 0; i < ops->run.loop_count; i++) {
        sim_run_destroy_loop(&ops->run, &ops->run.loops[i]);
    }
    SIM_CHECK(&ops->run, ops->submitted == ops->completed && gi_list_is_empty(&ops->ends));
    return sim_run_end(&ops->run);
}

const struct sim_scenario sim_ops = {.name = "ops", .seeds = 500, .play = play_ops};
