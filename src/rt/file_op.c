/* SPDX-License-Identifier: MIT */
/*
 * File ops: the runtime's half of <gori/file_op.h>.  This file checks what is asked, holds files
 * open under their ops, and hands results to their callbacks; an engine or the pool does the work.
 * Where an op is, and the invariants, stand in file_op.h.
 * Thread: the loop's.
 */
#include "rt/file_op.h"

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "os/os.h"

#define MODE_DEFAULT 0666

/* Accepting ------------------------------------------------------------------------------- */

/* What may be refused before anything of the op is written: it could be in flight. */
static int check(const struct gori_file_op *op, struct gori_loop *loop)
{
    if (op->op.state != GI_OP_IDLE) {
        return GORI_EBUSY;
    }
    if (op->on_complete == NULL) {
        return GORI_EINVAL;
    }
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (gi_mailbox_is_closed(&loop->shared.mailbox)) {
        return GORI_ECLOSED;
    }
    return loop->ops_active < loop->config.ops_max ? 0 : GORI_ELIMIT;
}

static int check_file(const struct gori_file_op *op, const struct gori_file *file)
{
    if (file->is_closed) {
        return GORI_ECLOSED;
    }
    return file->loop != NULL ? check(op, file->loop) : GORI_EINVAL;
}

static int carry_out(struct gori_file_op *op)
{
    struct gi_engine *engine = op->loop->engine;
    if (engine->native_kinds & GI_KIND_BIT(op->op.kind)) {
        return engine->impl->submit(engine, &op->op);
    }
    return gi_file_work_submit(op);
}

/* The op becomes the runtime's. */
static void accept(struct gori_file_op *op, struct gori_loop *loop, uint8_t kind)
{
    op->loop = loop;
    op->op.kind = kind;
    op->op.handle = NULL;
    op->op.flags = 0;
    op->op.state = GI_OP_SUBMITTED;
    gi_list_push_back(&loop->file_ops, &op->of_loop);
    loop->ops_active++;
}

static void refuse(struct gori_file_op *op)
{
    op->op.state = GI_OP_IDLE;
    gi_list_remove(&op->of_loop);
    op->loop->ops_active--;
}

static int submit(struct gori_file_op *op, struct gori_loop *loop, uint8_t kind)
{
    accept(op, loop, kind);
    int result = carry_out(op);
    if (result < 0) {
        refuse(op);
        return result;
    }
    return 0;
}

static int submit_on(struct gori_file_op *op, struct gori_file *file, uint8_t kind)
{
    op->descriptor = file->descriptor;
    int result = submit(op, file->loop, kind);
    if (result < 0) {
        return result;
    }
    op->file = file;
    gori_file_ref(file);
    gi_list_push_back(&file->ops, &op->of_file);
    return 0;
}

/* Paths ----------------------------------------------------------------------------------- */

static uint16_t flags_of(const struct gori_file_open_options *options)
{
    bool reads = !options->write || options->read_too;
    return (uint16_t)((reads ? GI_OS_FILE_READ : 0) | (options->write ? GI_OS_FILE_WRITE : 0) |
                      (options->create ? GI_OS_FILE_CREATE : 0) |
                      (options->exclusive ? GI_OS_FILE_EXCLUSIVE : 0) |
                      (options->truncate ? GI_OS_FILE_TRUNCATE : 0) |
                      (options->append ? GI_OS_FILE_APPEND : 0));
}

static bool are_valid(const struct gori_file_open_options *options)
{
    if (!options->write) {
        return !options->read_too && !options->create && !options->exclusive &&
               !options->truncate && !options->append;
    }
    return options->create || !options->exclusive;
}

static void set_path(struct gori_file_op *op, const struct gori_root *root, const char *path)
{
    op->path = path;
    op->root_descriptor = root != NULL ? gi_root_descriptor(root) : GI_OS_NO_ROOT;
    op->descriptor = -1;
}

