/* SPDX-License-Identifier: MIT */
/*
 * Mailbox and sleep of a loop under the model checker: the turn of loop.c and gori_loop_post,
 * without what does not matter here.  The engine's wake is a flag that ends one wait.  When a wake
 * is lost the loop waits for ever, which is a failure.
 */
#include "base/mailbox.c"
#include "rt/sleep.h"

#include "model/model.h"

static struct gi_mailbox mailbox;
static struct gi_sleep sleep_state;
static struct gi_atomic_u32 wake; /* an eventfd */
static struct gori_mailbox_node nodes[MODEL_THREADS_MAX][2];
static unsigned expected;
static unsigned received;
static bool was_disturbed;

static void set_up_with(unsigned count)
{
    gi_mailbox_init(&mailbox, 8);
    gi_atomic_bool_init(&sleep_state.asleep, false);
    gi_atomic_u32_init(&wake, 0);
    expected = count;
    received = 0;
    was_disturbed = false;
}

static void set_up_one(void)
{
    set_up_with(1);
}

static void set_up_two(void)
{
    set_up_with(2);
}

static void post(unsigned index)
{
    struct gori_mailbox_node *node = &nodes[model_self()][index];
    bool was_empty = false;
    bool was_asleep = gi_sleep_is_asleep(&sleep_state);
    model_write(node);
    MODEL_CHECK(gi_mailbox_push(&mailbox, node, &was_empty) == 0);
    if ((was_empty || was_asleep) && gi_sleep_interrupt(&sleep_state)) {
        (void)gi_atomic_u32_exchange(&wake, 1, GI_ACQ_REL);
    }
}

static void post_one(void)
{
    post(0);
}

static void post_two(void)
{
    post(0);
    post(1);
}

/* Waits when it may; once, something else (a timer, a connection) may end the wait at once. */
static void ask_engine(bool may_wait)
{
    if (!may_wait) {
        return;
    }
    gi_sleep_begin(&sleep_state);
    if (gi_mailbox_is_empty(&mailbox)) {
        if (!was_disturbed && model_choose(2) == 1) {
            was_disturbed = true;
        } else {
            (void)model_await(&wake.value, 0);
        }
    }
    gi_sleep_end(&sleep_state);
}

static void turn(bool may_wait)
{
    ask_engine(may_wait);
    unsigned count = 0;
    for (struct gori_mailbox_node *node = gi_mailbox_take(&mailbox); node != NULL;
         node = node->next) {
        model_read(node);
        count++;
    }
    if (count > 0) {
        gi_mailbox_done(&mailbox, count);
    }
    received += count;
}

/* A turn that does not wait, and then as many as it takes. */
static void run(void)
{
    turn(false);
    while (received < expected) {
        turn(true);
    }
}

static void check(void)
{
    MODEL_CHECK(received == expected);
}

int main(int argc, char **argv)
{
    static const struct model_scenario scenarios[] = {
        {"one message", set_up_one, {post_one, run}, check, 2, 0},
        {"two messages of one sender", set_up_two, {post_two, run}, check, 1, 0},
        {"two senders", set_up_two, {post_one, post_one, run}, check, 1, 2},
        {.name = NULL},
    };
    return model_main(argc, argv, scenarios);
}
