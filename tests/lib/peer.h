/* SPDX-License-Identifier: MIT */
/*
 * Scripted peers: raw non-blocking stream sockets that a test drives by hand, on the operating
 * system or in a simulated world, through one interface.  They stand at the other end of what is
 * tested, and know nothing of loops, sessions or engines.
 *
 *  1. No call waits.  What cannot be now answers GORI_EAGAIN; the test takes a turn of its loop and
 *     asks again.
 *  2. Results are values of <gori/error.h>, the same on both networks.
 * Thread: one.
 */
#ifndef GT_PEER_H
#define GT_PEER_H

#include <gori/addr.h>
#include <gori/op.h>

struct gi_sim;

/** Where peers live. */
struct gt_network {
    const struct gt_network_calls *calls;
    struct gi_sim *sim; /* NULL on the operating system */
};

/** A socket of a test: a connection, or a listener. */
struct gt_peer {
    const struct gt_network *network;
    gori_native native;
};

/* What gt_peer_state says. */
#define GT_PEER_READABLE 0x1 /* bytes, the end, an error; a connection to accept */
#define GT_PEER_WRITABLE 0x2 /* room, or an error */
#define GT_PEER_ENDED                                                                              \
    0x4 /* the end of the stream has arrived; behind bytes not every system sees it */
#define GT_PEER_RESET 0x8 /* the connection was reset, and nobody was told yet */

/** The operating system's network. */
struct gt_network gt_network_system(void);

/** The network of a simulated world. */
struct gt_network gt_network_sim(struct gi_sim *sim);

/** Begins to connect; gt_peer_connected says when it is done.  Errors: those of a socket. */
int gt_peer_connect(const struct gt_network *network, const struct gori_addr *addr,
                    struct gt_peer *ret_peer);

/** 0 when connected, GORI_EAGAIN while it is under way, or why it failed. */
int gt_peer_connected(struct gt_peer *peer);

/** Listens with a queue of `backlog`; gt_peer_addr tells the port. */
int gt_peer_listen(const struct gt_network *network, const struct gori_addr *addr, int backlog,
                   struct gt_peer *ret_listener);

/** One connection, or GORI_EAGAIN. */
int gt_peer_accept(struct gt_peer *listener, struct gt_peer *ret_peer);

/** Bytes taken (perhaps fewer than `size`), or an error. */
int64_t gt_peer_send(struct gt_peer *peer, const void *data, size_t size);

/** Bytes received, 0 at the end of the stream, or an error. */
int64_t gt_peer_recv(struct gt_peer *peer, void *data, size_t size);

/** Ends our direction. */
void gt_peer_shutdown(struct gt_peer *peer);

/** Closes in the orderly way; with unread bytes that is a reset, as the system has it. */
void gt_peer_close(struct gt_peer *peer);

/** Closes by a reset. */
void gt_peer_reset(struct gt_peer *peer);

/** Sets the socket's buffers; of a listener: those of what it accepts.  The system rounds up. */
void gt_peer_set_buffers(struct gt_peer *peer, uint32_t send_bytes, uint32_t recv_bytes);

/** GT_PEER_… */
uint32_t gt_peer_state(struct gt_peer *peer);

/** The peer's own address. */
void gt_peer_addr(struct gt_peer *peer, struct gori_addr *ret_addr);

/** The calls of one network; for peer_system.c and peer_sim.c. */
struct gt_network_calls {
    int (*open)(const struct gt_network *network, enum gori_addr_family family,
                gori_native *ret_native);
    int (*connect)(const struct gt_network *network, gori_native native,
                   const struct gori_addr *addr); /* GORI_EAGAIN: under way */
    int (*connected)(const struct gt_network *network, gori_native native);
    int (*listen)(const struct gt_network *network, const struct gori_addr *addr, int backlog,
                  gori_native *ret_native);
    int (*accept)(const struct gt_network *network, gori_native listener, gori_native *ret_native);
    int64_t (*send)(const struct gt_network *network, gori_native native, const void *data,
                    size_t size);
    int64_t (*recv)(const struct gt_network *network, gori_native native, void *data, size_t size);
    void (*shutdown)(const struct gt_network *network, gori_native native);
    void (*set_reset_on_close)(const struct gt_network *network, gori_native native);
    void (*set_buffers)(const struct gt_network *network, gori_native native, uint32_t send_bytes,
                        uint32_t recv_bytes);
    uint32_t (*state)(const struct gt_network *network, gori_native native);
    void (*addr)(const struct gt_network *network, gori_native native, struct gori_addr *ret_addr);
    void (*close)(const struct gt_network *network, gori_native native);
};

#endif
