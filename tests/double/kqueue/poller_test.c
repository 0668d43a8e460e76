/* SPDX-License-Identifier: MIT */
/*
 * The kqueue poller where it is particular: what it sends to the system and when, and changes that
 * fail.  What all pollers promise is in engine/reactor/reactor_test.c.
 */
#include "lib/test.h"

#include <errno.h>
#include <gori/error.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "double/kqueue/kqueue.h"
#include "engine/reactor/poller.h"
#include "os/os.h"

struct bed {
    struct gi_poller *poller;
    struct gi_poller_event events[256];
    int count;
};

static void bed_init(struct bed *bed)
{
    memset(bed, 0, sizeof(*bed));
    GT_EQUAL(gi_poller_kqueue.create(NULL, &bed->poller), 0);
    GT_EQUAL(gi_poller_kqueue.add_wake(bed->poller, 0), 0);
    *kqueue_calls() = (struct kqueue_calls){0};
}

static void bed_fini(struct bed *bed)
{
    gi_poller_kqueue.destroy(bed->poller);
}

static int wait_for(struct bed *bed, gori_time timeout)
{
    bed->count = gi_poller_kqueue.wait(bed->poller, timeout, bed->events, 256);
    return bed->count;
}

/* All that was said of a token in the last wait. */
static uint32_t mask_of(const struct bed *bed, uint64_t token)
{
    uint32_t mask = 0;
    for (int i = 0; i < bed->count; i++) {
        mask |= bed->events[i].token == token ? bed->events[i].mask : 0;
    }
    return mask;
}

static void make_pair(int ret_fds[2])
{
    GT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_fds), 0);
}

/* Adding calls nobody; the wait that follows carries the changes, also one that does not wait. */
GT_TEST(poller_sends_changes_with_the_wait)
{
    struct bed bed;
    int fds[2];
    bed_init(&bed);
    make_pair(fds);
    uint64_t token = UINT64_C(0xfeedbeef00000001);
    GT_EQUAL(gi_poller_kqueue.add(bed.poller, fds[0], token), 0);
    GT_EQUAL(kqueue_calls()->kevents, 0);
    GT_EQUAL(wait_for(&bed, 0), 1);
    GT_EQUAL(mask_of(&bed, token), GI_POLL_WRITE);
    GT_EQUAL(kqueue_calls()->kevents, 1);
    unsigned changes = kqueue_calls()->changes;
    GT_EQUAL(send(fds[1], "x", 1, 0), 1);
    GT_EQUAL(wait_for(&bed, GORI_NEVER), 1);
    GT_EQUAL(mask_of(&bed, token), GI_POLL_READ);
    GT_EQUAL(recv(fds[0], &(char){0}, 1, 0), 1);
    GT_EQUAL(wait_for(&bed, 0), 0);
    GT_EQUAL(kqueue_calls()->changes, changes); /* registered once, for good */
    gi_poller_kqueue.remove(bed.poller, fds[0], token);
    close(fds[0]);
    GT_EQUAL(wait_for(&bed, 0), 0);
    GT_EQUAL(kqueue_calls()->changes, changes); /* and never deleted */
    close(fds[1]);
    bed_fini(&bed);
}

/* A number that is closed and given again before any wait: the new owner's token is told. */
GT_TEST(poller_forgets_what_it_kept)
{
    struct bed bed;
    int fds[2];
    int others[2];
    bed_init(&bed);
    make_pair(fds);
    make_pair(others);
    GT_EQUAL(gi_poller_kqueue.add(bed.poller, fds[0], 1), 0);
    gi_poller_kqueue.remove(bed.poller, fds[0], 1);
    int fd = fds[0];
    close(fd);
    GT_EQUAL(dup2(others[0], fd), fd);
    GT_EQUAL(gi_poller_kqueue.add(bed.poller, fd, 2), 0);
    GT_EQUAL(wait_for(&bed, 0), 1);
    GT_EQUAL(bed.events[0].token, 2);
    close(fd);
    close(fds[1]);
    close(others[0]);
    close(others[1]);
    bed_fini(&bed);
}

/* The end with data before it is READ and DRAIN; the end of the peer's reading alone no error. */
GT_TEST(poller_tells_ends_apart)
{
    struct bed bed;
    int fds[2];
    bed_init(&bed);
    make_pair(fds);
    GT_EQUAL(gi_poller_kqueue.add(bed.poller, fds[0], 1), 0);
    GT_EQUAL(wait_for(&bed, 0), 1);
    GT_EQUAL(send(fds[1], "last", 4, 0), 4);
    close(fds[1]);
    GT_EQUAL(wait_for(&bed, 0), 2);
    for (int i = 0; i < 2; i++) {
        bool is_read = (bed.events[i].mask & GI_POLL_READ) != 0;
        GT_EQUAL(bed.events[i].mask, is_read ? GI_POLL_READ | GI_POLL_DRAIN : GI_POLL_WRITE);
    }
    close(fds[0]);
    bed_fini(&bed);
}

