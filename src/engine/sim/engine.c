/* SPDX-License-Identifier: MIT */
/*
 * The simulated engine: completions over the sockets of a simulated world, as a kernel with a
 * completion queue gives them.  A submitted op waits for the turn that hands it over; each turn
 * does what can be done for every op, in the order of their submission or in one that the seed
 * chooses, and queues completions by slot and generation; `next` takes them out and drops those of
 * ops that are over.
 *
 *  1. An op record is free, or in `ops` until `next` gives out its last completion.
 *  2. Completions of one op leave in the order in which they were queued, whatever the seed.
 *  3. The queue has `completions_max` places; an op that finds none stops, and goes on in a later
 *     turn (an overflow, and a multishot op armed anew).
 *  4. A handle's descriptor is closed when its last op's last completion has been given out, or in
 *     the next turn when it has none; `closed` comes after that.
 * Thread: the loop's.  Reading list: engine/engine.h (E1 to E12), sim.h.
 */
#include <gori/error.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"
#include "engine/sim/world.h"
#include "os/os.h"

#define FILE_CHUNK_BYTES 4096
#define OVERTAKE_MAX     8 /* places that a completion moves forward at most */

struct sim_handle {
    struct gori_link link; /* in `closing`, in `closed` */
    struct gori_handle *handle;
    gori_native native;
    struct sim_op *receiving; /* in flight: one of each at most (E4) */
    struct sim_op *sending;
    struct sim_handle *next_free;
    uint32_t index;
    bool closing;
};

struct sim_op {
    struct gori_link link; /* in `ops` */
    struct gori_op *op;    /* NULL: free */
    struct sim_handle *handle;
    struct sim_op *next_free;
    gori_time not_before; /* a fault holds it back until then */
    gori_time cancel_at;  /* `canceling` takes effect then */
    uint32_t index;
    uint32_t generation;
    bool flushed; /* the kernel has it */
    bool canceling;
    bool done;    /* its last completion is queued */
    bool starved; /* waits for a buffer */
};

struct sim_entry {
    struct gori_link link; /* in `queue`, in `spare` */
    uint32_t index;
    uint32_t generation;
    int64_t result;
    gori_native accepted;
    struct gori_buffer *buffer;
    bool is_last;
};

struct sim_engine {
    struct gi_engine base;
    struct gori_link link; /* in the world's engines */
    struct gi_sim *sim;
    const struct gori_allocator *allocator;
    struct gi_buffers *buffers;
    struct gi_engine_stats stats;
    struct gori_link ops;   /* in flight */
    struct gori_link queue; /* of completions, oldest first */
    struct gori_link spare; /* entries not in use */
    struct gori_link closing;
    struct gori_link closed;
    struct sim_entry *entries;
    struct sim_op **op_table; /* by slot; grows, never shrinks */
    struct sim_handle **handle_table;
    struct sim_op *free_ops;
    struct sim_handle *free_handles;
    uint32_t op_count; /* in flight */
    uint32_t ops_max;
    uint32_t op_slots;
    uint32_t op_capacity;
    uint32_t handle_slots;
    uint32_t handle_capacity;
    uint32_t handle_count;
    uint32_t entry_count;
    bool woken;
};

static struct sim_engine *self(struct gi_engine *engine)
{
    return gori_container_of(engine, struct sim_engine, base);
}

static gori_time random_pause(struct gi_sim *sim)
{
    return gi_random_range(&sim->random, GORI_MICROSECONDS, 5 * GORI_MILLISECONDS);
}

/* Records ---------------------------------------------------------------------------------- */

/* Room for one more pointer in a table of slots. */
static bool table_reserve(struct sim_engine *engine, void *table_pointer, uint32_t *capacity,
                          uint32_t count)
{
    if (count < *capacity) {
        return true;
    }
    void **table = table_pointer;
    uint32_t grown = gi_max_u32(32, 2 * *capacity);
    void *memory =
        gi_realloc(engine->allocator, *table, *capacity * sizeof(void *), grown * sizeof(void *));
    if (memory == NULL) {
        return false;
    }
    *table = memory;
    *capacity = grown;
    return true;
}

static struct sim_op *op_acquire(struct sim_engine *engine)
{
    struct sim_op *record = engine->free_ops;
    if (record != NULL) {
        engine->free_ops = record->next_free;
        return record;
    }
    if (!table_reserve(engine, &engine->op_table, &engine->op_capacity, engine->op_slots)) {
        return NULL;
    }
    record = gi_alloc_zero(engine->allocator, sizeof(*record));
    if (record != NULL) {
        record->index = engine->op_slots;
        engine->op_table[engine->op_slots++] = record;
    }
    return record;
}

