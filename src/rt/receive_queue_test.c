/* SPDX-License-Identifier: MIT */
/*
 * The receive queue: framed messages cut into completions at every place come out whole and in
 * order; a message that came in one piece is shown where it lies; nothing leaks.
 * Method: frames of a length byte and a payload are pushed in pieces, and consumed whole only.
 */
#include "rt/receive_queue.h"

#include <gori/error.h>
#include <lib/test.h>

#include "base/fault_alloc.h"
#include "engine/buffers.h"

struct fixture {
    struct gi_fault_alloc memory;
    struct gi_buffers buffers;
    struct gi_assembly_cache cache;
    struct gi_receive_queue queue;
    uint8_t stream[2048];
    size_t stream_size;
    size_t consumed;
    uint32_t joined; /* views that were no buffer */
};

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    gi_fault_alloc_init(&f->memory, NULL);
    GT_EQUAL(gi_buffers_init(&f->buffers, &f->memory.allocator, 512, 256), 0);
    gi_assembly_cache_init(&f->cache, &f->memory.allocator);
    gi_receive_queue_init(&f->queue);
}

static void end(struct fixture *f)
{
    gi_receive_queue_clear(&f->queue, &f->cache);
    gi_assembly_cache_fini(&f->cache);
    gi_buffers_fini(&f->buffers);
    gi_fault_alloc_fini(&f->memory);
}

static void make_frames(struct fixture *f)
{
    uint8_t value = 1;
    for (size_t payload = 0; f->stream_size + payload < 200; payload += 3) {
        f->stream[f->stream_size++] = (uint8_t)payload;
        for (size_t i = 0; i < payload; i++) {
            f->stream[f->stream_size++] = value++;
        }
    }
}

static int push(struct fixture *f, const uint8_t *bytes, size_t size)
{
    struct gori_buffer *buffer = gi_buffers_lend(&f->buffers);
    GT_CHECK(buffer != NULL);
    gi_buffers_deliver(&f->buffers, buffer);
    memcpy(buffer->data, bytes, size);
    const struct gi_receive_piece piece = {buffer, {buffer->data, size}};
    int result = gi_receive_queue_push(&f->queue, &f->cache, piece);
    if (result < 0) {
        gori_buffer_release(buffer);
    }
    return result;
}

/* Consumes the whole frames of a view, comparing. */
static size_t consume_frames(struct fixture *f, struct gori_slice view)
{
    GT_CHECK(memcmp(view.data, f->stream + f->consumed, view.size) == 0);
    size_t used = 0;
    while (used < view.size && used + 1 + view.data[used] <= view.size) {
        used += 1 + (size_t)view.data[used];
    }
    f->consumed += used;
    return used;
}

static void deliver(struct fixture *f, bool again)
{
    struct gi_receive_piece view;
    int result;
    while ((result = gi_receive_queue_show(&f->queue, &f->cache, again, &view)) == 1) {
        again = false;
        f->joined += view.buffer == NULL;
        gi_receive_queue_consume(&f->queue, &f->cache, consume_frames(f, view.bytes));
    }
    GT_EQUAL(result, 0);
}

GT_TEST(frames_cut_at_any_two_places_come_whole)
{
    struct fixture f;
    begin(&f);
    make_frames(&f);
    for (size_t first = 1; first < f.stream_size - 1; first++) {
        for (size_t second = first + 1; second < f.stream_size; second += 5) {
            f.consumed = 0;
            GT_EQUAL(push(&f, f.stream, first), 0);
            deliver(&f, false);
            GT_EQUAL(push(&f, f.stream + first, second - first), 0);
            deliver(&f, false);
            GT_EQUAL(push(&f, f.stream + second, f.stream_size - second), 0);
            deliver(&f, false);
            GT_EQUAL(f.consumed, f.stream_size);
            GT_EQUAL(f.queue.bytes, 0);
            GT_EQUAL(f.buffers.held_count, 0);
        }
    }
    end(&f);
}

GT_TEST(single_bytes_come_whole)
{
    struct fixture f;
    begin(&f);
    make_frames(&f);
    for (size_t i = 0; i < f.stream_size; i++) {
        GT_EQUAL(push(&f, f.stream + i, 1), 0);
        deliver(&f, false);
    }
    GT_EQUAL(f.consumed, f.stream_size);
    end(&f);
}

GT_TEST(whole_frames_are_never_joined)
{
    struct fixture f;
    begin(&f);
    make_frames(&f);
    for (size_t at = 0; at < f.stream_size;) {
        size_t size = 1 + (size_t)f.stream[at];
        GT_EQUAL(push(&f, f.stream + at, size), 0);
        at += size;
        if (at % 2 == 0) {
            deliver(&f, false); /* several held ones too */
        }
    }
    deliver(&f, false);
    GT_EQUAL(f.consumed, f.stream_size);
    GT_EQUAL(f.joined, 0);
    end(&f);
}

