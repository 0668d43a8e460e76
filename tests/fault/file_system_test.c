/* SPDX-License-Identifier: MIT */
/*
 * Fails every system call, and every submission to io_uring, that file ops make, in turn.
 * Method: as system_test.c and submission_test.c, with the scenario of files.  One op is in flight
 * at a time, so that the pool's thread and the test take turns with what is armed.
 */
#include <errno.h>
#include <gori/error.h>
#include <lib/test.h>
#include <linux/io_uring.h>

#include "fault/file_scenario.h"
#include "fault/has_engine.h"
#include "fault/submissions.h"
#include "fault/system_calls.h"
#include "os/os.h"

#define FTRUNCATE 55 /* IORING_OP_FTRUNCATE, of Linux 6.9 */

struct failure {
    int what; /* enum fault_call, or an opcode */
    int error;
    bool passes; /* nobody may notice */
};

static const struct failure calls[] = {
    {FAULT_OPEN_BY_PATH, EMFILE, false}, {FAULT_OPEN_BY_PATH, ENOSPC, false},
    {FAULT_OPEN_BY_PATH, EINTR, true},   {FAULT_STAT, EIO, false},
    {FAULT_WRITE_AT, ENOSPC, false},     {FAULT_WRITE_AT, EINTR, true},
    {FAULT_WRITE_AT, EIO, false},        {FAULT_READ_AT, EIO, false},
    {FAULT_READ_AT, EINTR, true},        {FAULT_SYNC, EIO, false},
    {FAULT_SYNC, ENOSPC, false},         {FAULT_TRUNCATE, EIO, false},
    {FAULT_TRUNCATE, EINTR, true},       {FAULT_CLOSE, EINTR, true},
    {FAULT_CLOSE, EIO, false},
};

/* No close: one that does nothing leaves the descriptor open. */
static const struct failure submissions[] = {
    {IORING_OP_OPENAT2, EMFILE, false},
    {IORING_OP_OPENAT2, ENOSPC, false},
    {IORING_OP_OPENAT2, EINTR, true},
    {IORING_OP_OPENAT2, EAGAIN, true},
    {IORING_OP_WRITE, ENOSPC, false},
    {IORING_OP_WRITE, EINTR, true},
    {IORING_OP_WRITEV, EIO, false},
    {IORING_OP_WRITEV, EAGAIN, true},
    {IORING_OP_READV, EIO, false},
    {IORING_OP_READV, EINTR, true},
    {IORING_OP_FSYNC, EIO, false},
    {IORING_OP_FSYNC, EINTR, true},
    {IORING_OP_STATX, EIO, false},
    {IORING_OP_STATX, EINTR, true},
    {FTRUNCATE, EIO, false},
    {FTRUNCATE, EINTR, true},
};

typedef void arm_fn(const struct failure *failure, uint64_t number);
typedef bool disarm_fn(void);

struct way {
    const char *engine;
    arm_fn *arm;
    disarm_fn *disarm;
};

struct run {
    const struct way *way;
    const struct failure *failure;
    uint64_t number;
    bool is_hit;
};

static void arm_call(const struct failure *failure, uint64_t number)
{
    fault_calls_arm((enum fault_call)failure->what, number, failure->error);
}

static void arm_submission(const struct failure *failure, uint64_t number)
{
    fault_submissions_arm((uint8_t)failure->what, number, 1, failure->error);
}

static void arm(void *user)
{
    const struct run *run = user;
    run->way->arm(run->failure, run->number);
}

static void calm(void *user)
{
    struct run *run = user;
    run->is_hit |= run->way->disarm();
}

static bool play(const struct way *way, const struct failure *failure, uint64_t number)
{
    struct gi_fault_alloc memory;
    struct run run = {.way = way, .failure = failure, .number = number};
    const struct file_scenario_hooks hooks = {arm, calm, &run};
    gi_fault_alloc_init(&memory, NULL);
    int error = file_scenario_play(way->engine, &memory, &hooks);
    bool may_fail = run.is_hit && !failure->passes;
    if (error != 0 && (!may_fail || error != gi_os_error(failure->error))) {
        fprintf(stderr, "%s: %d, errno %d, number %llu: %s\n", way->engine, failure->what,
                failure->error, (unsigned long long)number, gori_error_name(error));
        GT_CHECK(false);
    }
    gi_fault_alloc_fini(&memory);
    return run.is_hit;
}

static void sweep(const struct way *way, const struct failure *failures, size_t count)
{
    if (!fault_has_engine(way->engine)) {
        GT_SKIP("no such engine here");
    }
    uint64_t hits = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 1;
        while (play(way, &failures[i], number)) {
            number++;
        }
        hits += number - 1;
    }
    printf("%s: %llu failures\n", way->engine, (unsigned long long)hits);
    GT_CHECK(hits >= count);
}

GT_TEST(the_pool_fails_each_system_call_of_file_ops)
{
    const struct way way = {"epoll", arm_call, fault_calls_disarm};
    sweep(&way, calls, GI_ARRAY_COUNT(calls));
}

GT_TEST(io_uring_fails_each_submission_of_file_ops)
{
    const struct way way = {"io_uring", arm_submission, fault_submissions_disarm};
    if (!fault_has_engine("io_uring") || !fault_submissions_work()) {
        GT_SKIP("no io_uring here, or one that cannot be told to fail");
    }
    sweep(&way, submissions, GI_ARRAY_COUNT(submissions));
}

GT_MAIN()
