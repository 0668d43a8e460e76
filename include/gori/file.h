/* SPDX-License-Identifier: MIT */
/*
 * Files for sending: a root folder that no path escapes, and reference-counted open files.
 * The calls here block on the disk for as long as the system needs to look up a name or to read;
 * they are meant for names and small files that the system has in memory.
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

/** Takes a reference.  Thread: any. */
GORI_API void gori_file_ref(struct gori_file *file);

/** Gives one up; the last closes the file.  Thread: any.  NULL does nothing. */
GORI_API void gori_file_unref(struct gori_file *file);

#ifdef __cplusplus
}
#endif

#endif