static struct sim_handle *handle_acquire(struct sim_engine *engine)
{
    struct sim_handle *record = engine->free_handles;
    if (record != NULL) {
        engine->free_handles = record->next_free;
        return record;
    }
    if (!table_reserve(engine, &engine->handle_table, &engine->handle_capacity,
                       engine->handle_slots)) {
        return NULL;
    }
    record = gi_alloc_zero(engine->allocator, sizeof(*record));
    if (record != NULL) {
        record->index = engine->handle_slots;
        engine->handle_table[engine->handle_slots++] = record;
    }
    return record;
}

static struct sim_handle *handle_get(struct sim_engine *engine, const struct gori_handle *handle)
{
    if (handle->slot >= engine->handle_slots ||
        engine->handle_table[handle->slot]->handle != handle) {
        gi_sim_fail(engine->sim, "a handle that is not attached, or is closed already");
    }
    return engine->handle_table[handle->slot];
}

/* The completion queue --------------------------------------------------------------------- */

static bool has_room(struct sim_engine *engine)
{
    return !gi_list_is_empty(&engine->spare);
}

static struct sim_entry *post(struct sim_engine *engine, struct sim_op *record, int64_t result,
                              bool is_last)
{
    struct gori_link *link = gi_list_pop_front(&engine->spare);
    GI_ASSERT(link != NULL && !record->done);
    struct sim_entry *entry = gori_container_of(link, struct sim_entry, link);
    *entry = (struct sim_entry){.index = record->index,
                                .generation = record->generation,
                                .result = result,
                                .accepted = GORI_NATIVE_NONE,
                                .is_last = is_last};
    gi_list_push_back(&engine->queue, &entry->link);
    record->done = is_last;
    gi_sim_trace(engine->sim, is_last ? "last" : "more", record->index, record->op->kind, result);
    return entry;
}

/* The completion of an op that is over comes again: a kernel's late word, to be dropped. */
static void post_stale(struct sim_engine *engine, const struct sim_op *record)
{
    struct gori_link *link = gi_list_pop_front(&engine->spare);
    if (link == NULL) {
        return;
    }
    struct sim_entry *entry = gori_container_of(link, struct sim_entry, link);
    *entry = (struct sim_entry){.index = record->index,
                                .generation = record->generation,
                                .result = 1,
                                .accepted = GORI_NATIVE_NONE,
                                .is_last = true};
    gi_list_push_back(&engine->queue, &entry->link);
    engine->sim->stats.stale++;
}

/* Which completion leaves next: the oldest, or, by chance, the oldest of another op. */
static struct sim_entry *choose_entry(struct sim_engine *engine)
{
    struct gori_link *chosen = gi_list_first(&engine->queue);
    if (!gi_sim_chance(engine->sim, engine->sim->config.faults.shuffle)) {
        return gori_container_of(chosen, struct sim_entry, link);
    }
    uint64_t steps = gi_random_below(&engine->sim->random, OVERTAKE_MAX);
    for (; steps > 0 && chosen->next != &engine->queue; steps--) {
        chosen = chosen->next;
    }
    const struct sim_entry *wanted = gori_container_of(chosen, struct sim_entry, link);
    struct sim_entry *entry;
    GI_LIST_FOREACH (link, &engine->queue) {
        entry = gori_container_of(link, struct sim_entry, link);
        if (entry->index == wanted->index) {
            break;
        }
    }
    return entry;
}

/* Work: what the kernel does for one op in one turn ---------------------------------------- */

static bool is_ready(const struct sim_engine *engine, const struct sim_op *record)
{
    if (record->handle == NULL) {
        return true; /* a file */
    }
    uint32_t ready = gi_sim_ready(engine->sim, record->handle->native);
    switch (record->op->kind) {
    case GORI_OP_RECV_MULTI:
        return (ready & GI_SIM_READABLE) != 0 &&
               (!record->starved || gi_buffers_can_lend(engine->buffers));
    case GORI_OP_ACCEPT:
    case GORI_OP_RECV:
    case GORI_OP_WAIT:
        return (ready & GI_SIM_READABLE) != 0;
    default:
        return (ready & GI_SIM_WRITABLE) != 0;
    }
}

static bool overflows(struct sim_engine *engine, const struct sim_op *record)
{
    if (has_room(engine)) {
        return false;
    }
    engine->sim->stats.overflows++;
    gi_sim_trace(engine->sim, "overflow", record->index, record->op->kind, 0);
    return true;
}

static void work_accept(struct sim_engine *engine, struct sim_op *record)
{
    for (uint32_t i = 0; i < engine->sim->config.burst_max && !overflows(engine, record); i++) {
        gori_native accepted;
        int status = gi_sim_accept(engine->sim, record->handle->native, &accepted);
        if (status == GORI_EAGAIN) {
            return;
        }
        if (status < 0) {
            post(engine, record, status, true);
            return;
        }
        post(engine, record, 0, false)->accepted = accepted;
    }
}

