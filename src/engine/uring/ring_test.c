/* SPDX-License-Identifier: MIT */
/*
 * The raw ring: nothing queued is lost or doubled, whatever is full, refused or resized.  Each NOP
 * carries a number; a test counts what it saw of each.
 */
#include <errno.h>
#include <fcntl.h>

#include "engine/uring/ring.h"
#include "lib/test.h"
#include "os/os.h"

#define NUMBERS 256

struct tally {
    uint32_t seen[NUMBERS];
    uint32_t total;
    int last_result;
};

static void open_ring(struct gi_ring *ring, uint32_t sq_entries, uint32_t cq_entries,
                      uint32_t disabled)
{
    const struct gi_ring_config config = {
        .sq_entries = sq_entries, .cq_entries = cq_entries, .disabled = disabled};
    GT_EQUAL(gi_ring_init(ring, &config), 0);
}

static bool queue_opcode(struct gi_ring *ring, uint8_t opcode, uint32_t number)
{
    struct io_uring_sqe *sqe = gi_ring_take_sqe(ring);
    if (sqe != NULL) {
        *sqe = (struct io_uring_sqe){.opcode = opcode, .user_data = number};
    }
    return sqe != NULL;
}

static void drain(struct gi_ring *ring, struct tally *tally)
{
    const struct io_uring_cqe *cqe;
    while ((cqe = gi_ring_next_cqe(ring)) != NULL) {
        GT_CHECK(cqe->user_data < NUMBERS);
        tally->seen[cqe->user_data]++;
        tally->total++;
        tally->last_result = cqe->res;
    }
}

static void check_each_once(const struct tally *tally, uint32_t count)
{
    GT_EQUAL(tally->total, count);
    for (uint32_t i = 0; i < count; i++) {
        GT_EQUAL(tally->seen[i], 1);
    }
}

GT_TEST(full_submission_queue_is_flushed)
{
    struct gi_ring ring;
    struct tally tally = {0};
    open_ring(&ring, 8, 256, 0);
    uint32_t full = 0;
    for (uint32_t i = 0; i < 100; i++) {
        while (!queue_opcode(&ring, IORING_OP_NOP, i)) {
            full++;
            GT_EQUAL(gi_ring_flush(&ring), 0);
        }
    }
    GT_CHECK(full >= 11);
    GT_EQUAL(gi_ring_enter(&ring, 0, 0), 0);
    GT_EQUAL(gi_ring_queued(&ring), 0);
    drain(&ring, &tally);
    check_each_once(&tally, 100);
    gi_ring_fini(&ring);
}

/* Goal: more completions than the queue has room for are all seen, with a wait in between. */
GT_TEST(overflow_of_a_tiny_completion_queue_loses_nothing)
{
    struct gi_ring ring;
    struct tally tally = {0};
    open_ring(&ring, 8, 8, 0);
    for (uint32_t i = 0; i < 64; i++) {
        while (!queue_opcode(&ring, IORING_OP_NOP, i)) {
            (void)gi_ring_flush(&ring);
        }
    }
    (void)gi_ring_flush(&ring);
    GT_CHECK(gi_ring_has_overflow(&ring));
    while (tally.total < 64) {
        int error = gi_ring_enter(&ring, 1, GORI_NEVER);
        GT_CHECK(error == 0 || error == -EBUSY);
        drain(&ring, &tally);
    }
    check_each_once(&tally, 64);
    GT_EQUAL(gi_ring_enter(&ring, 0, 0), 0);
    GT_CHECK(!gi_ring_has_overflow(&ring));
    gi_ring_fini(&ring);
}

