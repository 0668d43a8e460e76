/* SPDX-License-Identifier: MIT */
/*
 * Files of a simulated world, as far as they can be watched: names in directories (what is in them
 * is disk.c's), and the watchers of them (os/watch.h).  What tells of changes is made like inotify:
 * one queue for each watcher, of bounded length, in which a record that follows its like is one
 * with it.
 * Contract: sim.h.  Thread: one.
 */
#include <gori/error.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "engine/sim/world.h"
#include "os/watch.h"

struct file {
    struct gori_link link; /* the world's list */
    size_t bytes;          /* of this object */
    bool is_directory;
    char path[];
};

struct folder {
    struct gori_link link; /* the watcher's list */
    size_t bytes;          /* of this object */
    struct gi_os_place *place;
    bool is_gone;
    char path[];
};

struct record {
    struct gori_link link;
    size_t bytes;          /* of this object */
    struct folder *folder; /* NULL: all */
    enum gi_watch_kind kind;
    uint32_t pair;
    char name[];
};

struct gi_watcher {
    struct gori_link link; /* the world's list */
    struct gi_sim *sim;
    const struct gori_allocator *allocator; /* the engine's: it may fail */
    gori_native source;
    struct gori_link folders;
    struct gori_link records;
    uint32_t record_count;
    bool is_full;        /* LOST is the last record */
    struct record *told; /* its name is with the caller until the next call */
};

/* Watchers --------------------------------------------------------------------------------- */

int gi_sim_watcher_create(struct gi_sim *sim, struct gi_engine *engine,
                          const struct gori_allocator *allocator, struct gi_watcher **ret_watcher)
{
    struct gi_watcher *watcher = gi_alloc_zero(allocator, sizeof(*watcher));
    if (watcher == NULL) {
        return GORI_ENOMEM;
    }
    int error = gi_sim_source_open(sim, engine, &watcher->source);
    if (error < 0) {
        gi_free(allocator, watcher, sizeof(*watcher));
        return error;
    }
    watcher->sim = sim;
    watcher->allocator = allocator;
    gi_list_init(&watcher->folders);
    gi_list_init(&watcher->records);
    gi_list_push_back(&sim->watchers, &watcher->link);
    *ret_watcher = watcher;
    return 0;
}

static void free_record(struct gi_watcher *watcher, struct record *record)
{
    if (record != NULL) {
        gi_free(watcher->sim->allocator, record, record->bytes);
    }
}

static void take_out(struct gi_watcher *watcher, struct record *record)
{
    gi_list_remove(&record->link);
    watcher->record_count--;
    watcher->is_full = watcher->is_full && record->kind != GI_WATCH_LOST;
}

static void drop_records(struct gi_watcher *watcher, const struct folder *folder)
{
    GI_LIST_FOREACH_SAFE (link, &watcher->records) {
        struct record *record = gori_container_of(link, struct record, link);
        if (record->folder == folder) {
            take_out(watcher, record);
            free_record(watcher, record);
        }
    }
}

void gi_sim_watcher_remove(struct gi_watcher *watcher, struct gi_os_place *place)
{
    struct folder *folder = (struct folder *)place->native;
    drop_records(watcher, folder);
    gi_list_remove(&folder->link);
    gi_free(watcher->allocator, folder, folder->bytes);
}

void gi_sim_watcher_destroy(struct gi_watcher *watcher)
{
    if (watcher == NULL) {
        return;
    }
    GI_ASSERT(gi_list_is_empty(&watcher->folders));
    drop_records(watcher, NULL);
    free_record(watcher, watcher->told);
    gi_list_remove(&watcher->link);
    gi_free(watcher->allocator, watcher, sizeof(*watcher));
}

gori_native gi_sim_watcher_source(const struct gi_watcher *watcher)
{
    return watcher->source;
}

static struct file *find_file(struct gi_sim *sim, const char *path, size_t path_size)
{
    GI_LIST_FOREACH (link, &sim->files) {
        struct file *file = gori_container_of(link, struct file, link);
        if (strlen(file->path) == path_size && memcmp(file->path, path, path_size) == 0) {
            return file;
        }
    }
    return NULL;
}

