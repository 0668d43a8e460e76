/* SPDX-License-Identifier: MIT */
/*
 * Fails every operation that io_uring is given, in turn: errors that come with a completion, which
 * no failing system call brings.
 * Method: as system_test.c, with the n-th submission of each opcode answered by an error.  An
 * accept or a receive that passes, a cancel that was in vain and a wake that failed must not be
 * seen by anybody; an error of one connection by its client only.
 */
#include <errno.h>
#include <gori/listener.h>
#include <gori/loop.h>
#include <gori/session.h>
#include <lib/test.h>
#include <linux/io_uring.h>

#include "fault/has_engine.h"
#include "fault/scenario.h"
#include "fault/submissions.h"

struct failure {
    uint8_t opcode;
    int error;
    uint32_t failed_max; /* clients that may notice */
};

/* What kernels 6.6 to 6.8-rc3 did under load: an accept that answers with a descriptor that there
 * is not.  As an error it is negative, so that the answer is not. */
#define WRONG_DESCRIPTOR (-99999)

static const struct failure failures[] = {
    {IORING_OP_ACCEPT, WRONG_DESCRIPTOR, 0},
    {IORING_OP_ACCEPT, ECONNABORTED, 0},
    {IORING_OP_ACCEPT, EINTR, 0},
    {IORING_OP_ACCEPT, EMFILE, 0},
    {IORING_OP_ACCEPT, ENFILE, 0},
    {IORING_OP_ACCEPT, ENOBUFS, 0},
    {IORING_OP_ACCEPT, ENOMEM, 0},
    {IORING_OP_ACCEPT, ENOTSOCK, 0},
    {IORING_OP_ACCEPT, EAGAIN, 0},
    {IORING_OP_CONNECT, ECONNREFUSED, 1},
    {IORING_OP_CONNECT, ETIMEDOUT, 1},
    {IORING_OP_CONNECT, ENETUNREACH, 1},
    {IORING_OP_CONNECT, ENOMEM, 1},
    {IORING_OP_RECV, ECONNRESET, 1},
    {IORING_OP_RECV, ENOMEM, 1},
    {IORING_OP_RECV, EINTR, 0},
    {IORING_OP_RECV, ENOBUFS, 0},
    {IORING_OP_RECV, EAGAIN, 0},
    {IORING_OP_SEND, ECONNRESET, 1},
    {IORING_OP_SEND, EPIPE, 1},
    {IORING_OP_SEND, ENOMEM, 1},
    {IORING_OP_SEND, EINTR, 0},
    {IORING_OP_SEND, EAGAIN, 0},
    {IORING_OP_SENDMSG, EPIPE, 1},
    {IORING_OP_SENDMSG, EINTR, 0},

    {IORING_OP_ASYNC_CANCEL, ENOENT, 0},
    {IORING_OP_ASYNC_CANCEL, EALREADY, 0},
    {IORING_OP_READ, EINTR, 0},
    {IORING_OP_READ, ENOMEM, 0},
};

struct run {
    const struct failure *failure;
    bool is_hit;
};

static void calm(void *user)
{
    struct run *run = user;
    /* Most cancels come at the end, and there, too, one in vain must not matter. */
    if (run->failure->opcode != IORING_OP_ASYNC_CANCEL) {
        run->is_hit = fault_submissions_disarm();
    }
}

/* Plays the scenario with one failure; answers whether there was such a submission. */
static bool play(const struct failure *failure, uint64_t number)
{
    struct gi_fault_alloc memory;
    struct run run = {.failure = failure};
    gi_fault_alloc_init(&memory, NULL);
    fault_submissions_arm(failure->opcode, number, 1, failure->error);
    struct scenario_result result = scenario_play("io_uring", &memory, calm, &run);
    run.is_hit |= fault_submissions_disarm();
    if (result.error != 0 || result.failed > (run.is_hit ? failure->failed_max : 0)) {
        fprintf(stderr, "opcode %d, errno %d, number %llu: error %d, %u of %u clients failed\n",
                failure->opcode, failure->error, (unsigned long long)number, result.error,
                result.failed, SCENARIO_CLIENTS);
        GT_CHECK(false);
    }
    gi_fault_alloc_fini(&memory);
    return run.is_hit;
}

GT_TEST(io_uring_fails_each_submission)
{
    if (!fault_has_engine("io_uring") || !fault_submissions_work()) {
        GT_SKIP("no io_uring here, or one that cannot be told to fail");
    }
    uint64_t hits = 0;
    for (size_t i = 0; i < GI_ARRAY_COUNT(failures); i++) {
        uint64_t number = 1;
        while (play(&failures[i], number)) {
            number++;
        }
        hits += number - 1;
    }
    printf("%llu failures\n", (unsigned long long)hits);
    GT_CHECK(hits > GI_ARRAY_COUNT(failures));
}

static void note_close(struct gori_listener *listener)
{
    bool *is_closed = gori_listener_user(listener);
    *is_closed = true;
}

/* However often the kernel says that there is nothing to cancel, the end comes when it is right. */
GT_TEST(a_cancel_that_is_in_vain_is_asked_again)
{
    enum { IN_VAIN = 100 };
    static const struct gori_session_events nothing;
    const struct gori_loop_config config = {.engine = "io_uring"};
    bool is_closed = false;
    struct gori_listener_config where = {
        .events = &nothing, .user = &is_closed, .on_close = note_close};
    struct gori_listener *listener;
    struct gori_loop *loop;
    if (!fault_has_engine("io_uring") || !fault_submissions_work()) {
        GT_SKIP("no io_uring here, or one that cannot be told to fail");
    }
    GT_EQUAL(gori_loop_create(&config, &loop), 0);
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &where.addr), 0);
    GT_EQUAL(gori_listener_open(loop, &where, &listener), 0);
    GT_CHECK(gori_loop_turn(loop, 0) >= 0);
    fault_submissions_arm(IORING_OP_ASYNC_CANCEL, 1, IN_VAIN, EALREADY);
    gori_listener_close(listener);
    while (!is_closed) {
        GT_CHECK(gori_loop_turn(loop, GORI_NEVER) >= 0);
    }
    GT_CHECK(fault_submissions_disarm());
    gori_loop_destroy(loop);
}

GT_MAIN()
