/* SPDX-License-Identifier: MIT */
/*
 * Reproducible random numbers.
 *
 * Contract:
 *  1. The sequence for a seed never changes: recorded seeds of simulations depend on it.  The tests
 *     hold the first numbers.
 *  2. below and range are unbiased; they draw one number, seldom more.
 */
#include "base/random.h"

#include "base/assert.h"

/* splitmix64: spreads one word over the state, which must not be all zeros and so never is. */
static uint64_t split(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

void gi_random_init(struct gi_random *random, uint64_t seed)
{
    for (size_t i = 0; i < GI_ARRAY_COUNT(random->state); i++) {
        random->state[i] = split(&seed);
    }
}

uint64_t gi_random_next(struct gi_random *random)
{
    uint64_t *state = random->state;
    uint64_t result = rotate_left(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate_left(state[3], 45);
    return result;
}

uint64_t gi_random_below(struct gi_random *random, uint64_t bound)
{
    GI_ASSERT(bound > 0);
    /* Numbers under 2^64 mod bound would make the first results likelier: they are drawn again. */
    uint64_t threshold = (0 - bound) % bound;
    uint64_t value;
    do {
        value = gi_random_next(random);
    } while (value < threshold);
    return value % bound;
}

uint64_t gi_random_range(struct gi_random *random, uint64_t low, uint64_t high)
{
    GI_ASSERT(low <= high);
    if (high - low == UINT64_MAX) {
        return gi_random_next(random);
    }
    return low + gi_random_below(random, high - low + 1);
}

bool gi_random_chance(struct gi_random *random, uint64_t numerator, uint64_t denominator)
{
    return gi_random_below(random, denominator) < numerator;
}
