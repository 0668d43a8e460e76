/* SPDX-License-Identifier: MIT */
/*
 * Reproducible random numbers for simulation, tests and back-off: xoshiro256** seeded by
 * splitmix64.  Not for secrets.  The same seed gives the same numbers on every machine, for ever.
 * Thread: one at a time.  Reading: Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators".
 */
#ifndef GI_BASE_RANDOM_H
#define GI_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct gi_random {
    uint64_t state[4];
};

/** Any seed is good, 0 too. */
void gi_random_init(struct gi_random *random, uint64_t seed);

/** 64 random bits. */
uint64_t gi_random_next(struct gi_random *random);

/** A number below `bound` (> 0), all equally likely. */
uint64_t gi_random_below(struct gi_random *random, uint64_t bound);

/** A number from `low` to `high`, both included (low <= high), all equally likely. */
uint64_t gi_random_range(struct gi_random *random, uint64_t low, uint64_t high);

/** True `numerator` times out of `denominator` (> 0) in the long run. */
bool gi_random_chance(struct gi_random *random, uint64_t numerator, uint64_t denominator);

#endif