static void work_connect(struct sim_engine *engine, struct sim_op *record)
{
    int status = gi_sim_connect(engine->sim, record->handle->native, record->op->as.connect.addr);
    if (status != GORI_EAGAIN && !overflows(engine, record)) {
        post(engine, record, status, true);
    }
}

/* How many bytes a receive asks for at most. */
static size_t recv_size(struct gi_sim *sim, size_t size)
{
    return gi_sim_chance(sim, sim->config.faults.short_recv) ? gi_sim_cut_size(sim, size) : size;
}

static void work_recv(struct sim_engine *engine, struct sim_op *record)
{
    if (overflows(engine, record)) {
        return;
    }
    struct gori_op *op = record->op;
    int64_t result = gi_sim_recv(engine->sim, record->handle->native, op->as.recv.data,
                                 recv_size(engine->sim, op->as.recv.size));
    if (result != GORI_EAGAIN) {
        post(engine, record, result, true);
    }
}

/* A buffer for a receive that is ready, or NULL: then it waits, and is tried again. */
static struct gori_buffer *lend(struct sim_engine *engine, struct sim_op *record)
{
    struct gi_sim *sim = engine->sim;
    bool made_up = gi_sim_chance(sim, sim->config.faults.starve);
    struct gori_buffer *buffer = made_up ? NULL : gi_buffers_lend(engine->buffers);
    record->starved = buffer == NULL;
    if (buffer == NULL) {
        gi_sim_trace(sim, "starved", record->index, made_up, engine->buffers->held_count);
        if (gi_buffers_can_lend(engine->buffers)) {
            /* It is memory that is short, or nothing at all: no release will tell us. */
            record->not_before = sim->now + GORI_MILLISECONDS;
        }
    }
    return buffer;
}

static void work_recv_multi(struct sim_engine *engine, struct sim_op *record)
{
    struct gi_sim *sim = engine->sim;
    for (uint32_t i = 0; i < sim->config.burst_max && is_ready(engine, record); i++) {
        if (overflows(engine, record)) {
            return;
        }
        struct gori_buffer *buffer = lend(engine, record);
        if (buffer == NULL) {
            return;
        }
        int64_t result = gi_sim_recv(sim, record->handle->native, buffer->data,
                                     recv_size(sim, engine->buffers->buffer_bytes));
        if (result <= 0) {
            gi_buffers_unlend(engine->buffers, buffer);
            post(engine, record, result, true);
            return;
        }
        post(engine, record, result, false)->buffer = buffer;
        if (gi_sim_chance(sim, sim->config.faults.late)) {
            record->not_before = sim->now + random_pause(sim);
            return;
        }
    }
}

static void work_wait(struct sim_engine *engine, struct sim_op *record)
{
    if (!overflows(engine, record)) {
        post(engine, record, 0, true);
    }
}

/* Hands bytes to the network.  Result: as gi_sim_send; a fault makes it less, and a pause. */
static int64_t send_some(struct sim_engine *engine, struct sim_op *record, const void *data,
                         size_t size)
{
    struct gi_sim *sim = engine->sim;
    size_t wanted = size;
    if (size > 1 && gi_sim_chance(sim, sim->config.faults.short_send)) {
        wanted = gi_sim_cut_size(sim, size);
        record->not_before = sim->now + random_pause(sim);
    }
    return gi_sim_send(sim, record->handle->native, data, wanted);
}

/* The next bytes of a send, passing over empty pieces; size 0 when all are sent. */
static struct gori_slice send_rest(struct gori_op *op)
{
    while (op->as.send.index < op->as.send.count) {
        struct gori_slice piece = op->as.send.pieces[op->as.send.index];
        if (op->as.send.offset < piece.size) {
            return (struct gori_slice){.data = piece.data + op->as.send.offset,
                                       .size = piece.size - op->as.send.offset};
        }
        op->as.send.index++;
        op->as.send.offset = 0;
    }
    return (struct gori_slice){0};
}

static void work_send(struct sim_engine *engine, struct sim_op *record)
{
    struct gori_op *op = record->op;
    if (overflows(engine, record)) {
        return;
    }
    for (;;) {
        struct gori_slice rest = send_rest(op);
        if (rest.size == 0) {
            post(engine, record, (int64_t)op->as.send.progress, true);
            return;
        }
        int64_t sent = send_some(engine, record, rest.data, rest.size);
        if (sent < 0) {
            if (sent != GORI_EAGAIN) {
                post(engine, record, sent, true);
            }
            return;
        }
        op->as.send.offset += (size_t)sent;
        op->as.send.progress += (size_t)sent;
        if ((size_t)sent < rest.size) {
            return;
        }
    }
}

/* A file of the world, or one of the machine: what a test sends may be either. */
static int64_t read_file(struct sim_engine *engine, int file, void *data, size_t size,
                         uint64_t offset)
{
    return file >= GI_SIM_FILES_FROM ? gi_sim_file_read(engine->sim, file, data, size, offset)
                                     : gi_os_read_at(file, data, size, offset);
}

