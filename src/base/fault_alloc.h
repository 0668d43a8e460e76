/* SPDX-License-Identifier: MIT */
/*
 * An allocator for tests: it counts, checks and fails on demand.  Sweeps fail the n-th allocation
 * of a scenario for every n; leak tests ask for what is still live.  It stands before another
 * allocator.
 * Thread: alloc and free from any; arming and reading where the scenario is quiet.
 */
#ifndef GI_BASE_FAULT_ALLOC_H
#define GI_BASE_FAULT_ALLOC_H

#include "base/atomic.h"

#include <gori/allocator.h>

struct gi_fault_alloc {
    struct gori_allocator allocator; /* hand out `&fault.allocator` */
    const struct gori_allocator *inner;
    struct gi_atomic_u64 alloc_count;  /* allocations asked for since init or the last arming */
    struct gi_atomic_u64 failed_count; /* of them, those failed on purpose */
    struct gi_atomic_u64 live_blocks;
    struct gi_atomic_u64 live_bytes; /* as asked for, without our own headers */
    struct gi_atomic_u64 peak_bytes; /* the most that was live at once */
    uint64_t fail_first;             /* number of the first allocation to fail, from 1; 0: none */
    uint64_t fail_last;              /* number of the last one to fail */
};

/** Starts counting before `inner` (NULL: the default allocator); nothing fails yet. */
void gi_fault_alloc_init(struct gi_fault_alloc *fault, const struct gori_allocator *inner);

/** Ends it.  Asserts that nothing is live: a test that got here has leaked nothing. */
void gi_fault_alloc_fini(struct gi_fault_alloc *fault);

/**
 * Starts the count anew and fails the `number`-th allocation from now, once.  Numbers begin at 1.
 */
void gi_fault_alloc_fail_once(struct gi_fault_alloc *fault, uint64_t number);

/** Starts the count anew and fails the `number`-th allocation from now and all after it. */
void gi_fault_alloc_fail_from(struct gi_fault_alloc *fault, uint64_t number);

/** Starts the count anew; nothing fails. */
void gi_fault_alloc_fail_never(struct gi_fault_alloc *fault);

/** Allocations asked for since init or the last arming. */
uint64_t gi_fault_alloc_count(const struct gi_fault_alloc *fault);

/** Allocations failed on purpose since init or the last arming; 0 ends a sweep. */
uint64_t gi_fault_alloc_failed_count(const struct gi_fault_alloc *fault);

/** Blocks that are allocated now. */
uint64_t gi_fault_alloc_live_blocks(const struct gi_fault_alloc *fault);

/** Bytes that are allocated now. */
uint64_t gi_fault_alloc_live_bytes(const struct gi_fault_alloc *fault);

#endif
