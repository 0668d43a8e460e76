/* SPDX-License-Identifier: MIT */
/*
 * File changes by kqueue (EVFILT_VNODE) and looking.  A kqueue tells of descriptors, so that each
 * directory and each entry of it has one, and it tells no names: when the entries of a directory
 * have changed it is listed, and the listing compared with the one before (listing.h).
 *
 *  1. What is found is noted in `notes`, in an order that leaves whoever follows it with the right
 *     picture, and handed out from there.  LOST and GONE need no memory: a folder is in `endings`
 *     for them.  Where a note cannot be made, or a directory cannot be listed, its place gets LOST,
 *     and is looked at again with the next change.
 *  2. Of one file that has another name now, and whose old name means nothing any more, it is said
 *     that it was renamed; everything else is told as deleted and created.
 *  3. A new entry is told after its descriptor is in the queue: no change after the look of whoever
 *     was told is lost.
 *  4. Files that we may not open are compared by their times whenever their directory is listed.
 * Thread: one for each watcher.  Reading: kqueue(2), open(2) about O_EVTONLY.
 */
#include "os/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <gori/error.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <sys/event.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "os/darwin/listing.h"
#include "os/os.h"

#define EVENTS_MAX 64 /* taken in one call */

/* To be told, not to read: does not keep a volume from being unmounted. */
#ifdef O_EVTONLY
#define WATCH_FLAGS (O_EVTONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
#else
#define WATCH_FLAGS (O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC)
#endif

#ifdef __APPLE__
#define MODIFIED st_mtimespec
#define CHANGED  st_ctimespec
#else
#define MODIFIED st_mtim
#define CHANGED  st_ctim
#endif

#define NAME_NOTES (NOTE_DELETE | NOTE_RENAME | NOTE_LINK)

struct folder {
    struct gori_link link;   /* the watcher's list */
    struct gori_link news;   /* events have come that were not looked into */
    struct gori_link ending; /* GONE, or else LOST, is to be told after the notes */
    struct gi_os_place *place;
    int fd;
    char *only; /* the one name that matters, or NULL */
    struct gi_listing listing;
    bool is_changed; /* to be listed */
    bool is_gone;
};

struct note {
    struct gori_link link;
    size_t bytes; /* of this object */
    struct folder *folder;
    enum gi_watch_kind kind;
    uint32_t pair;
    char name[];
};

struct gi_watcher {
    const struct gori_allocator *allocator;
    int fd;
    uint32_t pair; /* the last one given */
    struct gori_link folders;
    struct gori_link news;
    struct gori_link notes;
    struct gori_link endings;
    struct note *told; /* its name is with the caller until the next call */
};

int gi_os_watcher_create(const struct gori_allocator *allocator, struct gi_watcher **ret_watcher)
{
    struct gi_watcher *watcher = gi_alloc_zero(allocator, sizeof(*watcher));
    if (watcher == NULL) {
        return GORI_ENOMEM;
    }
    watcher->allocator = allocator;
    gi_list_init(&watcher->folders);
    gi_list_init(&watcher->news);
    gi_list_init(&watcher->notes);
    gi_list_init(&watcher->endings);
    watcher->fd = kqueue();
    if (watcher->fd < 0) {
        int error = gi_os_error(errno);
        gi_free(allocator, watcher, sizeof(*watcher));
        return error;
    }
    (void)fcntl(watcher->fd, F_SETFD, FD_CLOEXEC);
    *ret_watcher = watcher;
    return 0;
}

static void free_note(struct gi_watcher *watcher, struct note *note)
{
    if (note != NULL) {
        gi_free(watcher->allocator, note, note->bytes);
    }
}

static void free_folder(struct gi_watcher *watcher, struct folder *folder)
{
    gi_listing_fini(&folder->listing, watcher->allocator);
    gi_os_close(folder->fd);
    if (folder->only != NULL) {
        gi_free(watcher->allocator, folder->only, strlen(folder->only) + 1);
    }
    gi_free(watcher->allocator, folder, sizeof(*folder));
}

static void leave(struct gori_link *link)
{
    if (gi_link_is_linked(link)) {
        gi_list_remove(link);
    }
}