static void work_send_file(struct sim_engine *engine, struct sim_op *record)
{
    struct gori_op *op = record->op;
    uint8_t chunk[FILE_CHUNK_BYTES];
    if (overflows(engine, record)) {
        return;
    }
    while (op->as.send_file.progress < op->as.send_file.size) {
        uint64_t left = op->as.send_file.size - op->as.send_file.progress;
        int64_t got =
            read_file(engine, op->as.send_file.file, chunk, (size_t)gi_min_u64(left, sizeof(chunk)),
                      op->as.send_file.offset + op->as.send_file.progress);
        if (got <= 0) {
            post(engine, record, got == 0 ? GORI_ETRUNCATED : got, true);
            return;
        }
        int64_t sent = send_some(engine, record, chunk, (size_t)got);
        if (sent < 0) {
            if (sent != GORI_EAGAIN) {
                post(engine, record, sent, true);
            }
            return;
        }
        op->as.send_file.progress += (uint64_t)sent;
        if (sent < got) {
            return;
        }
    }
    post(engine, record, (int64_t)op->as.send_file.progress, true);
}

static void work_file(struct sim_engine *engine, struct sim_op *record)
{
    if (overflows(engine, record)) {
        return;
    }
    int64_t result = gi_sim_file_work(engine->sim, gi_file_op_of(record->op));
    if (result == GORI_EAGAIN) {
        record->not_before = engine->sim->now + random_pause(engine->sim);
        return;
    }
    post(engine, record, result, true);
}

static void work_kind(struct sim_engine *engine, struct sim_op *record)
{
    if (record->handle == NULL) {
        work_file(engine, record);
        return;
    }
    switch (record->op->kind) {
    case GORI_OP_ACCEPT:
        work_accept(engine, record);
        break;
    case GORI_OP_CONNECT:
        work_connect(engine, record);
        break;
    case GORI_OP_RECV:
        work_recv(engine, record);
        break;
    case GORI_OP_RECV_MULTI:
        work_recv_multi(engine, record);
        break;
    case GORI_OP_SEND:
        work_send(engine, record);
        break;
    case GORI_OP_SEND_FILE:
        work_send_file(engine, record);
        break;
    case GORI_OP_WAIT:
    case GORI_OP_WAIT_WRITABLE:
        work_wait(engine, record);
        break;
    default:
        gi_sim_fail(engine->sim, "an op of a kind that does not exist");
    }
}

static bool is_cancel_due(const struct sim_engine *engine, const struct sim_op *record)
{
    return record->canceling && record->cancel_at <= engine->sim->now;
}

static void work(struct sim_engine *engine, struct sim_op *record)
{
    struct gi_sim *sim = engine->sim;
    if (record->done || !record->flushed) {
        return;
    }
    bool cancel = is_cancel_due(engine, record);
    bool lost = cancel && gi_sim_chance(sim, sim->config.faults.cancel_lost);
    if ((!cancel || lost) && record->not_before <= sim->now && is_ready(engine, record)) {
        work_kind(engine, record);
    }
    if (cancel && record->done) {
        sim->stats.cancels_lost++;
    } else if (cancel && !overflows(engine, record)) {
        post(engine, record, GORI_ECANCELED, true);
    }
}

/* Whether `work` would do something now. */
static bool can_work(const struct sim_engine *engine, const struct sim_op *record)
{
    if (record->done) {
        return false;
    }
    return !record->flushed || is_cancel_due(engine, record) ||
           (record->not_before <= engine->sim->now && is_ready(engine, record));
}

/* The vtable: life ------------------------------------------------------------------------- */

static int engine_create(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    struct gi_sim *sim = config->simulation;
    if (sim == NULL) {
        return GORI_EINVAL;
    }
    struct sim_engine *engine = gi_alloc_zero(config->allocator, sizeof(*engine));
    if (engine == NULL) {
        return GORI_ENOMEM;
    }
    engine->entry_count = sim->config.completions_max;
    engine->entries =
        gi_alloc_array(config->allocator, engine->entry_count, sizeof(struct sim_entry));
    if (engine->entries == NULL) {
        gi_free(config->allocator, engine, sizeof(*engine));
        return GORI_ENOMEM;
    }
    engine->base.impl = &gi_engine_sim;
    engine->base.native_kinds = UINT32_MAX;
    engine->base.files_place = sim;
    engine->sim = sim;
    engine->allocator = config->allocator;
    engine->buffers = config->buffers;
    engine->ops_max = config->ops_max;
    gi_list_init(&engine->ops);
    gi_list_init(&engine->queue);
    gi_list_init(&engine->spare);
    gi_list_init(&engine->closing);
    gi_list_init(&engine->closed);
    for (uint32_t i = 0; i < engine->entry_count; i++) {
        gi_list_push_back(&engine->spare, &engine->entries[i].link);
    }
    gi_list_push_back(&sim->engines, &engine->link);
    *ret_engine = &engine->base;
    return 0;
}