static struct gori_file *make_file(struct gori_loop *loop, uint16_t flags)
{
    struct gori_file *file = gi_file_create(loop->allocator);
    if (file != NULL) {
        file->loop = loop;
        file->calls = loop->engine->impl->files;
        file->place = loop->engine->files_place;
        file->can_read = (flags & GI_OS_FILE_READ) != 0;
        file->can_write = (flags & GI_OS_FILE_WRITE) != 0;
        file->appends = (flags & GI_OS_FILE_APPEND) != 0;
    }
    return file;
}

int gori_file_op_open(struct gori_file_op *op, struct gori_loop *loop, const char *path,
                      const struct gori_file_open_options *given)
{
    int result = check(op, loop);
    if (result < 0) {
        return result;
    }
    const struct gori_file_open_options none = {0};
    const struct gori_file_open_options *options = given != NULL ? given : &none;
    if (path == NULL || !are_valid(options)) {
        return GORI_EINVAL;
    }
    uint16_t flags = flags_of(options);
    struct gori_file *file = make_file(loop, flags);
    if (file == NULL) {
        return GORI_ENOMEM;
    }
    set_path(op, options->root, path);
    op->open_flags = flags;
    op->mode = options->mode != 0 ? options->mode : MODE_DEFAULT;
    op->file = file;
    result = submit(op, loop, GORI_OP_FILE_OPEN);
    if (result < 0) {
        op->file = NULL;
        gi_file_forget(file);
    }
    return result;
}

int gori_file_op_stat_path(struct gori_file_op *op, struct gori_loop *loop, struct gori_root *root,
                           const char *path)
{
    int result = check(op, loop);
    if (result < 0) {
        return result;
    }
    if (path == NULL) {
        return GORI_EINVAL;
    }
    set_path(op, root, path);
    op->file = NULL;
    return submit(op, loop, GORI_OP_FILE_STAT);
}

/* Bytes ----------------------------------------------------------------------------------- */

static int set_pieces(struct gori_file_op *op, uint64_t offset, const struct gori_slice *pieces,
                      uint32_t count)
{
    if (count == 0 || count > GORI_FILE_PIECES_MAX) {
        return GORI_EINVAL;
    }
    uint64_t left = offset <= INT64_MAX ? INT64_MAX - offset : 0;
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].size > left - total) {
            return GORI_EINVAL;
        }
        total += pieces[i].size;
    }
    if (total == 0) {
        return GORI_EINVAL;
    }
    op->pieces = pieces;
    op->count = count;
    op->index = 0;
    op->piece_offset = 0;
    op->progress = 0;
    op->offset = offset;
    (void)gi_file_op_advance(op, 0);
    return 0;
}

static int check_read(const struct gori_file_op *op, const struct gori_file *file)
{
    int result = check_file(op, file);
    if (result < 0) {
        return result;
    }
    if (file->info.is_directory) {
        return GORI_EISDIR;
    }
    return file->can_read ? 0 : GORI_EACCESS;
}

static int check_write(const struct gori_file_op *op, const struct gori_file *file)
{
    int result = check_file(op, file);
    if (result < 0) {
        return result;
    }
    return file->can_write ? 0 : GORI_EACCESS;
}

/* The pieces are checked and named; `own` is one that the op itself holds. */
static int move_bytes(struct gori_file_op *op, struct gori_file *file, uint8_t kind,
                      uint64_t offset, const struct gori_slice *pieces, uint32_t count)
{
    int result = set_pieces(op, offset, pieces, count);
    if (result < 0) {
        return result;
    }
    bool appends = kind == GORI_OP_FILE_WRITE && file->appends;
    op->open_flags = appends ? GI_OS_FILE_APPEND : 0;
    return submit_on(op, file, kind);
}

int gori_file_op_read(struct gori_file_op *op, struct gori_file *file, uint64_t offset, void *data,
                      size_t size)
{
    int result = check_read(op, file);
    if (result < 0) {
        return result;
    }
    op->piece = (struct gori_slice){.data = data, .size = size};
    return move_bytes(op, file, GORI_OP_FILE_READ, offset, &op->piece, 1);
}

