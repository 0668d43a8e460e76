/* SPDX-License-Identifier: MIT */
/*
 * Files: reference-counted, sent by sessions, and a root folder that no path escapes.
 *
 *  1. A file is open for as long as somebody holds a reference, on any thread; the last one closes
 *     it.  Sessions and ops hold their own for as long as they need it.
 *  2. A file comes from a call here, which blocks, or from an op of <gori/file_op.h>, which does
 *     not: one thing, two ways to it.  Ops, which read, write and close without blocking, are for
 *     the second kind; all else is for both.
 *  3. The calls here block on the disk for as long as the system needs to look up a name or to
 *     read; they are meant for names and small files that the system has in memory.
 *
 * Stability: unstable until 1.0.
 */
#ifndef GORI_FILE_H
#define GORI_FILE_H

#include <gori/allocator.h>
#include <gori/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_file;
struct gori_root;

/** What a file was like when it was opened or last asked. */
struct gori_file_info {
    uint64_t size;        /* bytes */
    int64_t modified_s;   /* seconds since 1970 */
    uint32_t modified_ns; /* and nanoseconds */
    uint64_t device;      /* device and inode together name the file */
    uint64_t inode;
    bool is_directory;
};

/**
 * Opens a folder as a root.  A symbolic link at `path` itself is followed.
 * Thread: any.  Errors: GORI_ENOTFOUND, GORI_ENOTDIR, GORI_EACCESS, GORI_EMFILE, GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_root_open(const struct gori_allocator *allocator, const char *path,
                                          struct gori_root **ret_root);

/** Closes a root; files opened through it stay open.  NULL does nothing. */
GORI_API void gori_root_close(struct gori_root *root);

/**
 * Opens a file or folder beneath a root for reading.  No path leaves the root, neither by "..",
 * by an absolute path nor through a symbolic link (links that stay inside work); special files are
 * refused without being opened (GORI_EACCESS), so that a FIFO cannot block.
 * Thread: any.  Memory: `path` is a terminated relative path; "" or "." names the root.
 * Errors: GORI_ENOTFOUND, GORI_ENOTDIR, GORI_EACCESS, GORI_EXDEV when it would leave the root,
 * GORI_ELOOP, GORI_ENAMETOOLONG, GORI_EMFILE, GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_root_open_file(struct gori_root *root, const char *path,
                                               struct gori_file **ret_file);

/** As gori_root_open_file without opening: what is there now.  Same errors. */
GORI_API GORI_MUST_USE int gori_root_stat(struct gori_root *root, const char *path,
                                          struct gori_file_info *ret_info);

/** What the file was like when it was opened. */
GORI_API const struct gori_file_info *gori_file_describe(const struct gori_file *file);

/**
 * Reads up to `size` bytes at `offset`.  Result: bytes read, short only at the end of the file.
 * Errors: GORI_EIO and others of the disk.
 */
GORI_API GORI_MUST_USE int64_t gori_file_read(struct gori_file *file, uint64_t offset, void *data,
                                              size_t size);

/**
 * The system's descriptor of a file, for gori_op_send_file and the system's own calls.
 * Thread: any.  Memory: the file's; open for as long as the caller holds a reference.
 */
GORI_API int gori_file_descriptor(const struct gori_file *file);

/** Takes a reference.  Thread: any. */
GORI_API void gori_file_ref(struct gori_file *file);

/**
 * Gives one up; the last closes the file, here and now.  Thread: any.  NULL does nothing.
 */
GORI_API void gori_file_unref(struct gori_file *file);

#ifdef __cplusplus
}
#endif

#endif
