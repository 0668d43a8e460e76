/* SPDX-License-Identifier: MIT */
/*
 * The disk of a simulated world: folders and files in memory.  Ops on them suffer the world's
 * faults, and watchers (files.c) are told what ops change.  No roots, links, rights, or holes that
 * take no room; what has lost its name takes its room until the world ends.
 *
 *  1. A path is folders and a name, with "/" in front; "/." at its end is nothing.
 *  2. Descriptors are the lowest free numbers from GI_SIM_FILES_FROM on: they are reused at once.
 *  3. A file that is left open at the end is a violation, as a socket is.
 * Thread: one.
 */
#include <gori/error.h>
#include <gori/file_op.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "engine/sim/world.h"
#include "os/os.h"

#define DEVICE 1

struct gi_sim_node {
    struct gori_link link;
    uint64_t number; /* as an inode's */
    gori_time modified;
    uint8_t *data;
    size_t capacity;
    size_t size;
    size_t path_size;
    bool is_folder;
    char *path; /* "" when it has lost its name */
};

struct gi_sim_open_file {
    struct gi_sim_node *node; /* NULL: free */
    bool appends;
};

/* The tree -------------------------------------------------------------------------------- */

static size_t path_size_of(const char *path)
{
    size_t size = strlen(path);
    while (size >= 2 && path[size - 1] == '.' && path[size - 2] == '/') {
        size -= 2;
    }
    return size;
}

static struct gi_sim_node *find(struct gi_sim *sim, const char *path, size_t size)
{
    GI_LIST_FOREACH (link, &sim->nodes) {
        struct gi_sim_node *node = gori_container_of(link, struct gi_sim_node, link);
        if (node->path_size == size && memcmp(node->path, path, size) == 0) {
            return node;
        }
    }
    return NULL;
}

static void set_path(struct gi_sim *sim, struct gi_sim_node *node, const char *path, size_t size)
{
    gi_free(sim->allocator, node->path, node->path_size + 1);
    node->path = gi_alloc_zero(sim->allocator, size + 1);
    GI_ASSERT(node->path != NULL);
    node->path_size = size;
    memcpy(node->path, path, size);
}

static struct gi_sim_node *make(struct gi_sim *sim, const char *path, size_t size, bool is_folder)
{
    struct gi_sim_node *node = gi_alloc_zero(sim->allocator, sizeof(*node));
    GI_ASSERT(node != NULL);
    node->number = ++sim->next_node;
    node->modified = sim->now;
    node->is_folder = is_folder;
    set_path(sim, node, path, size);
    gi_list_push_back(&sim->nodes, &node->link);
    return node;
}

/* Whether the folder that a path is in is there: 0, or how it is not. */
static int check_folders(struct gi_sim *sim, const char *path, size_t size)
{
    for (size_t i = size; i > 1; i--) {
        if (path[i - 1] != '/') {
            continue;
        }
        const struct gi_sim_node *folder = find(sim, path, i - 1);
        if (folder != NULL) {
            return folder->is_folder ? 0 : GORI_ENOTDIR;
        }
        int above = check_folders(sim, path, i - 1);
        return above == GORI_ENOTDIR ? above : GORI_ENOTFOUND;
    }
    return 0;
}

void gi_sim_make_folder(struct gi_sim *sim, const char *path)
{
    size_t size = path_size_of(path);
    GI_ASSERT(check_folders(sim, path, size) == 0 && find(sim, path, size) == NULL);
    (void)make(sim, path, size, true);
    gi_sim_directory_make(sim, path);
}

void gi_sim_disk_rename(struct gi_sim *sim, const char *from, const char *to)
{
    struct gi_sim_node *node = find(sim, from, path_size_of(from));
    struct gi_sim_node *replaced = to != NULL ? find(sim, to, path_size_of(to)) : NULL;
    if (replaced != NULL) {
        set_path(sim, replaced, "", 0);
    }
    if (node != NULL) {
        set_path(sim, node, to != NULL ? to : "", to != NULL ? path_size_of(to) : 0);
    }
}

static void tell(struct gi_sim *sim, const struct gi_sim_node *node)
{
    if (node->path_size > 0) {
        gi_sim_file_write(sim, node->path);
    }
}

void gi_sim_limit_files(struct gi_sim *sim, uint64_t bytes)
{
    sim->config.file_bytes_max = bytes;
}

static void describe(const struct gi_sim_node *node, struct gori_file_info *ret_info)
{
    *ret_info = (struct gori_file_info){
        .size = node->size,
        .modified_s = (int64_t)(node->modified / GORI_SECONDS),
        .modified_ns = (uint32_t)(node->modified % GORI_SECONDS),
        .device = DEVICE,
        .inode = node->number,
        .is_directory = node->is_folder,
    };
}

