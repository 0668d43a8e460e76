/* SPDX-License-Identifier: MIT */
/*
 * The end of a loop under the model checker: whoever posted or stopped has left its memory when the
 * owner finds that all have.  Posting is that of loop.c.
 */
#include "base/mailbox.c"
#include "rt/callers.h"
#include "rt/sleep.h"

#include "model/model.h"

static struct {
    struct gi_mailbox mailbox;
    struct gi_atomic_bool stop;
    struct gi_sleep sleep;
    struct gi_atomic_u32 woken; /* stands for all that a wake touches */
    struct gi_callers callers;
} loop;

static struct gori_mailbox_node nodes[MODEL_THREADS_MAX];
static int deeds[MODEL_THREADS_MAX]; /* of callers, in the loop's memory */
static unsigned ends;                /* executions in which the memory was given up */

static void set_up(void)
{
    gi_mailbox_init(&loop.mailbox, 4);
    gi_atomic_bool_init(&loop.sleep.asleep, false);
    gi_atomic_bool_init(&loop.stop, false);
    gi_atomic_u32_init(&loop.woken, 0);
    gi_callers_init(&loop.callers);
}

static void set_up_asleep(void)
{
    set_up();
    gi_atomic_bool_init(&loop.sleep.asleep, true);
}

static void wake(void)
{
    if (gi_sleep_interrupt(&loop.sleep)) {
        (void)gi_atomic_u32_exchange(&loop.woken, 1, GI_RELAXED);
    }
    model_write(&deeds[model_self()]);
}

static void post(void)
{
    bool was_asleep = gi_sleep_is_asleep(&loop.sleep);
    if (was_asleep) {
        gi_callers_enter(&loop.callers);
    }
    bool was_empty = false;
    MODEL_CHECK(gi_mailbox_push(&loop.mailbox, &nodes[model_self()], &was_empty) == 0);
    if (was_empty || was_asleep) {
        wake();
        gi_callers_leave(&loop.callers, (uint64_t)was_empty + (uint64_t)was_asleep);
    }
}

static void stop(void)
{
    gi_callers_enter(&loop.callers);
    gi_atomic_bool_store(&loop.stop, true, GI_RELEASE);
    wake();
    gi_callers_leave(&loop.callers, 1);
}

static unsigned take(void)
{
    unsigned count = 0;
    struct gori_mailbox_node *node = gi_mailbox_take(&loop.mailbox);
    for (; node != NULL; node = node->next) {
        count++;
    }
    return count;
}

/* Ends when it has found `tasks`, in one take or two, and a stop if there is one to be found, and
 * they have left. */
static void end(unsigned tasks, bool has_stop)
{
    unsigned first = take();
    unsigned second = first < tasks ? take() : 0;
    if (first + second != tasks || (has_stop && !gi_atomic_bool_load(&loop.stop, GI_ACQUIRE))) {
        return;
    }
    if (gi_callers_have_left(&loop.callers, (first > 0 ? 1U : 0U) + (second > 0 ? 1U : 0U))) {
        ends++;
        for (unsigned i = 0; i < MODEL_THREADS_MAX; i++) {
            model_read(&deeds[i]);
        }
        model_forget(&loop, sizeof(loop));
    }
}

static void end_after_two_posts(void)
{
    end(2, false);
}

static void end_after_a_stop(void)
{
    end(0, true);
}

static void end_after_both(void)
{
    end(1, true);
}

int main(int argc, char **argv)
{
    static const struct model_scenario scenarios[] = {
        {"two posts", set_up, {end_after_two_posts, post, post}, NULL, 2, 0},
        {"two posts to a sleeper", set_up_asleep, {end_after_two_posts, post, post}, NULL, 2, 0},
        {"a stop", set_up, {end_after_a_stop, stop}, NULL, 2, 0},
        {"a stop and a post", set_up, {end_after_both, stop, post}, NULL, 2, 0},
        {.name = NULL},
    };
    int status = model_main(argc, argv, scenarios);
    return status == 0 && ends == 0 ? 1 : status;
}
