/* SPDX-License-Identifier: MIT */
/*
 * The raw io_uring interface as far as the yardsticks of bench/raw/ need it: set-up, one enter,
 * one submission entry. Not a library: what is not supported ends the process. Reading:
 * io_uring_setup(2), io_uring_enter(2), io_uring_register(2).
 */
#ifndef BENCH_RAW_RING_H
#define BENCH_RAW_RING_H

#include "server.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers of Debian 12. */
#define SETUP_NO_SQARRAY  (1U << 16)
#define FEATURE_NO_IOWAIT (1U << 17)
#define ENTER_NO_IOWAIT   (1U << 7)

enum { SQ_ENTRIES = 512, CQ_ENTRIES = 4096 };

struct ring {
    int fd;
    int index; /* of the registered descriptor; saves its look-up at each enter */
    unsigned enter_flags;
    _Atomic unsigned *sq_tail;
    _Atomic unsigned *cq_head;
    _Atomic unsigned *cq_tail;
    unsigned tail;
    unsigned submitted;
    struct io_uring_sqe *sqes;
    const struct io_uring_cqe *cqes;
};

static inline void *ring_map(size_t size, int fd, off_t offset)
{
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, offset);
    if (memory == MAP_FAILED) {
        bench_die("mmap", errno);
    }
    return memory;
}

static inline void ring_register(const struct ring *ring, unsigned what, void *argument)
{
    if (syscall(SYS_io_uring_register, ring->fd, what, argument, 1) < 0) {
        bench_die("io_uring_register", errno);
    }
}

static inline void ring_open(struct ring *ring)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL |
                 IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | SETUP_NO_SQARRAY,
        .cq_entries = CQ_ENTRIES,
    };
    ring->fd = (int)syscall(SYS_io_uring_setup, SQ_ENTRIES, &params);
    if (ring->fd < 0) {
        bench_die("io_uring_setup (Linux 6.6 or newer is needed)", errno);
    }
    size_t size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *rings = ring_map(size, ring->fd, IORING_OFF_SQ_RING);
    ring->sqes =
        ring_map(params.sq_entries * sizeof(struct io_uring_sqe), ring->fd, IORING_OFF_SQES);
    ring->sq_tail = (void *)(rings + params.sq_off.tail);
    ring->cq_head = (void *)(rings + params.cq_off.head);
    ring->cq_tail = (void *)(rings + params.cq_off.tail);
    ring->cqes = (void *)(rings + params.cq_off.cqes);
    struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (unsigned)ring->fd};
    ring_register(ring, IORING_REGISTER_RING_FDS, &update);
    ring->index = (int)update.offset;
    ring->enter_flags = IORING_ENTER_GETEVENTS | IORING_ENTER_REGISTERED_RING |
                        (params.features & FEATURE_NO_IOWAIT ? ENTER_NO_IOWAIT : 0);
}

static inline void ring_enter(struct ring *ring, unsigned wait)
{
    atomic_store_explicit(ring->sq_tail, ring->tail, memory_order_release);
    long done = syscall(SYS_io_uring_enter, ring->index, ring->tail - ring->submitted, wait,
                        ring->enter_flags, NULL, 0);
    if (done >= 0) {
        ring->submitted += (unsigned)done;
    } else if (errno != EINTR && errno != EBUSY && errno != EAGAIN) {
        bench_die("io_uring_enter", errno);
    }
}

static inline struct io_uring_sqe *ring_take_sqe(struct ring *ring, unsigned opcode, int fd,
                                                 uint64_t user_data)
{
    while (ring->tail - ring->submitted == SQ_ENTRIES) {
        ring_enter(ring, 0);
    }
    struct io_uring_sqe *sqe = &ring->sqes[ring->tail++ % SQ_ENTRIES];
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = (uint8_t)opcode;
    sqe->fd = fd;
    sqe->user_data = user_data;
    return sqe;
}

#endif
