/* SPDX-License-Identifier: MIT */
/*
 * File ops on threads of the pool, for engines that have no files of their own, and for what the
 * kernel under one that has does not know.  A bounded number of a loop is in the pool (F4), so that
 * none takes all of a shared one; the others wait in order on the loop, where a cancel always wins.
 * Thread: the loop's, but for run.
 */
#include <gori/error.h>
#include <gori/pool.h>

#include "base/assert.h"
#include "base/list.h"
#include "os/os.h"
#include "rt/file_op.h"

/* Threads of a loop's own pool. */
#define THREADS 4

/* On a thread of the pool ----------------------------------------------------------------- */

/* Reads until all room is filled or the file ends, writes until all is written. */
static int64_t move_bytes(struct gori_file_op *op)
{
    bool reads = op->op.kind == GORI_OP_FILE_READ;
    bool append = (op->open_flags & GI_OS_FILE_APPEND) != 0;
    bool is_done = false;
    while (!is_done) {
        const struct gori_slice *pieces = gi_file_op_pieces(op);
        uint32_t count = op->count - op->index;
        uint64_t place = gi_file_op_place(op);
        int64_t moved =
            reads
                ? gi_os_file_read(op->descriptor, pieces, count, op->piece_offset, place)
                : gi_os_file_write(op->descriptor, pieces, count, op->piece_offset, place, append);
        if (moved < 0) {
            return moved;
        }
        if (moved == 0) {
            return reads ? (int64_t)op->progress : GORI_EIO;
        }
        is_done = gi_file_op_advance(op, (size_t)moved);
    }
    return (int64_t)op->progress;
}

static int64_t open_file(struct gori_file_op *op)
{
    const struct gi_os_file_open how = {.root_fd = op->root_descriptor,
                                        .path = op->path,
                                        .flags = op->open_flags,
                                        .mode = op->mode};
    return gi_os_file_open(&how, &op->descriptor, &op->info);
}

static int64_t carry_out(struct gori_file_op *op)
{
    switch (op->op.kind) {
    case GORI_OP_FILE_OPEN:
        return open_file(op);
    case GORI_OP_FILE_READ:
    case GORI_OP_FILE_WRITE:
        return move_bytes(op);
    case GORI_OP_FILE_SYNC:
        return gi_os_file_sync(op->descriptor, op->data_only);
    case GORI_OP_FILE_STAT:
        return op->path != NULL ? gi_os_file_stat_path(op->root_descriptor, op->path, &op->info)
                                : gi_os_file_stat(op->descriptor, &op->info);
    case GORI_OP_FILE_TRUNCATE:
        return gi_os_file_truncate(op->descriptor, op->offset);
    default:
        GI_ASSERT(op->op.kind == GORI_OP_FILE_CLOSE);
        return gi_os_file_close(op->descriptor);
    }
}

static void run(struct gori_work *work)
{
    struct gori_file_op *op = work->user;
    op->has_run = true;
    op->result = carry_out(op);
}

/* On the loop ----------------------------------------------------------------------------- */

static int find_pool(struct gori_loop *loop)
{
    if (loop->config.pool != NULL) {
        return 0;
    }
    const struct gori_pool_config config = {
        .allocator = loop->allocator, .threads_max = THREADS, .works_max = GORI_FILE_WORKS_MAX};
    int result = gori_pool_create(&config, &loop->own_pool);
    if (result >= 0) {
        loop->config.pool = loop->own_pool;
    }
    return result;
}

static void done(struct gori_work *work, int canceled);

static int enter_pool(struct gori_file_op *op)
{
    struct gori_loop *loop = op->loop;
    op->work.run = run;
    op->work.on_done = done;
    op->work.user = op;
    op->has_run = false;
    int result = gori_pool_submit(loop->config.pool, loop, &op->work);
    if (result >= 0) {
        op->op.flags |= GI_FILE_OP_POOLED;
        loop->file_works++;
    }
    return result;
}

/* A place in the pool is free: whoever waits longest gets it. */
static void feed(struct gori_loop *loop)
{
    while (loop->file_works < GORI_FILE_WORKS_MAX) {
        struct gori_link *link = gi_list_first(&loop->file_waiting);
        if (link == NULL) {
            return;
        }
        struct gori_file_op *op = gori_container_of(link, struct gori_file_op, queued);
        int result = enter_pool(op);
        if (result < 0 && loop->file_works > 0) {
            return; /* tried again when the next one ends (F4) */
        }
        gi_list_remove(&op->queued);
        op->op.flags &= (uint8_t)~GI_FILE_OP_WAITING;
        if (result < 0) {
            gi_file_op_decide(op, result);
        }
    }
}

static void done(struct gori_work *work, int canceled)
{
    struct gori_file_op *op = work->user;
    struct gori_loop *loop = op->loop;
    op->op.flags &= (uint8_t)~GI_FILE_OP_POOLED;
    loop->file_works--;
    feed(loop);
    /* Of a cancelled one the pool says only that it was; what it did, it has noted. */
    gi_file_op_complete(op, op->has_run ? op->result : canceled);
}

int gi_file_work_submit(struct gori_file_op *op)
{
    struct gori_loop *loop = op->loop;
    int result = find_pool(loop);
    if (result < 0) {
        return result;
    }
    bool others_wait = !gi_list_is_empty(&loop->file_waiting);
    result = GORI_ELIMIT;
    if (!others_wait && loop->file_works < GORI_FILE_WORKS_MAX) {
        result = enter_pool(op);
    }
    if (result < 0 && loop->file_works > 0) {
        op->op.flags |= GI_FILE_OP_WAITING;
        gi_list_push_back(&loop->file_waiting, &op->queued);
        return 0;
    }
    return result;
}

void gi_file_work_cancel(struct gori_file_op *op)
{
    if (op->op.flags & GI_FILE_OP_POOLED) {
        gori_work_cancel(&op->work);
        return;
    }
    gi_list_remove(&op->queued);
    op->op.flags &= (uint8_t)~GI_FILE_OP_WAITING;
    gi_file_op_decide(op, GORI_ECANCELED);
}