int gori_file_op_read_pieces(struct gori_file_op *op, struct gori_file *file, uint64_t offset,
                             const struct gori_room *pieces, uint32_t count)
{
    _Static_assert(sizeof(struct gori_room) == sizeof(struct gori_slice), "one shape");
    int result = check_read(op, file);
    if (result < 0) {
        return result;
    }
    const struct gori_slice *slices = (const struct gori_slice *)(const void *)pieces;
    return move_bytes(op, file, GORI_OP_FILE_READ, offset, slices, count);
}

int gori_file_op_write(struct gori_file_op *op, struct gori_file *file, uint64_t offset,
                       const void *data, size_t size)
{
    int result = check_write(op, file);
    if (result < 0) {
        return result;
    }
    op->piece = (struct gori_slice){.data = data, .size = size};
    return move_bytes(op, file, GORI_OP_FILE_WRITE, offset, &op->piece, 1);
}

int gori_file_op_write_pieces(struct gori_file_op *op, struct gori_file *file, uint64_t offset,
                              const struct gori_slice *pieces, uint32_t count)
{
    int result = check_write(op, file);
    return result < 0 ? result : move_bytes(op, file, GORI_OP_FILE_WRITE, offset, pieces, count);
}

/* The rest of a file's life --------------------------------------------------------------- */

static int sync_file(struct gori_file_op *op, struct gori_file *file, bool data_only)
{
    int result = check_file(op, file);
    if (result < 0) {
        return result;
    }
    if (!file->can_write && !file->info.is_directory) {
        return GORI_EACCESS; /* not every system can: the same on all */
    }
    op->data_only = data_only;
    return submit_on(op, file, GORI_OP_FILE_SYNC);
}

int gori_file_op_sync(struct gori_file_op *op, struct gori_file *file)
{
    return sync_file(op, file, false);
}

int gori_file_op_sync_data(struct gori_file_op *op, struct gori_file *file)
{
    return sync_file(op, file, true);
}

int gori_file_op_stat(struct gori_file_op *op, struct gori_file *file)
{
    int result = check_file(op, file);
    if (result < 0) {
        return result;
    }
    op->path = NULL;
    return submit_on(op, file, GORI_OP_FILE_STAT);
}

int gori_file_op_truncate(struct gori_file_op *op, struct gori_file *file, uint64_t size)
{
    int result = check_write(op, file);
    if (result < 0) {
        return result;
    }
    if (size > INT64_MAX) {
        return GORI_EINVAL;
    }
    op->offset = size;
    return submit_on(op, file, GORI_OP_FILE_TRUNCATE);
}

/* Nothing is in flight on the file any more (F2). */
static void start_close(struct gori_file *file)
{
    struct gori_file_op *op = file->closing;
    file->closing = NULL;
    if (!gi_file_is_sole(file)) {
        op->file = NULL;
        gori_file_unref(file);
        gi_file_op_decide(op, 0);
        return;
    }
    op->descriptor = file->descriptor;
    if (carry_out(op) < 0) {
        /* It was accepted: without memory or a thread for it, it is done here. */
        gi_file_op_decide(op, file->calls->close(file->place, file->descriptor));
    }
}

int gori_file_op_close(struct gori_file_op *op, struct gori_file *file)
{
    int result = check_file(op, file);
    bool loop_ends = result == GORI_ECLOSED && !file->is_closed; /* which is no reason */
    if (result < 0 && !loop_ends) {
        return result;
    }
    accept(op, file->loop, GORI_OP_FILE_CLOSE);
    op->file = file;
    op->descriptor = -1;
    file->is_closed = true;
    file->closing = op;
    GI_LIST_FOREACH (link, &file->ops) {
        gori_file_op_cancel(gori_container_of(link, struct gori_file_op, of_file));
    }
    if (gi_list_is_empty(&file->ops)) {
        start_close(file);
    }
    return 0;
}

