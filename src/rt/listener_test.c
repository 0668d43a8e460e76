/* SPDX-License-Identifier: MIT */
/*
 * Listeners: pausing when full, backing off when something has run out, closing without refusing
 * what the system has queued, UNIX paths.  Method: as session_test.c; shortages in the simulated
 * world, paths on the system.
 */
#include <lib/session_fixture.h>
#include <sys/stat.h>

#include "rt/session.h"

static uint32_t sessions_now(struct fixture *f)
{
    struct gori_loop_stats stats;
    gori_loop_read_stats(f->loop, &stats);
    return stats.sessions_now;
}

static uint64_t accept_pauses(struct fixture *f)
{
    struct gori_loop_stats stats;
    gori_loop_read_stats(f->loop, &stats);
    return stats.accept_pauses;
}

GT_TEST_ON_ALL(a_full_listener_pauses_and_goes_on)
{
    enum { PEERS = 30, ROOM = 4 };
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine, .sessions_max = ROOM});
    struct gt_peer peers[PEERS];
    for (int i = 0; i < PEERS; i++) {
        GT_EQUAL(gt_peer_connect(&f.network, &f.addr, &peers[i]), 0);
    }
    TURN_UNTIL(&f, f.opened == ROOM);
    turns(&f, 10);
    GT_EQUAL(f.opened, ROOM);
    GT_EQUAL(gori_listener_sessions(f.listener), ROOM);
    /* Everybody has a turn, and nobody was refused. */
    for (uint32_t i = 0; i < PEERS; i++) {
        TURN_UNTIL(&f, f.session != NULL);
        GT_CHECK(gori_listener_sessions(f.listener) <= ROOM);
        gori_session_close(f.session);
        TURN_UNTIL(&f, f.closed == i + 1);
    }
    GT_EQUAL(f.opened, PEERS);
    for (int i = 0; i < PEERS; i++) {
        gt_peer_close(&peers[i]);
    }
    end(&f);
}

GT_TEST_ON_ALL(closing_serves_what_the_system_has_queued)
{
    enum { PEERS = 20 };
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine});
    struct gt_peer peers[PEERS];
    for (int i = 0; i < PEERS; i++) {
        GT_EQUAL(gt_peer_connect(&f.network, &f.addr, &peers[i]), 0);
    }
    gori_listener_close(f.listener);
    gori_listener_close(f.listener);
    GT_EQUAL(f.listeners_closed, 0);
    TURN_UNTIL(&f, f.listeners_closed == 1);
    GT_EQUAL(f.opened, PEERS); /* what was queued is served */
    for (int i = 0; i < PEERS; i++) {
        peer_send(&f, &peers[i], "x", 1);
    }
    TURN_UNTIL(&f, f.received_bytes == PEERS);
    for (int i = 0; i < PEERS; i++) {
        gt_peer_close(&peers[i]);
    }
    TURN_UNTIL(&f, f.closed == PEERS);
    end(&f);
}

enum { QUEUE = 8, CROWD = 40 };

static struct gt_peer g_crowd[CROWD];

/* Each that is served brings one more. */
static void connect_another(struct fixture *f, struct gori_session *session)
{
    (void)session;
    if (f->opened < CROWD) {
        GT_EQUAL(gt_peer_connect(&f->network, &f->addr, &g_crowd[f->opened]), 0);
    }
}

/* A client that connects as fast as the listener accepts does not keep it from closing. */
GT_TEST_ON_ALL(closing_ends_whoever_still_connects)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = engine, .backlog = QUEUE});
    GT_EQUAL(gt_peer_connect(&f.network, &f.addr, &g_crowd[0]), 0);
    TURN_UNTIL(&f, gt_peer_connected(&g_crowd[0]) == 0);
    f.script.on_open = connect_another;
    gori_listener_close(f.listener);
    TURN_UNTIL(&f, f.listeners_closed == 1);
    GT_CHECK(f.opened >= 1);
    GT_CHECK(f.opened <= 1 + QUEUE + 1); /* one may have been accepted before */
    for (uint32_t i = 0; i <= f.opened; i++) {
        gt_peer_close(&g_crowd[i]);
    }
    end(&f);
}