static void drop_notes(struct gi_watcher *watcher, const struct folder *folder)
{
    GI_LIST_FOREACH_SAFE (link, &watcher->notes) {
        struct note *note = gori_container_of(link, struct note, link);
        if (note->folder == folder) {
            gi_list_remove(&note->link);
            free_note(watcher, note);
        }
    }
}

void gi_os_watcher_remove(struct gi_watcher *watcher, struct gi_os_place *place)
{
    struct folder *folder = (struct folder *)place->native;
    drop_notes(watcher, folder);
    leave(&folder->news);
    leave(&folder->ending);
    gi_list_remove(&folder->link);
    free_folder(watcher, folder); /* what is closed leaves the queue */
}

void gi_os_watcher_destroy(struct gi_watcher *watcher)
{
    if (watcher == NULL) {
        return;
    }
    struct gori_link *link;
    while ((link = gi_list_pop_front(&watcher->notes)) != NULL) {
        free_note(watcher, gori_container_of(link, struct note, link));
    }
    while ((link = gi_list_pop_front(&watcher->folders)) != NULL) {
        free_folder(watcher, gori_container_of(link, struct folder, link));
    }
    free_note(watcher, watcher->told);
    gi_free(watcher->allocator, watcher, sizeof(*watcher));
}

intptr_t gi_os_watcher_source(const struct gi_watcher *watcher)
{
    return watcher->fd;
}

/* Finding out ----------------------------------------------------------------------------- */

static int enter(struct gi_watcher *watcher, int fd, unsigned int notes, struct folder *folder)
{
    struct kevent change;
    EV_SET(&change, (uintptr_t)fd, EVFILT_VNODE, EV_ADD | EV_CLEAR, notes, 0, folder);
    return kevent(watcher->fd, &change, 1, NULL, 0, NULL) < 0 ? gi_os_error(errno) : 0;
}

/* Opens an item and enters it.  Only want of descriptors or memory is an error: rule 4. */
static int watch_item(struct gi_watcher *watcher, struct folder *folder,
                      struct gi_listing_item *item)
{
    if (!S_ISREG(item->status.st_mode) && !item->is_directory) {
        return 0;
    }
    int fd = openat(folder->fd, item->name, WATCH_FLAGS);
    int error = fd < 0 ? gi_os_error(errno) : 0;
    if (fd >= 0) {
        unsigned int content = item->is_directory ? 0 : NOTE_WRITE | NOTE_EXTEND;
        error = enter(watcher, fd, content | NOTE_ATTRIB | NAME_NOTES, folder);
    }
    if (fd >= 0 && error < 0) {
        gi_os_close(fd);
    } else if (fd >= 0) {
        item->fd = fd;
    }
    bool is_want = error == GORI_EMFILE || error == GORI_ENFILE || error == GORI_ENOMEM;
    return is_want ? error : 0;
}

static void end_with(struct gi_watcher *watcher, struct folder *folder)
{
    if (!gi_link_is_linked(&folder->ending)) {
        gi_list_push_back(&watcher->endings, &folder->ending);
    }
}

