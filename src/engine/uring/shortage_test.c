/* SPDX-License-Identifier: MIT */
/*
 * Goal: while the kernel has no memory for requests, the engine waits, and does not spin; then it
 * goes on with what it had queued.  And it never waits where no wake could reach it.
 * Method: the linker puts a system call of ours before the C library's, which refuses submissions.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "engine/uring/fixture_test.h"

static struct {
    bool has_none;       /* memory */
    bool takes_no_flush; /* a submission that harvests nothing */
    uint32_t refused;
    uint32_t waits; /* with has_none: that submitted nothing; else all */
} g_kernel;

/* Whether a call is refused. */
static bool refuses(uint32_t submit_count, uint32_t flags)
{
    bool is_flush = !(flags & IORING_ENTER_GETEVENTS);
    return submit_count > 0 && (g_kernel.has_none || (g_kernel.takes_no_flush && is_flush));
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long arguments[6];
    va_list items;
    va_start(items, number);
    for (int i = 0; i < 6; i++) {
        arguments[i] = va_arg(items, long);
    }
    va_end(items);
    if (number == SYS_io_uring_enter) {
        if (refuses((uint32_t)arguments[1], (uint32_t)arguments[3])) {
            g_kernel.refused++;
            errno = EAGAIN;
            return -1;
        }
        g_kernel.waits += (uint32_t)arguments[2] > 0 ? 1 : 0;
    }
    return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4], arguments[5]);
}

GT_TEST(each_refused_submission_is_followed_by_a_wait)
{
    struct fixture fixture;
    struct socket socket;
    struct record receive = {0};
    int fds[2];
    fixture_init(&fixture, 64);
    (void)fixture_turn(&fixture, 0);
    connect_pair(fds);
    socket_adopt(&fixture, &socket, fds[0]);
    GT_EQUAL(send(fds[1], "x", 1, 0), 1);
    record_submit(&fixture, &receive, &socket, GORI_OP_RECV_MULTI);
    g_kernel.has_none = true;
    g_kernel.waits = 0;
    for (uint32_t i = 1; i <= 3; i++) {
        GT_EQUAL(fixture_turn(&fixture, GORI_SECONDS), 0);
        GT_EQUAL(g_kernel.refused, i);
        GT_EQUAL(g_kernel.waits, i);
    }
    /* A turn that may not wait does not. */
    GT_EQUAL(fixture_turn(&fixture, 0), 0);
    GT_EQUAL(g_kernel.refused, 4);
    GT_EQUAL(g_kernel.waits, 3);
    g_kernel.has_none = false;
    FIXTURE_UNTIL(&fixture, receive.bytes == 1);
    socket_close(&fixture, &socket);
    FIXTURE_UNTIL(&fixture, socket.closed == 1);
    gi_os_close(fds[1]);
    fixture_fini(&fixture);
}

/* Before its first turn the engine has not armed its wake; a full queue keeps it from doing so. */
GT_TEST(a_turn_in_which_no_wake_could_be_armed_does_not_wait)
{
    static struct socket sockets[512];
    static struct record receives[512];
    struct fixture fixture;
    uint32_t count = 0;
    fixture_init(&fixture, 64);
    uint32_t entries = gi_ring_sq_entries(&fixture.uring->ring);
    GT_CHECK(entries <= GI_ARRAY_COUNT(sockets));
    for (; count < entries; count += 2) {
        int fds[2];
        GT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        for (uint32_t i = 0; i < 2; i++) {
            socket_adopt(&fixture, &sockets[count + i], fds[i]);
            record_submit(&fixture, &receives[count + i], &sockets[count + i], GORI_OP_RECV_MULTI);
        }
    }
    GT_EQUAL(gi_ring_queued(&fixture.uring->ring), entries);
    g_kernel.waits = 0;
    g_kernel.takes_no_flush = true;
    GT_EQUAL(fixture_turn(&fixture, 100 * GORI_SECONDS), 0);
    g_kernel.takes_no_flush = false;
    GT_EQUAL(g_kernel.refused, 1);
    GT_EQUAL(g_kernel.waits, 0);
    /* From the next turn on a wake ends a wait. */
    fixture.engine->impl->wake(fixture.engine);
    GT_EQUAL(fixture_turn(&fixture, 100 * GORI_SECONDS), 0);
    GT_EQUAL(g_kernel.waits, 1);
    for (uint32_t i = 0; i < count; i++) {
        socket_close(&fixture, &sockets[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        FIXTURE_UNTIL(&fixture, sockets[i].closed == 1);
    }
    fixture_fini(&fixture);
}

GT_MAIN()
