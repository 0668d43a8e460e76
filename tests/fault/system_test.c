/* SPDX-License-Identifier: MIT */
/*
 * Fails every system call in turn, on the engines of the operating system.
 * Method: for each kind of call and each error that the system may answer, the scenario is run with
 * the n-th such call failing, for n from 1 until a run makes fewer.  Right is the error of the call
 * where the runtime reports it, clients that end, a server that serves afterwards, and nothing
 * left. Errors that pass must not be seen by anybody.
 */
#include <errno.h>
#include <gori/error.h>
#include <lib/test.h>

#include "fault/has_engine.h"
#include "fault/scenario.h"
#include "fault/system_calls.h"
#include "os/os.h"

/* Who may notice a failure. */
enum notice {
    BY_NOBODY, /* it passes */
    BY_START,  /* the loop may fail to start, but a client may not notice */
    BY_ALL
};

struct failure {
    enum fault_call call;
    int error;
    enum notice notice;
};

static const struct failure failures[] = {
    {FAULT_ACCEPT, ECONNABORTED, BY_NOBODY},
    {FAULT_ACCEPT, EINTR, BY_NOBODY},
    {FAULT_ACCEPT, EMFILE, BY_NOBODY},
    {FAULT_ACCEPT, ENFILE, BY_NOBODY},
    {FAULT_ACCEPT, ENOBUFS, BY_NOBODY},
    {FAULT_ACCEPT, ENOMEM, BY_NOBODY},
    {FAULT_BIND, EACCES, BY_ALL},
    {FAULT_BIND, EADDRINUSE, BY_ALL},
    {FAULT_CLOSE, EINTR, BY_NOBODY},
    {FAULT_CLOSE, EIO, BY_NOBODY},
    {FAULT_CONNECT, EADDRNOTAVAIL, BY_ALL},
    {FAULT_CONNECT, ECONNREFUSED, BY_ALL},
    {FAULT_CONNECT, ENETUNREACH, BY_ALL},
    {FAULT_EPOLL_CREATE, EMFILE, BY_ALL},
    {FAULT_EPOLL_CREATE, ENOMEM, BY_ALL},
    {FAULT_EPOLL_CTL, ENOMEM, BY_ALL},
    {FAULT_EPOLL_CTL, ENOSPC, BY_ALL},
    {FAULT_EPOLL_WAIT, EINTR, BY_NOBODY},
    {FAULT_EVENTFD, EMFILE, BY_ALL},
    {FAULT_EVENTFD, ENOMEM, BY_ALL},
    {FAULT_LISTEN, EADDRINUSE, BY_ALL},
    {FAULT_MMAP, ENOMEM, BY_ALL},
    {FAULT_OPEN, EMFILE, BY_ALL},
    {FAULT_OPEN, ENOSYS, BY_NOBODY},
    {FAULT_RECV, ECONNRESET, BY_ALL},
    {FAULT_RECV, EINTR, BY_NOBODY},
    {FAULT_RECV, ENOMEM, BY_ALL},
    {FAULT_SEND, ECONNRESET, BY_ALL},
    {FAULT_SEND, EINTR, BY_NOBODY},
    {FAULT_SEND, ENOMEM, BY_ALL},
    {FAULT_SEND, EPIPE, BY_ALL},
    {FAULT_SENDFILE, ECONNRESET, BY_ALL},
    {FAULT_SENDFILE, EINTR, BY_NOBODY},
    {FAULT_SENDFILE, EIO, BY_ALL},
    {FAULT_SETSOCKOPT, ENOMEM, BY_ALL},
    {FAULT_SOCKET, EMFILE, BY_ALL},
    {FAULT_SOCKET, ENFILE, BY_ALL},
    {FAULT_SOCKET, ENOBUFS, BY_ALL},
    {FAULT_URING_ENTER, EAGAIN, BY_START},
    {FAULT_URING_ENTER, EBUSY, BY_START},
    {FAULT_URING_ENTER, EINTR, BY_NOBODY},
    {FAULT_URING_REGISTER, EINVAL, BY_ALL},
    {FAULT_URING_REGISTER, ENOMEM, BY_ALL},
    {FAULT_URING_SETUP, EMFILE, BY_ALL},
    {FAULT_URING_SETUP, ENOMEM, BY_ALL},
    {FAULT_URING_SETUP, ENOSYS, BY_ALL},
    {FAULT_URING_SETUP, EPERM, BY_ALL},
};

static void calm(void *user)
{
    bool *is_hit = user;
    *is_hit |= fault_calls_disarm();
}

/* What the runtime makes of it; a register that is refused means a kernel that lacks something. */
static int right_error(const struct failure *failure)
{
    bool is_lack = failure->call == FAULT_URING_REGISTER && failure->error == EINVAL;
    return is_lack ? GORI_ENOSYS : gi_os_error(failure->error);
}

/* Runs the scenario with one failure; answers whether there was such a call. */
static bool run(const char *engine, const struct failure *failure, uint64_t number)
{
    struct gi_fault_alloc memory;
    bool is_hit = false;
    gi_fault_alloc_init(&memory, NULL);
    fault_calls_arm(failure->call, number, failure->error);
    struct scenario_result result = scenario_play(engine, &memory, calm, &is_hit);
    enum notice notice = result.failed > 0 ? BY_ALL : result.error < 0 ? BY_START : BY_NOBODY;
    bool is_right = result.error == 0 || result.error == right_error(failure);
    if (!is_right || notice > (is_hit ? failure->notice : BY_NOBODY)) {
        fprintf(stderr, "%s: call %d, errno %d, number %llu: error %d, %u of %u clients failed\n",
                engine, (int)failure->call, failure->error, (unsigned long long)number,
                result.error, result.failed, SCENARIO_CLIENTS);
        GT_CHECK(false);
    }
    gi_fault_alloc_fini(&memory);
    return is_hit;
}

static void sweep(const char *engine)
{
    if (!fault_has_engine(engine)) {
        GT_SKIP("no such engine here");
    }
    uint64_t runs = 0;
    for (size_t i = 0; i < GI_ARRAY_COUNT(failures); i++) {
        uint64_t number = 1;
        while (run(engine, &failures[i], number)) {
            number++;
        }
        runs += number;
    }
    printf("%s: %llu runs\n", engine, (unsigned long long)runs);
    GT_CHECK(runs > 2 * GI_ARRAY_COUNT(failures));
}

GT_TEST(epoll_fails_each_system_call)
{
    sweep("epoll");
}

GT_TEST(io_uring_fails_each_system_call)
{
    sweep("io_uring");
}

GT_MAIN()
