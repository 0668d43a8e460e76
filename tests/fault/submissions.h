/* SPDX-License-Identifier: MIT */
/*
 * Operations of io_uring that fail on demand: what system_calls.h is for calls, for what goes to
 * the kernel in the ring's memory.  A failing submission is turned, just before the kernel takes
 * it, into one that does nothing and answers the error: the kernel then holds exactly what it says.
 * It knows one ring at a time, the last that was set up.
 * Thread: one.  Reading: io_uring_enter(2), IORING_NOP_INJECT_RESULT (Linux 6.10).
 */
#ifndef GT_FAULT_SUBMISSIONS_H
#define GT_FAULT_SUBMISSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whether the kernel has what this needs; asks it, with a ring of its own. */
bool fault_submissions_work(void);

/** Counts submissions of an opcode from now on; fails `count` from the `number`-th (from 1) on. */
void fault_submissions_arm(uint8_t opcode, uint64_t number, uint64_t count, int error);

/** Fails nothing more.  Result: whether one was failed since it was armed. */
bool fault_submissions_disarm(void);

/* Of the wrapped system calls: what they see of the ring. */
void fault_submissions_saw_params(int ring, const void *params);
void fault_submissions_saw_mapping(int file, uint64_t offset, void *memory);
void fault_submissions_before_enter(uint32_t count);

#endif
