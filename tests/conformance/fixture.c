/* SPDX-License-Identifier: MIT */
/*
 * The fixture of the conformance suite; see fixture.h.
 */
#include "conformance/fixture.h"

#include <stdarg.h>

#include "engine/sim/sim.h"
#include "lib/system.h"

void fixture_open(struct fixture *fixture)
{
    fixture->engine = getenv("GORI_TEST_ENGINE");
    if (fixture->engine == NULL) {
        fixture->engine = "epoll";
    }
    fixture->descriptors = gt_open_descriptors();
    gi_fault_alloc_init(&fixture->memory, NULL);
    fixture->config.allocator = &fixture->memory.allocator;
    fixture->config.engine = fixture->engine;
    if (strcmp(fixture->engine, "sim") == 0) {
        const struct gi_sim_config config = {.seed = 1};
        const struct gi_sim_config *given = fixture->sim_config;
        GT_EQUAL(gi_sim_create(NULL, given == NULL ? &config : given, &fixture->sim), 0);
        fixture->config.simulation = fixture->sim;
    }
    fixture->network = fixture->sim == NULL ? gt_network_system() : gt_network_sim(fixture->sim);
    GT_EQUAL(gori_loop_create(&fixture->config, &fixture->loop), 0);
    GT_EQUAL_STRING(gori_loop_engine(fixture->loop), fixture->engine);
}

void fixture_close(struct fixture *fixture)
{
    gori_loop_destroy(fixture->loop);
    GT_EQUAL(gi_fault_alloc_live_blocks(&fixture->memory), 0);
    if (fixture->sim != NULL) {
        gi_sim_destroy(fixture->sim);
    }
    GT_EQUAL(gt_open_descriptors(), fixture->descriptors);
}

void fixture_turn(struct fixture *fixture)
{
    GT_CHECK(gori_loop_turn(fixture->loop, GORI_MILLISECONDS) >= 0);
}

void fixture_settle(struct fixture *fixture)
{
    for (int i = 0; i < 50; i++) {
        GT_CHECK(gori_loop_turn(fixture->loop, 0) >= 0);
    }
}

void fixture_trace(struct fixture *fixture, const char *format, ...)
{
    size_t used = strlen(fixture->trace);
    va_list items;
    va_start(items, format);
    if (used > 0) {
        GT_CHECK(used + 1 < FIXTURE_TRACE_BYTES);
        fixture->trace[used++] = ' ';
    }
    int written = vsnprintf(fixture->trace + used, FIXTURE_TRACE_BYTES - used, format, items);
    va_end(items);
    GT_CHECK(written >= 0 && (size_t)written < FIXTURE_TRACE_BYTES - used);
}

struct gt_peer *fixture_connect(struct fixture *fixture, const struct gori_addr *addr)
{
    struct gt_peer *peer = calloc(1, sizeof(*peer));
    GT_CHECK(peer != NULL);
    GT_EQUAL(gt_peer_connect(&fixture->network, addr, peer), 0);
    return peer;
}

struct gt_peer *fixture_listen(struct fixture *fixture, struct gori_addr *addr, int backlog)
{
    struct gt_peer *peer = calloc(1, sizeof(*peer));
    GT_CHECK(peer != NULL);
    GT_EQUAL(gt_peer_listen(&fixture->network, addr, backlog, peer), 0);
    gt_peer_addr(peer, addr);
    return peer;
}

struct gt_peer *fixture_accept(struct gt_peer *listener)
{
    struct gt_peer accepted;
    int result = gt_peer_accept(listener, &accepted);
    if (result == GORI_EAGAIN) {
        return NULL;
    }
    GT_EQUAL(result, 0);
    struct gt_peer *peer = calloc(1, sizeof(*peer));
    GT_CHECK(peer != NULL);
    *peer = accepted;
    return peer;
}

