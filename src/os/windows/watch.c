/* SPDX-License-Identifier: MIT */
/*
 * File changes by ReadDirectoryChangesW: one handle and one request in flight for each directory,
 * and one event for all of them.
 *
 *  1. The event is signalled by whatever completes, but the system resets it when a request starts.
 *     So whoever starts one looks at all folders afterwards (`scan` is run until it finds nothing),
 *     or signals the event himself (`add`).
 *  2. The system keeps changes for a handle between two requests, as many as fit into the buffer of
 *     the first; beyond it a request completes with no bytes: LOST.
 *  3. The memory of a request belongs to the system until it has completed.  A folder that is
 *     removed before is in `dying` until then.
 *  4. Names are compared as the system compares them, without regard to case (W2).
 * Thread: one for each watcher.  Reading: ReadDirectoryChangesW (Microsoft Learn).
 */
#include "os/watch.h"

#include "os/windows/system.h"

#include <gori/error.h>
#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"
#include "os/os.h"

#define BUFFER_BYTES 16384
#define PATH_CHARS   4096
#define NAME_CHARS   256

#define WANTED                                                                                     \
    (FILE_NOTIFY_CHANGE_FILE_NAME | FILE_NOTIFY_CHANGE_DIR_NAME | FILE_NOTIFY_CHANGE_ATTRIBUTES |  \
     FILE_NOTIFY_CHANGE_SIZE | FILE_NOTIFY_CHANGE_LAST_WRITE | FILE_NOTIFY_CHANGE_SECURITY)

struct folder {
    struct gori_link link;     /* of `folders`, `ready` or `dying` */
    struct gi_os_place *place; /* NULL: removed */
    HANDLE directory;
    OVERLAPPED overlapped;
    bool in_flight;
    bool is_gone;
    bool is_lost;     /* to be told so */
    size_t offset;    /* of the next record in `bytes` */
    size_t size;      /* of what came; 0 for nothing */
    int only_count;   /* characters of it */
    const char *only; /* the one name that matters, as it was given; or NULL */
    WCHAR only_wide[NAME_CHARS];
    char only_text[GI_WATCH_NAME_BYTES];
    alignas(DWORD) uint8_t bytes[BUFFER_BYTES];
};

struct gi_watcher {
    const struct gori_allocator *allocator;
    HANDLE event;
    uint32_t pair; /* the last one given */
    struct gori_link folders;
    struct gori_link ready; /* have something to tell */
    struct gori_link dying;
    char name[GI_WATCH_NAME_BYTES];
};

static int last_error(void)
{
    return gi_os_error((int)GetLastError());
}

size_t gi_os_directory_size(const char *path)
{
    size_t size = strlen(path);
    while (size > 0 && path[size - 1] != '/' && path[size - 1] != '\\' && path[size - 1] != ':') {
        size--;
    }
    return size;
}

static int widen(const char *text, WCHAR *wide, int wide_chars)
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, wide_chars) == 0) {
        return GetLastError() == ERROR_INSUFFICIENT_BUFFER ? GORI_ENAMETOOLONG : GORI_ENOTFOUND;
    }
    return 0;
}

bool gi_os_is_directory(const char *path)
{
    WCHAR wide[PATH_CHARS];
    if (widen(path, wide, PATH_CHARS) < 0) {
        return false;
    }
    DWORD attributes = GetFileAttributesW(wide);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) &&
           !(attributes & FILE_ATTRIBUTE_REPARSE_POINT);
}

int gi_os_watcher_create(const struct gori_allocator *allocator, struct gi_watcher **ret_watcher)
{
    struct gi_watcher *watcher = gi_alloc_zero(allocator, sizeof(*watcher));
    if (watcher == NULL) {
        return GORI_ENOMEM;
    }
    watcher->allocator = allocator;
    gi_list_init(&watcher->folders);
    gi_list_init(&watcher->ready);
    gi_list_init(&watcher->dying);
    watcher->event = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (watcher->event == NULL) {
        int error = last_error();
        gi_free(allocator, watcher, sizeof(*watcher));
        return error;
    }
    *ret_watcher = watcher;
    return 0;
}

static void free_folder(struct gi_watcher *watcher, struct folder *folder)
{
    gi_list_remove(&folder->link);
    gi_free(watcher->allocator, folder, sizeof(*folder));
}

