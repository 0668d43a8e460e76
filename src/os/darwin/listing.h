/* SPDX-License-Identifier: MIT */
/*
 * What a directory was like when it was last looked at.  A kqueue says that the entries of a
 * directory have changed, not which: that is found by looking again.
 *
 *  1. Items are sorted by name.  One with a descriptor is a file or a directory that could be
 *     opened, so that its number is not used for another one as long as we remember it.
 *  2. A listing of one name (`only`) has that one or nothing.
 * Not for anybody outside of src/os/darwin.  Thread: one at a time.
 */
#ifndef GI_OS_DARWIN_LISTING_H
#define GI_OS_DARWIN_LISTING_H

#include <gori/allocator.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct gi_listing_item {
    char *name;
    int fd; /* or -1 */
    bool is_directory;
    bool is_new;        /* not in the listing before */
    unsigned int notes; /* of kqueue, about it, not told yet */
    struct stat status; /* when it was last looked at */
};

struct gi_listing {
    struct gi_listing_item *items;
    uint32_t count;
    uint32_t capacity;
};

/** What is in a directory now; no item has a descriptor.  Errors: GORI_ENOMEM and of the system. */
int gi_listing_read(const struct gori_allocator *allocator, int directory_fd, const char *only,
                    struct gi_listing *ret_listing);

/** The item of a name, or NULL. */
struct gi_listing_item *gi_listing_find(const struct gi_listing *listing, const char *name);

/** Whether two items are one file. */
bool gi_listing_is_same(const struct gi_listing_item *a, const struct gi_listing_item *b);

/** Closes the descriptors too. */
void gi_listing_fini(struct gi_listing *listing, const struct gori_allocator *allocator);

#endif
