/* SPDX-License-Identifier: MIT */
/*
 * Operations on files: open, read, write, sync, stat, truncate and close complete like everything
 * else, and never hold up the loop.  <gori/file.h> says what a file is, how long it lives and who
 * may hold it; its own calls block, and are for names and small files that are in memory already.
 *
 * The ten rules of <gori/op.h> hold here too; what they come to for files:
 *  1. An op is the caller's object.  From an accepted call to its completion the op, the path, the
 *     pieces and the bytes that it names belong to the runtime.
 *  2. Every accepted op completes exactly once, on the loop's thread, never inside a call.  In its
 *     completion it may be used again or freed.
 *  3. An open that succeeds hands over a file with one reference.  The file belongs to the loop:
 *     ops on it are made there, while it exists.  It may be referenced, and sent by any session
 *     (gori_session_send_file), for longer and elsewhere.
 *  4. Only regular files and folders are opened: a FIFO or a device is let go again with
 *     GORI_EACCESS, so that nothing waits for a peer.  A folder is opened for reading only; it can
 *     be synced and asked for, and a read of it is GORI_EISDIR.
 *  5. A write goes on until all is written, or an error; after an error an unknown part is.  A read
 *     goes on until all room is filled or the file ends: its result is short only at the end, and 0
 *     from there on.
 *  6. Ops on one file run at the same time and in any order, overlapping ones too.  Who needs an
 *     order submits the next in the completion of the one before.
 *  7. With `append` each write goes to the end of the file as it is then, whatever its offset says.
 *     One that the system takes in parts may have another's bytes between them.
 *  8. Cancel asks.  What has not begun ends with GORI_ECANCELED; what the system is doing is done,
 *     and says so.  After GORI_ECANCELED a write may have written a part, and room for a read may
 *     hold anything.  An open that wins against its cancel is undone: its file is closed and the
 *     result is GORI_ECANCELED; a file that it made or truncated stays so.
 *  9. Close takes one reference.  The file accepts no op any more, those in flight are cancelled,
 *     and when the last has completed the descriptor is closed, away from the loop: the completion
 *     of the close is the last of the file.  While somebody else holds the file (a session that
 *     sends it), the descriptor stays open for them, and goes with their last reference.
 * 10. An op in flight holds a reference: gori_file_unref by all others closes nothing under it.
 * 11. Bounded: file ops count among the `ops_max` of the loop.  Engines with files of their own
 *     (io_uring, in part IOCP) give them to the kernel; elsewhere the threads of the loop's `pool`
 *     do them, at most GORI_FILE_WORKS_MAX of one loop at a time, and the others wait in order.
 *
 * Stability: unstable until 1.0.
 */
#ifndef GORI_FILE_OP_H
#define GORI_FILE_OP_H

#include <gori/file.h>
#include <gori/op.h>
#include <gori/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_file_op;

/** What became of an op: >= 0 as the function that submitted it says; < 0: GORI_E…. */
typedef void gori_file_op_fn(struct gori_file_op *op, int64_t result);

/** One operation on a file.  Embed it; zero it before its first use. */
struct gori_file_op {
    /* public: set by the caller, kept by the runtime */
    gori_file_op_fn *on_complete;
    void *user;
    /* read-only, in the completion */
    struct gori_file *file;     /* of an open that succeeded: the callee's; else what it is on */
    struct gori_file_info info; /* of a stat that succeeded */
    /* private */
    struct gori_op op;
    struct gori_loop *loop;
    struct gori_link of_loop; /* in flight */
    struct gori_link of_file;
    struct gori_link queued; /* waits for a place in the pool */
    struct gori_work work;
    struct gori_task task;
    const char *path;
    const struct gori_slice *pieces;
    struct gori_slice piece; /* of an op with one */
    uint32_t count;
    uint32_t index;      /* first piece not moved whole */
    size_t piece_offset; /* bytes of it moved */
    uint64_t progress;   /* bytes of all pieces moved */
    uint64_t offset;     /* in the file; of a truncate: its size */
    int64_t result;      /* decided, not yet delivered */
    uint64_t system[32]; /* what the system reads and writes meanwhile */
    int descriptor;      /* of the file; of an open, what it has opened so far */
    int root_descriptor; /* the path is beneath it, or -1 */
    uint32_t mode;       /* of a file that is made */
    uint16_t open_flags;
    bool data_only; /* of a sync */
    bool has_run;   /* in the pool */
};

/** Largest number of pieces in one read or write. */
#define GORI_FILE_PIECES_MAX 64

/** Ops of one loop that are in its pool at a time, at most. */
#define GORI_FILE_WORKS_MAX 64

/** How a file is opened.  Zero: for reading, by the path as the system understands it. */
struct gori_file_open_options {
    struct gori_root *root; /* the path is relative to it and does not leave it; open meanwhile */
    bool write;             /* for writing */
    bool read_too;          /* with `write`: for reading as well */
    bool create;            /* made when it is not there; needs `write` */
    bool exclusive;         /* with `create`: GORI_EEXIST when it is there */
    bool truncate;          /* emptied; needs `write` */
    bool append;            /* see 7; needs `write` */
    uint32_t mode;          /* permissions of one that is made, less the umask; default 0666 */
};

