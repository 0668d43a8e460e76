/* SPDX-License-Identifier: MIT */
/*
 * Watches: a loop is told when a file or the entries of a directory change.  Not a journal: a watch
 * says that it is time to look again, and where, not what a file contained in between.
 *
 *  1. Two kinds.  A watch of a *directory* tells of the entries in it, by their names; not of what
 *     is in directories beneath it: watch each that matters.  (To follow a tree can be done on no
 *     system without races; who does it knows best what to do about them.)  A watch of a *file*
 *     follows a name in its directory, whatever has that name: the file need not exist, and one
 *     that takes its place by a rename, as editors and deployments write, is seen as the old one.
 *  2. A change is told after it has happened.  Who looks then sees that state or a later one, and
 *     for a later one is told again: after the last change to a name comes a callback.
 *  3. Changes to one name are told in their order, and changes to several in the order of the
 *     system where it has one (kqueue has none).  A change that follows its like, the same to the
 *     same name, may be told as one with it; what was made and removed again before anybody looked
 *     may not be told at all.
 *  4. A rename within a directory is told once, with both names, and says nothing else of what the
 *     new name meant before.  A move out of the directory is DELETED, a move into it CREATED.  So
 *     is, now and then, a rename of which the system told the two halves apart.
 *  5. LOST means that more happened than the system keeps count of: anything may have changed.  The
 *     watch goes on.
 *  6. GONE is the last callback of a watch: its directory was removed, moved away or unmounted.
 *     (Windows does not tell of a move: the watch goes with the directory.)  The watch is stopped
 *     then, and may be started again or freed in the callback.
 *  7. Symbolic links on the way are followed when the watch starts; what they point to later does
 *     not matter.  The last name of a file is not: it is the link that is watched, and its being
 *     replaced is seen, while a change of the file that it points to is not.
 *  8. Not seen: what is written through another name of a file (a hard link) or through memory
 *     that is mapped, and what other machines do to a file system of the network.
 *  9. One thing may be watched as often as one likes.  A later watch may be told of what happened
 *     shortly before it started, when another was there already.
 * 10. Watches of a loop share what the system gives for it; each costs the loop some memory.  How
 *     many there can be is the system's: beyond it is GORI_ELIMIT.  On Linux one for each directory
 *     counts against fs.inotify.max_user_watches.  With kqueue a descriptor is open for each
 *     directory and for each of its entries: watch files there, and small directories.
 * Stability: unstable until 1.0.
 */
#ifndef GORI_WATCH_H
#define GORI_WATCH_H

#include <gori/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gi_watch_place;
struct gori_loop;
struct gori_watch;

/** What has happened. */
enum gori_change_kind {
    GORI_CHANGE_CREATED = 1,    /* the name means something new: made, or moved here */
    GORI_CHANGE_DELETED = 2,    /* the name means nothing any more: removed, or moved away */
    GORI_CHANGE_RENAMED = 3,    /* what was `from` is `name` now; of a directory's watch only */
    GORI_CHANGE_MODIFIED = 4,   /* the content; on Windows also what ATTRIBUTES says elsewhere */
    GORI_CHANGE_ATTRIBUTES = 5, /* mode, owner, times and the like */
    GORI_CHANGE_LOST = 6,       /* rule 5 */
    GORI_CHANGE_GONE = 7        /* rule 6 */
};

/** One change.  Valid during the callback only, the names too. */
struct gori_change {
    enum gori_change_kind kind;
    const char *name; /* of the entry, without its directory (UTF-8 on Windows); that of a file's
                         watch is the one it was started with; "" with LOST and GONE */
    const char *from; /* of RENAMED: the name before; else NULL */
};

typedef void gori_watch_fn(struct gori_watch *watch, const struct gori_change *change);

/** A watch.  Embed it; zero it before its first use. */
struct gori_watch {
    /* public: set by the caller before start */
    gori_watch_fn *on_change;
    void *user;
    /* private */
    struct gori_loop *loop;
    struct gi_watch_place *place; /* NULL: not started */
    char *name;                   /* of a file in its directory; NULL for a directory */
    struct gori_link link;        /* the place's list */
    struct gori_link all;         /* the loop's list */
};

/**
 * Starts to watch the name of a file (rule 1).
 * Thread: the loop's.  Memory: `path` is copied; `watch` must live until it is stopped or GONE.
 * Errors: GORI_ENOTFOUND, GORI_ENOTDIR and GORI_EACCESS of the directory; GORI_EISDIR when the path
 * is a directory now; GORI_EINVAL when it does not end in a name, or without `on_change`;
 * GORI_EBUSY when it is started already; GORI_ELIMIT (rule 10); GORI_EMFILE, also when a user has
 * too many loops that watch; GORI_ELOOP, GORI_ENAMETOOLONG, GORI_ENOMEM; GORI_ENOSYS.
 * Callback: on the loop, never inside this call; it may start, stop or free its watch and others.
 */
GORI_API GORI_MUST_USE int gori_watch_start_file(struct gori_loop *loop, const char *path,
                                                 struct gori_watch *watch);

/**
 * Starts to watch the entries of a directory (rule 1).
 * Otherwise as gori_watch_start_file, but for GORI_EISDIR.
 */
GORI_API GORI_MUST_USE int gori_watch_start_directory(struct gori_loop *loop, const char *path,
                                                      struct gori_watch *watch);

/**
 * Stops a watch: its callback does not run after this, whatever has happened already.  A stopped
 * one stays stopped.  A loop that is destroyed stops its watches.
 * Thread: the loop's.  Memory: the watch is the caller's again.
 */
GORI_API void gori_watch_stop(struct gori_watch *watch);

/** Whether a watch is started, and neither stopped nor GONE. */
GORI_API bool gori_watch_is_active(const struct gori_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
