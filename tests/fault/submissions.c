/* SPDX-License-Identifier: MIT */
/*
 * Submissions that fail.  Contract: submissions.h.
 */
#include "fault/submissions.h"

#include <errno.h>
#include <linux/io_uring.h>

#include "engine/uring/ring.h"

/* Newer than the headers of Debian 12. */
#define NOP_INJECT_RESULT 1U

static struct {
    uint64_t number; /* 0: not armed */
    uint64_t end;
    uint64_t count;
    int error;
    uint8_t opcode;
    bool is_hit;
} armed;

static struct {
    int fd;
    uint32_t mask;
    uint32_t head_at; /* in `rings` */
    char *rings;
    struct io_uring_sqe *sqes;
} ring = {.fd = -1};

void fault_submissions_arm(uint8_t opcode, uint64_t number, uint64_t count, int error)
{
    armed.opcode = opcode;
    armed.number = number;
    armed.end = number + count;
    armed.error = error;
    armed.count = 0;
    armed.is_hit = false;
}

bool fault_submissions_disarm(void)
{
    armed.number = 0;
    return armed.is_hit;
}

void fault_submissions_saw_params(int fd, const void *given)
{
    const struct io_uring_params *params = given;
    ring.fd = fd;
    ring.mask = params->sq_entries - 1;
    ring.head_at = params->sq_off.head;
}

void fault_submissions_saw_mapping(int file, uint64_t offset, void *memory)
{
    if (file < 0 || file != ring.fd) {
        return;
    }
    if (offset == IORING_OFF_SQ_RING) {
        ring.rings = memory;
    } else if (offset == IORING_OFF_SQES) {
        ring.sqes = memory;
    }
}

static void make_fail(struct io_uring_sqe *sqe, int error)
{
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_NOP,
        .fd = -1,
        .len = (uint32_t)-error, /* as the result of a call: negative */
        .rw_flags = NOP_INJECT_RESULT,
        .user_data = sqe->user_data,
    };
}

void fault_submissions_before_enter(uint32_t count)
{
    if (armed.number == 0 || count == 0) {
        return;
    }
    uint32_t head = *(const uint32_t *)(const void *)(ring.rings + ring.head_at);
    for (uint32_t i = 0; i < count; i++) {
        struct io_uring_sqe *sqe = &ring.sqes[(head + i) & ring.mask];
        if (sqe->opcode != armed.opcode) {
            continue;
        }
        armed.count++;
        if (armed.count >= armed.number && armed.count < armed.end) {
            armed.is_hit = true;
            make_fail(sqe, armed.error);
        }
    }
}

bool fault_submissions_work(void)
{
    struct gi_ring probe;
    const struct gi_ring_config config = {.sq_entries = 2, .cq_entries = 4};
    if (gi_ring_init(&probe, &config) < 0) {
        return false;
    }
    make_fail(gi_ring_take_sqe(&probe), EIO);
    const struct io_uring_cqe *cqe =
        gi_ring_enter(&probe, 1, GORI_NEVER) >= 0 ? gi_ring_next_cqe(&probe) : NULL;
    bool works = cqe != NULL && cqe->res == -EIO;
    gi_ring_fini(&probe);
    return works;
}
