/* SPDX-License-Identifier: MIT */
/*
 * The mailbox under the model checker: order, exactly once, bound, close, and who is told to wake.
 */
#include "base/mailbox.c"

#include "model/model.h"

struct letter {
    struct gori_mailbox_node node;
    unsigned sender;
    unsigned number;
};

static struct gi_mailbox mailbox;
static struct letter letters[2][2];
static unsigned arrived[2];  /* of each sender */
static unsigned accepted[2]; /* of each sender */
static unsigned told;        /* pushes that were told that it was empty */
static unsigned takes;       /* that found something */

static void set_up_with(size_t count_max)
{
    gi_mailbox_init(&mailbox, count_max);
    for (unsigned sender = 0; sender < 2; sender++) {
        arrived[sender] = 0;
        accepted[sender] = 0;
        for (unsigned i = 0; i < 2; i++) {
            letters[sender][i] = (struct letter){.sender = sender, .number = i};
        }
    }
    told = 0;
    takes = 0;
}

static void set_up(void)
{
    set_up_with(4);
}

static void set_up_tight(void)
{
    set_up_with(2);
}

static void send(unsigned sender, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bool was_empty = false;
        model_write(&letters[sender][i]);
        if (gi_mailbox_push(&mailbox, &letters[sender][i].node, &was_empty) < 0) {
            return;
        }
        accepted[sender]++;
        told += was_empty;
    }
}

static void send_two(void)
{
    send(model_self(), 2);
}

static void send_one(void)
{
    send(model_self(), 1);
}

/* Counted by the mailbox at the moment when a node comes in; see `check_bound`. */
static void receive(void)
{
    unsigned count = 0;
    struct gori_mailbox_node *node = gi_mailbox_take(&mailbox);
    takes += node != NULL;
    for (; node != NULL; node = node->next) {
        struct letter *letter = gori_container_of(node, struct letter, node);
        model_read(letter);
        MODEL_CHECK(letter->number == arrived[letter->sender]);
        arrived[letter->sender]++;
        count++;
        MODEL_CHECK(count <= 4);
    }
    if (count > 0) {
        gi_mailbox_done(&mailbox, count);
    }
}

static void receive_twice(void)
{
    receive();
    receive();
}

static void close_and_receive(void)
{
    receive();
    gi_mailbox_close(&mailbox);
    receive();
}

static void check_all(void)
{
    receive();
    for (unsigned sender = 0; sender < 2; sender++) {
        MODEL_CHECK(arrived[sender] == accepted[sender]);
    }
    MODEL_CHECK(told == takes);
    MODEL_CHECK(mailbox.shared.count.value == 0);
}

static void check_none_refused(void)
{
    MODEL_CHECK(accepted[0] == 2);
    MODEL_CHECK(accepted[1] == 2);
    check_all();
}

/* Room for two, three pushes: one may be refused, and only when two were really there. */
static void check_bound(void)
{
    MODEL_CHECK(accepted[0] + accepted[1] >= 2);
    check_all();
}

static void check_closed(void)
{
    receive();
    for (unsigned sender = 0; sender < 2; sender++) {
        MODEL_CHECK(arrived[sender] == accepted[sender]);
    }
    MODEL_CHECK(mailbox.shared.count.value == 0);
    bool was_empty = false;
    MODEL_CHECK(gi_mailbox_push(&mailbox, &letters[0][0].node, &was_empty) == GORI_ECLOSED);
    MODEL_CHECK(gi_mailbox_is_empty(&mailbox));
}

int main(int argc, char **argv)
{
    static const struct model_scenario scenarios[] = {
        {"two senders", set_up, {send_two, send_two}, check_none_refused, 2, 0},
        {"two takes", set_up, {send_two, send_one, receive_twice}, check_all, 1, 0},
        {"a full mailbox", set_up_tight, {send_two, send_one, receive}, check_bound, 1, 0},
        {"a mailbox that closes",
         set_up,
         {send_one, send_one, close_and_receive},
         check_closed,
         2,
         0},
        {.name = NULL},
    };
    return model_main(argc, argv, scenarios);
}