void gi_os_watcher_remove(struct gi_watcher *watcher, struct gi_os_place *place)
{
    struct folder *folder = (struct folder *)place->native;
    folder->place = NULL;
    if (folder->in_flight) {
        (void)CancelIoEx(folder->directory, &folder->overlapped);
    }
    (void)CloseHandle(folder->directory);
    if (!folder->in_flight || HasOverlappedIoCompleted(&folder->overlapped)) {
        free_folder(watcher, folder);
        return;
    }
    gi_list_remove(&folder->link);
    gi_list_push_back(&watcher->dying, &folder->link);
}

static void remove_all(struct gi_watcher *watcher, struct gori_link *list)
{
    struct gori_link *link;
    while ((link = gi_list_first(list)) != NULL) {
        gi_os_watcher_remove(watcher, gori_container_of(link, struct folder, link)->place);
    }
}

void gi_os_watcher_destroy(struct gi_watcher *watcher)
{
    if (watcher == NULL) {
        return;
    }
    remove_all(watcher, &watcher->folders);
    remove_all(watcher, &watcher->ready);
    struct gori_link *link;
    while ((link = gi_list_first(&watcher->dying)) != NULL) {
        struct folder *folder = gori_container_of(link, struct folder, link);
        (void)ResetEvent(watcher->event);
        if (!HasOverlappedIoCompleted(&folder->overlapped)) {
            (void)WaitForSingleObject(watcher->event, INFINITE);
        } else {
            free_folder(watcher, folder);
        }
    }
    gi_free(watcher->allocator, watcher, sizeof(*watcher));
}

intptr_t gi_os_watcher_source(const struct gi_watcher *watcher)
{
    return (intptr_t)watcher->event;
}

/* Adding ---------------------------------------------------------------------------------- */

static int start(struct gi_watcher *watcher, struct folder *folder)
{
    folder->overlapped = (OVERLAPPED){.hEvent = watcher->event};
    folder->in_flight =
        ReadDirectoryChangesW(folder->directory, folder->bytes, sizeof(folder->bytes), FALSE,
                              WANTED, NULL, &folder->overlapped, NULL);
    return folder->in_flight ? 0 : last_error();
}

static int open_directory(const char *path, HANDLE *ret_directory)
{
    WCHAR wide[PATH_CHARS];
    int error = widen(path, wide, PATH_CHARS);
    if (error < 0) {
        return error;
    }
    HANDLE directory = CreateFileW(
        wide, FILE_LIST_DIRECTORY, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
        OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OVERLAPPED, NULL);
    if (directory == INVALID_HANDLE_VALUE) {
        return last_error();
    }
    BY_HANDLE_FILE_INFORMATION info;
    error = GetFileInformationByHandle(directory, &info) ? 0 : last_error();
    if (error == 0 && !(info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)) {
        error = GORI_ENOTDIR;
    }
    if (error < 0) {
        (void)CloseHandle(directory);
        return error;
    }
    *ret_directory = directory;
    return 0;
}

