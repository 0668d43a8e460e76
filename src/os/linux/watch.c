/* SPDX-License-Identifier: MIT */
/*
 * File changes by inotify: one descriptor for all places, which the kernel numbers (its "watch
 * descriptors").
 *
 *  1. The kernel has one watch for each directory and descriptor, whatever the path: adding it
 *     again answers the same number (W1).
 *  2. Removing a watch leaves its events in the queue, and at their end IN_IGNORED.  Numbers go up
 *     and are used again only when they have gone all the way round, but then at once.  So an entry
 *     of the table outlives its place until IN_IGNORED was read, or until the queue was seen empty
 *     (an overflow can swallow IN_IGNORED); until then what it is told is of the old place.
 *  3. The table is sorted by number.  It grows in `add` only, so that removing cannot fail.
 * Thread: one for each watcher.  Reading: inotify(7), "Limitations and caveats" and "Bugs".
 */
#include "os/watch.h"

#include <errno.h>
#include <gori/error.h>
#include <stdalign.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "os/os.h"

#define READ_BYTES 16384 /* in one call: some hundred events */

#define WANTED                                                                                     \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB |                 \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

struct entry {
    int32_t number;
    bool is_stale;             /* what comes is of a place before this one (rule 2) */
    bool is_gone;              /* it was told so (W5) */
    struct gi_os_place *place; /* NULL: removed */
};

struct gi_watcher {
    const struct gori_allocator *allocator;
    int fd;
    struct entry *entries;
    uint32_t entry_count;
    uint32_t entry_capacity;
    size_t offset; /* of the next event in `bytes` */
    size_t size;
    alignas(struct inotify_event) char bytes[READ_BYTES];
};

int gi_os_watcher_create(const struct gori_allocator *allocator, struct gi_watcher **ret_watcher)
{
    struct gi_watcher *watcher = gi_alloc_zero(allocator, sizeof(*watcher));
    if (watcher == NULL) {
        return GORI_ENOMEM;
    }
    watcher->allocator = allocator;
    watcher->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watcher->fd < 0) {
        int error = gi_os_error(errno);
        gi_free(allocator, watcher, sizeof(*watcher));
        return error;
    }
    *ret_watcher = watcher;
    return 0;
}

void gi_os_watcher_destroy(struct gi_watcher *watcher)
{
    if (watcher != NULL) {
        gi_free(watcher->allocator, watcher->entries,
                watcher->entry_capacity * sizeof(*watcher->entries));
        gi_free(watcher->allocator, watcher, sizeof(*watcher));
    }
}

intptr_t gi_os_watcher_source(const struct gi_watcher *watcher)
{
    return watcher->fd;
}