void gori_file_op_cancel(struct gori_file_op *op)
{
    if (op->op.state != GI_OP_SUBMITTED || op->op.kind == GORI_OP_FILE_CLOSE) {
        return;
    }
    struct gi_engine *engine = op->loop->engine;
    GI_ASSERT(gi_loop_on_thread(op->loop));
    op->op.state = GI_OP_CANCELING;
    if (op->op.flags & (GI_FILE_OP_POOLED | GI_FILE_OP_WAITING)) {
        gi_file_work_cancel(op);
    } else if (!(op->op.flags & GI_FILE_OP_DECIDED)) {
        engine->impl->cancel(engine, &op->op);
    }
}

bool gori_file_op_is_active(const struct gori_file_op *op)
{
    return op->op.state != GI_OP_IDLE;
}

/* Completing ------------------------------------------------------------------------------ */

/* Fills the file of an open that succeeded.  One that was cancelled too late is undone. */
static int64_t finish_open(struct gori_file_op *op)
{
    struct gori_file *file = op->file;
    struct gi_engine *engine = op->loop->engine;
    int error = op->op.state == GI_OP_CANCELING ? GORI_ECANCELED : 0;
    if (error == 0 && engine->impl->attach_file != NULL) {
        error = engine->impl->attach_file(engine, op->descriptor);
    }
    if (error < 0) {
        (void)file->calls->close(file->place, op->descriptor);
        return error;
    }
    file->descriptor = op->descriptor;
    file->info = op->info;
    return 0;
}

/* What the op held is given up; the file, whose reference goes after the callback. */
static struct gori_file *let_go(struct gori_file_op *op, int64_t *result)
{
    struct gori_file *file = op->file;
    switch (op->op.kind) {
    case GORI_OP_FILE_OPEN:
        *result = *result < 0 ? *result : finish_open(op);
        if (*result < 0) {
            gi_file_forget(file);
            op->file = NULL;
        }
        return NULL;
    case GORI_OP_FILE_CLOSE:
        if (file != NULL) {
            gi_file_forget(file);
            op->file = NULL;
        }
        return NULL;
    default:
        if (file != NULL) {
            gi_list_remove(&op->of_file);
        }
        return file;
    }
}

void gi_file_op_complete(struct gori_file_op *op, int64_t result)
{
    GI_ASSERT(op->op.state != GI_OP_IDLE);
    struct gori_loop *loop = op->loop;
    struct gori_file *held = let_go(op, &result);
    gi_list_remove(&op->of_loop);
    op->op.state = GI_OP_IDLE;
    loop->ops_active--;
    op->on_complete(op, result); /* after which the op may be gone */
    if (held != NULL) {
        if (held->closing != NULL && gi_list_is_empty(&held->ops)) {
            gori_file_unref(held); /* not the last one: the close has its own */
            start_close(held);
        } else {
            gori_file_unref(held);
        }
    }
}

static void run_decided(struct gori_task *task)
{
    struct gori_file_op *op = task->user;
    gi_file_op_complete(op, op->result);
}

void gi_file_op_decide(struct gori_file_op *op, int64_t result)
{
    op->op.flags |= GI_FILE_OP_DECIDED;
    op->result = result;
    op->task = (struct gori_task){.run = run_decided, .user = op};
    /* Refused while the loop ends, which finds the op in its list. */
    (void)gi_loop_post_owed(op->loop, &op->task);
}

void gi_file_op_dispatch(struct gori_op *op, int64_t result)
{
    gi_file_op_complete(gi_file_op_of(op), result);
}

void gi_file_op_end_all(struct gori_loop *loop)
{
    GI_LIST_FOREACH (link, &loop->file_ops) {
        gori_file_op_cancel(gori_container_of(link, struct gori_file_op, of_loop));
    }
    /* One that completes may decide another, a close. */
    for (bool again = true; again;) {
        again = false;
        GI_LIST_FOREACH_SAFE (link, &loop->file_ops) {
            struct gori_file_op *op = gori_container_of(link, struct gori_file_op, of_loop);
            if (op->op.flags & GI_FILE_OP_DECIDED) {
                gi_file_op_complete(op, op->result);
                again = true;
            }
        }
    }
}