static int set_only(struct folder *folder, const char *name)
{
    size_t size = strlen(name) + 1;
    if (size > sizeof(folder->only_text)) {
        return GORI_ENAMETOOLONG;
    }
    int error = widen(name, folder->only_wide, NAME_CHARS);
    if (error == 0) {
        memcpy(folder->only_text, name, size);
        folder->only = folder->only_text;
        folder->only_count = (int)wcslen(folder->only_wide);
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
    int error = name == NULL ? 0 : set_only(folder, name);
    if (error == 0) {
        error = open_directory(directory, &folder->directory);
    }
    if (error < 0) {
        goto err_memory;
    }
    error = start(watcher, folder);
    if (error < 0) {
        goto err_directory;
    }
    (void)SetEvent(watcher->event); /* rule 1 */
    folder->place = place;
    place->native = (intptr_t)folder;
    gi_list_push_back(&watcher->folders, &folder->link);
    *ret_place = place;
    return 0;

err_directory:
    (void)CloseHandle(folder->directory);
err_memory:
    gi_free(watcher->allocator, folder, sizeof(*folder));
    return error;
}

/* Telling --------------------------------------------------------------------------------- */

/* A request has completed: what it brought. */
static void harvest(struct folder *folder)
{
    DWORD size = 0;
    folder->in_flight = false;
    folder->offset = 0;
    folder->size = 0;
    if (GetOverlappedResult(folder->directory, &folder->overlapped, &size, FALSE)) {
        folder->size = size;
        folder->is_lost = size == 0;
    } else if (GetLastError() == ERROR_NOTIFY_ENUM_DIR) {
        folder->is_lost = true;
    } else {
        folder->is_gone = true; /* removed, or its volume is */
    }
}

/* Looks at all that is in flight.  Result: whether something has completed. */
static bool scan(struct gi_watcher *watcher)
{
    (void)ResetEvent(watcher->event);
    GI_LIST_FOREACH_SAFE (link, &watcher->dying) {
        struct folder *folder = gori_container_of(link, struct folder, link);
        if (HasOverlappedIoCompleted(&folder->overlapped)) {
            free_folder(watcher, folder);
        }
    }
    GI_LIST_FOREACH_SAFE (link, &watcher->folders) {
        struct folder *folder = gori_container_of(link, struct folder, link);
        if (folder->in_flight && HasOverlappedIoCompleted(&folder->overlapped)) {
            harvest(folder);
            gi_list_remove(&folder->link);
            gi_list_push_back(&watcher->ready, &folder->link);
        }
    }
    return !gi_list_is_empty(&watcher->ready);
}

static bool kind_of(DWORD action, enum gi_watch_kind *ret_kind)
{
    static const enum gi_watch_kind kinds[] = {
        [FILE_ACTION_ADDED] = GI_WATCH_CREATED,
        [FILE_ACTION_REMOVED] = GI_WATCH_DELETED,
        [FILE_ACTION_MODIFIED] = GI_WATCH_MODIFIED,
        [FILE_ACTION_RENAMED_OLD_NAME] = GI_WATCH_MOVED_FROM,
        [FILE_ACTION_RENAMED_NEW_NAME] = GI_WATCH_MOVED_TO,
    };
    if (action < FILE_ACTION_ADDED || action > FILE_ACTION_RENAMED_NEW_NAME) {
        return false;
    }
    *ret_kind = kinds[action];
    return true;
}

/* The name of a change, or NULL when it is of nobody's concern. */
static const char *name_of(struct gi_watcher *watcher, const struct folder *folder,
                           const FILE_NOTIFY_INFORMATION *change)
{
    int count = (int)(change->FileNameLength / sizeof(WCHAR));
    if (folder->only != NULL) {
        bool is_it = CompareStringOrdinal(change->FileName, count, folder->only_wide,
                                          folder->only_count, TRUE) == CSTR_EQUAL;
        return is_it ? folder->only : NULL;
    }
    int size = WideCharToMultiByte(CP_UTF8, 0, change->FileName, count, watcher->name,
                                   sizeof(watcher->name) - 1, NULL, NULL);
    watcher->name[size] = '\0';
    return size > 0 ? watcher->name : NULL;
}

static bool next_change(struct gi_watcher *watcher, struct folder *folder,
                        struct gi_watch_record *ret_record)
{
    while (folder->size > 0) {
        const FILE_NOTIFY_INFORMATION *change =
            (const FILE_NOTIFY_INFORMATION *)(const void *)(folder->bytes + folder->offset);
        folder->offset += change->NextEntryOffset;
        folder->size = change->NextEntryOffset == 0 ? 0 : folder->size;
        struct gi_watch_record record = {.place = folder->place};
        if (!kind_of(change->Action, &record.kind)) {
            continue;
        }
        watcher->pair += record.kind == GI_WATCH_MOVED_FROM ? 1 : 0;
        record.pair = watcher->pair;
        record.name = name_of(watcher, folder, change);
        if (record.name != NULL) {
            *ret_record = record;
            return true;
        }
    }
    return false;
}

/* The next record of a folder that has something to tell; at the end it asks the system again. */
static bool next_of(struct gi_watcher *watcher, struct folder *folder,
                    struct gi_watch_record *ret_record)
{
    if (next_change(watcher, folder, ret_record)) {
        return true;
    }
    gi_list_remove(&folder->link);
    gi_list_push_back(&watcher->folders, &folder->link);
    bool was_lost = folder->is_lost;
    folder->is_lost = false;
    if (!folder->is_gone && start(watcher, folder) < 0) {
        folder->is_gone = true;
    }
    if (!folder->is_gone && !was_lost) {
        return false;
    }
    *ret_record = (struct gi_watch_record){.kind = folder->is_gone ? GI_WATCH_GONE : GI_WATCH_LOST,
                                           .place = folder->place,
                                           .name = ""};
    return true;
}

int gi_os_watcher_next(struct gi_watcher *watcher, struct gi_watch_record *ret_record)
{
    do {
        struct gori_link *link;
        while ((link = gi_list_first(&watcher->ready)) != NULL) {
            struct folder *folder = gori_container_of(link, struct folder, link);
            if (next_of(watcher, folder, ret_record)) {
                return 1;
            }
        }
    } while (scan(watcher));
    return 0;
}
