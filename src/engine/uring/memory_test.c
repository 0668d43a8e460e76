/* SPDX-License-Identifier: MIT */
/*
 * Memory of the io_uring engine: every allocation may fail, with the right error and nothing
 * leaked; the steady state makes none; a cycle of buffers never loses or doubles one.
 */
#include "base/fault_alloc.h"
#include "engine/uring/fixture_test.h"

enum { PAIRS = 70 }; /* more slots than the table starts with */

struct scenario {
    struct gi_fault_alloc fault;
    struct fixture fixture;
    struct socket sockets[PAIRS];
    struct record receives[PAIRS];
    int peers[PAIRS];
    uint32_t open;
};

static int scenario_open(struct scenario *scenario)
{
    struct fixture *fixture = &scenario->fixture;
    memset(fixture, 0, sizeof(*fixture));
    GT_EQUAL(gi_buffers_init(&fixture->buffers, &scenario->fault.allocator, 4096, 256), 0);
    struct gi_engine_config config = {
        .allocator = &scenario->fault.allocator, .buffers = &fixture->buffers, .ops_max = 1000};
    int error = gi_engine_uring.create(&config, &fixture->engine);
    fixture->uring = (struct gi_uring *)fixture->engine;
    return error;
}

/* Opens connections as far as the memory goes; each gets one message and says so. */
static void scenario_use(struct scenario *scenario)
{
    struct fixture *fixture = &scenario->fixture;
    uint32_t receiving = 0;
    for (uint32_t i = 0; i < PAIRS; i++) {
        struct socket *socket = &scenario->sockets[i];
        struct record *receive = &scenario->receives[i];
        int fds[2];
        GT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        memset(socket, 0, sizeof(*socket));
        memset(receive, 0, sizeof(*receive));
        scenario->peers[i] = fds[1];
        scenario->open = i + 1;
        socket->handle.native = fds[0];
        int error = fixture->engine->impl->attach(fixture->engine, &socket->handle);
        if (error < 0) {
            GT_EQUAL(error, GORI_ENOMEM);
            gi_os_close(fds[0]);
            socket->closed = 1;
            continue;
        }
        socket->handle.state = GI_HANDLE_OPEN;
        receive->op.kind = GORI_OP_RECV_MULTI;
        receive->op.handle = &socket->handle;
        receive->op.state = GI_OP_SUBMITTED;
        receive->accepted = -1;
        error = fixture->engine->impl->submit(fixture->engine, &receive->op);
        if (error < 0) {
            GT_EQUAL(error, GORI_ENOMEM);
            receive->lasts = 1;
            continue;
        }
        GT_EQUAL(send(fds[1], "x", 1, 0), 1);
        receiving++;
    }
    GT_CHECK(receiving >= PAIRS - 1);
    for (uint32_t i = 0; i < PAIRS; i++) {
        FIXTURE_UNTIL(fixture, scenario->receives[i].lasts == 1 ||
                                   scenario->sockets[i].closed == 1 ||
                                   scenario->receives[i].bytes == 1);
    }
}

static void scenario_close(struct scenario *scenario)
{
    struct fixture *fixture = &scenario->fixture;
    for (uint32_t i = 0; i < scenario->open; i++) {
        if (scenario->sockets[i].closed == 0) {
            socket_close(fixture, &scenario->sockets[i]);
        }
        gi_os_close(scenario->peers[i]);
    }
    for (uint32_t i = 0; i < scenario->open; i++) {
        FIXTURE_UNTIL(fixture, scenario->sockets[i].closed == 1);
    }
    fixture_fini(fixture);
}

/* Goal: fail each allocation in turn, once, in the life of a loop with 70 connections. */
GT_TEST(every_allocation_may_fail)
{
    static struct scenario scenario;
    uint64_t number = 0;
    do {
        number++;
        gi_fault_alloc_init(&scenario.fault, NULL);
        gi_fault_alloc_fail_once(&scenario.fault, number);
        scenario.open = 0;
        int error = scenario_open(&scenario);
        if (error < 0) {
            GT_EQUAL(error, GORI_ENOMEM);
            gi_buffers_fini(&scenario.fixture.buffers);
        } else {
            scenario_use(&scenario);
            scenario_close(&scenario);
        }
        bool failed = gi_fault_alloc_failed_count(&scenario.fault) > 0;
        gi_fault_alloc_fini(&scenario.fault);
        if (!failed) {
            break;
        }
    } while (number < 1000);
    GT_CHECK(number > 4 && number < 1000);
}

/* Goal: once warm, nothing is allocated, and each buffer is in one place. */
GT_TEST(steady_state_allocates_nothing)
{
    static struct scenario scenario;
    gi_fault_alloc_init(&scenario.fault, NULL);
    GT_EQUAL(scenario_open(&scenario), 0);
    scenario_use(&scenario);
    struct gi_buffers *buffers = &scenario.fixture.buffers;
    uint64_t allocations = 0;
    for (uint64_t round = 2; round < 500; round++) {
        struct record sends[PAIRS];
        memset(sends, 0, sizeof(sends));
        struct gori_slice piece = {.data = (const uint8_t *)"y", .size = 1};
        for (uint32_t i = 0; i < PAIRS; i++) {
            record_send(&scenario.fixture, &sends[i], &scenario.sockets[i], &piece, 1);
            GT_EQUAL(send(scenario.peers[i], "x", 1, 0), 1);
        }
        for (uint32_t i = 0; i < PAIRS; i++) {
            FIXTURE_UNTIL(&scenario.fixture,
                          sends[i].lasts == 1 && scenario.receives[i].bytes == round);
            char byte;
            GT_EQUAL(recv(scenario.peers[i], &byte, 1, 0), 1);
        }
        GT_EQUAL(buffers->free_count + buffers->lent_count, buffers->made);
        GT_EQUAL(buffers->lent_count, scenario.fixture.uring->recv_buffers.provided);
        if (round == 100) {
            allocations = gi_fault_alloc_count(&scenario.fault);
        }
    }
    GT_EQUAL(gi_fault_alloc_count(&scenario.fault), allocations);
    scenario_close(&scenario);
    gi_fault_alloc_fini(&scenario.fault);
}

GT_MAIN()