/* Without a separator at the end, which says nothing. */
static size_t size_of(const char *path)
{
    size_t size = strlen(path);
    return size > 1 && path[size - 1] == '/' ? size - 1 : size;
}

bool gi_sim_is_directory(struct gi_sim *sim, const char *path)
{
    const struct file *file = find_file(sim, path, size_of(path));
    return file != NULL && file->is_directory;
}

int gi_sim_watcher_add(struct gi_watcher *watcher, const char *directory, const char *name,
                       struct gi_os_place *place, struct gi_os_place **ret_place)
{
    (void)name;
    struct file *file = find_file(watcher->sim, directory, size_of(directory));
    if (file == NULL || !file->is_directory) {
        return file == NULL ? GORI_ENOTFOUND : GORI_ENOTDIR;
    }
    GI_LIST_FOREACH (link, &watcher->folders) {
        struct folder *folder = gori_container_of(link, struct folder, link);
        if (!folder->is_gone && strcmp(folder->path, file->path) == 0) {
            *ret_place = folder->place;
            return 0;
        }
    }
    size_t bytes = sizeof(struct folder) + strlen(file->path) + 1;
    struct folder *folder = gi_alloc_zero(watcher->allocator, bytes);
    if (folder == NULL) {
        return GORI_ENOMEM;
    }
    folder->bytes = bytes;
    folder->place = place;
    memcpy(folder->path, file->path, strlen(file->path) + 1);
    place->native = (intptr_t)folder;
    gi_list_push_back(&watcher->folders, &folder->link);
    *ret_place = place;
    return 0;
}

int gi_sim_watcher_next(struct gi_watcher *watcher, struct gi_watch_record *ret_record)
{
    free_record(watcher, watcher->told);
    watcher->told = NULL;
    struct gori_link *link = gi_list_first(&watcher->records);
    if (link == NULL) {
        gi_sim_source_set(watcher->sim, watcher->source, false);
        return 0;
    }
    if (gi_sim_chance(watcher->sim, watcher->sim->config.faults.short_look)) {
        return 0; /* the source stays ready */
    }
    struct record *record = gori_container_of(link, struct record, link);
    take_out(watcher, record);
    watcher->told = record;
    *ret_record =
        (struct gi_watch_record){.kind = record->kind,
                                 .place = record->folder == NULL ? NULL : record->folder->place,
                                 .name = record->name,
                                 .pair = record->pair};
    return 1;
}

/* Telling watchers ------------------------------------------------------------------------- */

static void append(struct gi_watcher *watcher, struct folder *folder, enum gi_watch_kind kind,
                   const char *name, uint32_t pair)
{
    size_t name_size = strlen(name) + 1;
    struct record *record = gi_alloc_zero(watcher->sim->allocator, sizeof(*record) + name_size);
    GI_ASSERT(record != NULL);
    record->bytes = sizeof(*record) + name_size;
    record->folder = folder;
    record->kind = kind;
    record->pair = pair;
    memcpy(record->name, name, name_size);
    gi_list_push_back(&watcher->records, &record->link);
    watcher->record_count++;
    gi_sim_source_set(watcher->sim, watcher->source, true);
}

static bool is_last(const struct gi_watcher *watcher, const struct folder *folder,
                    enum gi_watch_kind kind, const char *name)
{
    if (gi_list_is_empty(&watcher->records) ||
        (kind != GI_WATCH_MODIFIED && kind != GI_WATCH_ATTRIBUTES)) {
        return false;
    }
    const struct record *last = gori_container_of(watcher->records.prev, const struct record, link);
    return last->folder == folder && last->kind == kind && strcmp(last->name, name) == 0;
}

static void tell_watcher(struct gi_watcher *watcher, struct folder *folder, enum gi_watch_kind kind,
                         const char *name)
{
    uint32_t pair = watcher->sim->watch_pair;
    if (watcher->is_full || is_last(watcher, folder, kind, name)) {
        return;
    }
    if (watcher->record_count < watcher->sim->config.changes_max) {
        append(watcher, folder, kind, name, pair);
    } else {
        append(watcher, NULL, GI_WATCH_LOST, "", 0);
        watcher->is_full = true;
    }
}