/* More changes than are kept: they go out in between, and no event gets lost by that. */
GT_TEST(poller_flushes_when_full)
{
    enum { COUNT = 150 };
    static int fds[COUNT][2];
    struct bed bed;
    bed_init(&bed);
    for (int i = 0; i < COUNT; i++) {
        make_pair(fds[i]);
        GT_EQUAL(gi_poller_kqueue.add(bed.poller, fds[i][0], (uint64_t)i + 1), 0);
    }
    GT_CHECK(kqueue_calls()->kevents > 0);
    unsigned found = 0;
    while (found < COUNT) {
        GT_CHECK(wait_for(&bed, 0) > 0);
        for (int i = 0; i < bed.count; i++) {
            GT_EQUAL(bed.events[i].mask, GI_POLL_WRITE);
            found++;
        }
    }
    GT_EQUAL(found, COUNT);
    GT_EQUAL(wait_for(&bed, 0), 0);
    for (int i = 0; i < COUNT; i++) {
        close(fds[i][0]);
        close(fds[i][1]);
    }
    bed_fini(&bed);
}

static unsigned g_failures;
static int g_error;

static int fail_reads(const struct kevent *change)
{
    if (change->filter != EVFILT_READ || g_failures == 0) {
        return 0;
    }
    g_failures--;
    return g_error;
}

/* Want of memory is tried again, soon and as often as it takes; meanwhile nothing is said. */
GT_TEST(poller_tries_again_without_memory)
{
    struct bed bed;
    int fds[2];
    bed_init(&bed);
    make_pair(fds);
    GT_EQUAL(send(fds[1], "x", 1, 0), 1);
    g_failures = 3;
    g_error = ENOMEM;
    kqueue_calls()->fail_change = fail_reads;
    GT_EQUAL(gi_poller_kqueue.add(bed.poller, fds[0], 1), 0);
    uint32_t mask = 0;
    while (!(mask & GI_POLL_READ)) {
        GT_CHECK(wait_for(&bed, GORI_NEVER) >= 0);
        mask |= mask_of(&bed, 1);
    }
    GT_EQUAL(g_failures, 0);
    GT_EQUAL(mask, GI_POLL_READ | GI_POLL_WRITE);
    close(fds[0]);
    close(fds[1]);
    bed_fini(&bed);
}

/* Any other error makes the descriptor ready, so that the next call on it tells it. */
GT_TEST(poller_tells_what_cannot_be_watched)
{
    struct bed bed;
    int fds[2];
    bed_init(&bed);
    make_pair(fds);
    g_failures = 1;
    g_error = EINVAL;
    kqueue_calls()->fail_change = fail_reads;
    GT_EQUAL(gi_poller_kqueue.add(bed.poller, fds[0], 1), 0);
    GT_EQUAL(wait_for(&bed, GORI_NEVER), 1);
    GT_EQUAL(mask_of(&bed, 1), GI_POLL_READ | GI_POLL_WRITE | GI_POLL_DRAIN);
    close(fds[0]);
    close(fds[1]);
    bed_fini(&bed);
}

/* Failed changes that come back in a flush are kept, and the next wait hears of them. */
GT_TEST(poller_keeps_failures_of_a_flush)
{
    enum { COUNT = 65 };
    static int fds[COUNT][2];
    struct bed bed;
    bed_init(&bed);
    g_failures = 1;
    g_error = ENOMEM;
    kqueue_calls()->fail_change = fail_reads;
    for (int i = 0; i < COUNT; i++) {
        make_pair(fds[i]);
        GT_EQUAL(send(fds[i][1], "x", 1, 0), 1);
        GT_EQUAL(gi_poller_kqueue.add(bed.poller, fds[i][0], (uint64_t)i + 1), 0);
    }
    GT_EQUAL(g_failures, 0);
    unsigned readable = 0;
    while (readable < COUNT) {
        GT_CHECK(wait_for(&bed, GORI_NEVER) >= 0);
        for (int i = 0; i < bed.count; i++) {
            readable += (bed.events[i].mask & GI_POLL_READ) ? 1 : 0;
        }
    }
    GT_EQUAL(readable, COUNT);
    bed_fini(&bed);
}

GT_MAIN()
