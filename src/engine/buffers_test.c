/* SPDX-License-Identifier: MIT */
/*
 * Receive buffers: every rule of buffers.h, and that hot buffers stay hot.
 */
#include "lib/test.h"

#include <gori/error.h>
#include <string.h>

#include "base/fault_alloc.h"
#include "engine/buffers.h"

static void check_sum(const struct gi_buffers *pool)
{
    GT_EQUAL(pool->free_count + pool->lent_count + pool->held_count, pool->made);
    GT_CHECK(pool->made <= pool->buffers_max);
}

GT_TEST(buffers_refuse_bad_sizes)
{
    struct gi_buffers pool;
    GT_EQUAL(gi_buffers_init(&pool, NULL, 511, 1), GORI_EINVAL);
    GT_EQUAL(gi_buffers_init(&pool, NULL, (1 << 20) + 1, 1), GORI_EINVAL);
    GT_EQUAL(gi_buffers_init(&pool, NULL, 512, 0), GORI_EINVAL);
    GT_EQUAL(gi_buffers_init(&pool, NULL, 512, 32769), GORI_EINVAL);
    GT_EQUAL(gi_buffers_init(&pool, NULL, 1 << 20, 32768), 0);
    GT_EQUAL(pool.made, 0);
    gi_buffers_fini(&pool);
}

/* All of them at once: as many as the maximum, each with bytes of its own, found by its number. */
static void take_all(uint32_t buffer_bytes, uint32_t buffers_max)
{
    struct gi_fault_alloc fault;
    struct gi_buffers pool;
    gi_fault_alloc_init(&fault, NULL);
    GT_EQUAL(gi_buffers_init(&pool, &fault.allocator, buffer_bytes, buffers_max), 0);
    for (uint32_t i = 0; i < buffers_max; i++) {
        GT_CHECK(gi_buffers_can_lend(&pool));
        struct gori_buffer *buffer = gi_buffers_lend(&pool);
        GT_CHECK(buffer != NULL);
        GT_EQUAL(buffer->holders, 0);
        memset(buffer->data, (int)buffer->index, buffer_bytes);
        check_sum(&pool);
    }
    GT_CHECK(!gi_buffers_can_lend(&pool));
    GT_CHECK(gi_buffers_lend(&pool) == NULL);
    GT_EQUAL(pool.starved, 1);
    GT_EQUAL(pool.made, buffers_max);
    for (uint32_t i = 0; i < buffers_max; i++) {
        struct gori_buffer *buffer = gi_buffers_at(&pool, i);
        GT_EQUAL(buffer->index, i);
        GT_EQUAL(buffer->data[0], (uint8_t)i);
        GT_EQUAL(buffer->data[buffer_bytes - 1], (uint8_t)i);
        gi_buffers_unlend(&pool, buffer);
        check_sum(&pool);
    }
    gi_buffers_fini(&pool);
    gi_fault_alloc_fini(&fault);
}

GT_TEST(buffers_up_to_the_maximum)
{
    static const uint32_t maxima[] = {1, 2, 15, 16, 17, 100, 300};
    for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
        take_all(512, maxima[i]);
        take_all(4096, maxima[i]);
        take_all(513, maxima[i]);
    }
    take_all(1 << 20, 3);
}

GT_TEST(buffers_last_one_back_is_first_one_out)
{
    struct gi_buffers pool;
    GT_EQUAL(gi_buffers_init(&pool, NULL, 512, 100), 0);
    struct gori_buffer *first = gi_buffers_lend(&pool);
    struct gori_buffer *second = gi_buffers_lend(&pool);
    gi_buffers_unlend(&pool, first);
    gi_buffers_unlend(&pool, second);
    GT_CHECK(gi_buffers_lend(&pool) == second);
    GT_CHECK(gi_buffers_lend(&pool) == first);
    gi_buffers_unlend(&pool, first);
    gi_buffers_unlend(&pool, second);
    gi_buffers_fini(&pool);
}

GT_TEST(buffers_return_with_their_last_holder)
{
    struct gi_buffers pool;
    GT_EQUAL(gi_buffers_init(&pool, NULL, 512, 1), 0);
    struct gori_buffer *buffer = gi_buffers_lend(&pool);
    gi_buffers_deliver(&pool, buffer);
    gori_buffer_retain(buffer);
    gori_buffer_release(buffer);
    check_sum(&pool);
    GT_EQUAL(pool.held_count, 1);
    GT_CHECK(gi_buffers_lend(&pool) == NULL);
    gori_buffer_release(buffer);
    check_sum(&pool);
    GT_EQUAL(pool.free_count, 1);
    gi_buffers_fini(&pool);
}

/* No memory for more is not the end: what there is goes on, and more is tried again. */
GT_TEST(buffers_without_memory)
{
    struct gi_fault_alloc fault;
    struct gi_buffers pool;
    gi_fault_alloc_init(&fault, NULL);
    GT_EQUAL(gi_buffers_init(&pool, &fault.allocator, 4096, 100), 0);
    for (uint64_t number = 1; number <= 2; number++) {
        gi_fault_alloc_fail_once(&fault, number);
        GT_CHECK(gi_buffers_lend(&pool) == NULL);
        check_sum(&pool);
    }
    struct gori_buffer *buffer = gi_buffers_lend(&pool);
    GT_CHECK(buffer != NULL);
    gi_buffers_unlend(&pool, buffer);
    gi_buffers_fini(&pool);
    gi_fault_alloc_fini(&fault);
}

GT_TEST(buffers_misuse_dies)
{
    struct gi_buffers pool;
    GT_EQUAL(gi_buffers_init(&pool, NULL, 512, 2), 0);
    struct gori_buffer *buffer = gi_buffers_lend(&pool);
    GT_DIES(gi_buffers_fini(&pool));
    GT_DIES(gori_buffer_release(buffer));
    GT_DIES(gori_buffer_retain(buffer));
    gi_buffers_deliver(&pool, buffer);
    GT_DIES(gi_buffers_unlend(&pool, buffer));
    GT_DIES(gi_buffers_deliver(&pool, buffer));
    gori_buffer_release(buffer);
    gi_buffers_fini(&pool);
}

GT_MAIN()