/* Makes a file `size` bytes long.  GORI_ENOSPC: as long as there is room for. */
static int resize(struct gi_sim *sim, struct gi_sim_node *node, uint64_t size)
{
    uint64_t room = sim->config.file_bytes_max - (sim->stats.file_bytes_now - node->size);
    int result = size <= room ? 0 : GORI_ENOSPC;
    size_t wanted = (size_t)gi_min_u64(size, room);
    if (wanted > node->capacity) {
        size_t capacity = wanted * 2;
        uint8_t *data = gi_realloc(sim->allocator, node->data, node->capacity, capacity);
        GI_ASSERT(data != NULL);
        node->data = data;
        node->capacity = capacity;
    }
    if (wanted > node->size) {
        memset(node->data + node->size, 0, wanted - node->size);
    }
    sim->stats.file_bytes_now = sim->stats.file_bytes_now - node->size + wanted;
    node->size = wanted;
    node->modified = sim->now;
    tell(sim, node);
    return result;
}

/* Open files ------------------------------------------------------------------------------ */

static struct gi_sim_open_file *get(struct gi_sim *sim, int descriptor)
{
    uint32_t index = (uint32_t)(descriptor - GI_SIM_FILES_FROM);
    if (index >= sim->open_file_capacity || sim->open_files[index].node == NULL) {
        gi_sim_fail(sim, "an op on a file that is not open");
    }
    return &sim->open_files[index];
}

static int take_descriptor(struct gi_sim *sim, struct gi_sim_node *node, bool appends)
{
    uint32_t index = 0;
    while (index < sim->open_file_capacity && sim->open_files[index].node != NULL) {
        index++;
    }
    if (index == sim->open_file_capacity) {
        uint32_t capacity = gi_max_u32(16, sim->open_file_capacity * 2);
        sim->open_files = gi_realloc(sim->allocator, sim->open_files,
                                     sim->open_file_capacity * sizeof(struct gi_sim_open_file),
                                     capacity * sizeof(struct gi_sim_open_file));
        GI_ASSERT(sim->open_files != NULL);
        for (uint32_t i = sim->open_file_capacity; i < capacity; i++) {
            sim->open_files[i] = (struct gi_sim_open_file){0};
        }
        sim->open_file_capacity = capacity;
    }
    sim->open_files[index] = (struct gi_sim_open_file){.node = node, .appends = appends};
    sim->stats.files_now++;
    return GI_SIM_FILES_FROM + (int)index;
}

static int open_node(struct gi_sim *sim, const struct gori_file_op *op,
                     struct gi_sim_node **ret_node)
{
    size_t size = path_size_of(op->path);
    int error = check_folders(sim, op->path, size);
    if (error < 0) {
        return error;
    }
    struct gi_sim_node *node = find(sim, op->path, size);
    if (node == NULL) {
        if (!(op->open_flags & GI_OS_FILE_CREATE)) {
            return GORI_ENOTFOUND;
        }
        node = make(sim, op->path, size, false);
        tell(sim, node);
    } else if (op->open_flags & GI_OS_FILE_EXCLUSIVE) {
        return GORI_EEXIST;
    }
    if (node->is_folder && (op->open_flags & GI_OS_FILE_WRITE)) {
        return GORI_EISDIR;
    }
    *ret_node = node;
    return 0;
}

static int open_file(struct gi_sim *sim, struct gori_file_op *op)
{
    struct gi_sim_node *node;
    if (op->root_descriptor != GI_OS_NO_ROOT) {
        return GORI_ENOTSUP;
    }
    int error = open_node(sim, op, &node);
    if (error < 0) {
        return error;
    }
    if (op->open_flags & GI_OS_FILE_TRUNCATE) {
        (void)resize(sim, node, 0);
    }
    op->descriptor = take_descriptor(sim, node, (op->open_flags & GI_OS_FILE_APPEND) != 0);
    describe(node, &op->info);
    return 0;
}

static int stat_path(struct gi_sim *sim, struct gori_file_op *op)
{
    if (op->root_descriptor != GI_OS_NO_ROOT) {
        return GORI_ENOTSUP;
    }
    size_t size = path_size_of(op->path);
    int error = check_folders(sim, op->path, size);
    if (error < 0) {
        return error;
    }
    const struct gi_sim_node *node = find(sim, op->path, size);
    if (node == NULL) {
        return GORI_ENOTFOUND;
    }
    describe(node, &op->info);
    return 0;
}

int64_t gi_sim_file_read(struct gi_sim *sim, int descriptor, void *data, size_t size,
                         uint64_t offset)
{
    const struct gi_sim_node *node = get(sim, descriptor)->node;
    if (offset >= node->size) {
        return 0;
    }
    size_t count = gi_min_size(size, node->size - (size_t)offset);
    memcpy(data, node->data + offset, count);
    return (int64_t)count;
}

