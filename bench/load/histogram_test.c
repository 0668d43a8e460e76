/* SPDX-License-Identifier: MIT */
/* Goal: a quantile is the value, up to a bucket of 0.8 %.  Method: values whose rank is known. */
#include "histogram.h"

#include "lib/test.h"

static struct histogram histogram;

GT_TEST(empty_has_no_quantile)
{
    histogram_clear(&histogram);
    GT_EQUAL(histogram_quantile(&histogram, 500000), 0);
}

GT_TEST(one_value_is_every_quantile)
{
    histogram_clear(&histogram);
    histogram_add(&histogram, 123456789);
    GT_EQUAL(histogram_quantile(&histogram, 1), 123456789);
    GT_EQUAL(histogram_quantile(&histogram, 999000), 123456789);
    GT_EQUAL(histogram.max, 123456789);
}

GT_TEST(small_values_are_exact)
{
    histogram_clear(&histogram);
    for (uint64_t value = 1; value <= 100; value++) {
        histogram_add(&histogram, value);
    }
    GT_EQUAL(histogram_quantile(&histogram, 500000), 50);
    GT_EQUAL(histogram_quantile(&histogram, 990000), 99);
    GT_EQUAL(histogram_quantile(&histogram, 1000000), 100);
}

GT_TEST(large_values_are_within_a_bucket)
{
    histogram_clear(&histogram);
    for (uint64_t value = 1; value <= 100000; value++) {
        histogram_add(&histogram, value * 1000);
    }
    uint64_t median = histogram_quantile(&histogram, 500000);
    GT_CHECK(median >= 50000000);
    GT_CHECK(median <= 50400000);
    uint64_t last = histogram_quantile(&histogram, 999000);
    GT_CHECK(last >= 99900000);
    GT_CHECK(last <= 100000000);
}

GT_TEST(buckets_follow_each_other_without_a_gap)
{
    uint64_t next = 0;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        GT_EQUAL(histogram_bucket(next), bucket);
        uint64_t top = histogram_bucket_top(bucket);
        GT_EQUAL(histogram_bucket(top), bucket);
        GT_CHECK(top - next <= next / HISTOGRAM_LINEAR);
        next = top + 1;
    }
    GT_EQUAL(next, 0); /* the last bucket ends where 64 bits end */
}

GT_MAIN()
