/* SPDX-License-Identifier: MIT */
/*
 * Fails every system call of watches in turn, on engines of the operating system.
 * Method: as system_test.c, with the scenario of watches.  Right is the error of the call where the
 * runtime reports it, and watches that work afterwards; errors that pass must not be seen.
 */
#include <errno.h>
#include <gori/error.h>
#include <lib/test.h>

#include "fault/has_engine.h"
#include "fault/system_calls.h"
#include "fault/watch_scenario.h"
#include "os/os.h"

struct failure {
    enum fault_call call;
    int error;
    bool passes; /* nobody may notice */
    int seen_as; /* 0: as src/os translates it */
};

static const struct failure failures[] = {
    {FAULT_INOTIFY_INIT, EMFILE, false, 0},
    {FAULT_INOTIFY_INIT, ENOMEM, false, 0},
    {FAULT_INOTIFY_ADD, ENOSPC, false, GORI_ELIMIT},
    {FAULT_INOTIFY_ADD, ENOMEM, false, 0},
    {FAULT_INOTIFY_ADD, EACCES, false, 0},
    {FAULT_INOTIFY_REMOVE, EINVAL, true, 0},
    {FAULT_READ, EINTR, true, 0},
    {FAULT_READ, EIO, true, 0},
    {FAULT_READ, EAGAIN, true, 0},
    {FAULT_CLOSE, EINTR, true, 0},
    {FAULT_EPOLL_CTL, ENOMEM, false, 0},
    {FAULT_EPOLL_CTL, ENOSPC, false, 0},
    {FAULT_EPOLL_WAIT, EINTR, true, 0},
    {FAULT_URING_ENTER, EINTR, true, 0},
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
    int error = watch_scenario_play(engine, &memory, calm, &is_hit);
    int right = failure->seen_as != 0 ? failure->seen_as : gi_os_error(failure->error);
    bool may_be_seen = is_hit && !failure->passes;
    if (error != 0 && (!may_be_seen || error != right)) {
        fprintf(stderr, "%s: call %d, errno %d, number %llu: error %d\n", engine,
                (int)failure->call, failure->error, (unsigned long long)number, error);
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

GT_TEST(epoll_watches_fail_each_system_call)
{
    sweep("epoll");
}

GT_TEST(io_uring_watches_fail_each_system_call)
{
    sweep("io_uring");
}

GT_MAIN()
