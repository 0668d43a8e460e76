/* SPDX-License-Identifier: MIT */
/*
 * Scripted peers, the half that is the same on every network.  Contract: peer.h.
 */
#include <gori/error.h>

#include "lib/peer.h"

int gt_peer_connect(const struct gt_network *network, const struct gori_addr *addr,
                    struct gt_peer *ret_peer)
{
    gori_native native;
    int status = network->calls->open(network, gori_addr_family(addr), &native);
    if (status < 0) {
        return status;
    }
    /* A refusal that comes at once is told by gt_peer_connected, like one that comes later. */
    (void)network->calls->connect(network, native, addr);
    *ret_peer = (struct gt_peer){.network = network, .native = native};
    return 0;
}

int gt_peer_connected(struct gt_peer *peer)
{
    return peer->network->calls->connected(peer->network, peer->native);
}

int gt_peer_listen(const struct gt_network *network, const struct gori_addr *addr, int backlog,
                   struct gt_peer *ret_listener)
{
    gori_native native;
    int status = network->calls->listen(network, addr, backlog, &native);
    if (status == 0) {
        *ret_listener = (struct gt_peer){.network = network, .native = native};
    }
    return status;
}

int gt_peer_accept(struct gt_peer *listener, struct gt_peer *ret_peer)
{
    gori_native native;
    const struct gt_network *network = listener->network;
    int status = network->calls->accept(network, listener->native, &native);
    if (status == 0) {
        *ret_peer = (struct gt_peer){.network = network, .native = native};
    }
    return status;
}

int64_t gt_peer_send(struct gt_peer *peer, const void *data, size_t size)
{
    return peer->network->calls->send(peer->network, peer->native, data, size);
}

int64_t gt_peer_recv(struct gt_peer *peer, void *data, size_t size)
{
    return peer->network->calls->recv(peer->network, peer->native, data, size);
}

void gt_peer_shutdown(struct gt_peer *peer)
{
    peer->network->calls->shutdown(peer->network, peer->native);
}

void gt_peer_close(struct gt_peer *peer)
{
    peer->network->calls->close(peer->network, peer->native);
    peer->native = GORI_NATIVE_NONE;
}

void gt_peer_reset(struct gt_peer *peer)
{
    peer->network->calls->set_reset_on_close(peer->network, peer->native);
    gt_peer_close(peer);
}

void gt_peer_set_buffers(struct gt_peer *peer, uint32_t send_bytes, uint32_t recv_bytes)
{
    peer->network->calls->set_buffers(peer->network, peer->native, send_bytes, recv_bytes);
}

uint32_t gt_peer_state(struct gt_peer *peer)
{
    return peer->network->calls->state(peer->network, peer->native);
}

void gt_peer_addr(struct gt_peer *peer, struct gori_addr *ret_addr)
{
    peer->network->calls->addr(peer->network, peer->native, ret_addr);
}
