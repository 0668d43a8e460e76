/* SPDX-License-Identifier: MIT */
/*
 * What io_uring is worth on this machine: trials of what cannot be asked for, and the report that
 * `gori doctor` prints, which says of each feature whether it is used and why not.
 * Thread: any; each call makes what it needs and takes it down again.
 */
#ifndef GI_ENGINE_URING_PROBE_H
#define GI_ENGINE_URING_PROBE_H

#include <gori/engine.h>
#include <stdbool.h>

#include "engine/uring/ring.h"

/** What is around a failure and may be its cause. */
struct gi_uring_surroundings {
    int sysctl_disabled; /* kernel.io_uring_disabled: 0, 1 or 2; -1 when there is no such thing */
    bool filtered;       /* a seccomp filter watches this thread */
    bool memlock_exempt;
    uint64_t memlock_bytes;
};

/** Looks around, below `proc`, which is "/proc" but for tests. */
void gi_uring_surroundings_read(const char *proc, struct gi_uring_surroundings *ret_surroundings);

/** Why a ring was not to be had: fills `state` and `text` of the report. */
void gi_uring_explain(int system_error, const struct gi_uring_surroundings *surroundings,
                      struct gori_engine_report *report);

/** What a failure to make a ring means for whoever chooses engines: a GORI_E… value. */
int gi_uring_error(int system_error);

/** Tries whether one SEND takes several pieces: 1, 0, or a negative errno when it cannot be tried.
 */
int gi_uring_try_vectorized(struct gi_ring *ring);

/** Tries whether the ring does anything: some sandboxes let one be made and then nothing be done.
 */
int gi_uring_try_nothing(struct gi_ring *ring);

/**
 * Asks which file ops the kernel has (files.c).  Result: the features of it that are there and not
 * in `disabled`; `ret_kinds` the kinds of ops, as gi_engine.native_kinds.
 */
uint32_t gi_uring_try_files(struct gi_ring *ring, uint32_t disabled, uint32_t *ret_kinds);

void gi_uring_report(struct gori_engine_report *ret_report);

#endif
