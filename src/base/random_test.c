/* SPDX-License-Identifier: MIT */
/*
 * Random numbers: the sequence is fixed for ever, results stay in bounds and are even.
 */
#include "base/random.h"
#include "lib/test.h"

/* Recorded seeds of simulations replay only as long as these numbers stay. */
GT_TEST(random_sequence_never_changes)
{
    struct gi_random random;
    gi_random_init(&random, 0);
    GT_EQUAL(random.state[0], 0xe220a8397b1dcdafULL); /* as published for splitmix64 */
    GT_EQUAL(gi_random_next(&random), 0x99ec5f36cb75f2b4ULL);
    GT_EQUAL(gi_random_next(&random), 0xbf6e1f784956452aULL);
    GT_EQUAL(gi_random_next(&random), 0x1a5f849d4933e6e0ULL);
    struct gi_random again;
    gi_random_init(&again, 0);
    GT_EQUAL(gi_random_next(&again), 0x99ec5f36cb75f2b4ULL);
}

GT_TEST(random_below_is_even)
{
    struct gi_random random;
    unsigned counts[10] = {0};
    gi_random_init(&random, 1);
    for (int i = 0; i < 100000; i++) {
        counts[gi_random_below(&random, 10)]++;
    }
    for (int i = 0; i < 10; i++) {
        GT_CHECK(counts[i] > 9500 && counts[i] < 10500);
    }
}

/* A bound of 3 * 2^62 makes a plain remainder twice as likely below 2^62. */
GT_TEST(random_below_has_no_bias_at_large_bounds)
{
    struct gi_random random;
    unsigned low_count = 0;
    uint64_t bound = (uint64_t)3 << 62;
    gi_random_init(&random, 2);
    for (int i = 0; i < 30000; i++) {
        uint64_t value = gi_random_below(&random, bound);
        GT_CHECK(value < bound);
        low_count += value < (uint64_t)1 << 62;
    }
    GT_CHECK(low_count > 9000 && low_count < 11000);
}

GT_TEST(random_bounds_are_kept)
{
    struct gi_random random;
    gi_random_init(&random, 3);
    bool low_seen = false;
    bool high_seen = false;
    for (int i = 0; i < 1000; i++) {
        GT_EQUAL(gi_random_below(&random, 1), 0);
        GT_EQUAL(gi_random_range(&random, 9, 9), 9);
        uint64_t value = gi_random_range(&random, 5, 8);
        GT_CHECK(value >= 5 && value <= 8);
        low_seen = low_seen || value == 5;
        high_seen = high_seen || value == 8;
        GT_CHECK(gi_random_range(&random, UINT64_MAX - 1, UINT64_MAX) >= UINT64_MAX - 1);
        (void)gi_random_range(&random, 0, UINT64_MAX);
        GT_CHECK(gi_random_chance(&random, 1, 1));
        GT_CHECK(gi_random_chance(&random, 2, 1));
        GT_CHECK(!gi_random_chance(&random, 0, 5));
    }
    GT_CHECK(low_seen);
    GT_CHECK(high_seen);
}

GT_TEST(random_chance_is_about_right)
{
    struct gi_random random;
    unsigned count = 0;
    gi_random_init(&random, 4);
    for (int i = 0; i < 30000; i++) {
        count += gi_random_chance(&random, 1, 3);
    }
    GT_CHECK(count > 9500 && count < 10500);
}

GT_TEST(random_misuse_aborts)
{
    struct gi_random random;
    gi_random_init(&random, 5);
    GT_DIES((void)gi_random_below(&random, 0));
    GT_DIES((void)gi_random_chance(&random, 1, 0));
    GT_DIES((void)gi_random_range(&random, 2, 1));
}

GT_MAIN()
