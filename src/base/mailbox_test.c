/* SPDX-License-Identifier: MIT */
/*
 * The mailbox: order, bound, close, who is told to wake, and all of it from many threads at once.
 */
#include "base/mailbox.h"
#include "lib/test.h"

#include <gori/error.h>
#include <pthread.h>
#include <sched.h>

GT_TEST(mailbox_is_first_in_first_out)
{
    struct gi_mailbox mailbox;
    struct gori_mailbox_node nodes[3];
    bool was_empty = false;
    gi_mailbox_init(&mailbox, 3);
    GT_CHECK(gi_mailbox_is_empty(&mailbox));
    GT_CHECK(gi_mailbox_take(&mailbox) == NULL);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[0], &was_empty), 0);
    GT_CHECK(was_empty);
    GT_CHECK(!gi_mailbox_is_empty(&mailbox));
    for (int i = 1; i < 3; i++) {
        GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[i], &was_empty), 0);
        GT_CHECK(!was_empty);
    }
    struct gori_mailbox_node *node = gi_mailbox_take(&mailbox);
    for (int i = 0; i < 3; i++) {
        GT_CHECK(node == &nodes[i]);
        node = node->next;
    }
    GT_CHECK(node == NULL);
    GT_CHECK(gi_mailbox_is_empty(&mailbox));
    gi_mailbox_done(&mailbox, 3);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[0], &was_empty), 0);
    GT_CHECK(was_empty);
}

/* Taken work counts until it is done; a refused push changes nothing. */
GT_TEST(mailbox_keeps_its_bound)
{
    struct gi_mailbox mailbox;
    struct gori_mailbox_node nodes[3] = {{NULL}, {NULL}, {&nodes[0]}};
    bool was_empty = false;
    gi_mailbox_init(&mailbox, 2);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[0], &was_empty), 0);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[1], &was_empty), 0);
    was_empty = true;
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[2], &was_empty), GORI_ELIMIT);
    GT_CHECK(was_empty);
    GT_CHECK(nodes[2].next == &nodes[0]);
    GT_CHECK(gi_mailbox_take(&mailbox) == &nodes[0]);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[2], &was_empty), GORI_ELIMIT);
    gi_mailbox_done(&mailbox, 1);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[2], &was_empty), 0);
    GT_CHECK(gi_mailbox_take(&mailbox) == &nodes[2]);
}

GT_TEST(mailbox_close_keeps_what_was_accepted)
{
    struct gi_mailbox mailbox;
    struct gori_mailbox_node nodes[3];
    bool was_empty = false;
    gi_mailbox_init(&mailbox, 2);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[0], &was_empty), 0);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[1], &was_empty), 0);
    gi_mailbox_close(&mailbox);
    gi_mailbox_close(&mailbox);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[2], &was_empty), GORI_ECLOSED);
    GT_CHECK(!gi_mailbox_is_empty(&mailbox));
    struct gori_mailbox_node *node = gi_mailbox_take(&mailbox);
    GT_CHECK(node == &nodes[0]);
    GT_CHECK(node->next == &nodes[1]);
    GT_CHECK(node->next->next == NULL);
    gi_mailbox_done(&mailbox, 2);
    GT_CHECK(gi_mailbox_is_empty(&mailbox));
    GT_CHECK(gi_mailbox_take(&mailbox) == NULL);
    GT_EQUAL(gi_mailbox_push(&mailbox, &nodes[2], &was_empty), GORI_ECLOSED);
    GT_EQUAL(gi_atomic_size_load(&mailbox.shared.count, GI_RELAXED), 0);
}

GT_TEST(mailbox_misuse_aborts)
{
    struct gi_mailbox mailbox;
    GT_DIES(gi_mailbox_init(&mailbox, 0));
    gi_mailbox_init(&mailbox, 1);
    GT_DIES(gi_mailbox_done(&mailbox, 1));
}

#define SENDER_COUNT  4
#define MESSAGE_COUNT 5000 /* of each sender */
#define BOUND         64

struct message {
    struct gori_mailbox_node node;
    unsigned sender;
    unsigned number;
};

struct sender {
    struct gi_mailbox *mailbox;
    struct gi_atomic_u64 *wakes;
    unsigned index;
    unsigned accepted_count;
    struct message messages[MESSAGE_COUNT];
};

