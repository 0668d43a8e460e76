/* SPDX-License-Identifier: MIT */
/*
 * Scripted peers against each other, the same cases on the operating system and in a simulated
 * world: what differs here would be taken for a fault of an engine later.
 */
#include <gori/error.h>
#include <lib/test.h>

#include "engine/sim/sim.h"
#include "lib/peer.h"
#include "lib/system.h"

struct pair {
    struct gt_peer listener;
    struct gt_peer client;
    struct gt_peer server;
};

/* The system's loopback takes its time; a simulated network without delays takes none. */
static void wait_state(struct gt_peer *peer, uint32_t state)
{
    while ((gt_peer_state(peer) & state) != state) {
        gt_pause();
    }
}

static void connect_pair(const struct gt_network *network, struct pair *pair)
{
    struct gori_addr addr;
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &addr), 0);
    GT_EQUAL(gt_peer_listen(network, &addr, 4, &pair->listener), 0);
    gt_peer_addr(&pair->listener, &addr);
    GT_CHECK(gori_addr_port(&addr) != 0);
    GT_EQUAL(gt_peer_accept(&pair->listener, &pair->server), GORI_EAGAIN);
    GT_EQUAL(gt_peer_connect(network, &addr, &pair->client), 0);
    wait_state(&pair->listener, GT_PEER_READABLE);
    GT_EQUAL(gt_peer_connected(&pair->client), 0);
    GT_EQUAL(gt_peer_accept(&pair->listener, &pair->server), 0);
}

static void check_bytes_and_ends(const struct gt_network *network)
{
    struct pair pair;
    char bytes[8];
    connect_pair(network, &pair);
    GT_EQUAL(gt_peer_recv(&pair.server, bytes, sizeof(bytes)), GORI_EAGAIN);
    GT_EQUAL(gt_peer_send(&pair.client, "ping", 4), 4);
    gt_peer_shutdown(&pair.client);
    wait_state(&pair.server, GT_PEER_READABLE);
    GT_EQUAL(gt_peer_recv(&pair.server, bytes, sizeof(bytes)), 4);
    wait_state(&pair.server, GT_PEER_READABLE | GT_PEER_ENDED);
    GT_EQUAL(gt_peer_recv(&pair.server, bytes, sizeof(bytes)), 0);
    GT_EQUAL(gt_peer_send(&pair.client, "x", 1), GORI_EPIPE);
    GT_EQUAL(gt_peer_send(&pair.server, "pong", 4), 4);
    wait_state(&pair.client, GT_PEER_READABLE);
    GT_EQUAL(gt_peer_recv(&pair.client, bytes, sizeof(bytes)), 4);
    gt_peer_close(&pair.server);
    gt_peer_close(&pair.client);
    gt_peer_close(&pair.listener);
}

static void check_reset(const struct gt_network *network)
{
    struct pair pair;
    char byte;
    connect_pair(network, &pair);
    GT_EQUAL(gt_peer_send(&pair.server, "x", 1), 1);
    wait_state(&pair.client, GT_PEER_READABLE);
    gt_peer_reset(&pair.server);
    wait_state(&pair.client, GT_PEER_RESET);
    GT_EQUAL(gt_peer_recv(&pair.client, &byte, 1), 1);
    GT_EQUAL(gt_peer_recv(&pair.client, &byte, 1), GORI_ECONNRESET);
    /* Who asks again is told that it is over; Windows says why each time. */
    int64_t result = gt_peer_recv(&pair.client, &byte, 1);
    GT_CHECK(result == 0 || result == GORI_ECONNRESET);
    result = gt_peer_send(&pair.client, "y", 1);
    GT_CHECK(result == GORI_EPIPE || result == GORI_ECONNRESET);
    gt_peer_close(&pair.client);
    gt_peer_close(&pair.listener);
}

static void check_unread_close_and_refusal(const struct gt_network *network)
{
    struct pair pair;
    char byte;
    struct gori_addr addr;
    connect_pair(network, &pair);
    gt_peer_addr(&pair.listener, &addr);
    GT_EQUAL(gt_peer_send(&pair.client, "x", 1), 1);
    wait_state(&pair.server, GT_PEER_READABLE);
    gt_peer_close(&pair.server);
    wait_state(&pair.client, GT_PEER_RESET);
    GT_EQUAL(gt_peer_recv(&pair.client, &byte, 1), GORI_ECONNRESET);
    gt_peer_close(&pair.client);
    gt_peer_close(&pair.listener);
    GT_EQUAL(gt_peer_connect(network, &addr, &pair.client), 0);
    int status;
    while ((status = gt_peer_connected(&pair.client)) == GORI_EAGAIN) {
        gt_pause();
    }
    GT_EQUAL(status, GORI_ECONNREFUSED);
    gt_peer_close(&pair.client);
}

static void on_sim(void (*check)(const struct gt_network *network))
{
    struct gi_sim *sim;
    GT_EQUAL(gi_sim_create(gori_allocator_default(), &(struct gi_sim_config){0}, &sim), 0);
    struct gt_network network = gt_network_sim(sim);
    check(&network);
    gi_sim_destroy(sim);
}

static void on_system(void (*check)(const struct gt_network *network))
{
    struct gt_network network = gt_network_system();
    check(&network);
}

GT_TEST(system_bytes_and_ends)
{
    on_system(check_bytes_and_ends);
}

GT_TEST(sim_bytes_and_ends)
{
    on_sim(check_bytes_and_ends);
}

GT_TEST(system_reset)
{
    on_system(check_reset);
}

GT_TEST(sim_reset)
{
    on_sim(check_reset);
}

GT_TEST(system_unread_close_and_refusal)
{
    on_system(check_unread_close_and_refusal);
}

GT_TEST(sim_unread_close_and_refusal)
{
    on_sim(check_unread_close_and_refusal);
}

GT_MAIN()
