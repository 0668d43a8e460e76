/* SPDX-License-Identifier: MIT */
/*
 * File ops: submissions of their own, and what their completions mean.  Such an op has a slot like
 * all others, but no handle: nothing closes under it, because the runtime holds its file open.
 *
 * Nothing the kernel reads later lies on a stack: paths and pieces are the caller's, what a look
 * writes and how an open is asked for stand in the op itself.
 *
 * A file is opened so that no FIFO is waited for, and is asked at once, on this thread, what it is:
 * of an open file that is in memory, and statx as a submission would always go to another thread.
 * The kernel may do any of them on such a thread, where a cancel does not reach what has begun: it
 * is asked once, and the op ends by itself.
 * Thread: the loop's.  Reading: io_uring_enter(2), openat2(2), statx(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdalign.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <gori/error.h>

#include "base/assert.h"
#include "engine/uring/probe.h"
#include "engine/uring/uring.h"
#include "os/os.h"

#define IO_BYTES_MAX (1u << 30) /* in one submission */
#define LOOK_MASK    (STATX_TYPE | STATX_SIZE | STATX_MTIME | STATX_INO)

/* Answers in a row that are none: somebody renames on the way of a "..", a signal. */
#define TRIES_MAX 64

struct file_opcode {
    uint8_t opcode;
    uint8_t kind;
};

/* A kind that needs two is the engine's when both are there. */
static const struct file_opcode opcodes[] = {
    {IORING_OP_OPENAT2, GORI_OP_FILE_OPEN}, {IORING_OP_READ, GORI_OP_FILE_READ},
    {IORING_OP_READV, GORI_OP_FILE_READ},   {IORING_OP_WRITE, GORI_OP_FILE_WRITE},
    {IORING_OP_WRITEV, GORI_OP_FILE_WRITE}, {IORING_OP_FSYNC, GORI_OP_FILE_SYNC},
    {IORING_OP_OPENAT2, GORI_OP_FILE_STAT}, {IORING_OP_STATX, GORI_OP_FILE_STAT},
    {IORING_OP_CLOSE, GORI_OP_FILE_CLOSE},  {GI_URING_OP_FTRUNCATE, GORI_OP_FILE_TRUNCATE},
};

#define OPCODES_MAX 256

#define KIND_TRUNCATE GI_KIND_BIT(GORI_OP_FILE_TRUNCATE)
#define KINDS_BASIC                                                                                \
    (GI_KIND_BIT(GORI_OP_FILE_OPEN) | GI_KIND_BIT(GORI_OP_FILE_READ) |                             \
     GI_KIND_BIT(GORI_OP_FILE_WRITE) | GI_KIND_BIT(GORI_OP_FILE_SYNC) |                            \
     GI_KIND_BIT(GORI_OP_FILE_STAT) | GI_KIND_BIT(GORI_OP_FILE_CLOSE))

uint32_t gi_uring_try_files(struct gi_ring *ring, uint32_t disabled, uint32_t *ret_kinds)
{
    alignas(struct io_uring_probe) uint8_t
        bytes[sizeof(struct io_uring_probe) + OPCODES_MAX * sizeof(struct io_uring_probe_op)] = {0};
    const struct io_uring_probe *probe = (const struct io_uring_probe *)(const void *)bytes;
    uint32_t kinds = KINDS_BASIC | KIND_TRUNCATE;
    if (gi_ring_register(ring, IORING_REGISTER_PROBE, bytes, OPCODES_MAX) < 0) {
        kinds = 0;
    }
    for (size_t i = 0; i < GI_ARRAY_COUNT(opcodes); i++) {
        const struct io_uring_probe_op *op = &probe->ops[opcodes[i].opcode];
        if (opcodes[i].opcode > probe->last_op || !(op->flags & IO_URING_OP_SUPPORTED)) {
            kinds &= ~GI_KIND_BIT(opcodes[i].kind);
        }
    }
    kinds &= (disabled & GI_URING_FILES) ? KIND_TRUNCATE : UINT32_MAX;
    kinds &= (disabled & GI_URING_FILE_TRUNCATE) ? KINDS_BASIC : UINT32_MAX;
    *ret_kinds = kinds;
    return ((kinds & KINDS_BASIC) == KINDS_BASIC ? (uint32_t)GI_URING_FILES : 0) |
           ((kinds & KIND_TRUNCATE) ? (uint32_t)GI_URING_FILE_TRUNCATE : 0);
}