GT_TEST(out_of_descriptors_it_backs_off_and_goes_on)
{
    enum { PEERS = 40, DESCRIPTORS = 9 }; /* one of them is the listener's */
    struct fixture f;
    begin(&f, &(struct fixture_config){.sim = {.descriptors_max = DESCRIPTORS}});
    struct gt_peer peers[PEERS];
    for (int i = 0; i < PEERS; i++) {
        GT_EQUAL(gt_peer_connect(&f.network, &f.addr, &peers[i]), 0);
    }
    TURN_UNTIL(&f, f.opened == DESCRIPTORS - 1);
    gori_time before = gi_sim_now(f.sim);
    struct gori_loop_stats stats;
    gori_loop_read_stats(f.loop, &stats);
    uint64_t turns_before = stats.turns;
    while (gi_sim_now(f.sim) < before + 10 * GORI_SECONDS) {
        GT_CHECK(gori_loop_turn(f.loop, GORI_SECONDS) >= 0);
    }
    gori_loop_read_stats(f.loop, &stats);
    GT_CHECK(stats.turns - turns_before < 60); /* no spin */
    GT_CHECK(stats.accept_pauses >= 10);
    GT_EQUAL(stats.sessions_refused, 0);
    for (uint32_t i = 0; i < PEERS; i++) {
        TURN_UNTIL(&f, f.session != NULL);
        gori_session_close(f.session);
        TURN_UNTIL(&f, f.closed == i + 1);
    }
    GT_EQUAL(f.opened, PEERS);
    for (int i = 0; i < PEERS; i++) {
        gt_peer_close(&peers[i]);
    }
    end(&f);
}

GT_TEST(at_the_limit_of_the_loop_it_waits_for_room)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.loop = {.sessions_max = 2}});
    struct gt_peer peers[4];
    for (int i = 0; i < 4; i++) {
        GT_EQUAL(gt_peer_connect(&f.network, &f.addr, &peers[i]), 0);
    }
    TURN_UNTIL(&f, f.opened == 2);
    pass_time(&f, 100 * GORI_MILLISECONDS);
    GT_EQUAL(sessions_now(&f), 2);
    GT_CHECK(accept_pauses(&f) > 0);
    struct gori_loop_stats stats;
    gori_loop_read_stats(f.loop, &stats);
    GT_CHECK(stats.sessions_refused > 0); /* accepted before it was known */
    for (int i = 0; i < 4; i++) {
        gt_peer_close(&peers[i]);
    }
    TURN_UNTIL(&f, f.closed == f.opened);
    struct gt_peer late = connect_peer(&f);
    gt_peer_close(&late);
    TURN_UNTIL(&f, f.closed == f.opened);
    end(&f);
}

GT_TEST(errors_of_accept_are_passing)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){
                  .sim = {.seed = 5, .faults = {.accept_error = 500, .abort = 500}}});
    for (int i = 0; i < 30; i++) {
        struct gt_peer peer = connect_peer(&f);
        gt_peer_close(&peer);
    }
    TURN_UNTIL(&f, f.closed == 30);
    end(&f);
}

GT_TEST(connections_beyond_the_descriptors_at_close_are_still_served)
{
    enum { PEERS = 12, DESCRIPTORS = 5 };
    struct fixture f;
    begin(&f, &(struct fixture_config){.sim = {.descriptors_max = DESCRIPTORS}});
    struct gt_peer peers[PEERS];
    for (int i = 0; i < PEERS; i++) {
        GT_EQUAL(gt_peer_connect(&f.network, &f.addr, &peers[i]), 0);
    }
    TURN_UNTIL(&f, f.opened == DESCRIPTORS - 1);
    gori_listener_close(f.listener);
    for (int i = 0; i < PEERS; i++) {
        gt_peer_shutdown(&peers[i]);
        turns(&f, 30);
    }
    TURN_UNTIL(&f, f.listeners_closed == 1);
    GT_EQUAL(f.opened, PEERS);
    for (int i = 0; i < PEERS; i++) {
        gt_peer_close(&peers[i]);
    }
    end(&f);
}