void fixture_hang_up(struct gt_peer *peer)
{
    gt_peer_close(peer);
    free(peer);
}

void fixture_reset(struct gt_peer *peer)
{
    gt_peer_reset(peer);
    free(peer);
}

struct gori_addr fixture_addr(const char *text)
{
    struct gori_addr addr;
    GT_EQUAL(gori_addr_parse(text, &addr), 0);
    return addr;
}

void fixture_fill(uint8_t *data, size_t size, uint8_t stamp, uint64_t offset)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = fixture_byte(stamp, offset + i);
    }
}

void fixture_check(const uint8_t *data, size_t size, uint8_t stamp, uint64_t offset)
{
    for (size_t i = 0; i < size; i++) {
        GT_EQUAL(data[i], fixture_byte(stamp, offset + i));
    }
}

static void pair_closed(struct gori_handle *handle)
{
    struct pair *pair = handle->user;
    GT_CHECK(!pair->fixture->in_call);
    pair->closed++;
}

/* The peer listens and the loop connects: every engine's accept is tested elsewhere. */
void pair_open(struct fixture *fixture, struct pair *pair)
{
    struct gori_addr addr = fixture_addr("127.0.0.1:0");
    struct gt_peer *listener = fixture_listen(fixture, &addr, 4);
    *pair = (struct pair){.fixture = fixture};
    pair->handle.on_close = pair_closed;
    pair->handle.user = pair;
    GT_EQUAL(gori_handle_open(fixture->loop, GORI_ADDR_IPV4, &pair->handle), 0);
    struct probe connect;
    probe_init(fixture, &connect);
    GT_EQUAL(gori_op_connect(&connect.op, &pair->handle, &addr), 0);
    while (pair->peer == NULL || connect.last == 0) {
        if (pair->peer == NULL) {
            pair->peer = fixture_accept(listener);
        }
        fixture_turn(fixture);
    }
    GT_EQUAL(connect.result, 0);
    fixture_hang_up(listener);
}

void pair_close(struct pair *pair)
{
    pair->fixture->in_call = true;
    gori_handle_close(&pair->handle);
    pair->fixture->in_call = false;
    FIXTURE_UNTIL(pair->fixture, pair->closed > 0);
    GT_EQUAL(pair->closed, 1);
    if (pair->peer != NULL) {
        fixture_hang_up(pair->peer);
    }
}

static void probe_complete(struct gori_op *op, const struct gori_completion *completion)
{
    struct probe *probe = op->user;
    GT_CHECK(!probe->fixture->in_call);
    GT_EQUAL(probe->last, 0);
    probe->completions++;
    probe->last += completion->is_last ? 1 : 0;
    probe->result = completion->result;
    GT_EQUAL(gori_op_is_active(op), !completion->is_last);
    if (completion->accepted != GORI_NATIVE_NONE) {
        GT_EQUAL(op->kind, GORI_OP_ACCEPT);
        probe->accepted[probe->accepted_count++] = completion->accepted;
    }
    if (completion->buffer != NULL) {
        GT_CHECK(completion->result > 0);
        GT_EQUAL(completion->data.size, completion->result);
        if (probe->stamp != 0) {
            fixture_check(completion->data.data, completion->data.size, probe->stamp, probe->bytes);
        }
        if (probe->hold) {
            probe->held[probe->held_count++] = completion->buffer;
        } else {
            gori_buffer_release(completion->buffer);
        }
    }
    if (completion->result > 0 && op->kind != GORI_OP_ACCEPT) {
        probe->bytes += (uint64_t)completion->result;
    }
}

void probe_init(struct fixture *fixture, struct probe *probe)
{
    *probe = (struct probe){.fixture = fixture};
    probe->op.on_complete = probe_complete;
    probe->op.user = probe;
}

void probe_release_held(struct probe *probe)
{
    while (probe->held_count > 0) {
        gori_buffer_release(probe->held[--probe->held_count]);
    }
}