static void forget_actor(struct gi_sim *sim, const struct gi_engine *base)
{
    GI_LIST_FOREACH (link, &sim->actors) {
        struct gi_sim_actor *actor = gori_container_of(link, struct gi_sim_actor, link);
        if (actor->engine == base) {
            actor->engine = NULL;
        }
    }
}

static void engine_destroy(struct gi_engine *base)
{
    struct sim_engine *engine = self(base);
    if (engine->op_count > 0 || engine->handle_count > 0) {
        gi_sim_fail(engine->sim, "an engine ends before its ops or handles");
    }
    if (engine->buffers->lent_count > 0) {
        gi_sim_fail(engine->sim, "an engine ends with lent buffers");
    }
    forget_actor(engine->sim, base);
    for (uint32_t i = 0; i < engine->op_slots; i++) {
        gi_free(engine->allocator, engine->op_table[i], sizeof(struct sim_op));
    }
    for (uint32_t i = 0; i < engine->handle_slots; i++) {
        gi_free(engine->allocator, engine->handle_table[i], sizeof(struct sim_handle));
    }
    gi_free(engine->allocator, engine->op_table, engine->op_capacity * sizeof(struct sim_op *));
    gi_free(engine->allocator, engine->handle_table,
            engine->handle_capacity * sizeof(struct sim_handle *));
    gi_free(engine->allocator, engine->entries, engine->entry_count * sizeof(struct sim_entry));
    gi_list_remove(&engine->link);
    gi_free(engine->allocator, engine, sizeof(*engine));
}

static void engine_report(struct gori_engine_report *ret_report)
{
    *ret_report = (struct gori_engine_report){
        .name = "sim",
        .usable = true,
        .state = GORI_FEATURE_USED,
        .text = "a simulated kernel for tests: virtual time, every order of events from a seed",
    };
}

static gori_time engine_now(struct gi_engine *base)
{
    return self(base)->sim->now;
}

static void engine_stats(const struct gi_engine *base, struct gi_engine_stats *ret_stats)
{
    *ret_stats = gori_container_of(base, const struct sim_engine, base)->stats;
}

/* The vtable: handles and ops -------------------------------------------------------------- */

static int engine_attach(struct gi_engine *base, struct gori_handle *handle)
{
    struct sim_engine *engine = self(base);
    (void)gi_sim_ready(engine->sim, handle->native); /* which knows whether it is open */
    struct sim_handle *record = handle_acquire(engine);
    if (record == NULL) {
        return GORI_ENOMEM;
    }
    uint32_t index = record->index;
    *record = (struct sim_handle){.handle = handle, .native = handle->native, .index = index};
    handle->slot = index;
    handle->in_flight = 0;
    engine->handle_count++;
    gi_sim_trace(engine->sim, "attach", handle->native, index, 0);
    return 0;
}

static struct sim_op **direction_of(struct sim_handle *handle, uint8_t kind)
{
    bool reads = kind == GORI_OP_ACCEPT || kind == GORI_OP_RECV || kind == GORI_OP_RECV_MULTI ||
                 kind == GORI_OP_WAIT;
    return reads ? &handle->receiving : &handle->sending;
}

/* Takes an op in; `handle` is NULL for one on a file. */
static int admit(struct sim_engine *engine, struct gori_op *op, struct sim_handle *handle)
{
    struct gi_sim *sim = engine->sim;
    gori_native native = handle != NULL ? handle->native : GORI_NATIVE_NONE;
    if (engine->op_count >= engine->ops_max) {
        return GORI_ELIMIT;
    }
    if (++sim->submits == sim->config.submit_fails_at ||
        gi_sim_chance(sim, sim->config.faults.submit_error)) {
        gi_sim_trace(sim, "submit fails", native, op->kind, (int64_t)sim->submits);
        return GORI_ENOMEM;
    }
    struct sim_op *record = op_acquire(engine);
    if (record == NULL) {
        return GORI_ENOMEM;
    }
    *record = (struct sim_op){
        .op = op, .handle = handle, .index = record->index, .generation = record->generation};
    op->slot = record->index;
    engine->op_count++;
    gi_list_push_back(&engine->ops, &record->link);
    gi_sim_trace(sim, "submit", record->index, op->kind, native);
    return 0;
}

