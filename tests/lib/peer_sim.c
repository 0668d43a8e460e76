/* SPDX-License-Identifier: MIT */
/*
 * Scripted peers in a simulated world: sockets of nobody's loop, which suffer none of its faults.
 * Contract: peer.h.
 */
#include <gori/error.h>

#include "base/assert.h"
#include "engine/sim/sim.h"
#include "lib/peer.h"

static int sim_open(const struct gt_network *network, enum gori_addr_family family,
                    gori_native *ret_native)
{
    return gi_sim_open(network->sim, NULL, family, ret_native);
}

static int sim_connect(const struct gt_network *network, gori_native native,
                       const struct gori_addr *addr)
{
    return gi_sim_connect(network->sim, native, addr);
}

static int sim_connected(const struct gt_network *network, gori_native native)
{
    return gi_sim_connect(network->sim, native, &(struct gori_addr){0});
}

static int sim_listen(const struct gt_network *network, const struct gori_addr *addr, int backlog,
                      gori_native *ret_native)
{
    struct gi_listen_options options = {.backlog = (uint32_t)backlog};
    return gi_sim_listen(network->sim, NULL, addr, &options, ret_native);
}

static int sim_accept(const struct gt_network *network, gori_native listener,
                      gori_native *ret_native)
{
    return gi_sim_accept(network->sim, listener, ret_native);
}

static int64_t sim_send(const struct gt_network *network, gori_native native, const void *data,
                        size_t size)
{
    return gi_sim_send(network->sim, native, data, size);
}

static int64_t sim_recv(const struct gt_network *network, gori_native native, void *data,
                        size_t size)
{
    return gi_sim_recv(network->sim, native, data, size);
}

static void sim_shutdown(const struct gt_network *network, gori_native native)
{
    (void)gi_sim_shutdown_send(network->sim, native);
}

static void sim_set_reset_on_close(const struct gt_network *network, gori_native native)
{
    gi_sim_set_reset_on_close(network->sim, native);
}

static void sim_set_buffers(const struct gt_network *network, gori_native native,
                            uint32_t send_bytes, uint32_t recv_bytes)
{
    (void)gi_sim_set_buffers(network->sim, native, send_bytes, recv_bytes);
}

/* The flags have the same values on purpose. */
static uint32_t sim_state(const struct gt_network *network, gori_native native)
{
    return gi_sim_ready(network->sim, native);
}

static void sim_addr(const struct gt_network *network, gori_native native,
                     struct gori_addr *ret_addr)
{
    int status = gi_sim_addr(network->sim, native, GI_SOCKET_LOCAL, ret_addr);
    GI_ASSERT(status == 0);
}

static void sim_close(const struct gt_network *network, gori_native native)
{
    gi_sim_close(network->sim, native);
}

_Static_assert(GT_PEER_READABLE == GI_SIM_READABLE && GT_PEER_WRITABLE == GI_SIM_WRITABLE &&
                   GT_PEER_ENDED == GI_SIM_ENDED && GT_PEER_RESET == GI_SIM_RESET,
               "one set of flags");

struct gt_network gt_network_sim(struct gi_sim *sim)
{
    static const struct gt_network_calls calls = {
        .open = sim_open,
        .connect = sim_connect,
        .connected = sim_connected,
        .listen = sim_listen,
        .accept = sim_accept,
        .send = sim_send,
        .recv = sim_recv,
        .shutdown = sim_shutdown,
        .set_reset_on_close = sim_set_reset_on_close,
        .set_buffers = sim_set_buffers,
        .state = sim_state,
        .addr = sim_addr,
        .close = sim_close,
    };
    return (struct gt_network){.calls = &calls, .sim = sim};
}