static int64_t write_some(struct gi_sim *sim, struct gi_sim_open_file *file, const uint8_t *data,
                          size_t size, uint64_t offset)
{
    struct gi_sim_node *node = file->node;
    uint64_t place = file->appends ? node->size : offset;
    int error = place + size > node->size ? resize(sim, node, place + size) : 0;
    size_t count = node->size > place ? gi_min_size(size, node->size - (size_t)place) : 0;
    if (count == 0) {
        return error;
    }
    memcpy(node->data + place, data, count);
    node->modified = sim->now;
    tell(sim, node);
    return (int64_t)count;
}

int gi_sim_file_close(struct gi_sim *sim, int descriptor)
{
    get(sim, descriptor)->node = NULL;
    sim->stats.files_now--;
    return 0;
}

/* Ops ------------------------------------------------------------------------------------- */

/* One step over the pieces: a fault makes it less than all. */
static int64_t move_bytes(struct gi_sim *sim, struct gori_file_op *op)
{
    bool reads = op->op.kind == GORI_OP_FILE_READ;
    uint16_t chance = reads ? sim->config.faults.short_recv : sim->config.faults.short_send;
    for (;;) {
        const struct gori_slice *piece = gi_file_op_pieces(op);
        size_t left = piece->size - op->piece_offset;
        bool is_cut = left > 1 && gi_sim_chance(sim, chance);
        size_t size = is_cut ? gi_sim_cut_size(sim, left) : left;
        uint8_t *data = (uint8_t *)(uintptr_t)piece->data + op->piece_offset;
        int64_t moved =
            reads ? gi_sim_file_read(sim, op->descriptor, data, size, gi_file_op_place(op))
                  : write_some(sim, get(sim, op->descriptor), data, size, gi_file_op_place(op));
        if (moved <= 0) {
            return moved < 0 ? moved : (int64_t)op->progress;
        }
        if (gi_file_op_advance(op, (size_t)moved)) {
            return (int64_t)op->progress;
        }
        if (is_cut) {
            return GORI_EAGAIN;
        }
    }
}

static int made_up_error(struct gi_sim *sim, uint8_t kind)
{
    static const int of_open[] = {GORI_EMFILE, GORI_ENFILE, GORI_ENOMEM, GORI_EIO};
    if (kind == GORI_OP_FILE_OPEN) {
        return of_open[gi_random_below(&sim->random, 4)];
    }
    bool is_full = kind == GORI_OP_FILE_WRITE && gi_random_chance(&sim->random, 1, 2);
    return is_full ? GORI_ENOSPC : GORI_EIO;
}

int64_t gi_sim_file_work(struct gi_sim *sim, struct gori_file_op *op)
{
    bool fails = gi_sim_chance(sim, sim->config.faults.file_error);
    if (op->op.kind == GORI_OP_FILE_CLOSE) { /* the descriptor is gone, whatever it says */
        (void)gi_sim_file_close(sim, op->descriptor);
        return fails ? GORI_EIO : 0;
    }
    if (fails) {
        return made_up_error(sim, op->op.kind);
    }
    switch (op->op.kind) {
    case GORI_OP_FILE_OPEN:
        return open_file(sim, op);
    case GORI_OP_FILE_READ:
    case GORI_OP_FILE_WRITE:
        return move_bytes(sim, op);
    case GORI_OP_FILE_STAT:
        if (op->path != NULL) {
            return stat_path(sim, op);
        }
        describe(get(sim, op->descriptor)->node, &op->info);
        return 0;
    case GORI_OP_FILE_TRUNCATE:
        return resize(sim, get(sim, op->descriptor)->node, op->offset);
    default:
        GI_ASSERT(op->op.kind == GORI_OP_FILE_SYNC);
        (void)get(sim, op->descriptor);
        return 0;
    }
}

void gi_sim_disk_fini(struct gi_sim *sim)
{
    struct gori_link *link;
    while ((link = gi_list_pop_front(&sim->nodes)) != NULL) {
        struct gi_sim_node *node = gori_container_of(link, struct gi_sim_node, link);
        gi_free(sim->allocator, node->data, node->capacity);
        gi_free(sim->allocator, node->path, node->path_size + 1);
        gi_free(sim->allocator, node, sizeof(*node));
    }
    gi_free(sim->allocator, sim->open_files,
            sim->open_file_capacity * sizeof(struct gi_sim_open_file));
}

static int64_t read_at(void *place, int descriptor, void *data, size_t size, uint64_t offset)
{
    return gi_sim_file_read(place, descriptor, data, size, offset);
}

static int close_file(void *place, int descriptor)
{
    return gi_sim_file_close(place, descriptor);
}

const struct gi_file_calls gi_sim_files = {.read = read_at, .close = close_file};