static int engine_submit(struct gi_engine *base, struct gori_op *op)
{
    struct sim_engine *engine = self(base);
    struct gi_sim *sim = engine->sim;
    if (gi_is_file_kind(op->kind)) {
        return admit(engine, op, NULL);
    }
    struct sim_handle *handle = handle_get(engine, op->handle);
    struct sim_op **direction = direction_of(handle, op->kind);
    if (handle->closing) {
        gi_sim_fail(sim, "a submit on a handle that closes");
    }
    bool is_wait = op->kind == GORI_OP_WAIT || op->kind == GORI_OP_WAIT_WRITABLE;
    if (((op->handle->flags & GI_HANDLE_SOURCE) != 0) != is_wait) {
        gi_sim_fail(sim, "a wait on a socket, or another op on an event source");
    }
    if (*direction != NULL) {
        gi_sim_fail(sim, "a second op in one direction of a handle");
    }
    int result = admit(engine, op, handle);
    if (result < 0) {
        return result;
    }
    *direction = engine->op_table[op->slot];
    op->handle->in_flight++;
    return 0;
}

static void begin_cancel(struct sim_engine *engine, struct sim_op *record)
{
    struct gi_sim *sim = engine->sim;
    if (record == NULL || record->canceling) {
        return;
    }
    record->canceling = true;
    record->cancel_at = sim->now;
    if (gi_sim_chance(sim, sim->config.faults.cancel_late)) {
        record->cancel_at += random_pause(sim);
    }
    gi_sim_trace(sim, "cancel", record->index, record->op->kind, record->done);
}

static void engine_cancel(struct gi_engine *base, struct gori_op *op)
{
    struct sim_engine *engine = self(base);
    if (op->slot >= engine->op_slots || engine->op_table[op->slot]->op != op) {
        gi_sim_fail(engine->sim, "a cancel of an op that is not in flight");
    }
    begin_cancel(engine, engine->op_table[op->slot]);
}

static void engine_close(struct gi_engine *base, struct gori_handle *handle)
{
    struct sim_engine *engine = self(base);
    struct sim_handle *record = handle_get(engine, handle);
    if (record->closing) {
        gi_sim_fail(engine->sim, "a second close of a handle");
    }
    gi_sim_trace(engine->sim, "close handle", record->native, handle->in_flight, 0);
    record->closing = true;
    begin_cancel(engine, record->receiving);
    begin_cancel(engine, record->sending);
    if (handle->in_flight == 0) {
        gi_list_push_back(&engine->closing, &record->link);
    }
}

/* The vtable: the turn --------------------------------------------------------------------- */

static void close_descriptor(struct sim_engine *engine, struct sim_handle *record)
{
    gi_sim_close(engine->sim, record->native);
    gi_list_push_back(&engine->closed, &record->link);
}

static void flush(struct sim_engine *engine)
{
    struct gi_sim *sim = engine->sim;
    GI_LIST_FOREACH (link, &engine->ops) {
        struct sim_op *record = gori_container_of(link, struct sim_op, link);
        if (!record->flushed && !gi_sim_chance(sim, sim->config.faults.late_submit)) {
            record->flushed = true;
            if (gi_sim_chance(sim, sim->config.faults.late)) {
                record->not_before = sim->now + random_pause(sim);
            }
        }
    }
    struct gori_link *link;
    while ((link = gi_list_pop_front(&engine->closing)) != NULL) {
        close_descriptor(engine, gori_container_of(link, struct sim_handle, link));
    }
}

/*
 * One round of work.  It begins with a different op each time, so that a full queue or an empty
 * pool does not always hit the same ones: those served go behind the others.
 */
static void work_all(struct sim_engine *engine)
{
    struct gi_sim *sim = engine->sim;
    struct gori_link later;
    struct gori_link served;
    gi_list_init(&later);
    gi_list_init(&served);
    struct gori_link *link;
    while ((link = gi_list_pop_front(&engine->ops)) != NULL) {
        if (!gi_list_is_empty(&engine->ops) && gi_sim_chance(sim, sim->config.faults.shuffle)) {
            gi_list_push_back(&engine->ops, link);
            link = gi_list_pop_front(&engine->ops);
        }
        struct sim_op *record = gori_container_of(link, struct sim_op, link);
        uint64_t events = sim->stats.events;
        work(engine, record);
        gi_list_push_back(sim->stats.events != events ? &served : &later, link);
    }
    gi_list_move_all(&later, &engine->ops);
    gi_list_move_all(&served, &engine->ops);
}

static bool has_deliveries(const struct sim_engine *engine)
{
    return !gi_list_is_empty(&engine->queue) || !gi_list_is_empty(&engine->closed);
}

bool gi_sim_engine_has_work(struct gi_engine *base)
{
    struct sim_engine *engine = self(base);
    if (engine->woken || has_deliveries(engine) || !gi_list_is_empty(&engine->closing)) {
        return true;
    }
    GI_LIST_FOREACH (link, &engine->ops) {
        if (can_work(engine, gori_container_of(link, struct sim_op, link))) {
            return true;
        }
    }
    return false;
}

