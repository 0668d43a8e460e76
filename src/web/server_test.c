/* SPDX-License-Identifier: MIT */
/*
 * Goal: the server as one who embeds it meets it: exact times, memory, beginning and end.
 * Method: a simulated world, so that time is the test's; real files in a folder of its own; peers
 * that are scripted.  What HTTP demands of it stands in tests/web, chance in tests/sim.
 */
#include <gori/web/server.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/session_fixture.h"
#include "lib/test.h"

#define GET   "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n"
#define LARGE 100000

struct site {
    struct fixture f;
    struct gori_web_config config;
    struct gori_web_server *server;
    struct gori_listener *listener;
    gori_time wall; /* what the server takes for the time of day */
    char root[64];
};

static void write_file(const struct site *site, const char *name, size_t size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", site->root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    GT_CHECK(fd >= 0);
    GT_EQUAL(write(fd, pattern(size), size), (ssize_t)size);
    close(fd);
}

static void remove_file(const struct site *site, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", site->root, name);
    (void)unlink(path);
}

static gori_time wall_clock(void *user)
{
    return ((struct site *)user)->wall;
}

static int open_site(struct site *site)
{
    struct gori_listener_config listener = {.backlog = 8};
    int result = gori_web_server_create(site->f.loop, &site->config, &site->server);
    if (result < 0) {
        return result;
    }
    gori_web_server_listen_config(site->server, &listener);
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &listener.addr), 0);
    result = gori_listener_open(site->f.loop, &listener, &site->listener);
    if (result < 0) {
        gori_web_server_destroy(site->server);
        return result;
    }
    gori_listener_addr(site->listener, &site->f.addr);
    return 0;
}

static void begin_site(struct site *site)
{
    const struct fixture_config fixture = {.without_listener = true};
    memset(site, 0, sizeof(*site));
    snprintf(site->root, sizeof(site->root), "/tmp/gori-web-XXXXXX");
    GT_CHECK(mkdtemp(site->root) != NULL);
    write_file(site, "small.txt", 1000);
    write_file(site, "large.bin", LARGE);
    begin(&site->f, &fixture);
    site->wall = 2000000000 * GORI_SECONDS;
    site->config = (struct gori_web_config){
        .allocator = &site->f.memory.allocator,
        .root = site->root,
        .wall_clock = wall_clock,
        .user = site,
    };
}

static void end_site(struct site *site)
{
    end(&site->f);
    remove_file(site, "small.txt");
    remove_file(site, "large.bin");
    GT_EQUAL(rmdir(site->root), 0);
}

static void close_site(struct site *site)
{
    gori_listener_close(site->listener);
    turns(&site->f, 4);
    gori_web_server_destroy(site->server);
    turns(&site->f, 4);
    end_site(site);
}

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
    begin_site(&site);
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
    begin_site(&site);
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
    begin_site(&site);
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
    begin_site(&site);
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
    begin_site(&site);
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
    begin_site(&site);
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
    begin_site(&site);
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
    begin_site(&site);
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
    begin_site(&site);
    GT_EQUAL(open_site(&site), 0);
    struct gt_peer peer = join(&site);
    say(&site, &peer, "GET / HT");
    gori_listener_close(site.listener);
    turns(&site.f, 4);
    gori_web_server_destroy(site.server);
    gt_peer_close(&peer);
    end_site(&site); /* the loop's end closes the connection; the allocator sees what is left */
}

/* Asks for everything twice, each time on a connection of its own, in two pieces.  Result: how many
 * requests were answered with what they asked for. */
static int play(struct site *site)
{
    static const char *requests[] = {
        "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n", "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /small.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"};
    int answered = 0;
    for (size_t i = 0; i < 8; i++) {
        struct gt_peer peer;
        GT_EQUAL(gt_peer_connect(&site->f.network, &site->f.addr, &peer), 0);
        const char *text = requests[i % 4];
        size_t half = strlen(text) / 2;
        site->f.read_bytes = 0;
        for (int left = 400; left > 0; left--) {
            if (left == 400 || left == 390) {
                size_t from = left == 400 ? 0 : half;
                (void)gt_peer_send(&peer, text + from, left == 400 ? half : strlen(text) - half);
            }
            int64_t result = peer_read(&site->f, &peer);
            if (result <= 0 && result != GORI_EAGAIN) {
                break;
            }
            int turned = gori_loop_turn(site->f.loop, GORI_MILLISECONDS);
            GT_CHECK(turned >= 0 || turned == GORI_ENOMEM);
        }
        bool has_status = site->f.read_bytes > 12;
        GT_CHECK(!has_status || memcmp(site->f.read, "HTTP/1.1 ", 9) == 0);
        answered += has_status && (site->f.read[9] == '2' || site->f.read[9] == '4');
        gt_peer_close(&peer);
    }
    return answered;
}

GT_TEST(every_allocation_fails_once)
{
    uint64_t failed = 1;
    for (uint64_t number = 1; failed > 0; number++) {
        struct site site;
        begin_site(&site);
        gi_fault_alloc_fail_once(&site.f.memory, number);
        int result = open_site(&site);
        GT_CHECK(result == 0 || result == GORI_ENOMEM);
        int answered = result == 0 ? play(&site) : 8;
        failed = gi_fault_alloc_failed_count(&site.f.memory);
        gi_fault_alloc_fail_never(&site.f.memory);
        GT_CHECK(answered >= 7); /* one failure touches one request at most */
        if (result == 0) {
            GT_EQUAL(play(&site), 8);
            close_site(&site);
        } else {
            end_site(&site);
        }
    }
}

GT_MAIN()
