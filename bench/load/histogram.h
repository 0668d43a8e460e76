/* SPDX-License-Identifier: MIT */
/*
 * A histogram of latencies with log-linear buckets: exact below 128 ns, then 128 buckets to each
 * power of two, so that a bucket is under 0.8 % of its value wide. No allocation, no lock: one
 * thread.
 */
#ifndef BENCH_LOAD_HISTOGRAM_H
#define BENCH_LOAD_HISTOGRAM_H

#include <stdint.h>
#include <string.h>

enum {
    HISTOGRAM_BITS = 7,
    HISTOGRAM_LINEAR = 1 << HISTOGRAM_BITS,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_BITS + 1) * HISTOGRAM_LINEAR,
};

struct histogram {
    uint64_t total; /* values recorded */
    uint64_t max;
    uint64_t counts[HISTOGRAM_BUCKETS];
};

static inline void histogram_clear(struct histogram *histogram)
{
    memset(histogram, 0, sizeof *histogram);
}

static inline unsigned histogram_bucket(uint64_t value)
{
    if (value < HISTOGRAM_LINEAR) {
        return (unsigned)value;
    }
    unsigned shift = 63U - (unsigned)__builtin_clzll(value) - HISTOGRAM_BITS;
    return shift * HISTOGRAM_LINEAR + (unsigned)(value >> shift);
}

/** The greatest value that falls into `bucket`. */
static inline uint64_t histogram_bucket_top(unsigned bucket)
{
    if (bucket < HISTOGRAM_LINEAR) {
        return bucket;
    }
    unsigned shift = bucket / HISTOGRAM_LINEAR - 1;
    uint64_t mantissa = bucket - (uint64_t)shift * HISTOGRAM_LINEAR;
    return (mantissa << shift) + ((UINT64_C(1) << shift) - 1);
}

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->counts[histogram_bucket(value)]++;
    histogram->total++;
    if (value > histogram->max) {
        histogram->max = value;
    }
}

/** The value that `per_million` of all values do not exceed, rounded up to its bucket; 0 when
 * empty. */
static inline uint64_t histogram_quantile(const struct histogram *histogram, uint64_t per_million)
{
    uint64_t rank = (histogram->total * per_million + 999999) / 1000000;
    uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        seen += histogram->counts[bucket];
        if (seen >= rank && seen > 0) {
            uint64_t top = histogram_bucket_top(bucket);
            return top < histogram->max ? top : histogram->max;
        }
    }
    return 0;
}

#endif