gori_time gi_sim_engine_next_time(struct gi_engine *base)
{
    struct sim_engine *engine = self(base);
    gori_time now = engine->sim->now;
    gori_time time = GORI_NEVER;
    GI_LIST_FOREACH (link, &engine->ops) {
        const struct sim_op *record = gori_container_of(link, struct sim_op, link);
        if (record->not_before > now) {
            time = gi_min_u64(time, record->not_before);
        }
        if (record->canceling && record->cancel_at > now) {
            time = gi_min_u64(time, record->cancel_at);
        }
    }
    return time;
}

/* Moves the clock to the next thing that happens to this loop or to the network. */
static void wait_alone(struct sim_engine *engine, gori_time deadline)
{
    struct gi_sim *sim = engine->sim;
    gori_time time = gi_min_u64(gi_sim_next_event(sim), gi_sim_engine_next_time(&engine->base));
    time = gi_min_u64(time, deadline);
    if (time == GORI_NEVER) {
        gi_sim_fail(sim, "a loop waits, and nothing can ever happen again");
    }
    gi_sim_advance(sim, time);
}

static int engine_turn(struct gi_engine *base, gori_time deadline)
{
    struct sim_engine *engine = self(base);
    struct gi_sim *sim = engine->sim;
    engine->stats.waits++;
    gi_sim_trace(sim, "turn", engine->op_count, engine->woken, 0);
    if (sim->config.turn_cost > 0) {
        gi_sim_advance(sim, sim->now + sim->config.turn_cost);
    }
    for (;;) {
        flush(engine);
        gi_sim_run_due(sim);
        work_all(engine);
        if (engine->woken || has_deliveries(engine) || deadline <= sim->now ||
            gi_sim_chance(sim, sim->config.faults.spurious)) {
            break;
        }
        if (gi_sim_engine_has_work(base)) {
            continue;
        }
        if (sim->running != NULL) {
            sim->running->engine = base;
            sim->running->deadline = deadline;
            sim->running->waits = true;
            break;
        }
        wait_alone(engine, deadline);
    }
    engine->woken = false;
    return 0;
}

/* The op is over: its slot is free for the next one, under another generation. */
static void finish(struct sim_engine *engine, struct sim_op *record)
{
    struct gi_sim *sim = engine->sim;
    struct sim_handle *handle = record->handle;
    if (gi_sim_chance(sim, sim->config.faults.stale)) {
        post_stale(engine, record);
    }
    if (handle != NULL) {
        *direction_of(handle, record->op->kind) = NULL;
        handle->handle->in_flight--;
    }
    gi_list_remove(&record->link);
    engine->op_count--;
    record->op = NULL;
    record->generation++;
    record->next_free = engine->free_ops;
    engine->free_ops = record;
    if (handle != NULL && handle->closing && handle->handle->in_flight == 0) {
        close_descriptor(engine, handle);
    }
}

static void next_closed(struct sim_engine *engine, struct gi_completion *ret_completion)
{
    struct gori_link *link = gi_list_pop_front(&engine->closed);
    struct sim_handle *record = gori_container_of(link, struct sim_handle, link);
    *ret_completion = (struct gi_completion){.closed = record->handle};
    gi_sim_trace(engine->sim, "closed", record->native, record->index, 0);
    record->handle = NULL;
    record->next_free = engine->free_handles;
    engine->free_handles = record;
    engine->handle_count--;
}

static bool next_entry(struct sim_engine *engine, struct gi_completion *ret_completion)
{
    struct sim_entry *entry = choose_entry(engine);
    struct sim_op *record = engine->op_table[entry->index];
    gi_list_remove(&entry->link);
    gi_list_push_back(&engine->spare, &entry->link);
    if (record->op == NULL || record->generation != entry->generation) {
        GI_ASSERT(entry->buffer == NULL && entry->accepted == GORI_NATIVE_NONE);
        engine->stats.stale_completions++;
        return false;
    }
    struct gori_completion what = {.result = entry->result,
                                   .is_last = entry->is_last,
                                   .accepted = entry->accepted,
                                   .buffer = entry->buffer};
    if (entry->buffer != NULL) {
        gi_buffers_deliver(engine->buffers, entry->buffer);
        what.data = (struct gori_slice){.data = entry->buffer->data, .size = (size_t)entry->result};
    }
    *ret_completion = (struct gi_completion){.op = record->op, .what = what};
    gi_sim_trace(engine->sim, "deliver", record->index, record->op->kind, entry->result);
    if (entry->is_last) {
        finish(engine, record);
    }
    return true;
}

