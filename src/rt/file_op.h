/* SPDX-License-Identifier: MIT */
/*
 * The inside of file ops, for the files of src/rt: who carries one out, and how it ends.
 *
 *   submit ──> engine ────────────────────────────> complete
 *      │
 *      └─────> waiting ──> a thread of the pool ──> complete      (file_work.c)
 *      │          │ cancel
 *      │          v
 *      └─────> decided, its task posted ──────────> complete      (a close that closes nothing)
 *
 *  F1  An op in flight is in loop.file_ops, and in file.ops when it is on a file, a close excepted;
 *      there it holds a reference.
 *  F2  A close that was accepted waits in file.closing until file.ops is empty.  It holds the
 *      reference that the caller had.
 *  F3  A file that is being opened is made before, with no descriptor: an open that has succeeded
 *      cannot fail for want of memory.
 *  F4  At most GORI_FILE_WORKS_MAX works of the loop are in the pool.  While an op waits, one is:
 *      its end makes room.
 * Thread: the loop's.
 */
#ifndef GI_RT_FILE_OP_H
#define GI_RT_FILE_OP_H

#include "rt/file.h"
#include "rt/loop.h"

/* Bits of the embedded op's flags: where it is.  Engines use others, or none. */
#define GI_FILE_OP_POOLED  0x10
#define GI_FILE_OP_WAITING 0x20
#define GI_FILE_OP_DECIDED 0x40

/** The op has ended: gives up what it held and tells its owner. */
void gi_file_op_complete(struct gori_file_op *op, int64_t result);

/** The op has ended inside a call: it completes from the loop. */
void gi_file_op_decide(struct gori_file_op *op, int64_t result);

/* Of file_work.c. */

/** Hands an op to the pool, or lets it wait.  Errors: those of gori_pool_submit. */
int gi_file_work_submit(struct gori_file_op *op);
void gi_file_work_cancel(struct gori_file_op *op);

#endif
