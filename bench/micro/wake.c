/* SPDX-License-Identifier: MIT */
/*
 * micro_wake: what it costs to wake a thread that waits in a ring, by the three ways there are.
 *
 * "eventfd": a write to one whose read is armed in the target's ring, as the engine does it.
 * "message from a ring": IORING_OP_MSG_RING, submitted by a ring of the sender's own in a call for
 * it alone; a loop that submits anyway would save the entering, not the work.  "message without a
 * ring": the same by IORING_REGISTER_SEND_MSG_RING (Linux 6.13), from any thread.  "call" is the
 * sender's time, "until it runs" ends when the target has its completion.  The ways take turns, so
 * that each has the same moods of the machine.
 */
#include "micro.h"
#include "ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/eventfd.h>

enum { WAKES = 2000, WAYS = 3 };

/* Newer than the headers of Debian 12. */
#define REGISTER_SEND_MSG_RING 31U

enum { OF_EVENT = 1, OF_MESSAGE = 2, OF_END = 3 };

struct target {
    size_t cpu;
    int event;
    _Atomic int ring_fd; /* -1 until it is there */
    _Atomic uint64_t woken_ns;
};

struct sender {
    struct target *target;
    struct ring ring;
};

struct way {
    const char *name;
    bool (*wake)(struct sender *sender); /* false: not on this kernel */
    bool absent;
    uint64_t call_ns[WAKES];
    uint64_t arrival_ns[WAKES];
};

static void arm_event(struct ring *ring, const struct target *target, uint64_t *value)
{
    struct io_uring_sqe *sqe = ring_take_sqe(ring, IORING_OP_READ, target->event, OF_EVENT);
    sqe->addr = (uintptr_t)value;
    sqe->len = sizeof *value;
}

/* Takes what is there.  Result: false once it is told to end. */
static bool harvest(struct ring *ring, struct target *target, uint64_t *value)
{
    unsigned head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire);
    bool goes_on = true;
    for (; head != tail; head++) {
        uint64_t what = ring->cqes[head % CQ_ENTRIES].user_data;
        goes_on = goes_on && what != OF_END;
        if (what == OF_EVENT) {
            arm_event(ring, target, value);
        }
        atomic_store_explicit(&target->woken_ns, micro_now_ns(), memory_order_release);
    }
    atomic_store_explicit(ring->cq_head, head, memory_order_release);
    return goes_on;
}

static void take_cpu(size_t cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static void *run_target(void *argument)
{
    static uint64_t value;
    struct target *target = argument;
    struct ring ring = {0};
    take_cpu(target->cpu);
    ring_open(&ring);
    arm_event(&ring, target, &value);
    atomic_store(&target->ring_fd, ring.fd);
    do {
        ring_enter(&ring, 1);
    } while (harvest(&ring, target, &value));
    return NULL;
}

static bool write_event(struct sender *sender)
{
    uint64_t one = 1;
    return write(sender->target->event, &one, sizeof one) == sizeof one;
}

static void fill_message(struct io_uring_sqe *sqe, const struct target *target, uint64_t what)
{
    sqe->opcode = IORING_OP_MSG_RING;
    sqe->fd = atomic_load_explicit(&target->ring_fd, memory_order_relaxed);
    sqe->off = what; /* the user_data of the completion there */
}

/* The completion here says whether it arrived there. */
static bool submit_message(struct sender *sender)
{
    struct ring *ring = &sender->ring;
    fill_message(ring_take_sqe(ring, IORING_OP_MSG_RING, -1, 0), sender->target, OF_MESSAGE);
    ring_enter(ring, 1);
    unsigned head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    int result = ring->cqes[head % CQ_ENTRIES].res;
    atomic_store_explicit(ring->cq_head, head + 1, memory_order_release);
    return result >= 0;
}

static bool register_message(struct sender *sender)
{
    struct io_uring_sqe sqe = {0};
    fill_message(&sqe, sender->target, OF_MESSAGE);
    return syscall(SYS_io_uring_register, -1, REGISTER_SEND_MSG_RING, &sqe, 1) >= 0;
}

static void sample(struct way *way, struct sender *sender, unsigned index)
{
    struct timespec delay = {.tv_nsec = 200 * 1000};
    (void)nanosleep(&delay, NULL); /* the target falls asleep */
    _Atomic uint64_t *woken_ns = &sender->target->woken_ns;
    atomic_store(woken_ns, 0);
    uint64_t from_ns = micro_now_ns();
    if (!way->wake(sender)) {
        way->absent = true;
        return;
    }
    way->call_ns[index] = micro_now_ns() - from_ns;
    uint64_t arrived_ns;
    while ((arrived_ns = atomic_load_explicit(woken_ns, memory_order_acquire)) == 0) {
    }
    way->arrival_ns[index] = arrived_ns - from_ns;
}

/* The first and the last CPU that this process may use. */
static void find_cpus(size_t *ret_first, size_t *ret_last)
{
    cpu_set_t usable;
    CPU_ZERO(&usable);
    (void)sched_getaffinity(0, sizeof usable, &usable);
    *ret_last = 0;
    *ret_first = 0;
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0;) {
        if (CPU_ISSET(cpu, &usable)) {
            *ret_last = cpu > *ret_last ? cpu : *ret_last;
            *ret_first = cpu;
        }
    }
}

static void print(struct way *ways)
{
    const char *before = "{";
    for (unsigned i = 0; i < WAYS; i++) {
        if (!ways[i].absent) {
            printf("%s\"%s: call\": %.1f", before, ways[i].name,
                   micro_median(ways[i].call_ns, WAKES));
            printf(", \"%s: until it runs\": %.1f", ways[i].name,
                   micro_median(ways[i].arrival_ns, WAKES));
            before = ", ";
        }
    }
    printf("}\n");
}

int main(void)
{
    static struct way ways[WAYS] = {
        {.name = "eventfd", .wake = write_event},
        {.name = "message from a ring", .wake = submit_message},
        {.name = "message without a ring", .wake = register_message},
    };
    static struct target target = {.ring_fd = -1};
    static struct sender sender = {.target = &target};
    size_t own_cpu;
    pthread_t thread;
    find_cpus(&target.cpu, &own_cpu);
    target.event = eventfd(0, EFD_CLOEXEC);
    ring_open(&sender.ring);
    if (target.event < 0 || pthread_create(&thread, NULL, run_target, &target) != 0) {
        bench_die("no target", errno);
    }
    take_cpu(own_cpu);
    while (atomic_load(&target.ring_fd) < 0) {
        (void)sched_yield();
    }
    for (unsigned i = 0; i < WAKES; i++) {
        for (unsigned way = 0; way < WAYS; way++) {
            if (!ways[way].absent) {
                sample(&ways[way], &sender, i);
            }
        }
    }
    fill_message(ring_take_sqe(&sender.ring, IORING_OP_MSG_RING, -1, 0), &target, OF_END);
    ring_enter(&sender.ring, 1);
    (void)pthread_join(thread, NULL);
    print(ways);
    return 0;
}
