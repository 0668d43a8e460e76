/* SPDX-License-Identifier: MIT */
/*
 * Goal: what a thread posts, or a stop, may end the loop while the call that said so is still under
 * way.  Method: again and again, with a loop that frees its memory at once; the sanitizers see who
 * is late.  What the order must be for it is proved in tests/model/callers_model.c.
 */
#include <gori/error.h>
#include <gori/loop.h>

#include "lib/test.h"
#include "os/os.h"

enum { ROUNDS = 200 };

struct caller {
    struct gori_loop *loop;
    struct gori_task task;
};

static void stop_in_task(struct gori_task *task)
{
    gori_loop_stop(task->user);
}

static void post(void *argument)
{
    struct caller *caller = argument;
    caller->task = (struct gori_task){.run = stop_in_task, .user = caller->loop};
    GT_EQUAL(gori_loop_post(caller->loop, &caller->task), 0);
}

static void stop(void *argument)
{
    struct caller *caller = argument;
    gori_loop_stop(caller->loop);
}

/* Whether there is such an engine. */
static bool end_again_and_again(const char *engine, gi_os_thread_fn *call)
{
    const struct gori_loop_config config = {.engine = engine};
    for (int i = 0; i < ROUNDS; i++) {
        struct caller caller;
        struct gi_os_thread thread;
        int result = gori_loop_create(&config, &caller.loop);
        if (result == GORI_EINVAL || result == GORI_ENOSYS || result == GORI_EPERM) {
            return false;
        }
        GT_EQUAL(result, 0);
        GT_EQUAL(gi_os_thread_start(&thread, call, &caller), 0);
        GT_EQUAL(gori_loop_run(caller.loop), 0);
        gori_loop_destroy(caller.loop);
        gi_os_thread_join(&thread);
    }
    return true;
}

static void on_every_engine(gi_os_thread_fn *call)
{
    static const char *const engines[] = {"io_uring", "epoll", "poll", "iocp"};
    int count = 0;
    for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
        count += end_again_and_again(engines[i], call);
    }
    GT_CHECK(count > 0);
}

GT_TEST(a_task_may_end_its_loop)
{
    on_every_engine(post);
}

GT_TEST(a_stop_may_end_its_loop)
{
    on_every_engine(stop);
}

GT_MAIN()
