/* SPDX-License-Identifier: MIT */
/*
 * The send queue against a plain array of bytes: whatever is pushed, in whatever pieces it is
 * taken, the stream is the same, at every split point; what fails changes nothing; nothing leaks.
 */
#include "rt/send_queue.h"

#include <gori/error.h>
#include <lib/system.h>
#include <lib/test.h>

#include "base/alloc.h"
#include "base/fault_alloc.h"
#include "base/random.h"
#include "engine/buffers.h"

enum { STREAM_MAX = 4 << 20 };

struct fixture {
    struct gi_fault_alloc memory;
    struct gi_send_pools pools;
    struct gi_buffers buffers;
    struct gi_send_queue queue;
    uint8_t *stream; /* what was pushed */
    size_t stream_size;
    size_t sent; /* of it, taken */
};

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    gi_fault_alloc_init(&f->memory, NULL);
    GT_EQUAL(gi_send_pools_init(&f->pools, &f->memory.allocator), 0);
    GT_EQUAL(gi_buffers_init(&f->buffers, &f->memory.allocator, 4096, 64), 0);
    f->stream = gi_alloc(NULL, STREAM_MAX);
    GT_CHECK(f->stream != NULL);
}

static void end(struct fixture *f)
{
    gi_send_queue_clear(&f->queue, &f->pools);
    gi_send_pools_fini(&f->pools);
    gi_buffers_fini(&f->buffers);
    gi_fault_alloc_fini(&f->memory);
    gi_free(NULL, f->stream, STREAM_MAX);
}

/* The next `size` bytes of the stream: each differs from its neighbours near and far. */
static const uint8_t *extend(struct fixture *f, size_t size)
{
    GT_CHECK(f->stream_size + size <= STREAM_MAX);
    uint8_t *from = f->stream + f->stream_size;
    for (size_t i = 0; i < size; i++) {
        size_t place = f->stream_size + i;
        from[i] = (uint8_t)(place ^ (place >> 8) * 31 ^ (place >> 16) * 17);
    }
    f->stream_size += size;
    return from;
}

static void copy(struct fixture *f, size_t size)
{
    const uint8_t *bytes = extend(f, size);
    GT_EQUAL(gi_send_queue_copy(&f->queue, &f->pools, bytes, size), 0);
}

static void push_block(struct fixture *f, size_t size)
{
    struct gori_block *block;
    const uint8_t *bytes = extend(f, size);
    GT_EQUAL(gori_block_create(&f->memory.allocator, bytes, size, &block), 0);
    GT_EQUAL(gi_send_queue_push_block(&f->queue, &f->pools, block), 0);
    gori_block_unref(block);
}

static void push_buffer(struct fixture *f, size_t size)
{
    struct gori_buffer *buffer = gi_buffers_lend(&f->buffers);
    GT_CHECK(buffer != NULL);
    gi_buffers_deliver(&f->buffers, buffer);
    memcpy(buffer->data, extend(f, size), size);
    const struct gori_slice bytes = {buffer->data, size};
    GT_EQUAL(gi_send_queue_push_buffer(&f->queue, &f->pools, buffer, bytes), 0);
    gori_buffer_release(buffer);
}

/* Takes a batch, compares all of it, and says that `limit` bytes at most were sent. */
static size_t take(struct fixture *f, size_t limit)
{
    struct gi_send_batch batch;
    gi_send_queue_next(&f->queue, &batch);
    GT_CHECK(batch.count > 0 && batch.count <= GORI_SEND_PIECES_MAX);
    size_t total = 0;
    for (uint32_t i = 0; i < batch.count; i++) {
        const struct gori_slice piece = batch.pieces[i];
        GT_CHECK(piece.size > 0);
        GT_CHECK(f->sent + total + piece.size <= f->stream_size);
        GT_CHECK(memcmp(piece.data, f->stream + f->sent + total, piece.size) == 0);
        total += piece.size;
    }
    size_t part = total < limit ? total : limit;
    GT_EQUAL(gi_send_queue_advance(&f->queue, &f->pools, part), part);
    f->sent += part;
    GT_EQUAL(f->queue.bytes, f->stream_size - f->sent);
    return total;
}

static void take_all(struct fixture *f, size_t limit)
{
    while (!gi_send_queue_is_empty(&f->queue)) {
        take(f, limit);
    }
    GT_EQUAL(f->sent, f->stream_size);
    GT_CHECK(f->queue.chunk == NULL);
    GT_CHECK(f->queue.first_page == NULL);
}

/* A bit of everything, more than fits inline. */
static void fill(struct fixture *f)
{
    copy(f, 10);
    push_block(f, 600);
    copy(f, 20);
    push_buffer(f, 300);
    copy(f, 3000);
    push_block(f, 1);
}

