/* SPDX-License-Identifier: MIT */
/*
 * The limits of time of a session, in the simulated world, where hours pass at once: none fires
 * early, each ends what it is meant to end, and progress in either direction counts.
 */
#include <lib/session_fixture.h>

#include "rt/session.h"

static const gori_time second = 1000 * GORI_MILLISECONDS;

GT_TEST(without_progress_the_idle_limit_closes)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.options = {.idle_timeout = 10 * second}});
    struct gt_peer peer = connect_peer(&f);
    pass_time(&f, 9 * second);
    GT_EQUAL(f.closed, 0);
    pass_time(&f, 2 * second);
    GT_EQUAL(f.closed, 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_TIMEOUT);
    GT_EQUAL(f.last_error, GORI_ETIMEDOUT);
    gt_peer_close(&peer);
    end(&f);
}

GT_TEST(progress_in_either_direction_refreshes)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.options = {.idle_timeout = 10 * second}});
    struct gt_peer peer = connect_peer(&f);
    for (int i = 0; i < 10; i++) {
        pass_time(&f, 8 * second);
        GT_EQUAL(gt_peer_send(&peer, "x", 1), 1);
        turns(&f, 2);
    }
    for (int i = 0; i < 10; i++) {
        pass_time(&f, 8 * second);
        GT_EQUAL(gori_session_send(f.session, "x", 1), 0);
        turns(&f, 2);
    }
    GT_EQUAL(f.closed, 0);
    pass_time(&f, 11 * second);
    GT_EQUAL(f.closed, 1);
    gt_peer_close(&peer);
    end(&f);
}

GT_TEST(a_message_costs_no_operation_on_the_wheel)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.options = {.idle_timeout = 10 * second}});
    struct gt_peer peer = connect_peer(&f);
    gori_time before = f.session->timer.entry.deadline;
    pass_time(&f, 2 * second);
    GT_EQUAL(gt_peer_send(&peer, "x", 1), 1);
    turns(&f, 2);
    GT_EQUAL(f.session->timer.entry.deadline, before);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    end(&f);
}

GT_TEST(a_slow_download_is_not_idle)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.options = {.idle_timeout = 10 * second},
                                       .sim = {.send_bytes_min = 4096,
                                               .send_bytes_max = 4096,
                                               .recv_bytes_min = 4096,
                                               .recv_bytes_max = 4096}});
    struct gt_peer peer = connect_peer(&f);
    size_t size = 150000; /* one send, which takes minutes */
    GT_EQUAL(gori_session_send(f.session, pattern(size), size), 0);
    while (f.read_bytes < size) {
        GT_EQUAL(f.closed, 0);
        (void)peer_read(&f, &peer);
        pass_time(&f, 4 * second);
    }
    pass_time(&f, 30 * second);
    GT_EQUAL(f.last_reason, GORI_CLOSE_TIMEOUT);
    gt_peer_close(&peer);
    end(&f);
}

GT_TEST(a_handler_may_let_an_idle_session_live)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.options = {.idle_timeout = 10 * second},
                                       .handle_timeout = true});
    struct gt_peer peer = connect_peer(&f);
    pass_time(&f, 25 * second);
    GT_EQUAL(f.timeouts, 2);
    GT_EQUAL(f.last_timeout, GORI_TIMEOUT_IDLE);
    GT_EQUAL(f.closed, 0);
    gori_session_set_idle_timeout(f.session, 0);
    pass_time(&f, 1000 * second);
    GT_EQUAL(f.timeouts, 2);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    end(&f);
}

GT_TEST(the_total_limit_ignores_progress)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.options = {.total_timeout = 20 * second}});
    struct gt_peer peer = connect_peer(&f);
    for (int i = 0; i < 9; i++) {
        pass_time(&f, 2 * second);
        GT_EQUAL(gt_peer_send(&peer, "x", 1), 1);
    }
    GT_EQUAL(f.closed, 0);
    pass_time(&f, 3 * second);
    GT_EQUAL(f.closed, 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_TIMEOUT);
    gt_peer_close(&peer);
    end(&f);
}