/* Goal: what is queued and what is not yet read both survive, up and down. */
GT_TEST(resize_keeps_what_is_queued_and_unread)
{
    struct gi_ring ring;
    struct tally tally = {0};
    open_ring(&ring, 8, 16, 0);
    if (!(ring.features & GI_URING_RESIZE_RINGS)) {
        GT_EQUAL(gi_ring_resize(&ring, 16, 32), -EINVAL);
        gi_ring_fini(&ring);
        GT_SKIP("this kernel cannot resize rings");
    }
    uint32_t number = 0;
    for (uint32_t round = 0; round < 12; round++) {
        for (uint32_t i = 0; i < 6; i++) {
            GT_CHECK(queue_opcode(&ring, IORING_OP_NOP, number++));
        }
        GT_EQUAL(gi_ring_enter(&ring, 0, 0), 0);
        for (uint32_t i = 0; i < 7; i++) {
            GT_CHECK(queue_opcode(&ring, IORING_OP_NOP, number++));
        }
        uint32_t sq_entries = 8u << (round % 4);
        GT_EQUAL(gi_ring_resize(&ring, sq_entries, sq_entries * 2), 0);
        GT_EQUAL(gi_ring_sq_entries(&ring), sq_entries);
        GT_EQUAL(gi_ring_cq_entries(&ring), sq_entries * 2);
        GT_EQUAL(gi_ring_queued(&ring), 7);
        GT_EQUAL(gi_ring_ready(&ring), 6);
        GT_EQUAL(gi_ring_enter(&ring, 0, 0), 0);
        drain(&ring, &tally);
    }
    check_each_once(&tally, number);
    gi_ring_fini(&ring);
}

/* Goal: a resize that the kernel refuses leaves the ring as it was. */
GT_TEST(refused_resize_changes_nothing)
{
    struct gi_ring ring;
    struct tally tally = {0};
    open_ring(&ring, 32, 64, 0);
    if (ring.features & GI_URING_RESIZE_RINGS) {
        for (uint32_t i = 0; i < 32; i++) {
            GT_CHECK(queue_opcode(&ring, IORING_OP_NOP, i));
        }
        GT_EQUAL(gi_ring_enter(&ring, 0, 0), 0);
        GT_CHECK(gi_ring_resize(&ring, 8, 16) < 0);
        GT_EQUAL(gi_ring_cq_entries(&ring), 64);
        drain(&ring, &tally);
        check_each_once(&tally, 32);
    }
    gi_ring_fini(&ring);
}

GT_TEST(bad_submission_does_not_hold_up_the_rest)
{
    struct gi_ring ring;
    struct tally tally = {0};
    open_ring(&ring, 8, 16, 0);
    for (uint32_t i = 0; i < 8; i++) {
        GT_CHECK(queue_opcode(&ring, i == 3 ? 255 : IORING_OP_NOP, i));
    }
    GT_EQUAL(gi_ring_enter(&ring, 0, 0), 0);
    drain(&ring, &tally);
    check_each_once(&tally, 8);
    gi_ring_fini(&ring);
}

/* Goal: each feature can be absent, alone and with all others; a wait never ends early. */
GT_TEST(works_without_each_feature)
{
    for (uint32_t bit = 0; bit < 10; bit++) {
        struct gi_ring ring;
        struct tally tally = {0};
        uint32_t disabled = bit < 9 ? 1u << bit : (uint32_t)GI_URING_FEATURES_ALL;
        open_ring(&ring, 8, 16, disabled);
        GT_EQUAL(ring.features & disabled, 0);
        GT_CHECK(queue_opcode(&ring, IORING_OP_NOP, 0));
        GT_EQUAL(gi_ring_enter(&ring, 1, GORI_NEVER), 0);
        drain(&ring, &tally);
        check_each_once(&tally, 1);
        gori_time deadline = gi_os_now() + 2 * GORI_MILLISECONDS;
        GT_EQUAL(gi_ring_enter(&ring, 1, deadline), 0);
        GT_CHECK(gi_os_now() >= deadline);
        gi_ring_fini(&ring);
    }
}

GT_TEST(fini_gives_back_its_descriptors)
{
    int before = fcntl(0, F_DUPFD_CLOEXEC, 0);
    for (uint32_t i = 0; i < 40; i++) { /* more than a thread can register */
        struct gi_ring ring;
        open_ring(&ring, 8, 16, 0);
        GT_CHECK(fcntl(ring.fd, F_GETFD) & FD_CLOEXEC);
        gi_ring_fini(&ring);
    }
    int after = fcntl(0, F_DUPFD_CLOEXEC, 0);
    GT_EQUAL(after, before + 1);
}

GT_MAIN()