static void note(struct gi_watcher *watcher, struct folder *folder, enum gi_watch_kind kind,
                 const char *name, uint32_t pair)
{
    size_t size = strlen(name) + 1;
    struct note *made = gi_alloc_zero(watcher->allocator, sizeof(*made) + size);
    if (made == NULL) {
        end_with(watcher, folder);
        return;
    }
    made->bytes = sizeof(*made) + size;
    made->folder = folder;
    made->kind = kind;
    made->pair = pair;
    memcpy(made->name, name, size);
    gi_list_push_back(&watcher->notes, &made->link);
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Rule 4: what no descriptor tells. */
static void compare(struct gi_watcher *watcher, struct folder *folder,
                    const struct gi_listing_item *before, const struct gi_listing_item *now)
{
    if (before->fd >= 0 || now->is_directory) {
        return;
    }
    if (!is_same_time(&before->status.MODIFIED, &now->status.MODIFIED) ||
        before->status.st_size != now->status.st_size) {
        note(watcher, folder, GI_WATCH_MODIFIED, now->name, 0);
    } else if (!is_same_time(&before->status.CHANGED, &now->status.CHANGED)) {
        note(watcher, folder, GI_WATCH_ATTRIBUTES, now->name, 0);
    }
}

/* The descriptor of an item goes over to its successor. */
static void hand_over(struct gi_listing_item *before, struct gi_listing_item *now)
{
    now->fd = before->fd;
    now->notes = before->notes;
    now->is_new = false;
    before->fd = -1;
}

/* An item of before whose name means nothing now: renamed (rule 2) or deleted. */
static void miss(struct gi_watcher *watcher, struct folder *folder, struct gi_listing_item *before,
                 const struct gi_listing *now)
{
    for (uint32_t i = 0; i < now->count; i++) {
        struct gi_listing_item *item = &now->items[i];
        if (item->is_new && gi_listing_is_same(item, before)) {
            uint32_t pair = ++watcher->pair;
            note(watcher, folder, GI_WATCH_MOVED_FROM, before->name, pair);
            note(watcher, folder, GI_WATCH_MOVED_TO, item->name, pair);
            hand_over(before, item);
            return;
        }
    }
    note(watcher, folder, GI_WATCH_DELETED, before->name, 0);
}

/* Which items are in both listings: they keep their descriptor. */
static void match(struct gi_watcher *watcher, struct folder *folder, struct gi_listing *now)
{
    for (uint32_t i = 0; i < now->count; i++) {
        struct gi_listing_item *item = &now->items[i];
        struct gi_listing_item *before = gi_listing_find(&folder->listing, item->name);
        item->is_new = before == NULL || !gi_listing_is_same(item, before);
        if (!item->is_new) {
            compare(watcher, folder, before, item);
            hand_over(before, item);
        }
    }
}

static void list_again(struct gi_watcher *watcher, struct folder *folder)
{
    struct gi_listing now;
    folder->is_changed = false;
    if (gi_listing_read(watcher->allocator, folder->fd, folder->only, &now) < 0) {
        end_with(watcher, folder);
        return;
    }
    match(watcher, folder, &now);
    for (uint32_t i = 0; i < folder->listing.count; i++) {
        struct gi_listing_item *before = &folder->listing.items[i];
        if (gi_listing_find(&now, before->name) == NULL) {
            miss(watcher, folder, before, &now);
        }
    }
    for (uint32_t i = 0; i < now.count; i++) {
        struct gi_listing_item *item = &now.items[i];
        if (item->fd < 0 && watch_item(watcher, folder, item) < 0) {
            end_with(watcher, folder);
        }
        if (item->is_new) {
            note(watcher, folder, GI_WATCH_CREATED, item->name, 0);
        }
    }
    gi_listing_fini(&folder->listing, watcher->allocator);
    folder->listing = now;
}

static void tell_items(struct gi_watcher *watcher, struct folder *folder)
{
    for (uint32_t i = 0; i < folder->listing.count; i++) {
        struct gi_listing_item *item = &folder->listing.items[i];
        if (item->notes & (NOTE_WRITE | NOTE_EXTEND)) {
            note(watcher, folder, GI_WATCH_MODIFIED, item->name, 0);
        }
        if (item->notes & NOTE_ATTRIB) {
            note(watcher, folder, GI_WATCH_ATTRIBUTES, item->name, 0);
        }
        item->notes = 0;
    }
}

static void absorb(struct folder *folder, const struct kevent *event)
{
    if (event->ident == (uintptr_t)folder->fd) {
        folder->is_changed = true;
        folder->is_gone = folder->is_gone || (event->fflags & (NOTE_DELETE | NOTE_RENAME)) != 0;
        return;
    }
    folder->is_changed = folder->is_changed || (event->fflags & NAME_NOTES) != 0;
    for (uint32_t i = 0; i < folder->listing.count; i++) {
        struct gi_listing_item *item = &folder->listing.items[i];
        if (event->ident == (uintptr_t)item->fd) {
            item->notes |= event->fflags;
        }
    }
}

/* What has come of one folder; names are put right before anything is said of them. */
static void look_into(struct gi_watcher *watcher, struct folder *folder)
{
    if (folder->is_gone) {
        end_with(watcher, folder);
        return;
    }
    if (folder->is_changed) {
        list_again(watcher, folder);
    }
    tell_items(watcher, folder);
}

/* Result: 1 when there was something, else 0 or an error. */
static int take_events(struct gi_watcher *watcher)
{
    static const struct timespec at_once;
    struct kevent events[EVENTS_MAX];
    int count;
    do {
        count = kevent(watcher->fd, NULL, 0, events, EVENTS_MAX, &at_once);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) {
        return count == 0 ? 0 : gi_os_error(errno);
    }
    for (int i = 0; i < count; i++) {
        struct folder *folder = events[i].udata;
        bool was_gone = folder->is_gone;
        absorb(folder, &events[i]);
        if (!was_gone && !gi_link_is_linked(&folder->news)) {
            gi_list_push_back(&watcher->news, &folder->news);
        }
    }
    struct gori_link *link;
    while ((link = gi_list_pop_front(&watcher->news)) != NULL) {
        look_into(watcher, gori_container_of(link, struct folder, news));
    }
    return 1;
}

/* Telling --------------------------------------------------------------------------------- */

static void take_note(struct gi_watcher *watcher, struct note *note,
                      struct gi_watch_record *ret_record)
{
    watcher->told = note;
    *ret_record = (struct gi_watch_record){
        .kind = note->kind, .place = note->folder->place, .name = note->name, .pair = note->pair};
}

static void take_ending(const struct folder *folder, struct gi_watch_record *ret_record)
{
    *ret_record = (struct gi_watch_record){.kind = folder->is_gone ? GI_WATCH_GONE : GI_WATCH_LOST,
                                           .place = folder->place,
                                           .name = ""};
}

int gi_os_watcher_next(struct gi_watcher *watcher, struct gi_watch_record *ret_record)
{
    free_note(watcher, watcher->told);
    watcher->told = NULL;
    for (;;) {
        struct gori_link *link = gi_list_pop_front(&watcher->notes);
        if (link != NULL) {
            take_note(watcher, gori_container_of(link, struct note, link), ret_record);
            return 1;
        }
        link = gi_list_pop_front(&watcher->endings);
        if (link != NULL) {
            take_ending(gori_container_of(link, struct folder, ending), ret_record);
            return 1;
        }
        int result = take_events(watcher);
        if (result <= 0) {
            return result;
        }
    }
}

/* Adding ---------------------------------------------------------------------------------- */

static int copy_text(const struct gori_allocator *allocator, const char *text, char **ret_copy)
{
    size_t size = strlen(text) + 1;
    char *copy = gi_alloc(allocator, size);
    if (copy == NULL) {
        return GORI_ENOMEM;
    }
    memcpy(copy, text, size);
    *ret_copy = copy;
    return 0;
}

/* Everything but opening; what was made of it is undone by free_folder. */
static int prepare(struct gi_watcher *watcher, const char *name, struct folder *folder)
{
    int error = name == NULL ? 0 : copy_text(watcher->allocator, name, &folder->only);
    if (error == 0) {
        error = enter(watcher, folder->fd, NOTE_WRITE | NOTE_EXTEND | NOTE_DELETE | NOTE_RENAME,
                      folder);
    }
    if (error == 0) {
        error = gi_listing_read(watcher->allocator, folder->fd, folder->only, &folder->listing);
    }
    for (uint32_t i = 0; error == 0 && i < folder->listing.count; i++) {
        error = watch_item(watcher, folder, &folder->listing.items[i]);
    }
    return error;
}

int gi_os_watcher_add(struct gi_watcher *watcher, const char *directory, const char *name,
                      struct gi_os_place *place, struct gi_os_place **ret_place)
{
    struct folder *folder = gi_alloc_zero(watcher->allocator, sizeof(*folder));
    if (folder == NULL) {
        return GORI_ENOMEM;
    }
    folder->fd = open(directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (folder->fd < 0) {
        int error = gi_os_error(errno);
        gi_free(watcher->allocator, folder, sizeof(*folder));
        return error;
    }
    int error = prepare(watcher, name, folder);
    if (error < 0) {
        free_folder(watcher, folder);
        return error;
    }
    folder->place = place;
    place->native = (intptr_t)folder;
    gi_list_push_back(&watcher->folders, &folder->link);
    *ret_place = place;
    return 0;
}