static struct sender senders[SENDER_COUNT];

static void *send_all(void *user)
{
    struct sender *sender = user;
    for (unsigned i = 0; i < MESSAGE_COUNT; i++) {
        struct message *message = &sender->messages[i];
        message->sender = sender->index;
        message->number = i;
        bool was_empty = false;
        int error;
        while ((error = gi_mailbox_push(sender->mailbox, &message->node, &was_empty)) ==
               GORI_ELIMIT) {
            sched_yield();
        }
        if (error == GORI_ECLOSED) {
            return NULL;
        }
        GT_EQUAL(error, 0);
        sender->accepted_count++;
        if (was_empty) {
            (void)gi_atomic_u64_add(sender->wakes, 1, GI_RELEASE);
        }
    }
    return NULL;
}

static void start_senders(struct gi_mailbox *mailbox, struct gi_atomic_u64 *wakes,
                          pthread_t *threads)
{
    for (unsigned i = 0; i < SENDER_COUNT; i++) {
        senders[i].mailbox = mailbox;
        senders[i].wakes = wakes;
        senders[i].index = i;
        GT_EQUAL(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
}

/* Takes once and checks the order of each sender; answers how many came. */
static unsigned take_and_check(struct gi_mailbox *mailbox, unsigned *next_numbers)
{
    unsigned count = 0;
    struct gori_mailbox_node *node = gi_mailbox_take(mailbox);
    while (node != NULL) {
        struct message *message = gori_container_of(node, struct message, node);
        node = node->next;
        GT_EQUAL(message->number, next_numbers[message->sender]);
        next_numbers[message->sender]++;
        count++;
    }
    GT_CHECK(count <= BOUND);
    gi_mailbox_done(mailbox, count);
    return count;
}

/*
 * Everything arrives once and in order, never more than the bound; each batch was announced once.
 */
GT_TEST(mailbox_from_many_threads)
{
    static struct gi_mailbox mailbox;
    struct gi_atomic_u64 wakes;
    pthread_t threads[SENDER_COUNT];
    unsigned next_numbers[SENDER_COUNT] = {0};
    unsigned count = 0;
    uint64_t batch_count = 0;
    gi_mailbox_init(&mailbox, BOUND);
    gi_atomic_u64_init(&wakes, 0);
    start_senders(&mailbox, &wakes, threads);
    while (count < SENDER_COUNT * MESSAGE_COUNT) {
        unsigned taken = take_and_check(&mailbox, next_numbers);
        count += taken;
        batch_count += taken > 0;
        if (taken == 0) {
            sched_yield();
        }
    }
    for (unsigned i = 0; i < SENDER_COUNT; i++) {
        GT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    GT_EQUAL(gi_atomic_u64_load(&wakes, GI_ACQUIRE), batch_count);
    GT_EQUAL(gi_atomic_size_load(&mailbox.shared.count, GI_RELAXED), 0);
}

/*
 * Closed in the middle: what was accepted arrives, what was refused does not, nothing is counted.
 */
GT_TEST(mailbox_closed_under_many_threads)
{
    static struct gi_mailbox mailbox;
    struct gi_atomic_u64 wakes;
    pthread_t threads[SENDER_COUNT];
    unsigned next_numbers[SENDER_COUNT] = {0};
    unsigned count = 0;
    gi_mailbox_init(&mailbox, BOUND);
    gi_atomic_u64_init(&wakes, 0);
    start_senders(&mailbox, &wakes, threads);
    while (count < SENDER_COUNT * MESSAGE_COUNT / 2) {
        count += take_and_check(&mailbox, next_numbers);
    }
    gi_mailbox_close(&mailbox);
    (void)take_and_check(&mailbox, next_numbers);
    for (unsigned i = 0; i < SENDER_COUNT; i++) {
        GT_EQUAL(pthread_join(threads[i], NULL), 0);
        GT_EQUAL(senders[i].accepted_count, next_numbers[i]);
    }
    GT_CHECK(gi_mailbox_take(&mailbox) == NULL);
    GT_EQUAL(gi_atomic_size_load(&mailbox.shared.count, GI_RELAXED), 0);
}

GT_MAIN()
