/* SPDX-License-Identifier: MIT */
/*
 * The best hand-written echo on io_uring that we know: multishot accept and receive into a small,
 * hot ring of provided buffers, each message sent straight from the buffer it came in, everything
 * of a turn submitted by the one enter that also waits. It is the yardstick for what gori's
 * engine and runtime cost. It keeps what a correct echo cannot do without: one send in flight per
 * connection, in order, and receives that starved for buffers armed again when buffers return.
 * Reading: io_uring(7).
 *
 * user_data is (value << 8 | operation).
 */
#include "ring.h"
#include "server.h"

#include <stdbool.h>
#include <sys/socket.h>

enum {
    CONNECTIONS_MAX = 65536,
    BUFFER_COUNT = 128,
    /* The odd cache line keeps the buffers' heads from all falling into the same few cache
     * sets. */
    BUFFER_BYTES = 2048 + 64,
    NONE = UINT16_MAX,
};

enum operation { OPERATION_ACCEPT, OPERATION_RECEIVE, OPERATION_SEND };

/* Buffers received but not yet sent back, oldest first; the first is the one being sent. */
struct connection {
    uint16_t head;
    uint16_t tail;
    bool ended; /* no receive is armed and none will be */
};

struct server {
    struct ring ring;
    struct io_uring_buf_ring *buffers;
    uint16_t buffers_tail;
    int listener;
    struct connection connections[CONNECTIONS_MAX];
    struct {
        int owner; /* the connection it came from */
        uint32_t size;
        uint16_t next;
    } received[BUFFER_COUNT];
    int starved[CONNECTIONS_MAX];
    size_t starved_count;
    _Alignas(4096) char memory[BUFFER_COUNT][BUFFER_BYTES];
};

static void arm_accept(struct server *server)
{
    struct ring *ring = &server->ring;
    ring_take_sqe(ring, IORING_OP_ACCEPT, server->listener, OPERATION_ACCEPT)->ioprio =
        IORING_ACCEPT_MULTISHOT;
}

static void arm_receive(struct server *server, int fd)
{
    uint64_t user_data = (uint64_t)fd << 8 | OPERATION_RECEIVE;
    struct io_uring_sqe *sqe = ring_take_sqe(&server->ring, IORING_OP_RECV, fd, user_data);
    sqe->ioprio = IORING_RECV_MULTISHOT | IORING_RECVSEND_POLL_FIRST;
    sqe->flags = IOSQE_BUFFER_SELECT;
}

static void send_first(struct server *server, int fd)
{
    uint16_t id = server->connections[fd].head;
    uint64_t user_data = (uint64_t)id << 8 | OPERATION_SEND;
    struct io_uring_sqe *sqe = ring_take_sqe(&server->ring, IORING_OP_SEND, fd, user_data);
    sqe->addr = (uintptr_t)server->memory[id];
    sqe->len = server->received[id].size;
    sqe->msg_flags = MSG_WAITALL | MSG_NOSIGNAL;
}

/* The ring's tail is published once per turn. */
static void give_buffer(struct server *server, uint16_t id)
{
    struct io_uring_buf *slot = &server->buffers->bufs[server->buffers_tail++ % BUFFER_COUNT];
    slot->addr = (uintptr_t)server->memory[id];
    slot->len = BUFFER_BYTES;
    slot->bid = id;
}

static void publish_buffers(struct server *server)
{
    __atomic_store_n(&server->buffers->tail, server->buffers_tail, __ATOMIC_RELEASE);
}

static void open_buffers(struct server *server)
{
    server->buffers = ring_map(BUFFER_COUNT * sizeof(struct io_uring_buf), -1, 0);
    struct io_uring_buf_reg group = {.ring_addr = (uintptr_t)server->buffers,
                                     .ring_entries = BUFFER_COUNT};
    ring_register(&server->ring, IORING_REGISTER_PBUF_RING, &group);
    for (uint16_t id = 0; id < BUFFER_COUNT; id++) {
        give_buffer(server, id);
    }
    publish_buffers(server);
}

static void on_accept(struct server *server, const struct io_uring_cqe *cqe)
{
    if (cqe->res >= CONNECTIONS_MAX) {
        (void)close(cqe->res);
    } else if (cqe->res >= 0) {
        server->connections[cqe->res] = (struct connection){.head = NONE, .tail = NONE};
        arm_receive(server, cqe->res);
    } else if (cqe->res != -ECONNABORTED) {
        bench_die("accept", -cqe->res);
    }
    if (!(cqe->flags & IORING_CQE_F_MORE)) {
        arm_accept(server);
    }
}

static void on_receive(struct server *server, const struct io_uring_cqe *cqe)
{
    int fd = (int)(cqe->user_data >> 8);
    struct connection *connection = &server->connections[fd];
    if (cqe->res > 0) {
        uint16_t id = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
        server->received[id].owner = fd;
        server->received[id].size = (uint32_t)cqe->res;
        server->received[id].next = NONE;
        if (connection->head != NONE) {
            server->received[connection->tail].next = id;
            connection->tail = id;
        } else {
            connection->head = connection->tail = id;
            send_first(server, fd);
        }
    }
    if (cqe->flags & IORING_CQE_F_MORE) {
        return;
    }
    if (cqe->res > 0 || cqe->res == -ENOBUFS) {
        server->starved[server->starved_count++] = fd;
        return;
    }
    connection->ended = true;
    if (connection->head == NONE) {
        (void)close(fd);
    }
}

/* A failed send needs no answer of its own: the receive of the same socket ends with the
 * reason. */
static void on_send(struct server *server, const struct io_uring_cqe *cqe)
{
    uint16_t id = (uint16_t)(cqe->user_data >> 8);
    int fd = server->received[id].owner;
    struct connection *connection = &server->connections[fd];
    connection->head = server->received[id].next;
    give_buffer(server, id);
    if (connection->head != NONE) {
        send_first(server, fd);
    } else if (connection->ended) {
        (void)close(fd);
    }
}

static void turn(struct server *server)
{
    struct ring *ring = &server->ring;
    uint16_t buffers_tail = server->buffers_tail;
    ring_enter(ring, 1);
    unsigned head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire);
    for (; head != tail; head++) {
        const struct io_uring_cqe *cqe = &ring->cqes[head % CQ_ENTRIES];
        unsigned operation = cqe->user_data & 0xff;
        if (operation == OPERATION_RECEIVE) {
            on_receive(server, cqe);
        } else if (operation == OPERATION_SEND) {
            on_send(server, cqe);
        } else {
            on_accept(server, cqe);
        }
    }
    atomic_store_explicit(ring->cq_head, head, memory_order_release);
    if (buffers_tail != server->buffers_tail) {
        publish_buffers(server);
        while (server->starved_count > 0) {
            arm_receive(server, server->starved[--server->starved_count]);
        }
    }
}

static void serve(int listener)
{
    struct server *server = ring_map(sizeof *server, -1, 0);
    server->listener = listener;
    ring_open(&server->ring);
    open_buffers(server);
    arm_accept(server);
    for (;;) {
        turn(server);
    }
}

int main(int argc, char **argv)
{
    return bench_server_main(argc, argv, serve);
}
