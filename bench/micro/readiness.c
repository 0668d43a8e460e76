/* SPDX-License-Identifier: MIT */
/*
 * What it costs to ask who is ready, with many idle connections and one active: the pollers that
 * the engines use, and io_uring in two ways.
 *
 *     micro_readiness select|poll|epoll|uring_poll|uring_receive IDLE
 *
 * One round is: a byte is written to the far end of the active connection, the poller says so, the
 * byte is read.  Prints {"round": NANOSECONDS}, the median of many rounds, or {"absent": "why"}.
 *
 * A process may hold no more descriptors than there are connections at one end, so that the far
 * ends of the idle ones live in a child, which does nothing.
 */
#include "engine/reactor/poller.h"
#include "micro.h"
#include "raw/ring.h"

#include <gori/error.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { IDLE_MAX = 19000, WARM_UP = 200, ROUNDS_MAX = 5000, EVENTS_MAX = 64 };

#define TIME_NS 400000000U /* of rounds, at least RUNS_MIN of them */

enum { RUNS_MIN = 50 };

struct bench {
    uint32_t idle_count;
    int idle[IDLE_MAX];
    int active;
    int far; /* the other end of the active one */
};

/* A byte has arrived at the active connection, and is read by whoever waits. */
typedef void wait_fn(struct bench *bench, void *context);

static void absent(const char *reason)
{
    printf("{\"absent\": \"%s\"}\n", reason);
    exit(0);
}

/* Sends a descriptor through a UNIX socket, and lets go of it. */
static void hand_over(int through, int fd)
{
    char byte = 0;
    struct iovec piece = {.iov_base = &byte, .iov_len = 1};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    if (sendmsg(through, &message, 0) != 1) {
        bench_die("sendmsg", errno);
    }
    close(fd);
}

/* The child: takes descriptors until the parent ends, and keeps them by not closing them. */
static void hold(int from)
{
    for (;;) {
        char byte;
        struct iovec piece = {.iov_base = &byte, .iov_len = 1};
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        struct msghdr message = {.msg_iov = &piece,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        ssize_t got = recvmsg(from, &message, 0);
        if (got <= 0) {
            _exit(0);
        }
        if (message.msg_controllen == 0) {
            bench_die("descriptors of the far ends", EMFILE);
        }
        (void)!send(from, &byte, 1, MSG_NOSIGNAL); /* so that none is on its way for long */
    }
}

static void open_connections(struct bench *bench)
{
    struct rlimit limit;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < bench->idle_count + 50) {
        absent("the limit of descriptors is too small");
    }
    int line[2];
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, line) != 0) {
        bench_die("socketpair", errno);
    }
    pid_t child = fork();
    if (child == 0) {
        close(line[0]);
        hold(line[1]);
    }
    close(line[1]);
    for (uint32_t i = 0; i < bench->idle_count; i++) {
        char byte;
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
            bench_die("socketpair", errno);
        }
        bench->idle[i] = pair[0];
        hand_over(line[0], pair[1]);
        (void)!recv(line[0], &byte, 1, 0);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        bench_die("socketpair", errno);
    }
    bench->active = pair[0];
    bench->far = pair[1];
}

static void read_byte(struct bench *bench)
{
    char byte;
    if (recv(bench->active, &byte, 1, MSG_DONTWAIT) != 1) {
        bench_die("recv", errno);
    }
}

static void measure(struct bench *bench, wait_fn *wait, void *context)
{
    static uint64_t samples[ROUNDS_MAX];
    size_t count = 0;
    uint64_t from_ns = micro_now_ns();
    for (int i = 0; i < WARM_UP + ROUNDS_MAX; i++) {
        uint64_t start_ns = micro_now_ns();
        if (send(bench->far, "x", 1, MSG_NOSIGNAL) != 1) {
            bench_die("send", errno);
        }
        wait(bench, context);
        uint64_t end_ns = micro_now_ns();
        if (i >= WARM_UP || end_ns - from_ns > TIME_NS) {
            samples[count++] = end_ns - start_ns;
        }
        if (count == ROUNDS_MAX || (count >= RUNS_MIN && end_ns - from_ns > TIME_NS)) {
            break;
        }
    }
    printf("{\"round\": %.1f}\n", micro_median(samples, count));
}

/* The pollers of the engines. */

static void wait_poller(struct bench *bench, void *context)
{
    struct gi_poller *poller = context;
    struct gi_poller_event events[EVENTS_MAX];
    for (;;) {
        int count = poller->impl->wait(poller, GORI_NEVER, events, EVENTS_MAX);
        for (int i = 0; i < count; i++) {
            if (events[i].token == 1 && (events[i].mask & GI_POLL_READ)) {
                read_byte(bench);
                return;
            }
        }
    }
}

static void watch(struct gi_poller *poller, int fd, uint64_t token)
{
    int error = poller->impl->add(poller, fd, token);
    if (error < 0) {
        absent(error == GORI_ELIMIT ? "its sets end at descriptor 1024" : gori_error_text(error));
    }
    if (!poller->impl->is_edge) {
        poller->impl->set(poller, fd, token, GI_POLL_READ);
    }
}

