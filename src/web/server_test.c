/* SPDX-License-Identifier: MIT */
/*
 * Goal: the server as one who embeds it meets it: exact times, memory, beginning and end.
 * Method: a simulated world, so that time is the test's; real files in a folder of its own; peers
 * that are scripted.  What HTTP demands of it stands in tests/web, chance in tests/sim.
 */
#include <gori/web/server.h>

#include "lib/test.h"
#include "lib/web_site.h"

#define GET "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n"

static struct gt_peer join(struct site *site)
{
    struct gt_peer peer;
    GT_EQUAL(gt_peer_connect(&site->f.network, &site->f.addr, &peer), 0);
    TURN_UNTIL(&site->f, gt_peer_connected(&peer) == 0);
    turns(&site->f, 2);
    return peer;
}

static void say(struct site *site, struct gt_peer *peer, const char *text)
{
    peer_send(&site->f, peer, text, strlen(text));
}

/* Reads until `text` has been read, and forgets all. */
static void await_text(struct site *site, struct gt_peer *peer, const char *text)
{
    struct fixture *f = &site->f;
    for (int left = FIXTURE_TURNS_MAX; memmem(f->read, f->read_bytes, text, strlen(text)) == NULL;
         left--) {
        GT_CHECK(left > 0);
        int64_t result = peer_read(f, peer);
        GT_CHECK(result > 0 || result == GORI_EAGAIN);
        turn(f);
    }
    turns(f, 4);
    while (peer_read(f, peer) > 0) {
        turn(f);
    }
    f->read_bytes = 0;
}

static bool is_silent(struct site *site, struct gt_peer *peer)
{
    turns(&site->f, 4);
    return peer_read(&site->f, peer) == GORI_EAGAIN && site->f.read_bytes == 0;
}

static struct gori_web_stats stats_of(const struct site *site)
{
    struct gori_web_stats stats;
    gori_web_server_stats(site->server, &stats);
    return stats;
}

GT_TEST(configs_out_of_range_are_refused)
{
    struct site site;
    begin_site(&site, "sim");
    struct gori_web_config bad[] = {site.config, site.config, site.config, site.config,
                                    site.config};
    bad[0].root = NULL;
    bad[1].head_bytes_max = UINT32_MAX;
    bad[2].target_bytes_max = 64 << 10;
    bad[3].server_name = "two\r\nlines";
    bad[4].root = "/nowhere";
    for (size_t i = 0; i < 5; i++) {
        int result = gori_web_server_create(site.f.loop, &bad[i], &site.server);
        GT_EQUAL(result, i == 4 ? GORI_ENOTFOUND : GORI_EINVAL);
    }
    gori_web_server_destroy(NULL);
    end_site(&site);
}

