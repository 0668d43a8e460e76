/* SPDX-License-Identifier: MIT */
/*
 * Reading a directory into a sorted array.  Contract: listing.h.
 * Thread: one at a time.  Reading: fdopendir(3), fstatat(2).
 */
#include "os/darwin/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gori/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"

static int add_item(struct gi_listing *listing, const struct gori_allocator *allocator,
                    const char *name, const struct stat *status)
{
    if (listing->count == listing->capacity) {
        uint32_t wanted = listing->capacity == 0 ? 8 : 2 * listing->capacity;
        struct gi_listing_item *items =
            gi_realloc(allocator, listing->items, listing->capacity * sizeof(*listing->items),
                       wanted * sizeof(*listing->items));
        if (items == NULL) {
            return GORI_ENOMEM;
        }
        listing->items = items;
        listing->capacity = wanted;
    }
    size_t size = strlen(name) + 1;
    char *copy = gi_alloc(allocator, size);
    if (copy == NULL) {
        return GORI_ENOMEM;
    }
    memcpy(copy, name, size);
    listing->items[listing->count++] = (struct gi_listing_item){
        .name = copy, .fd = -1, .is_directory = S_ISDIR(status->st_mode), .status = *status};
    return 0;
}

/* Adds a name, unless it means nothing any more. */
static int look_at(struct gi_listing *listing, const struct gori_allocator *allocator,
                   int directory_fd, const char *name)
{
    struct stat status;
    if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : gi_os_error(errno);
    }
    return add_item(listing, allocator, name, &status);
}

static int read_all(struct gi_listing *listing, const struct gori_allocator *allocator, DIR *stream,
                    int directory_fd)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            return gi_os_error(errno);
        }
        bool is_itself = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        int error = is_itself ? 0 : look_at(listing, allocator, directory_fd, entry->d_name);
        if (error < 0) {
            return error;
        }
    }
}

static int compare_names(const void *a, const void *b)
{
    const struct gi_listing_item *left = a;
    const struct gi_listing_item *right = b;
    return strcmp(left->name, right->name);
}

/* Opened anew: a copy of the descriptor would share its place in the directory. */
static int read_directory(struct gi_listing *listing, const struct gori_allocator *allocator,
                          int directory_fd)
{
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return gi_os_error(errno);
    }
    DIR *stream = fdopendir(fd);
    if (stream == NULL) {
        int error = gi_os_error(errno);
        gi_os_close(fd);
        return error;
    }
    int error = read_all(listing, allocator, stream, directory_fd);
    (void)closedir(stream);
    if (error == 0 && listing->count > 1) {
        qsort(listing->items, listing->count, sizeof(*listing->items), compare_names);
    }
    return error;
}

int gi_listing_read(const struct gori_allocator *allocator, int directory_fd, const char *only,
                    struct gi_listing *ret_listing)
{
    struct gi_listing listing = {0};
    int error = only != NULL ? look_at(&listing, allocator, directory_fd, only)
                             : read_directory(&listing, allocator, directory_fd);
    if (error < 0) {
        gi_listing_fini(&listing, allocator);
        return error;
    }
    *ret_listing = listing;
    return 0;
}

struct gi_listing_item *gi_listing_find(const struct gi_listing *listing, const char *name)
{
    uint32_t low = 0;
    uint32_t high = listing->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(listing->items[middle].name, name);
        if (order == 0) {
            return &listing->items[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

bool gi_listing_is_same(const struct gi_listing_item *a, const struct gi_listing_item *b)
{
    return a->status.st_ino == b->status.st_ino && a->status.st_dev == b->status.st_dev;
}

void gi_listing_fini(struct gi_listing *listing, const struct gori_allocator *allocator)
{
    for (uint32_t i = 0; i < listing->count; i++) {
        struct gi_listing_item *item = &listing->items[i];
        if (item->fd >= 0) {
            gi_os_close(item->fd);
        }
        gi_free(allocator, item->name, strlen(item->name) + 1);
    }
    gi_free(allocator, listing->items, listing->capacity * sizeof(*listing->items));
    *listing = (struct gi_listing){0};
}