/* A stat beneath a root opens the path first, to look only. */
static bool looks_beneath(const struct gori_file_op *op)
{
    return op->op.kind == GORI_OP_FILE_STAT && op->path != NULL &&
           op->root_descriptor != GI_OS_NO_ROOT;
}

/* Submitting ------------------------------------------------------------------------------ */

static void fill_open(struct gori_file_op *op, uint32_t flags, struct io_uring_sqe *sqe)
{
    bool has_root = op->root_descriptor != GI_OS_NO_ROOT;
    struct open_how *how = (struct open_how *)(void *)op->system;
    *how = (struct open_how){
        .flags = flags,
        .mode = (flags & O_CREAT) ? op->mode : 0,
        .resolve = has_root ? RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS : 0,
    };
    sqe->opcode = IORING_OP_OPENAT2;
    sqe->fd = has_root ? op->root_descriptor : AT_FDCWD;
    sqe->addr = (uintptr_t)(has_root && op->path[0] == '\0' ? "." : op->path);
    sqe->off = (uintptr_t)how;
    sqe->len = sizeof(*how);
}

static void fill_stat(struct gori_file_op *op, struct io_uring_sqe *sqe)
{
    if (op->descriptor < 0 && looks_beneath(op)) {
        fill_open(op, O_PATH | O_CLOEXEC, sqe);
        return;
    }
    bool by_path = op->descriptor < 0;
    sqe->opcode = IORING_OP_STATX;
    sqe->fd = by_path ? AT_FDCWD : op->descriptor;
    sqe->addr = (uintptr_t)(by_path ? op->path : "");
    sqe->statx_flags = by_path ? 0 : AT_EMPTY_PATH;
    sqe->len = LOOK_MASK;
    sqe->off = (uintptr_t)op->system;
}

static void fill_bytes(const struct gori_file_op *op, struct io_uring_sqe *sqe)
{
    bool reads = op->op.kind == GORI_OP_FILE_READ;
    const struct gori_slice *pieces = gi_file_op_pieces(op);
    uint32_t count = op->count - op->index;
    sqe->off = gi_file_op_place(op);
    if (op->piece_offset > 0 || count == 1) {
        size_t left = pieces->size - op->piece_offset;
        sqe->opcode = reads ? IORING_OP_READ : IORING_OP_WRITE;
        sqe->addr = (uintptr_t)pieces->data + op->piece_offset;
        sqe->len = (uint32_t)gi_min_size(left, IO_BYTES_MAX);
    } else {
        sqe->opcode = reads ? IORING_OP_READV : IORING_OP_WRITEV;
        sqe->addr = (uintptr_t)pieces;
        sqe->len = count;
    }
}

void gi_uring_fill_file(const struct gori_op *owner, uint64_t user_data, struct io_uring_sqe *sqe)
{
    struct gori_file_op *op = gi_file_op_of(owner);
    *sqe = (struct io_uring_sqe){.fd = op->descriptor, .user_data = user_data};
    switch (owner->kind) {
    case GORI_OP_FILE_OPEN:
        fill_open(op, (uint32_t)gi_os_open_flags(op->open_flags), sqe);
        break;
    case GORI_OP_FILE_READ:
    case GORI_OP_FILE_WRITE:
        fill_bytes(op, sqe);
        break;
    case GORI_OP_FILE_SYNC:
        sqe->opcode = IORING_OP_FSYNC;
        sqe->fsync_flags = op->data_only ? IORING_FSYNC_DATASYNC : 0;
        break;
    case GORI_OP_FILE_STAT:
        fill_stat(op, sqe);
        break;
    case GORI_OP_FILE_TRUNCATE:
        sqe->opcode = GI_URING_OP_FTRUNCATE;
        sqe->off = op->offset;
        break;
    default:
        GI_ASSERT(owner->kind == GORI_OP_FILE_CLOSE);
        sqe->opcode = IORING_OP_CLOSE;
        break;
    }
}

int gi_uring_submit_file(struct gi_uring *uring, struct gori_op *op)
{
    if (uring->ops_in_flight >= uring->ops_max) {
        return GORI_ELIMIT;
    }
    uint32_t index = gi_uring_slots_take(&uring->slots, op, 0);
    if (index == GI_URING_SLOT_NONE) {
        return GORI_ENOMEM;
    }
    op->slot = index;
    uring->ops_in_flight++;
    gi_uring_arm(uring, index);
    return 0;
}

/* Completing ------------------------------------------------------------------------------ */