GT_TEST(the_header_deadline_is_absolute)
{
    struct site site;
    begin_site(&site, "sim");
    GT_EQUAL(open_site(&site), 0);
    struct gt_peer peer = join(&site);
    say(&site, &peer, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    for (int i = 0; i < 9; i++) {
        pass_time(&site.f, GORI_SECONDS);
        say(&site, &peer, "y");
        GT_CHECK(is_silent(&site, &peer));
    }
    pass_time(&site.f, GORI_SECONDS);
    await_text(&site, &peer, "HTTP/1.1 408 Request Timeout\r\n");
    GT_EQUAL(peer_read_end(&site.f, &peer), 0);
    GT_EQUAL(stats_of(&site).request_timeouts, 1);
    gt_peer_close(&peer);
    close_site(&site);
}

GT_TEST(an_idle_connection_is_closed_without_a_word)
{
    struct site site;
    begin_site(&site, "sim");
    GT_EQUAL(open_site(&site), 0);
    struct gt_peer peer = join(&site);
    say(&site, &peer, GET);
    await_text(&site, &peer, "\r\n\r\n");
    pass_time(&site.f, 59 * GORI_SECONDS);
    GT_CHECK(is_silent(&site, &peer));
    pass_time(&site.f, 2 * GORI_SECONDS);
    GT_EQUAL(peer_read_end(&site.f, &peer), 0);
    GT_EQUAL(site.f.read_bytes, 0);
    GT_EQUAL(stats_of(&site).idle_timeouts, 1);
    gt_peer_close(&peer);
    close_site(&site);
}

GT_TEST(every_cut_of_two_requests_gives_the_same_answers)
{
    static const char both[] = "GET /small.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                               "HEAD /large.bin HTTP/1.1\r\nHost: b\r\nIf-Match: *\r\n"
                               "Connection: close\r\n\r\n";
    struct site site;
    begin_site(&site, "sim");
    GT_EQUAL(open_site(&site), 0);
    size_t whole = 0;
    for (size_t cut = 0; cut < sizeof(both) - 1; cut++) {
        struct gt_peer peer = join(&site);
        peer_send(&site.f, &peer, both, cut);
        turns(&site.f, 2);
        peer_send(&site.f, &peer, both + cut, sizeof(both) - 1 - cut);
        GT_EQUAL(peer_read_end(&site.f, &peer), 0);
        whole = whole == 0 ? site.f.read_bytes : whole;
        GT_EQUAL(site.f.read_bytes, whole);
        site.f.read_bytes = 0;
        gt_peer_close(&peer);
    }
    GT_CHECK(whole > 1300 && whole < 2000);
    GT_EQUAL(stats_of(&site).requests, 2 * (sizeof(both) - 1));
    GT_EQUAL(stats_of(&site).status_class[2], 2 * (sizeof(both) - 1));
    close_site(&site);
}

GT_TEST(a_known_file_costs_no_allocation)
{
    struct site site;
    begin_site(&site, "sim");
    GT_EQUAL(open_site(&site), 0);
    struct gt_peer peer = join(&site);
    for (int i = 0; i < 10; i++) {
        say(&site, &peer, GET);
        await_text(&site, &peer, "HTTP/1.1 200 OK");
    }
    uint64_t before = gi_fault_alloc_count(&site.f.memory);
    for (int i = 0; i < 100; i++) {
        say(&site, &peer, GET);
        await_text(&site, &peer, "HTTP/1.1 200 OK");
    }
    GT_EQUAL(gi_fault_alloc_count(&site.f.memory), before);
    GT_EQUAL(stats_of(&site).cache_misses, 1);
    gt_peer_close(&peer);
    close_site(&site);
}

GT_TEST(the_date_goes_on)
{
    struct site site;
    begin_site(&site, "sim");
    GT_EQUAL(open_site(&site), 0);
    struct gt_peer peer = join(&site);
    say(&site, &peer, GET);
    await_text(&site, &peer, "Date: Wed, 18 May 2033 03:33:20 GMT\r\n");
    site.wall += 5 * GORI_SECONDS;
    pass_time(&site.f, 5 * GORI_SECONDS);
    say(&site, &peer, GET);
    await_text(&site, &peer, "Date: Wed, 18 May 2033 03:33:25 GMT\r\n");
    gt_peer_close(&peer);
    close_site(&site);
}

GT_TEST(a_stop_closes_what_is_idle_and_waits_for_what_is_not)
{
    struct site site;
    begin_site(&site, "sim");
    GT_EQUAL(open_site(&site), 0);
    struct gt_peer idle = join(&site);
    struct gt_peer busy = join(&site);
    say(&site, &idle, GET);
    await_text(&site, &idle, "\r\n\r\n");
    say(&site, &busy, "GET /small.txt HTTP/1.1\r\n");
    gori_web_server_stop(site.server);
    gori_web_server_stop(site.server);
    GT_EQUAL(peer_read_end(&site.f, &idle), 0);
    GT_CHECK(is_silent(&site, &busy));
    struct gt_peer late = join(&site); /* it stood in the system's queue */
    say(&site, &late, GET);
    await_text(&site, &late, "Connection: close\r\n");
    say(&site, &busy, "Host: a\r\n\r\n");
    await_text(&site, &busy, "Connection: close\r\n");
    GT_EQUAL(peer_read_end(&site.f, &busy), 0);
    gt_peer_close(&idle);
    gt_peer_close(&busy);
    gt_peer_close(&late);
    turns(&site.f, 4);
    GT_EQUAL(stats_of(&site).connections_now, 0);
    close_site(&site);
}

GT_TEST(a_stop_does_not_wait_for_who_never_speaks)
{
    struct site site;
    begin_site(&site, "sim");
    GT_EQUAL(open_site(&site), 0);
    struct gt_peer silent = join(&site);
    gori_web_server_stop(site.server);
    pass_time(&site.f, 2 * GORI_SECONDS);
    GT_EQUAL(peer_read_end(&site.f, &silent), 0);
    gt_peer_close(&silent);
    close_site(&site);
}

GT_TEST(a_server_goes_with_its_last_connection)
{
    struct site site;
    begin_site(&site, "sim");
    GT_EQUAL(open_site(&site), 0);
    struct gt_peer peer = join(&site);
    say(&site, &peer, "GET / HT");
    gori_listener_close(site.listener);
    turns(&site.f, 4);
    gori_web_server_destroy(site.server);
    gt_peer_close(&peer);
    end_site(&site); /* the loop's end closes the connection; the allocator sees what is left */
}

GT_TEST(every_allocation_fails_once)
{
    uint64_t failed = 1;
    for (uint64_t number = 1; failed > 0; number++) {
        struct site site;
        begin_site(&site, "sim");
        gi_fault_alloc_fail_once(&site.f.memory, number);
        int result = open_site(&site);
        GT_CHECK(result == 0 || result == GORI_ENOMEM);
        int answered = result == 0 ? play(&site) : PLAY_COUNT;
        failed = gi_fault_alloc_failed_count(&site.f.memory);
        gi_fault_alloc_fail_never(&site.f.memory);
        GT_CHECK(answered >= PLAY_COUNT - 1); /* one failure touches one request at most */
        if (result == 0) {
            GT_EQUAL(play(&site), PLAY_COUNT);
            close_site(&site);
        } else {
            end_site(&site);
        }
    }
}

GT_MAIN()