GT_TEST(a_deadline_is_set_moved_and_cleared)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.handle_timeout = true});
    struct gt_peer peer = connect_peer(&f);
    gori_session_set_deadline(f.session, 10 * second);
    pass_time(&f, 9 * second);
    gori_session_set_deadline(f.session, 10 * second); /* later */
    pass_time(&f, 9 * second);
    GT_EQUAL(f.timeouts, 0);
    gori_session_set_deadline(f.session, second / 2); /* sooner */
    pass_time(&f, second);
    GT_EQUAL(f.timeouts, 1);
    GT_EQUAL(f.last_timeout, GORI_TIMEOUT_DEADLINE);
    pass_time(&f, 100 * second);
    GT_EQUAL(f.timeouts, 1); /* once */
    gori_session_set_deadline(f.session, second);
    gori_session_set_deadline(f.session, GORI_NEVER);
    pass_time(&f, 100 * second);
    GT_EQUAL(f.timeouts, 1);
    gt_peer_close(&peer);
    TURN_UNTIL(&f, f.closed == 1);
    end(&f);
}

GT_TEST(an_address_that_never_answers_times_out)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.without_listener = true});
    struct gori_addr addr = addr_of("192.0.2.1:80");
    struct gori_session *session;
    const struct gori_session_options options = {.connect_timeout = 3 * second};
    GT_EQUAL(gori_session_connect(f.loop, &addr, &events_timeout, &options, &f, &session), 0);
    pass_time(&f, 2 * second);
    GT_EQUAL(f.closed, 0);
    pass_time(&f, 2 * second);
    GT_EQUAL(f.closed, 1);
    GT_EQUAL(f.timeouts, 0); /* never asked for a connect */
    GT_EQUAL(f.last_reason, GORI_CLOSE_TIMEOUT);
    f.closed = 0;
    end(&f);
}

GT_TEST(draining_has_a_limit_of_time)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.options = {.drain_timeout = 5 * second}});
    struct gt_peer peer = connect_peer(&f);
    GT_EQUAL(gori_session_send(f.session, "bye", 3), 0);
    gori_session_close_after_flush(f.session);
    pass_time(&f, 4 * second);
    GT_EQUAL(f.closed, 0);
    pass_time(&f, 2 * second);
    GT_EQUAL(f.closed, 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_LOCAL);
    gt_peer_close(&peer);
    end(&f);
}

GT_TEST(draining_has_a_limit_of_bytes)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.options = {.drain_bytes = 10000}});
    struct gt_peer peer = connect_peer(&f);
    gori_session_close_after_flush(f.session);
    for (int i = 0; i < 9; i++) {
        GT_EQUAL(gt_peer_send(&peer, pattern(1000), 1000), 1000);
        turns(&f, 2);
    }
    GT_EQUAL(f.closed, 0);
    (void)gt_peer_send(&peer, pattern(2000), 2000);
    turns(&f, 4);
    GT_EQUAL(f.closed, 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_LOCAL);
    gt_peer_close(&peer);
    end(&f);
}

GT_TEST(a_peer_that_reads_nothing_cannot_hold_a_closing_session)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){0});
    struct gt_peer peer = connect_peer(&f);
    size_t size = 4 << 20;
    GT_EQUAL(gori_session_send(f.session, pattern(size), size), GORI_SEND_HIGH);
    gori_session_close_after_flush(f.session);
    pass_time(&f, 50 * second);
    GT_EQUAL(f.closed, 0);
    pass_time(&f, 80 * second);
    GT_EQUAL(f.closed, 1);
    GT_EQUAL(f.last_reason, GORI_CLOSE_TIMEOUT);
    gt_peer_close(&peer);
    end(&f);
}

GT_MAIN()
