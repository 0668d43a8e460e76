/* SPDX-License-Identifier: MIT */
/*
 * File changes as the system tells them: a watcher, its places, and records of what happened.  One
 * implementation for each system: linux/watch.c (inotify), darwin/watch.c (kqueue and looking),
 * windows/watch.c (ReadDirectoryChangesW).  What makes <gori/watch.h> of it is src/rt/watch.c.
 *
 *  W1  A place is a directory that was added; the caller embeds it.  Adding a directory that is a
 *      place already may answer that one instead: it is still one place, which one remove ends.
 *  W2  With a name only that entry of the directory matters.  Records of others may come all the
 *      same; those of the entry have the name as it was given, where the system would spell it
 *      another way.
 *  W3  The source is ready when the system has something to tell.  Who was told of it calls `next`
 *      until that answers 0, and waits again only then: what the watcher has taken from the system
 *      does not make the source ready any more.
 *  W4  No record of a place comes after it was removed, nor one of a removed place under another.
 *  W5  After GONE a place tells nothing more, and is to be removed all the same.
 *  W6  The source is of whoever waits for it, who closes it (gi_os_event_close): `destroy` leaves
 *      it open, and is the last call, before the source is closed.
 * Thread: one for each watcher.
 */
#ifndef GI_OS_WATCH_H
#define GI_OS_WATCH_H

#include <gori/allocator.h>
#include <gori/base.h>
#include <stdbool.h>

/** Bytes of a name with its end, at most: 255 characters of Windows are 765 of UTF-8. */
#define GI_WATCH_NAME_BYTES 1024

/** Opaque; each maker of watchers (a system, the simulator) has its own. */
struct gi_watcher;

enum gi_watch_kind {
    GI_WATCH_CREATED,
    GI_WATCH_DELETED,
    GI_WATCH_MOVED_FROM, /* as DELETED, unless the other half follows: the same `pair` */
    GI_WATCH_MOVED_TO,   /* as CREATED, unless the other half stands before */
    GI_WATCH_MODIFIED,
    GI_WATCH_ATTRIBUTES,
    GI_WATCH_GONE,
    GI_WATCH_LOST
};

/** A place.  Embed it; `native` is the watcher's. */
struct gi_os_place {
    intptr_t native;
};

struct gi_watch_record {
    enum gi_watch_kind kind;
    struct gi_os_place *place; /* NULL: all of them */
    const char *name;          /* good until the next call to the watcher; "" with GONE and LOST */
    uint32_t pair;             /* of the two halves of a rename */
};

/** Errors: GORI_EMFILE, GORI_ENFILE, GORI_ENOMEM. */
int gi_os_watcher_create(const struct gori_allocator *allocator, struct gi_watcher **ret_watcher);

/** Removes what places there are still.  The source stays (W6).  NULL does nothing. */
void gi_os_watcher_destroy(struct gi_watcher *watcher);

/** What becomes ready (W3). */
intptr_t gi_os_watcher_source(const struct gi_watcher *watcher);

/**
 * Adds a directory, of which `name` matters, or everything when that is NULL.  `ret_place` is
 * `place`, or the one that the directory is already (W1); `place` is then not used.
 * Errors: GORI_ENOTFOUND, GORI_ENOTDIR, GORI_EACCESS, GORI_ELOOP, GORI_ENAMETOOLONG; GORI_ELIMIT
 * when the system has no more places to give; GORI_EMFILE, GORI_ENOMEM.
 */
int gi_os_watcher_add(struct gi_watcher *watcher, const char *directory, const char *name,
                      struct gi_os_place *place, struct gi_os_place **ret_place);

/** Its memory is the caller's again. */
void gi_os_watcher_remove(struct gi_watcher *watcher, struct gi_os_place *place);

/** The next record.  Result: 1, or 0 when there is none now, or an error of the system. */
int gi_os_watcher_next(struct gi_watcher *watcher, struct gi_watch_record *ret_record);

/** The length of the directory's part of a path, what stands before the last separator and it. */
size_t gi_os_directory_size(const char *path);

/** Whether a path is a directory now; a link to one is not. */
bool gi_os_is_directory(const char *path);

#endif