GT_TEST(a_unix_path_comes_and_goes)
{
    char folder[] = "/tmp/gori_listener_XXXXXX";
    char text[128];
    GT_CHECK(mkdtemp(folder) != NULL);
    snprintf(text, sizeof(text), "unix:%s/s", folder);
    const char *path = text + 5;
    struct fixture f;
    begin(&f, &(struct fixture_config){.engine = "epoll", .without_listener = true});
    const struct gori_listener_config config = {.addr = addr_of(text),
                                                .events = &events_plain,
                                                .user = &f,
                                                .on_close = note_listener_closed};
    GT_EQUAL(gori_listener_open(f.loop, &config, &f.listener), 0);
    gori_listener_addr(f.listener, &f.addr);
    struct gori_listener *second;
    GT_EQUAL(gori_listener_open(f.loop, &config, &second), GORI_EADDRINUSE);
    struct gt_peer peer = connect_peer(&f);
    peer_send(&f, &peer, "x", 1);
    struct gori_addr addr;
    GT_EQUAL(gori_session_peer(f.session, &addr), 0);
    struct stat status;
    GT_EQUAL(stat(path, &status), 0);
    gori_listener_close(f.listener);
    TURN_UNTIL(&f, f.listeners_closed == 1);
    GT_CHECK(stat(path, &status) < 0);
    /* What somebody else has put in the meantime at the same place stays. */
    GT_EQUAL(gori_listener_open(f.loop, &config, &f.listener), 0);
    GT_EQUAL(unlink(path), 0);
    FILE *other = fopen(path, "wb");
    GT_CHECK(other != NULL);
    fclose(other);
    gori_listener_close(f.listener);
    TURN_UNTIL(&f, f.listeners_closed == 2);
    GT_EQUAL(stat(path, &status), 0);
    GT_EQUAL(unlink(path), 0);
    GT_EQUAL(rmdir(folder), 0);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    end(&f);
}

GT_TEST(a_bad_config_is_refused)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.without_listener = true});
    struct gori_listener *listener;
    struct gori_listener_config config = {.addr = addr_of("127.0.0.1:0")};
    GT_EQUAL(gori_listener_open(f.loop, &config, &listener), GORI_EINVAL);
    config.events = &events_plain;
    config.options.send_high = 100;
    config.options.send_low = 200;
    GT_EQUAL(gori_listener_open(f.loop, &config, &listener), GORI_EINVAL);
    config.options = (struct gori_session_options){0};
    config.addr = (struct gori_addr){0};
    GT_EQUAL(gori_listener_open(f.loop, &config, &listener), GORI_EINVAL);
    end(&f);
}

/* One connection there and back; whatever fails, all is given back. */
static bool scenario(struct fixture *f, uint64_t number)
{
    gi_fault_alloc_fail_once(&f->memory, number);
    struct gori_listener *listener = NULL;
    const struct gori_listener_config config = {.addr = addr_of("127.0.0.1:7000"),
                                                .events = &events_plain,
                                                .user = f,
                                                .options = {.context_bytes = 64}};
    struct gt_peer peer;
    struct gori_session *client = NULL;
    int result = gori_listener_open(f->loop, &config, &listener);
    if (result >= 0) {
        gori_listener_addr(listener, &f->addr);
        result = gt_peer_connect(&f->network, &f->addr, &peer);
        GT_EQUAL(result, 0);
        turns(f, 30);
        (void)gt_peer_send(&peer, "ab", 2);
        turns(f, 5);
        (void)gt_peer_send(&peer, "cd", 2);
        if (gori_session_connect(f->loop, &f->addr, &events_plain, NULL, f, &client) >= 0) {
            result = gori_session_send(client, pattern(20000), 20000);
        }
        turns(f, 30);
        gt_peer_close(&peer);
        turns(f, 5);
        gori_listener_close(listener);
    }
    turns(f, 5);
    return gi_fault_alloc_failed_count(&f->memory) > 0;
}

static size_t take_all_but_one(struct fixture *f, struct gori_session *session,
                               struct gori_slice bytes)
{
    (void)f;
    (void)session;
    return bytes.size - 1;
}

GT_TEST(each_allocation_may_fail)
{
    bool failed = true;
    for (uint64_t number = 1; failed; number++) {
        struct fixture f;
        begin(&f, &(struct fixture_config){.without_listener = true});
        f.script.on_recv = take_all_but_one;
        failed = scenario(&f, number);
        gi_fault_alloc_fail_never(&f.memory);
        gori_loop_destroy(f.loop);
        f.loop = NULL;
        f.opened = f.closed; /* a connect that fails closes without opening */
        end(&f);
        GT_CHECK(number < 500);
    }
}

GT_MAIN()
