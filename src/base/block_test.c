/* SPDX-License-Identifier: MIT */
/*
 * Blocks: content, references from several threads, external memory, no memory, misuse.
 */
#include "base/fault_alloc.h"
#include "lib/test.h"

#include <gori/block.h>
#include <gori/error.h>
#include <pthread.h>

GT_TEST(block_create_copies)
{
    struct gi_fault_alloc fault;
    gi_fault_alloc_init(&fault, NULL);
    char text[] = "hello";
    struct gori_block *block;
    GT_EQUAL(gori_block_create(&fault.allocator, text, 5, &block), 0);
    text[0] = 'j';
    struct gori_slice view = gori_block_view(block);
    GT_EQUAL_BYTES(view.data, view.size, "hello", 5);
    GT_EQUAL(gi_fault_alloc_count(&fault), 1);
    gori_block_unref(block);
    gi_fault_alloc_fini(&fault);
}

GT_TEST(block_may_be_empty)
{
    struct gori_block *block;
    GT_EQUAL(gori_block_create(NULL, NULL, 0, &block), 0);
    GT_EQUAL(gori_block_view(block).size, 0);
    GT_CHECK(gori_block_view(block).data != NULL);
    gori_block_unref(block);
    gori_block_unref(NULL);
}

GT_TEST(block_build_is_filled_in_place)
{
    struct gori_block *block;
    uint8_t *data;
    GT_EQUAL(gori_block_build(NULL, 1000, &block, &data), 0);
    memset(data, 3, 1000);
    struct gori_slice view = gori_block_view(block);
    GT_CHECK(view.data == data);
    GT_EQUAL(view.size, 1000);
    GT_EQUAL(view.data[999], 3);
    gori_block_unref(block);
}

struct released {
    unsigned count;
    const uint8_t *data;
    size_t size;
};

static void note_release(void *user, const uint8_t *data, size_t size)
{
    struct released *released = user;
    released->count++;
    released->data = data;
    released->size = size;
}

GT_TEST(block_wrap_releases_once_at_the_end)
{
    static const uint8_t external[] = {1, 2, 3};
    struct released released = {0};
    struct gori_block *block;
    GT_EQUAL(gori_block_wrap(NULL, external, 3, note_release, &released, &block), 0);
    GT_CHECK(gori_block_view(block).data == external);
    GT_CHECK(gori_block_ref(block) == block);
    gori_block_unref(block);
    GT_EQUAL(released.count, 0);
    gori_block_unref(block);
    GT_EQUAL(released.count, 1);
    GT_CHECK(released.data == external);
    GT_EQUAL(released.size, 3);

    GT_EQUAL(gori_block_wrap(NULL, external, 3, NULL, NULL, &block), 0);
    gori_block_unref(block);
}

/* Failure: the right error, outputs untouched, external memory not released, nothing leaked. */
GT_TEST(block_failures_leave_all_as_it_was)
{
    struct gi_fault_alloc fault;
    gi_fault_alloc_init(&fault, NULL);
    struct released released = {0};
    struct gori_block *block = (struct gori_block *)&released;
    uint8_t *data = (uint8_t *)&released;
    GT_EQUAL(gori_block_create(&fault.allocator, NULL, 1, &block), GORI_EINVAL);
    GT_EQUAL(gori_block_create(&fault.allocator, "x", 1, NULL), GORI_EINVAL);
    GT_EQUAL(gori_block_build(&fault.allocator, SIZE_MAX, &block, &data), GORI_EINVAL);
    GT_EQUAL(gori_block_build(&fault.allocator, 1, &block, NULL), GORI_EINVAL);
    GT_EQUAL(gori_block_wrap(NULL, NULL, 1, note_release, &released, &block), GORI_EINVAL);
    gi_fault_alloc_fail_from(&fault, 1);
    const struct gori_allocator *allocator = &fault.allocator;
    GT_EQUAL(gori_block_create(allocator, "x", 1, &block), GORI_ENOMEM);
    GT_EQUAL(gori_block_build(allocator, 1, &block, &data), GORI_ENOMEM);
    GT_EQUAL(gori_block_wrap(allocator, "x", 1, note_release, &released, &block), GORI_ENOMEM);
    GT_CHECK(block == (struct gori_block *)&released);
    GT_CHECK(data == (uint8_t *)&released);
    GT_EQUAL(released.count, 0);
    gi_fault_alloc_fini(&fault);
}

#define THREAD_COUNT 4
#define ROUND_COUNT  5000

static void *ref_and_unref(void *user)
{
    struct gori_block *block = user;
    unsigned sum = 0;
    for (int i = 0; i < ROUND_COUNT; i++) {
        (void)gori_block_ref(block);
        sum += gori_block_view(block).data[0];
        gori_block_unref(block);
    }
    GT_EQUAL(sum, ROUND_COUNT);
    gori_block_unref(block);
    return NULL;
}

/* Each thread owns one reference and is the last to use it, in any order: freed once, raceless. */
GT_TEST(block_is_shared_between_threads)
{
    static const uint8_t one = 1;
    struct gi_fault_alloc fault;
    struct released released = {0};
    gi_fault_alloc_init(&fault, NULL);
    struct gori_block *block;
    GT_EQUAL(gori_block_wrap(&fault.allocator, &one, 1, note_release, &released, &block), 0);
    pthread_t threads[THREAD_COUNT];
    for (int i = 0; i < THREAD_COUNT; i++) {
        GT_EQUAL(pthread_create(&threads[i], NULL, ref_and_unref, gori_block_ref(block)), 0);
    }
    gori_block_unref(block);
    for (int i = 0; i < THREAD_COUNT; i++) {
        GT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    GT_EQUAL(released.count, 1);
    gi_fault_alloc_fini(&fault);
}

/*
 * A reference taken or dropped when there is none left is noticed, while the memory can still tell.
 */
static void unref_again(void *user, const uint8_t *data, size_t size)
{
    (void)data;
    (void)size;
    struct gori_block **block = user;
    gori_block_unref(*block);
}

static void ref_again(void *user, const uint8_t *data, size_t size)
{
    (void)data;
    (void)size;
    struct gori_block **block = user;
    (void)gori_block_ref(*block);
}

GT_TEST(block_count_never_rises_or_falls_from_zero)
{
    struct gori_block *block;
    GT_EQUAL(gori_block_wrap(NULL, "x", 1, unref_again, &block, &block), 0);
    GT_DIES(gori_block_unref(block));
    struct gori_block *other;
    GT_EQUAL(gori_block_wrap(NULL, "x", 1, ref_again, &other, &other), 0);
    GT_DIES(gori_block_unref(other));
    /* Neither can be released without dying, so the leak is taken back by hand. */
    _exit(0);
}

GT_MAIN()