GT_TEST(every_split_point_continues_the_stream)
{
    for (size_t split = 0;; split++) {
        struct fixture f;
        begin(&f);
        fill(&f);
        size_t total = take(&f, split);
        take_all(&f, SIZE_MAX);
        end(&f);
        if (split >= total) {
            break;
        }
    }
}

GT_TEST(every_step_size_gives_the_same_stream)
{
    struct fixture f;
    begin(&f);
    for (size_t step = 1; step < 700; step += 1 + step / 9) {
        fill(&f);
        take_all(&f, step);
    }
    end(&f);
}

GT_TEST(what_one_turn_produced_is_one_batch)
{
    struct fixture f;
    begin(&f);
    for (int i = 0; i < 20; i++) {
        copy(&f, 50);
        push_block(&f, 700);
    }
    struct gi_send_batch batch;
    gi_send_queue_next(&f.queue, &batch);
    GT_EQUAL(batch.count, 40);
    (void)gi_send_queue_advance(&f.queue, &f.pools, 40);
    f.sent += 40;
    take_all(&f, SIZE_MAX);
    end(&f);
}

GT_TEST(adjacent_copies_are_one_piece)
{
    struct fixture f;
    begin(&f);
    for (int i = 0; i < 100; i++) {
        copy(&f, 20);
    }
    struct gi_send_batch batch;
    gi_send_queue_next(&f.queue, &batch);
    GT_EQUAL(batch.count, 1);
    GT_EQUAL(batch.pieces[0].size, 2000);
    (void)gi_send_queue_advance(&f.queue, &f.pools, 2000);
    f.sent = 2000;
    take_all(&f, SIZE_MAX);
    end(&f);
}

GT_TEST(small_copies_between_blocks_share_a_chunk)
{
    struct fixture f;
    begin(&f);
    for (int i = 0; i < 40; i++) {
        copy(&f, 10);
        push_block(&f, 600);
    }
    GT_EQUAL(f.pools.chunks.count, 1);
    take_all(&f, 777);
    GT_EQUAL(f.pools.chunks.count, 0);
    end(&f);
}

GT_TEST(pieces_in_flight_stay_as_they_are)
{
    struct fixture f;
    begin(&f);
    for (int inline_pieces = 1; inline_pieces <= 5; inline_pieces++) {
        for (int i = 0; i < inline_pieces; i++) {
            copy(&f, 100);
            push_block(&f, 513);
        }
        copy(&f, 30);
        struct gi_send_batch batch;
        gi_send_queue_next(&f.queue, &batch);
        struct gori_slice before[GORI_SEND_PIECES_MAX];
        memcpy(before, batch.pieces, batch.count * sizeof(before[0]));
        size_t total = f.stream_size - f.sent;
        for (int i = 0; i < 70; i++) {
            copy(&f, 5);
            push_block(&f, 600);
        }
        GT_CHECK(memcmp(before, batch.pieces, batch.count * sizeof(before[0])) == 0);
        GT_EQUAL(gi_send_queue_advance(&f.queue, &f.pools, total), total);
        f.sent += total;
        take_all(&f, SIZE_MAX);
    }
    end(&f);
}

GT_TEST(a_large_block_leaves_in_parts)
{
    struct fixture f;
    begin(&f);
    copy(&f, 100);
    push_block(&f, 900 << 10);
    push_block(&f, 5);
    GT_EQUAL(take(&f, SIZE_MAX), GI_SEND_BATCH_BYTES);
    GT_EQUAL(take(&f, 1), GI_SEND_BATCH_BYTES);
    take_all(&f, SIZE_MAX);
    end(&f);
}

GT_TEST(a_failed_copy_changes_nothing)
{
    size_t failures = 0;
    for (uint64_t number = 1; number < 40; number++) {
        struct fixture f;
        begin(&f);
        copy(&f, 2000); /* leaves room in the chunk, which the failing copy would grow into */
        push_block(&f, 600);
        copy(&f, 10);
        static const uint8_t data[300 << 10];
        gi_fault_alloc_fail_once(&f.memory, number);
        int result = gi_send_queue_copy(&f.queue, &f.pools, data, sizeof(data));
        gi_fault_alloc_fail_never(&f.memory);
        if (result < 0) {
            failures++;
            GT_EQUAL(result, GORI_ENOMEM);
            GT_EQUAL(f.queue.bytes, 2610);
            copy(&f, 100);
            take_all(&f, SIZE_MAX);
        }
        end(&f);
    }
    GT_CHECK(failures >= 5);
}