bool gi_uring_deliver_file(struct gi_uring *uring, uint32_t index, int64_t result,
                           struct gi_completion *ret_completion)
{
    struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
    struct gori_op *owner = slot->owner;
    struct gori_file_op *op = gi_file_op_of(owner);
    if (looks_beneath(op) && op->descriptor >= 0) {
        gi_os_close(op->descriptor);
        op->descriptor = -1;
    }
    if (slot->queue != GI_URING_QUEUE_NONE) {
        gi_uring_slots_remove(&uring->slots, index);
    }
    gi_uring_slots_release(&uring->slots, index);
    uring->ops_in_flight--;
    *ret_completion = (struct gi_completion){
        .op = owner,
        .what = {.result = result, .is_last = true, .accepted = GORI_NATIVE_NONE},
    };
    return true;
}

/* GORI_EACCESS for special files, as everywhere. */
static int describe(const struct statx *status, struct gori_file_info *ret_info)
{
    if (!S_ISREG(status->stx_mode) && !S_ISDIR(status->stx_mode)) {
        return GORI_EACCESS;
    }
    *ret_info = (struct gori_file_info){
        .size = status->stx_size,
        .modified_s = status->stx_mtime.tv_sec,
        .modified_ns = status->stx_mtime.tv_nsec,
        .device = makedev(status->stx_dev_major, status->stx_dev_minor),
        .inode = status->stx_ino,
        .is_directory = S_ISDIR(status->stx_mode),
    };
    return 0;
}

/* Not every C library has a name for it. */
static long look(int fd, struct statx *ret_status)
{
    return syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, LOOK_MASK, ret_status);
}

/* What was opened; and what was asked for lest it wait is taken back, or reads would not either. */
static int take_opened(struct gori_file_op *op, int fd)
{
    struct statx *status = (struct statx *)(void *)op->system;
    int append = (op->open_flags & GI_OS_FILE_APPEND) ? O_APPEND : 0;
    int error = 0;
    if (look(fd, status) != 0 || fcntl(fd, F_SETFL, append) != 0) {
        error = gi_os_error(errno);
    } else {
        error = describe(status, &op->info);
    }
    if (error < 0) {
        gi_os_close_file(fd);
        return error;
    }
    op->descriptor = fd;
    return 0;
}

/* What a success of the kernel comes to: a result, or GORI_EAGAIN when there is more to do. */
static int64_t judge(struct gori_file_op *op, int32_t result)
{
    switch (op->op.kind) {
    case GORI_OP_FILE_OPEN:
        return take_opened(op, result);
    case GORI_OP_FILE_READ:
        if (result > 0 && !gi_file_op_advance(op, (uint32_t)result)) {
            return GORI_EAGAIN;
        }
        return (int64_t)op->progress;
    case GORI_OP_FILE_WRITE:
        if (result == 0) {
            return GORI_EIO; /* the system says that it wrote nothing, and not why */
        }
        return gi_file_op_advance(op, (uint32_t)result) ? (int64_t)op->progress : GORI_EAGAIN;
    case GORI_OP_FILE_STAT:
        if (looks_beneath(op) && op->descriptor < 0) {
            op->descriptor = result;
            return GORI_EAGAIN;
        }
        return describe((const struct statx *)(const void *)op->system, &op->info);
    default:
        return 0;
    }
}

bool gi_uring_complete_file(struct gi_uring *uring, uint32_t index, int32_t result,
                            struct gi_completion *ret_completion)
{
    struct gi_uring_slot *slot = gi_uring_slots_at(&uring->slots, index);
    struct gori_file_op *op = gi_file_op_of(slot->owner);
    bool is_ending = gi_uring_is_ending(&op->op);
    slot->flags &= (uint8_t)~GI_URING_SLOT_KERNEL;
    int64_t judged;
    if (result >= 0) {
        slot->tries = 0;
        judged = judge(op, result);
    } else if (op->op.kind == GORI_OP_FILE_CLOSE && result == -EINTR) {
        judged = 0; /* the descriptor is gone: never again */
    } else {
        judged = gi_os_error(-result);
        is_ending |= judged == GORI_EAGAIN && ++slot->tries >= TRIES_MAX;
    }
    if (judged != GORI_EAGAIN) {
        return gi_uring_deliver_file(uring, index, judged, ret_completion);
    }
    if (is_ending) {
        judged = op->op.state == GI_OP_CANCELING ? GORI_ECANCELED : GORI_EAGAIN;
        return gi_uring_deliver_file(uring, index, judged, ret_completion);
    }
    if (slot->queue != GI_URING_QUEUE_NONE) {
        gi_uring_slots_remove(&uring->slots, index);
    }
    gi_uring_arm(uring, index);
    return false;
}