/* The first entry with that number or a higher one. */
static uint32_t lower_bound(const struct gi_watcher *watcher, int32_t number)
{
    uint32_t low = 0;
    uint32_t high = watcher->entry_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (watcher->entries[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct entry *find_entry(struct gi_watcher *watcher, int32_t number)
{
    uint32_t index = lower_bound(watcher, number);
    bool is_there = index < watcher->entry_count && watcher->entries[index].number == number;
    return is_there ? &watcher->entries[index] : NULL;
}

/* Room for one entry more. */
static int reserve_entry(struct gi_watcher *watcher)
{
    uint32_t capacity = watcher->entry_capacity;
    if (watcher->entry_count < capacity) {
        return 0;
    }
    uint32_t wanted = capacity == 0 ? 8 : 2 * capacity;
    struct entry *entries =
        gi_realloc(watcher->allocator, watcher->entries, capacity * sizeof(*watcher->entries),
                   wanted * sizeof(*watcher->entries));
    if (entries == NULL) {
        return GORI_ENOMEM;
    }
    watcher->entries = entries;
    watcher->entry_capacity = wanted;
    return 0;
}

static struct entry *insert_entry(struct gi_watcher *watcher, int32_t number)
{
    uint32_t index = lower_bound(watcher, number);
    struct entry *entry = &watcher->entries[index];
    memmove(entry + 1, entry, (watcher->entry_count - index) * sizeof(*entry));
    watcher->entry_count++;
    *entry = (struct entry){.number = number};
    return entry;
}

int gi_os_watcher_add(struct gi_watcher *watcher, const char *directory, const char *name,
                      struct gi_os_place *place, struct gi_os_place **ret_place)
{
    (void)name; /* the kernel tells of all entries or of none */
    int error = reserve_entry(watcher);
    if (error < 0) {
        return error;
    }
    int number = inotify_add_watch(watcher->fd, directory, WANTED);
    if (number < 0) {
        /* No space: for watches, of which fs.inotify.max_user_watches are there. */
        return errno == ENOSPC ? GORI_ELIMIT : gi_os_error(errno);
    }
    struct entry *entry = find_entry(watcher, number);
    if (entry == NULL) {
        entry = insert_entry(watcher, number);
    } else if (entry->place == NULL) {
        entry->is_stale = true;
    }
    if (entry->place == NULL) {
        entry->place = place;
        entry->is_gone = false;
        place->native = number;
    }
    *ret_place = entry->place;
    return 0;
}

void gi_os_watcher_remove(struct gi_watcher *watcher, struct gi_os_place *place)
{
    struct entry *entry = find_entry(watcher, (int32_t)place->native);
    GI_ASSERT(entry != NULL && entry->place == place);
    entry->place = NULL;
    /* It fails when the kernel has removed it first, with the directory. */
    (void)inotify_rm_watch(watcher->fd, entry->number);
}

/* The queue is empty: nothing of a removed place can come any more. */
static void forget_removed(struct gi_watcher *watcher)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < watcher->entry_count; i++) {
        struct entry *entry = &watcher->entries[i];
        if (entry->place != NULL) {
            entry->is_stale = false;
            watcher->entries[kept++] = *entry;
        }
    }
    watcher->entry_count = kept;
}

static void take_ignored(struct gi_watcher *watcher, struct entry *entry)
{
    if (entry->place != NULL) {
        entry->is_stale = false;
        return;
    }
    uint32_t index = (uint32_t)(entry - watcher->entries);
    watcher->entry_count--;
    memmove(entry, entry + 1, (watcher->entry_count - index) * sizeof(*entry));
}

/* What an event of an entry of the directory means; false when it is of the directory itself. */
static bool kind_of(uint32_t mask, enum gi_watch_kind *ret_kind)
{
    static const struct {
        uint32_t bit;
        enum gi_watch_kind kind;
    } kinds[] = {
        {IN_CREATE, GI_WATCH_CREATED},        {IN_DELETE, GI_WATCH_DELETED},
        {IN_MOVED_FROM, GI_WATCH_MOVED_FROM}, {IN_MOVED_TO, GI_WATCH_MOVED_TO},
        {IN_MODIFY, GI_WATCH_MODIFIED},       {IN_ATTRIB, GI_WATCH_ATTRIBUTES},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (mask & kinds[i].bit) {
            *ret_kind = kinds[i].kind;
            return true;
        }
    }
    return false;
}

/* Makes a record of an event; false when nobody needs to know. */
static bool translate(struct gi_watcher *watcher, const struct inotify_event *event,
                      struct gi_watch_record *ret_record)
{
    if (event->mask & IN_Q_OVERFLOW) {
        *ret_record = (struct gi_watch_record){.kind = GI_WATCH_LOST, .name = ""};
        return true;
    }
    struct entry *entry = find_entry(watcher, event->wd);
    if (entry == NULL) {
        return false;
    }
    bool is_dead = entry->place == NULL || entry->is_stale;
    if (is_dead && (event->mask & IN_IGNORED)) {
        take_ignored(watcher, entry);
    }
    if (is_dead || entry->is_gone) {
        return false;
    }
    *ret_record =
        (struct gi_watch_record){.place = entry->place, .name = "", .pair = event->cookie};
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) {
        ret_record->kind = GI_WATCH_GONE;
        entry->is_gone = true;
        return true;
    }
    ret_record->name = event->name;
    return event->len > 0 && kind_of(event->mask, &ret_record->kind);
}

/* Result: 1 when there is something in `bytes`, else 0 or an error. */
static int fill(struct gi_watcher *watcher)
{
    ssize_t size;
    do {
        size = read(watcher->fd, watcher->bytes, sizeof(watcher->bytes));
    } while (size < 0 && errno == EINTR);
    if (size > 0) {
        watcher->offset = 0;
        watcher->size = (size_t)size;
        return 1;
    }
    if (size == 0 || errno != EAGAIN) {
        return size == 0 ? 0 : gi_os_error(errno);
    }
    forget_removed(watcher);
    return 0;
}

int gi_os_watcher_next(struct gi_watcher *watcher, struct gi_watch_record *ret_record)
{
    for (;;) {
        if (watcher->offset == watcher->size) {
            int result = fill(watcher);
            if (result <= 0) {
                return result;
            }
        }
        const struct inotify_event *event =
            (const struct inotify_event *)(const void *)(watcher->bytes + watcher->offset);
        watcher->offset += sizeof(*event) + event->len;
        struct gi_watch_record record;
        if (translate(watcher, event, &record)) {
            *ret_record = record;
            return 1;
        }
    }
}
