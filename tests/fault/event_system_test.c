/* SPDX-License-Identifier: MIT */
/*
 * Fails every system call of signals and children in turn, on engines of the operating system.
 * Method: as system_test.c, with the scenario of events.  Right is the error of the call where the
 * runtime reports it, a child that is whole or was never there, and everything as before when the
 * failure is over; errors that pass must not be seen.
 */
#include <errno.h>
#include <gori/error.h>
#include <lib/test.h>

#include "fault/event_scenario.h"
#include "fault/has_engine.h"
#include "fault/system_calls.h"
#include "os/os.h"

struct failure {
    enum fault_call call;
    int error;
    bool passes; /* nobody may notice */
};

static const struct failure failures[] = {
    {FAULT_CLOSE, EINTR, true},          {FAULT_DUPLICATE, EMFILE, false},
    {FAULT_EPOLL_CTL, ENOMEM, false},    {FAULT_EPOLL_CTL, ENOSPC, false},
    {FAULT_EPOLL_WAIT, EINTR, true},     {FAULT_EVENTFD, EMFILE, false},
    {FAULT_EVENTFD, ENOMEM, false},      {FAULT_PIDFD, ENOSYS, true}, /* SIGCHLD takes its place */
    {FAULT_PIDFD, EPERM, true},          {FAULT_PIDFD, EMFILE, false},
    {FAULT_PIDFD, ENOMEM, false},        {FAULT_READ, EINTR, true},
    {FAULT_READ, EAGAIN, true},          {FAULT_SOCKET_PAIR, EMFILE, false},
    {FAULT_SOCKET_PAIR, ENOBUFS, false}, {FAULT_SPAWN, EAGAIN, false},
    {FAULT_SPAWN, ENOENT, false},        {FAULT_SPAWN, ENOMEM, false},
    {FAULT_URING_ENTER, EINTR, true},    {FAULT_WAIT_CHILD, EINTR, true},
};

static void calm(void *user)
{
    bool *is_hit = user;
    *is_hit |= fault_calls_disarm();
}

/* Runs the scenario with one failure; answers whether there was such a call. */
static bool run(const char *engine, const struct failure *failure, uint64_t number)
{
    struct gi_fault_alloc memory;
    bool is_hit = false;
    gi_fault_alloc_init(&memory, NULL);
    fault_calls_arm(failure->call, number, failure->error);
    struct event_result result = event_scenario_play(engine, &memory, calm, &is_hit);
    bool may_be_seen = is_hit && !failure->passes;
    bool is_seen = result.error != 0 || !result.has_heard || !result.is_whole;
    bool is_right = result.error == 0 || result.error == gi_os_error(failure->error);
    if (!is_right || (is_seen && !may_be_seen)) {
        fprintf(stderr, "%s: call %d, errno %d, number %llu: error %d, %s, %s\n", engine,
                (int)failure->call, failure->error, (unsigned long long)number, result.error,
                result.has_heard ? "heard" : "not heard", result.is_whole ? "whole" : "not whole");
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
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        uint64_t number = 1;
        while (run(engine, &failures[i], number)) {
            number++;
        }
        runs += number;
    }
    printf("%s: %llu runs\n", engine, (unsigned long long)runs);
    GT_CHECK(runs > sizeof(failures) / sizeof(failures[0]));
}

GT_TEST(epoll_events_fail_each_system_call)
{
    sweep("epoll");
}

GT_TEST(poll_events_fail_each_system_call)
{
    sweep("poll");
}

GT_TEST(io_uring_events_fail_each_system_call)
{
    sweep("io_uring");
}

GT_MAIN()