static bool engine_next(struct gi_engine *base, struct gi_completion *ret_completion)
{
    struct sim_engine *engine = self(base);
    bool closed_first = gi_sim_chance(engine->sim, engine->sim->config.faults.shuffle);
    if (closed_first && !gi_list_is_empty(&engine->closed)) {
        next_closed(engine, ret_completion);
        return true;
    }
    while (!gi_list_is_empty(&engine->queue)) {
        if (next_entry(engine, ret_completion)) {
            return true;
        }
    }
    if (gi_list_is_empty(&engine->closed)) {
        return false;
    }
    next_closed(engine, ret_completion);
    return true;
}

static void engine_wake(struct gi_engine *base)
{
    struct sim_engine *engine = self(base);
    engine->woken = true;
    gi_sim_trace(engine->sim, "wake", 0, 0, 0);
}

struct gi_sim *gi_sim_of(struct gi_engine *base)
{
    return self(base)->sim;
}

void gi_sim_engine_dump(const struct gori_link *link)
{
    const struct sim_engine *engine = gori_container_of(link, const struct sim_engine, link);
    fprintf(stderr, "engine: %u ops, %u handles%s\n", engine->op_count, engine->handle_count,
            engine->woken ? ", woken" : "");
    GI_LIST_FOREACH (op_link, &engine->ops) {
        const struct sim_op *record = gori_container_of(op_link, struct sim_op, link);
        gori_native native = record->handle != NULL ? record->handle->native : GORI_NATIVE_NONE;
        fprintf(stderr, "  op %u kind %u on %" PRIdPTR "%s%s%s%s%s\n", record->index,
                record->op->kind, native, record->flushed ? "" : " not-flushed",
                record->canceling ? " canceling" : "", record->done ? " done" : "",
                record->starved ? " starved" : "", can_work(engine, record) ? " ready" : "");
    }
}

/* Socket calls ----------------------------------------------------------------------------- */

static int socket_listen(struct gi_engine *engine, const struct gori_addr *addr,
                         const struct gi_listen_options *options, gori_native *ret_native)
{
    return gi_sim_listen(self(engine)->sim, engine, addr, options, ret_native);
}

static int socket_open(struct gi_engine *engine, enum gori_addr_family family,
                       gori_native *ret_native)
{
    return gi_sim_open(self(engine)->sim, engine, family, ret_native);
}

static int socket_accept(struct gi_engine *engine, gori_native listener, gori_native *ret_native)
{
    return gi_sim_accept(self(engine)->sim, listener, ret_native);
}

static int socket_shutdown_send(struct gi_engine *engine, gori_native native)
{
    return gi_sim_shutdown_send(self(engine)->sim, native);
}

static int socket_set_no_delay(struct gi_engine *engine, gori_native native, bool on)
{
    (void)on; /* the simulated network has no small packets to hold back */
    (void)gi_sim_ready(self(engine)->sim, native);
    return 0;
}

static int socket_set_reset_on_close(struct gi_engine *engine, gori_native native)
{
    gi_sim_set_reset_on_close(self(engine)->sim, native);
    return 0;
}

static int socket_addr(struct gi_engine *engine, gori_native native, enum gi_socket_end end,
                       struct gori_addr *ret_addr)
{
    return gi_sim_addr(self(engine)->sim, native, end, ret_addr);
}

static void socket_close(struct gi_engine *engine, gori_native native)
{
    gi_sim_close(self(engine)->sim, native);
}

static const struct gi_socket_calls sim_sockets = {
    .listen = socket_listen,
    .open = socket_open,
    .accept = socket_accept,
    .shutdown_send = socket_shutdown_send,
    .set_no_delay = socket_set_no_delay,
    .set_reset_on_close = socket_set_reset_on_close,
    .addr = socket_addr,
    .close = socket_close,
};

static int watch_create(struct gi_engine *engine, const struct gori_allocator *allocator,
                        struct gi_watcher **ret_watcher)
{
    return gi_sim_watcher_create(self(engine)->sim, engine, allocator, ret_watcher);
}

static bool watch_is_directory(struct gi_engine *engine, const char *path)
{
    return gi_sim_is_directory(self(engine)->sim, path);
}

static const struct gi_watch_calls sim_watches = {
    .create = watch_create,
    .destroy = gi_sim_watcher_destroy,
    .source = gi_sim_watcher_source,
    .is_directory = watch_is_directory,
    .add = gi_sim_watcher_add,
    .remove = gi_sim_watcher_remove,
    .next = gi_sim_watcher_next,
};

const struct gi_engine_impl gi_engine_sim = {
    .name = "sim",
    .sockets = &sim_sockets,
    .files = &gi_sim_files,
    .events = &gi_sim_events,
    .watches = &sim_watches,
    .create = engine_create,
    .destroy = engine_destroy,
    .report = engine_report,
    .now = engine_now,
    .attach = engine_attach,
    .submit = engine_submit,
    .cancel = engine_cancel,
    .close = engine_close,
    .turn = engine_turn,
    .next = engine_next,
    .wake = engine_wake,
    .stats = engine_stats,
};