/* Tells all who watch a directory. */
static void tell_of(struct gi_sim *sim, const char *directory, size_t directory_size,
                    enum gi_watch_kind kind, const char *name)
{
    GI_LIST_FOREACH (link, &sim->watchers) {
        struct gi_watcher *watcher = gori_container_of(link, struct gi_watcher, link);
        GI_LIST_FOREACH (folder_link, &watcher->folders) {
            struct folder *folder = gori_container_of(folder_link, struct folder, link);
            bool is_it = strlen(folder->path) == directory_size &&
                         memcmp(folder->path, directory, directory_size) == 0;
            if (is_it && !folder->is_gone) {
                folder->is_gone = kind == GI_WATCH_GONE;
                tell_watcher(watcher, folder, kind, name);
            }
        }
    }
}

static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void tell(struct gi_sim *sim, const char *path, enum gi_watch_kind kind)
{
    const char *name = name_in(path);
    size_t directory_size = name == path ? 0 : (size_t)(name - path) - 1;
    gi_sim_trace(sim, "file", (int64_t)kind, (int64_t)strlen(path), 0);
    tell_of(sim, path, directory_size, kind, name);
}

/* Files ------------------------------------------------------------------------------------ */

static void make(struct gi_sim *sim, const char *path, bool is_directory)
{
    size_t size = strlen(path) + 1;
    struct file *file = gi_alloc_zero(sim->allocator, sizeof(*file) + size);
    GI_ASSERT(file != NULL);
    file->bytes = sizeof(*file) + size;
    file->is_directory = is_directory;
    memcpy(file->path, path, size);
    gi_list_push_back(&sim->files, &file->link);
}

static void unmake(struct gi_sim *sim, struct file *file)
{
    gi_list_remove(&file->link);
    gi_free(sim->allocator, file, file->bytes);
}

void gi_sim_directory_make(struct gi_sim *sim, const char *path)
{
    GI_ASSERT(find_file(sim, path, strlen(path)) == NULL);
    make(sim, path, true);
    tell(sim, path, GI_WATCH_CREATED);
}

void gi_sim_file_write(struct gi_sim *sim, const char *path)
{
    if (find_file(sim, path, strlen(path)) == NULL) {
        make(sim, path, false);
        tell(sim, path, GI_WATCH_CREATED);
    }
    tell(sim, path, GI_WATCH_MODIFIED);
}

int gi_sim_file_touch(struct gi_sim *sim, const char *path)
{
    if (find_file(sim, path, strlen(path)) == NULL) {
        return GORI_ENOTFOUND;
    }
    tell(sim, path, GI_WATCH_ATTRIBUTES);
    return 0;
}

int gi_sim_file_remove(struct gi_sim *sim, const char *path)
{
    struct file *file = find_file(sim, path, strlen(path));
    if (file == NULL) {
        return GORI_ENOTFOUND;
    }
    if (file->is_directory) {
        tell_of(sim, path, strlen(path), GI_WATCH_GONE, "");
    }
    unmake(sim, file);
    gi_sim_disk_rename(sim, path, NULL);
    tell(sim, path, GI_WATCH_DELETED);
    return 0;
}

int gi_sim_file_rename(struct gi_sim *sim, const char *from, const char *to)
{
    struct file *file = find_file(sim, from, strlen(from));
    if (file == NULL) {
        return GORI_ENOTFOUND;
    }
    struct file *replaced = find_file(sim, to, strlen(to));
    if (replaced != NULL) {
        unmake(sim, replaced);
    }
    make(sim, to, file->is_directory);
    gi_sim_disk_rename(sim, from, to);
    sim->watch_pair++;
    tell(sim, from, GI_WATCH_MOVED_FROM);
    tell(sim, to, GI_WATCH_MOVED_TO);
    if (file->is_directory) {
        tell_of(sim, from, strlen(from), GI_WATCH_GONE, "");
    }
    unmake(sim, file);
    return 0;
}

void gi_sim_files_fini(struct gi_sim *sim)
{
    struct gori_link *link;
    while ((link = gi_list_first(&sim->files)) != NULL) {
        unmake(sim, gori_container_of(link, struct file, link));
    }
}
