/* SPDX-License-Identifier: MIT */
/*
 * Fails every system call that the web server makes on files, in turn, on each engine.
 * Method: a server answers a fixed series of requests, each on a connection of its own, with the
 * n-th call of a kind failing, for n from 1 until a run makes fewer.  Right is a server that starts
 * or says why not, one request at most that is answered otherwise or cut, a server that serves as
 * before afterwards, and nothing left.
 */
#include <errno.h>
#include <lib/test.h>

#include "fault/system_calls.h"
#include "lib/web_site.h"
#include "os/os.h"

struct failure {
    enum fault_call call;
    int error;
};

static const struct failure failures[] = {
    {FAULT_OPEN, EMFILE},
    {FAULT_OPEN, ENFILE},
    {FAULT_OPEN, EACCES},
    {FAULT_OPEN, ENOENT},
    {FAULT_OPEN, EIO},
    {FAULT_OPEN, ENOSYS},
    {FAULT_STAT, EIO},
    {FAULT_STAT, ENOMEM},
    {FAULT_READ_AT, EIO},
    {FAULT_READ_AT, EINTR},
    {FAULT_SENDFILE, EIO},
    {FAULT_SENDFILE, EINTR},
    {FAULT_SENDFILE, ECONNRESET},
    {FAULT_SENDFILE, EINVAL},
    {FAULT_ACCEPT, EMFILE},
    {FAULT_ACCEPT, ECONNABORTED},
    {FAULT_EPOLL_CTL, ENOMEM},
    {FAULT_CLOSE, EIO},
};

/* Runs the series with one failure; answers whether there was such a call. */
static bool run(const char *engine, const struct failure *failure, uint64_t number)
{
    struct site site;
    begin_site(&site, engine);
    fault_calls_arm(failure->call, number, failure->error);
    int result = open_site(&site);
    int answered = result == 0 ? play(&site) : PLAY_COUNT;
    bool is_hit = fault_calls_disarm();
    bool is_right = result == 0 || (is_hit && result == gi_os_error(failure->error));
    if (!is_right || answered < PLAY_COUNT - (is_hit ? 1 : 0)) {
        fprintf(stderr, "%s: call %d, errno %d, number %llu: error %d, %d of %d answered\n", engine,
                (int)failure->call, failure->error, (unsigned long long)number, result, answered,
                PLAY_COUNT);
        GT_CHECK(false);
    }
    if (result == 0) {
        GT_EQUAL(play(&site), PLAY_COUNT);
        close_site(&site);
    } else {
        end_site(&site);
    }
    return is_hit;
}

static void sweep(const char *engine)
{
    uint64_t runs = 0;
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        uint64_t number = 1;
        while (run(engine, &failures[i], number)) {
            number++;
        }
        runs += number;
    }
    printf("%s: %llu runs\n", engine, (unsigned long long)runs);
}

GT_TEST(epoll_fails_each_call_on_files)
{
    sweep("epoll");
}

GT_TEST(io_uring_fails_each_call_on_files)
{
    sweep("io_uring");
}

GT_MAIN()
