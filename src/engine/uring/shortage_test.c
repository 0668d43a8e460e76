/* SPDX-License-Identifier: MIT */
/*
 * Goal: while the kernel has no memory for requests, the engine waits, and does not spin; then it
 * goes on with what it had queued.
 * Method: the linker puts a system call of ours before the C library's, which refuses submissions.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "engine/uring/fixture_test.h"

static struct {
    bool has_none; /* memory */
    uint32_t refused;
    uint32_t waits; /* that submitted nothing, while there was none */
} g_kernel;

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
    if (number == SYS_io_uring_enter && g_kernel.has_none) {
        if ((uint32_t)arguments[1] > 0) {
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

GT_MAIN()
