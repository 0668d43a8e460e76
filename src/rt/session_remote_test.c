/* SPDX-License-Identifier: MIT */
/*
 * Sending to a session by its id: order, stale ids, bounds, the loop's own thread and others.
 */
#include <lib/session_fixture.h>
#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"

static struct gori_block *block_of(const char *text)
{
    struct gori_block *block;
    GT_EQUAL(gori_block_create(NULL, text, strlen(text), &block), 0);
    return block;
}

static void send_text(struct fixture *f, uint64_t id, const char *text)
{
    struct gori_block *block = block_of(text);
    GT_EQUAL(gori_loop_send(f->loop, id, block), 0);
    gori_block_unref(block);
}

/* From its own loop too: nothing overtakes, and nothing is sent inside the call. */
GT_TEST(send_by_id_keeps_the_order_of_its_sender)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){0});
    struct gt_peer peer = connect_peer(&f);
    uint64_t id = gori_session_id(f.session);
    send_text(&f, id, "one ");
    send_text(&f, id, "two ");
    GT_EQUAL(gori_session_send_bytes(f.session), 0);
    send_text(&f, id, "three");
    peer_read_bytes(&f, &peer, 13);
    GT_EQUAL_BYTES(f.read, 13, "one two three", 13);
    gt_peer_close(&peer);
    end(&f);
}

GT_TEST(send_by_id_to_a_session_that_is_gone)
{
    struct fixture f;
    struct gori_loop_stats stats;
    begin(&f, &(struct fixture_config){0});
    struct gt_peer peer = connect_peer(&f);
    uint64_t id = gori_session_id(f.session);
    struct gori_block *block = block_of("late");
    GT_EQUAL(gori_loop_send(f.loop, id + (UINT64_C(1) << 32), block), GORI_ESTALE);
    GT_EQUAL(gori_loop_send(f.loop, 0, block), GORI_ESTALE);
    GT_EQUAL(gori_loop_send(f.loop, id, block), 0);
    gori_session_close(f.session); /* it becomes stale while the message is on its way */
    TURN_UNTIL(&f, f.closed == 1);
    turns(&f, 2);
    GT_EQUAL(gori_loop_send(f.loop, id, block), GORI_ESTALE);
    gori_loop_read_stats(f.loop, &stats);
    GT_EQUAL(stats.messages_dropped, 1);
    gori_block_unref(block);
    gt_peer_close(&peer);
    end(&f);
}

GT_TEST(send_by_id_is_bounded_and_allocates_once)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){.loop = {.messages_max = 3}});
    struct gt_peer peer = connect_peer(&f);
    uint64_t id = gori_session_id(f.session);
    struct gori_block *block = block_of("x");
    gi_fault_alloc_fail_once(&f.memory, 1);
    GT_EQUAL(gori_loop_send(f.loop, id, block), GORI_ENOMEM);
    gi_fault_alloc_fail_never(&f.memory);
    for (size_t round = 1; round <= 5; round++) {
        for (int i = 0; i < 3; i++) {
            GT_EQUAL(gori_loop_send(f.loop, id, block), 0);
        }
        GT_EQUAL(gori_loop_send(f.loop, id, block), GORI_ELIMIT);
        peer_read_bytes(&f, &peer, 3 * round);
    }
    gori_block_unref(block);
    gt_peer_close(&peer);
    end(&f);
}

/* On their way when the loop ends: their blocks are given back (the leak checker looks). */
GT_TEST(send_by_id_to_a_loop_that_ends)
{
    struct fixture f;
    begin(&f, &(struct fixture_config){0});
    struct gt_peer peer = connect_peer(&f);
    send_text(&f, gori_session_id(f.session), "never sent");
    gt_peer_close(&peer);
    end(&f);
}

/* Several threads at once; the peer sees each one's numbers in order. */
enum { SENDERS = 3, NUMBERS = 2000 };

struct sender {
    pthread_t thread;
    struct gori_loop *loop;
    uint64_t id;
    uint8_t name;
    struct gi_atomic_u32 *done;
};

static void *send_numbers(void *argument)
{
    struct sender *sender = argument;
    for (uint32_t number = 0; number < NUMBERS; number++) {
        uint8_t bytes[3] = {sender->name, (uint8_t)number, (uint8_t)(number >> 8)};
        struct gori_block *block;
        GT_EQUAL(gori_block_create(NULL, bytes, sizeof(bytes), &block), 0);
        int result;
        while ((result = gori_loop_send(sender->loop, sender->id, block)) == GORI_ELIMIT) {
            (void)sched_yield();
        }
        GT_EQUAL(result, 0);
        gori_block_unref(block);
    }
    (void)gi_atomic_u32_add(sender->done, 1, GI_RELEASE);
    return NULL;
}

GT_TEST(send_by_id_from_many_threads)
{
    struct fixture f;
    struct sender senders[SENDERS];
    struct gi_atomic_u32 done;
    uint32_t next[SENDERS] = {0};
    begin(&f, &(struct fixture_config){.engine = "epoll", .loop = {.messages_max = 64}});
    struct gt_peer peer = connect_peer(&f);
    gi_atomic_u32_init(&done, 0);
    for (uint8_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){
            .loop = f.loop, .id = gori_session_id(f.session), .name = i, .done = &done};
        GT_EQUAL(pthread_create(&senders[i].thread, NULL, send_numbers, &senders[i]), 0);
    }
    size_t bytes = (size_t)SENDERS * NUMBERS * 3;
    while (f.read_bytes < bytes) {
        turn(&f);
        (void)peer_read(&f, &peer);
    }
    for (size_t at = 0; at < bytes; at += 3) {
        uint32_t number = f.read[at + 1] | (uint32_t)f.read[at + 2] << 8;
        GT_EQUAL(number, next[f.read[at]]);
        next[f.read[at]]++;
    }
    for (int i = 0; i < SENDERS; i++) {
        GT_EQUAL(pthread_join(senders[i].thread, NULL), 0);
    }
    gt_peer_close(&peer);
    end(&f);
}

GT_MAIN()
