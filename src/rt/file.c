/* SPDX-License-Identifier: MIT */
/*
 * Roots and files: allocation and reference counts around src/os, which does the opening and knows
 * how no path escapes.  Nothing here is asynchronous.
 *
 *  1. A file's count starts at 1; the descriptor is closed with the last reference, on whichever
 *     thread gives it up.
 *  2. A file does not need its root any more once it is open.
 * Thread: any; one root or file may be used by several threads at once.
 */
#include "rt/file.h"

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "os/os.h"

struct gori_root {
    const struct gori_allocator *allocator;
    int descriptor;
};

int gori_root_open(const struct gori_allocator *allocator, const char *path,
                   struct gori_root **ret_root)
{
    struct gori_root *root = gi_alloc(allocator, sizeof(*root));
    if (root == NULL) {
        return GORI_ENOMEM;
    }
    int result = gi_os_open_root(path, &root->descriptor);
    if (result < 0) {
        gi_free(allocator, root, sizeof(*root));
        return result;
    }
    root->allocator = allocator;
    *ret_root = root;
    return 0;
}

void gori_root_close(struct gori_root *root)
{
    if (root != NULL) {
        gi_os_close_file(root->descriptor);
        gi_free(root->allocator, root, sizeof(*root));
    }
}

int gi_root_descriptor(const struct gori_root *root)
{
    return root->descriptor;
}

struct gori_file *gi_file_create(const struct gori_allocator *allocator)
{
    struct gori_file *file = gi_alloc_zero(allocator, sizeof(*file));
    if (file != NULL) {
        file->allocator = allocator;
        file->calls = &gi_system_files;
        file->descriptor = -1;
        gi_list_init(&file->ops);
        gi_atomic_u32_init(&file->references, 1);
    }
    return file;
}

void gi_file_forget(struct gori_file *file)
{
    gi_free(file->allocator, file, sizeof(*file));
}

bool gi_file_is_sole(const struct gori_file *file)
{
    /* Pairs with the giving up of references: what others did with the file is done. */
    return gi_atomic_u32_load(&file->references, GI_ACQUIRE) == 1;
}

int gori_root_open_file(struct gori_root *root, const char *path, struct gori_file **ret_file)
{
    struct gori_file *file = gi_file_create(root->allocator);
    if (file == NULL) {
        return GORI_ENOMEM;
    }
    int result = gi_os_open_beneath(root->descriptor, path, &file->descriptor, &file->info);
    if (result < 0) {
        gi_file_forget(file);
        return result;
    }
    *ret_file = file;
    return 0;
}

int gori_root_stat(struct gori_root *root, const char *path, struct gori_file_info *ret_info)
{
    return gi_os_stat_beneath(root->descriptor, path, ret_info);
}

const struct gori_file_info *gori_file_describe(const struct gori_file *file)
{
    return &file->info;
}

int64_t gori_file_read(struct gori_file *file, uint64_t offset, void *data, size_t size)
{
    return file->calls->read(file->place, file->descriptor, data, size, offset);
}

int gori_file_descriptor(const struct gori_file *file)
{
    return file->descriptor;
}

void gori_file_ref(struct gori_file *file)
{
    /* Relaxed: who takes a reference holds one already. */
    uint32_t before = gi_atomic_u32_add(&file->references, 1, GI_RELAXED);
    GI_ASSERT(before != 0);
}

void gori_file_unref(struct gori_file *file)
{
    if (file == NULL) {
        return;
    }
    /* Pairs with itself: the last one sees what all others did with the file before. */
    uint32_t before = gi_atomic_u32_sub(&file->references, 1, GI_ACQ_REL);
    GI_ASSERT(before != 0);
    if (before == 1) {
        (void)file->calls->close(file->place, file->descriptor);
        gi_file_forget(file);
    }
}