GT_TEST(more_pieces_than_places_are_joined)
{
    struct fixture f;
    begin(&f);
    make_frames(&f);
    for (size_t i = 0; i < f.stream_size; i++) {
        GT_EQUAL(push(&f, f.stream + i, 1), 0);
        GT_CHECK(f.buffers.held_count <= GI_RECEIVE_PIECES_MAX);
    }
    GT_EQUAL(f.queue.bytes, f.stream_size);
    deliver(&f, true);
    GT_EQUAL(f.consumed, f.stream_size);
    end(&f);
}

GT_TEST(what_was_seen_is_shown_again_on_demand_only)
{
    struct fixture f;
    begin(&f);
    GT_EQUAL(push(&f, (const uint8_t *)"abc", 3), 0);
    struct gi_receive_piece view;
    GT_EQUAL(gi_receive_queue_show(&f.queue, &f.cache, false, &view), 1);
    gi_receive_queue_consume(&f.queue, &f.cache, 1);
    GT_EQUAL(gi_receive_queue_show(&f.queue, &f.cache, false, &view), 0);
    GT_EQUAL(gi_receive_queue_show(&f.queue, &f.cache, true, &view), 1);
    GT_EQUAL(view.bytes.size, 2);
    GT_CHECK(view.buffer != NULL);
    gi_receive_queue_consume(&f.queue, &f.cache, 0);
    GT_EQUAL(push(&f, (const uint8_t *)"d", 1), 0);
    GT_EQUAL(gi_receive_queue_show(&f.queue, &f.cache, false, &view), 1);
    GT_EQUAL_BYTES(view.bytes.data, view.bytes.size, "bcd", 3);
    end(&f);
}

GT_TEST(parts_of_one_buffer_make_one_view)
{
    struct fixture f;
    begin(&f);
    struct gori_buffer *buffer = gi_buffers_lend(&f.buffers);
    gi_buffers_deliver(&f.buffers, buffer);
    memcpy(buffer->data, "abcdef", 6);
    for (size_t i = 0; i < 3; i++) {
        const struct gi_receive_piece piece = {buffer, {buffer->data + 2 * i, 2}};
        if (i > 0) {
            gori_buffer_retain(buffer); /* each delivery is a hold */
        }
        GT_EQUAL(gi_receive_queue_push(&f.queue, &f.cache, piece), 0);
        struct gi_receive_piece view;
        GT_EQUAL(gi_receive_queue_show(&f.queue, &f.cache, false, &view), 1);
        GT_EQUAL(view.bytes.size, 2 * (i + 1));
        GT_CHECK(view.buffer == buffer);
        gi_receive_queue_consume(&f.queue, &f.cache, 0);
    }
    end(&f);
}

GT_TEST(out_of_memory_is_told_and_loses_nothing)
{
    struct fixture f;
    begin(&f);
    struct gi_receive_piece view;
    GT_EQUAL(push(&f, (const uint8_t *)"ab", 2), 0);
    GT_EQUAL(gi_receive_queue_show(&f.queue, &f.cache, false, &view), 1);
    gi_receive_queue_consume(&f.queue, &f.cache, 0);
    GT_EQUAL(push(&f, (const uint8_t *)"cd", 2), 0);
    gi_fault_alloc_fail_once(&f.memory, 1);
    GT_EQUAL(gi_receive_queue_show(&f.queue, &f.cache, false, &view), GORI_ENOMEM);
    GT_EQUAL(gi_receive_queue_show(&f.queue, &f.cache, false, &view), 1);
    GT_EQUAL_BYTES(view.bytes.data, view.bytes.size, "abcd", 4);
    end(&f);
}

GT_TEST(steady_state_takes_no_memory)
{
    struct fixture f;
    begin(&f);
    make_frames(&f);
    for (int round = 0; round < 20; round++) {
        f.consumed = 0;
        for (size_t at = 0; at < f.stream_size; at += 50) {
            size_t size = f.stream_size - at < 50 ? f.stream_size - at : 50;
            GT_EQUAL(push(&f, f.stream + at, size), 0);
            deliver(&f, false);
        }
        if (round == 0) {
            gi_fault_alloc_fail_never(&f.memory); /* counts from here */
        }
    }
    GT_EQUAL(gi_fault_alloc_count(&f.memory), 0);
    end(&f);
}

GT_MAIN()