/**
 * Opens a file or folder; result 0, and the file in `op->file`.  It is closed on exec, and is
 * described (gori_file_describe) as it was then.
 * Thread: the loop's.  Memory: path and root must live until the completion; `options` may be NULL.
 * Errors of all submits: GORI_EBUSY (the op is in flight), GORI_EINVAL, GORI_ELIMIT, GORI_ENOMEM,
 * GORI_ECLOSED (the loop or the file ends), GORI_EWRONGTHREAD; without an engine of its own also
 * GORI_EAGAIN (no thread could be started).
 * Result: GORI_ENOTFOUND, GORI_EEXIST, GORI_EISDIR, GORI_ENOTDIR, GORI_EACCESS, GORI_EPERM,
 * GORI_ENOSPC, GORI_EMFILE, GORI_ENFILE, GORI_ELOOP, GORI_ENAMETOOLONG; GORI_EXDEV when it would
 * leave the root.
 */
GORI_API GORI_MUST_USE int gori_file_op_open(struct gori_file_op *op, struct gori_loop *loop,
                                             const char *path,
                                             const struct gori_file_open_options *options);

/**
 * Reads up to `size` bytes at `offset`.  Result: bytes, short only at the end of the file; or
 * GORI_EIO.  Errors: GORI_EISDIR, GORI_EACCESS (not open for reading).
 */
GORI_API GORI_MUST_USE int gori_file_op_read(struct gori_file_op *op, struct gori_file *file,
                                             uint64_t offset, void *data, size_t size);

/** As gori_file_op_read, into 1 to GORI_FILE_PIECES_MAX pieces of room, filled in order. */
GORI_API GORI_MUST_USE int gori_file_op_read_pieces(struct gori_file_op *op, struct gori_file *file,
                                                    uint64_t offset, const struct gori_room *pieces,
                                                    uint32_t count);

/**
 * Writes all of `size` bytes at `offset`; beyond the end the file grows, and what is between is
 * zeros.  Result: `size`; or GORI_ENOSPC, GORI_EIO.  Errors: GORI_EACCESS (not open for writing).
 */
GORI_API GORI_MUST_USE int gori_file_op_write(struct gori_file_op *op, struct gori_file *file,
                                              uint64_t offset, const void *data, size_t size);

/** As gori_file_op_write, of 1 to GORI_FILE_PIECES_MAX pieces in order. */
GORI_API GORI_MUST_USE int gori_file_op_write_pieces(struct gori_file_op *op,
                                                     struct gori_file *file, uint64_t offset,
                                                     const struct gori_slice *pieces,
                                                     uint32_t count);

/**
 * Waits until what was written before the call is on the device, and what is needed to find it; of
 * a folder: the names in it.  Result: 0, or the first error of writing it: GORI_EIO, GORI_ENOSPC.
 * Errors: GORI_EACCESS when the file is open for reading only.
 */
GORI_API GORI_MUST_USE int gori_file_op_sync(struct gori_file_op *op, struct gori_file *file);

/** As gori_file_op_sync, but not for times and what else nobody needs to read the bytes again. */
GORI_API GORI_MUST_USE int gori_file_op_sync_data(struct gori_file_op *op, struct gori_file *file);

/** Asks what the file is like now; result 0, and the answer in `op->info`. */
GORI_API GORI_MUST_USE int gori_file_op_stat(struct gori_file_op *op, struct gori_file *file);

/**
 * Asks what is under a path, without opening it; beneath `root` unless that is NULL.  Result: 0, or
 * as gori_file_op_open.  Thread, memory: as gori_file_op_open.
 */
GORI_API GORI_MUST_USE int gori_file_op_stat_path(struct gori_file_op *op, struct gori_loop *loop,
                                                  struct gori_root *root, const char *path);

/** Makes the file `size` bytes long: cut off, or filled up with zeros.  Result: 0. As a write. */
GORI_API GORI_MUST_USE int gori_file_op_truncate(struct gori_file_op *op, struct gori_file *file,
                                                 uint64_t size);

/**
 * Closes the file, see 9; takes the caller's reference when it is accepted.  Cannot be cancelled.
 * Result: 0, or an error of writing that the system kept until now; the file is closed either way.
 */
GORI_API GORI_MUST_USE int gori_file_op_close(struct gori_file_op *op, struct gori_file *file);

/** Asks for an op to end, see 8.  Asking for one that is not in flight does nothing. */
GORI_API void gori_file_op_cancel(struct gori_file_op *op);

/** Whether an op is in flight: accepted and not yet completed. */
GORI_API bool gori_file_op_is_active(const struct gori_file_op *op);

#ifdef __cplusplus
}
#endif

#endif