GT_TEST(failed_pushes_change_nothing)
{
    struct fixture f;
    begin(&f);
    copy(&f, 10);
    push_block(&f, 600);
    struct gori_block *block;
    GT_EQUAL(gori_block_create(NULL, "0123456789", 10, &block), 0);
    gi_fault_alloc_fail_from(&f.memory, 1);
    GT_EQUAL(gi_send_queue_push_block(&f.queue, &f.pools, block), GORI_ENOMEM);
    gi_fault_alloc_fail_never(&f.memory);
    gori_block_unref(block);
    take_all(&f, 7);
    end(&f);
}

static struct gori_file *make_file(struct gori_root **ret_root, size_t size)
{
    char folder[GT_FOLDER_BYTES];
    gt_make_folder(folder);
    gt_write_file(folder, "file", NULL, size);
    struct gori_file *file;
    GT_EQUAL(gori_root_open(NULL, folder, ret_root), 0);
    GT_EQUAL(gori_root_open_file(*ret_root, "file", &file), 0);
    gt_remove_folder(folder, "file");
    return file;
}

GT_TEST(a_file_leaves_alone_and_in_parts)
{
    struct fixture f;
    begin(&f);
    struct gori_root *root;
    uint64_t size = GI_SEND_FILE_BYTES * 2 + 10;
    struct gori_file *file = make_file(&root, size + 100);
    copy(&f, 10);
    GT_EQUAL(gi_send_queue_push_file(&f.queue, &f.pools, file, 100, size), 0);
    GT_EQUAL(f.queue.bytes, 10 + GI_SEND_FILE_COST);
    struct gi_send_batch batch;
    gi_send_queue_next(&f.queue, &batch);
    GT_EQUAL(batch.count, 1);
    GT_EQUAL(gi_send_queue_advance(&f.queue, &f.pools, 10), 10);
    f.sent = 10;
    uint64_t at = 100;
    for (int i = 0; i < 3; i++) {
        gi_send_queue_next(&f.queue, &batch);
        GT_EQUAL(batch.count, 0);
        GT_EQUAL(batch.file.offset, at);
        GT_EQUAL(batch.file.size, i < 2 ? GI_SEND_FILE_BYTES : 10);
        at += batch.file.size;
        GT_EQUAL(gi_send_queue_advance(&f.queue, &f.pools, batch.file.size),
                 i == 2 ? GI_SEND_FILE_COST : 0);
    }
    GT_CHECK(gi_send_queue_is_empty(&f.queue));
    copy(&f, 20);
    GT_EQUAL(gi_send_queue_push_file(&f.queue, &f.pools, file, 0, 5), 0);
    copy(&f, 20);
    gi_send_queue_next(&f.queue, &batch);
    GT_EQUAL(batch.count, 1);
    GT_EQUAL(gi_send_queue_advance(&f.queue, &f.pools, 20), 20);
    gi_send_queue_next(&f.queue, &batch);
    GT_EQUAL(batch.count, 0);
    GT_EQUAL(batch.file.size, 5);
    gi_send_queue_clear(&f.queue, &f.pools); /* gives the file back */
    gori_file_unref(file);
    gori_root_close(root);
    end(&f);
}

GT_TEST(random_pushes_and_takes_keep_the_stream)
{
    struct gi_random random;
    gi_random_init(&random, 7);
    struct fixture f;
    begin(&f);
    while (f.stream_size < STREAM_MAX - (8 << 10)) {
        switch (gi_random_below(&random, 6)) {
        case 0:
            push_block(&f, 1 + (size_t)gi_random_below(&random, 3000));
            break;
        case 1:
            if (f.buffers.held_count < 60) {
                push_buffer(&f, 1 + (size_t)gi_random_below(&random, 4096));
            }
            break;
        case 2:
        case 3:
            copy(&f, 1 + (size_t)gi_random_below(&random, 200));
            break;
        case 4:
            copy(&f, 1 + (size_t)gi_random_below(&random, 6000));
            break;
        default:
            if (!gi_send_queue_is_empty(&f.queue)) {
                take(&f, (size_t)gi_random_below(&random, 20000));
            }
            break;
        }
    }
    take_all(&f, SIZE_MAX);
    end(&f);
}

GT_TEST(steady_state_takes_no_memory)
{
    struct fixture f;
    begin(&f);
    copy(&f, 300000);
    take_all(&f, SIZE_MAX);
    gi_fault_alloc_fail_never(&f.memory); /* counts from here */
    for (int i = 0; i < 50; i++) {
        copy(&f, 64);
        copy(&f, 20000);
        take_all(&f, 4000);
    }
    GT_EQUAL(gi_fault_alloc_count(&f.memory), 0);
    end(&f);
}

GT_MAIN()