static void run_poller(struct bench *bench, const struct gi_poller_impl *impl)
{
    struct gi_poller *poller;
    int error = impl->create(NULL, &poller);
    if (error < 0) {
        absent(gori_error_text(error));
    }
    watch(poller, bench->active, 1);
    for (uint32_t i = 0; i < bench->idle_count; i++) {
        watch(poller, bench->idle[i], i + 2);
    }
    /* What an edge poller has to say of the beginning: that all can be written to. */
    struct gi_poller_event events[EVENTS_MAX];
    while (impl->is_edge && impl->wait(poller, 0, events, EVENTS_MAX) > 0) {
    }
    measure(bench, wait_poller, poller);
}

/* io_uring: a multishot poll, or a multishot receive, of each connection. */

struct uring {
    struct ring ring;
    bool receives;
};

static void wait_uring(struct bench *bench, void *context)
{
    struct uring *uring = context;
    struct ring *ring = &uring->ring;
    bool seen = false;
    while (!seen) {
        unsigned head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
        unsigned tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire);
        if (head == tail) {
            ring_enter(ring, 1);
            continue;
        }
        while (head != tail) {
            const struct io_uring_cqe *cqe = &ring->cqes[head++ % CQ_ENTRIES];
            if (cqe->res < 0 || !(cqe->flags & IORING_CQE_F_MORE)) {
                bench_die("io_uring", cqe->res < 0 ? -cqe->res : ECANCELED);
            }
            seen = seen || cqe->user_data == 1;
        }
        atomic_store_explicit(ring->cq_head, head, memory_order_release);
    }
    if (!uring->receives) {
        read_byte(bench);
    }
}

enum { BUFFERS = 8192, BUFFER_BYTES = 64 };

/* Enough for all rounds: none is given back, so that nothing but the waiting is in the figure. */
static void provide_buffers(struct ring *ring)
{
    size_t size = BUFFERS * sizeof(struct io_uring_buf);
    struct io_uring_buf_ring *buffers = ring_map(size, -1, 0);
    struct io_uring_buf_reg registration = {
        .ring_addr = (uint64_t)(uintptr_t)buffers, .ring_entries = BUFFERS, .bgid = 0};
    static uint8_t memory[BUFFERS][BUFFER_BYTES];
    for (unsigned i = 0; i < BUFFERS; i++) {
        buffers->bufs[i].addr = (uint64_t)(uintptr_t)memory[i];
        buffers->bufs[i].len = BUFFER_BYTES;
        buffers->bufs[i].bid = (uint16_t)i;
    }
    ring_register(ring, IORING_REGISTER_PBUF_RING, &registration);
    __atomic_store_n(&buffers->tail, (uint16_t)BUFFERS, __ATOMIC_RELEASE);
}

static void arm(struct uring *uring, int fd, uint64_t name)
{
    struct io_uring_sqe *sqe;
    if (uring->receives) {
        sqe = ring_take_sqe(&uring->ring, IORING_OP_RECV, fd, name);
        sqe->ioprio = IORING_RECV_MULTISHOT;
        sqe->flags = IOSQE_BUFFER_SELECT;
        return;
    }
    sqe = ring_take_sqe(&uring->ring, IORING_OP_POLL_ADD, fd, name);
    sqe->len = IORING_POLL_ADD_MULTI;
    sqe->poll32_events = 0x0001; /* POLLIN */
}

static void run_uring(struct bench *bench, bool receives)
{
    static struct uring uring;
    uring.receives = receives;
    ring_open(&uring.ring);
    if (receives) {
        provide_buffers(&uring.ring);
    }
    arm(&uring, bench->active, 1);
    for (uint32_t i = 0; i < bench->idle_count; i++) {
        arm(&uring, bench->idle[i], i + 2);
    }
    ring_enter(&uring.ring, 0);
    measure(bench, wait_uring, &uring);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    unsigned long idle = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (idle == 0 || idle > IDLE_MAX) {
        fprintf(stderr, "usage: micro_readiness select|poll|epoll|uring_poll|uring_receive IDLE\n");
        return 2;
    }
    bench.idle_count = (uint32_t)idle;
    open_connections(&bench);
    if (strcmp(argv[1], "select") == 0) {
        run_poller(&bench, &gi_poller_select);
    } else if (strcmp(argv[1], "poll") == 0) {
        run_poller(&bench, &gi_poller_poll);
    } else if (strcmp(argv[1], "epoll") == 0) {
        run_poller(&bench, &gi_poller_epoll);
    } else if (strcmp(argv[1], "uring_poll") == 0) {
        run_uring(&bench, false);
    } else if (strcmp(argv[1], "uring_receive") == 0) {
        run_uring(&bench, true);
    } else {
        absent("this system has no such call");
    }
    return 0;
}
