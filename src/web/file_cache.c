/* SPDX-License-Identifier: MIT */
/*
 * The cache of files.
 *
 *  1. A file is known by the decoded name of the request, so that no spelling of a name has an
 *     entry of its own.  Names without a file are not kept: a peer cannot fill the cache with what
 *     is not there.
 *  2. At most `revalidate` after it was last asked, the disk is asked again, when a request comes:
 *     size, times and inode must be the same, else the file is loaded anew.  A file that changed
 *     less than SETTLE_SECONDS before it was loaded is loaded anew in any case: another change
 *     may have the same time.  The root is looked at as often: a symbolic link that was switched to
 *     another folder empties the cache.
 *  3. Small files are in memory, and hold no descriptor.  Large ones are kept open; what is being
 *     sent has a reference of its own and outlives the entry.
 *  4. Each of both kinds is forgotten by the clock algorithm: the oldest that was not used since
 *     the last time goes.  Bounds are counts, and for small files the bytes with all that belongs
 *     to them.
 *  5. Out of descriptors, what is kept open is given back, and it is tried once more.  When the
 *     disk cannot be asked for want of something, what is known is still served.
 *
 * Thread: the loop's.
 */
#include "web/file_cache.h"

#include <gori/error.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "proto/http_date.h"
#include "web/mime.h"

#define INDEX_NAME "index.html"

/* Of a file system's clock the coarsest that are in use tick every two seconds. */
#define SETTLE_SECONDS 3

/* How often a small file may change while it is read. */
#define READ_TRIES_MAX 3

/* Room for the header lines of an entry, without the media type. */
#define LINES_BYTES 256u

/* What the head of a ready answer takes, about; only the count of bytes depends on it. */
#define HEAD_BYTES 512u

/* Names ------------------------------------------------------------------------------------ */

/* Only names of files that exist get into the table, so nobody but the site's owner can make them
 * collide, and a simple hash (FNV-1a) will do. */
static uint32_t hash_name(struct gori_slice name)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.size; i++) {
        hash = (hash ^ name.data[i]) * 16777619u;
    }
    return hash ^ hash >> 15;
}

/* Whether some part begins with a dot; "/.well-known/" is there to be found (RFC 8615). */
static bool is_hidden(struct gori_slice name)
{
    static const char exception[] = "/.well-known/";
    size_t start = 0;
    if (name.size >= sizeof(exception) - 1 &&
        memcmp(name.data, exception, sizeof(exception) - 1) == 0) {
        start = sizeof(exception) - 2;
    }
    for (size_t i = start; i + 1 < name.size; i++) {
        if (name.data[i] == '/' && name.data[i + 1] == '.') {
            return true;
        }
    }
    return false;
}

/* Writes what the root knows the file by: no slash at the start, the index of a folder. */
static void set_disk_name(struct gi_web_cache *cache, struct gori_slice name)
{
    size_t size = name.size - 1;
    memcpy(cache->disk_name, name.data + 1, size);
    if (name.data[name.size - 1] == '/') {
        memcpy(cache->disk_name + size, INDEX_NAME, sizeof(INDEX_NAME) - 1);
        size += sizeof(INDEX_NAME) - 1;
    }
    cache->disk_name[size] = '\0';
}

static bool is_lack(int error)
{
    return gori_error_category(error) == GORI_CATEGORY_RESOURCE;
}

static bool is_same(const struct gori_file_info *a, const struct gori_file_info *b)
{
    return a->inode == b->inode && a->device == b->device && a->size == b->size &&
           a->modified_s == b->modified_s && a->modified_ns == b->modified_ns &&
           a->is_directory == b->is_directory;
}

/* Forgetting ------------------------------------------------------------------------------- */

static struct gi_web_age_list *list_of(struct gi_web_cache *cache, const struct gi_web_file *file)
{
    return gi_web_file_is_small(file) ? &cache->small : &cache->large;
}

static size_t file_bytes(const struct gi_web_file *file)
{
    return sizeof(*file) + file->name_size + file->type_size + file->validators_size;
}

static void free_file(struct gi_web_cache *cache, struct gi_web_file *file)
{
    gori_block_unref(file->ready);
    gori_block_unref(file->body);
    gori_file_unref(file->file);
    gi_free(cache->config.allocator, file, file_bytes(file));
}

static void forget(struct gi_web_cache *cache, struct gi_web_file *file)
{
    struct gi_web_file **place = &cache->buckets[file->hash & (cache->bucket_count - 1)];
    while (*place != file) {
        place = &(*place)->next;
    }
    *place = file->next;
    gi_list_remove(&file->by_age);
    list_of(cache, file)->count--;
    cache->bytes -= file->charge;
    free_file(cache, file);
}

static void forget_list(struct gi_web_cache *cache, struct gi_web_age_list *list)
{
    GI_LIST_FOREACH_SAFE (link, &list->files) {
        forget(cache, gori_container_of(link, struct gi_web_file, by_age));
    }
}

/* Forgets the oldest that was not used; each that was gets one more round. */
static void forget_one(struct gi_web_cache *cache, struct gi_web_age_list *list)
{
    for (;;) {
        struct gori_link *link = gi_list_first(&list->files);
        GI_ASSERT(link != NULL);
        struct gi_web_file *file = gori_container_of(link, struct gi_web_file, by_age);
        if (!file->used) {
            forget(cache, file);
            return;
        }
        file->used = false;
        gi_list_remove(link);
        gi_list_push_back(&list->files, link);
    }
}

static void make_room(struct gi_web_cache *cache, struct gi_web_age_list *list, uint32_t charge)
{
    while (list->count >= list->count_max) {
        forget_one(cache, list);
    }
    while (cache->bytes + charge > cache->config.bytes_max && cache->small.count > 0) {
        forget_one(cache, &cache->small);
    }
}

/* Loading ---------------------------------------------------------------------------------- */

/* The header lines that go with every answer of a file, and where the entity tag is in them. */
struct lines {
    char type[128];
    char validators[LINES_BYTES];
    size_t type_size;
    size_t validators_size;
    size_t etag_offset;
    size_t etag_size;
    bool has_modified;
};

static size_t write_modified(char *text, size_t text_bytes, int64_t seconds)
{
    uint8_t date[GI_HTTP_DATE_SIZE];
    gi_http_date_format(seconds, date);
    return (size_t)snprintf(text, text_bytes, "Last-Modified: %.*s\r\n", GI_HTTP_DATE_SIZE, date);
}

/*
 * The entity tag is strong: inode, size and the nanosecond of the last change name the bytes, as
 * far as the file system tells versions apart (see 2 above).  A time that is still to come is not
 * told: Last-Modified must not be later than Date.
 */
static void write_lines(struct lines *lines, const struct gori_file_info *info, const char *type,
                        int64_t wall_seconds)
{
    lines->type_size =
        (size_t)snprintf(lines->type, sizeof(lines->type), "Content-Type: %s\r\n", type);
    GI_ASSERT(lines->type_size < sizeof(lines->type));
    char *text = lines->validators;
    size_t size = 0;
    lines->has_modified = info->modified_s <= wall_seconds;
    if (lines->has_modified) {
        size = write_modified(text, LINES_BYTES, info->modified_s);
    }
    size += (size_t)snprintf(text + size, LINES_BYTES - size, "ETag: ");
    lines->etag_offset = size;
    size += (size_t)snprintf(text + size, LINES_BYTES - size, "\"%llx-%llx-%llx.%x\"",
                             (unsigned long long)info->inode, (unsigned long long)info->size,
                             (unsigned long long)info->modified_s, (unsigned)info->modified_ns);
    lines->etag_size = size - lines->etag_offset;
    size += (size_t)snprintf(text + size, LINES_BYTES - size, "\r\nAccept-Ranges: bytes\r\n");
    GI_ASSERT(size < LINES_BYTES);
    lines->validators_size = size;
}

/* Reads all of a small file.  Errors: GORI_EAGAIN when it is not as long as it was. */
static int read_body(struct gi_web_cache *cache, struct gori_file *file,
                     struct gori_block **ret_body)
{
    uint64_t size = gori_file_describe(file)->size;
    if (size == 0) {
        *ret_body = NULL;
        return 0;
    }
    struct gori_block *body;
    uint8_t *data;
    int result = gori_block_build(cache->config.allocator, (size_t)size, &body, &data);
    if (result < 0) {
        return result;
    }
    int64_t got = gori_file_read(file, 0, data, (size_t)size);
    if (got != (int64_t)size) {
        gori_block_unref(body);
        return got < 0 ? (int)got : GORI_EAGAIN;
    }
    *ret_body = body;
    return 0;
}

/* Makes an entry of an open file, whose reference it takes when it succeeds. */
static int make_file(struct gi_web_cache *cache, struct gori_slice name, struct gori_file *open,
                     int64_t wall_seconds, struct gi_web_file **ret_file)
{
    const struct gori_file_info *info = gori_file_describe(open);
    bool is_small = info->size <= cache->config.file_bytes_max;
    struct lines lines;
    const struct gori_slice disk_name = {(const uint8_t *)cache->disk_name,
                                         strlen(cache->disk_name)};
    write_lines(&lines, info, gi_web_mime_type(disk_name), wall_seconds);
    size_t text_size = name.size + lines.type_size + lines.validators_size;
    struct gi_web_file *file = gi_alloc(cache->config.allocator, sizeof(*file) + text_size);
    if (file == NULL) {
        return GORI_ENOMEM;
    }
    *file = (struct gi_web_file){
        .info = *info,
        .name_size = (uint32_t)name.size,
        .type_size = (uint32_t)lines.type_size,
        .validators_size = (uint32_t)lines.validators_size,
        .etag_offset = (uint8_t)lines.etag_offset,
        .etag_size = (uint8_t)lines.etag_size,
        .has_modified = lines.has_modified,
        .settled = info->modified_s + SETTLE_SECONDS <= wall_seconds,
    };
    memcpy(file->text, name.data, name.size);
    memcpy(file->text + name.size, lines.type, lines.type_size);
    memcpy(file->text + name.size + lines.type_size, lines.validators, lines.validators_size);
    file->charge = (uint32_t)(sizeof(*file) + text_size);
    if (!is_small) {
        file->file = open;
        *ret_file = file;
        return 0;
    }
    int result = read_body(cache, open, &file->body);
    if (result < 0) {
        gi_free(cache->config.allocator, file, file_bytes(file));
        return result;
    }
    uint32_t joined = info->size <= GI_WEB_JOIN_BYTES ? (uint32_t)info->size : 0;
    file->charge += (uint32_t)info->size + HEAD_BYTES + joined;
    gori_file_unref(open);
    *ret_file = file;
    return 0;
}

static int open_file(struct gi_web_cache *cache, struct gori_file **ret_file)
{
    int result = gori_root_open_file(cache->root, cache->disk_name, ret_file);
    if ((result == GORI_EMFILE || result == GORI_ENFILE) && cache->large.count > 0) {
        forget_list(cache, &cache->large);
        result = gori_root_open_file(cache->root, cache->disk_name, ret_file);
    }
    return result;
}

static int load_once(struct gi_web_cache *cache, struct gori_slice name, int64_t wall_seconds,
                     struct gi_web_file **ret_file)
{
    struct gori_file *open;
    int result = open_file(cache, &open);
    if (result < 0) {
        return result;
    }
    if (gori_file_describe(open)->is_directory) {
        gori_file_unref(open);
        return name.data[name.size - 1] == '/' ? GORI_ENOTFOUND : GI_WEB_IS_FOLDER;
    }
    result = make_file(cache, name, open, wall_seconds, ret_file);
    if (result < 0) {
        gori_file_unref(open);
    }
    return result;
}

static void remember(struct gi_web_cache *cache, struct gi_web_file *file, uint32_t hash,
                     gori_time loop_now)
{
    struct gi_web_age_list *list = list_of(cache, file);
    make_room(cache, list, file->charge);
    struct gi_web_file **bucket = &cache->buckets[hash & (cache->bucket_count - 1)];
    file->hash = hash;
    file->check_at = gi_add_saturated_u64(loop_now, cache->config.revalidate);
    file->next = *bucket;
    *bucket = file;
    gi_list_push_back(&list->files, &file->by_age);
    list->count++;
    cache->bytes += file->charge;
}

static int load(struct gi_web_cache *cache, struct gori_slice name, uint32_t hash,
                gori_time loop_now, int64_t wall_seconds, struct gi_web_file **ret_file)
{
    cache->misses++;
    if (!cache->config.hidden_files && is_hidden(name)) {
        return GORI_ENOTFOUND;
    }
    set_disk_name(cache, name);
    struct gi_web_file *file;
    int result = GORI_EAGAIN;
    for (int i = 0; i < READ_TRIES_MAX && result == GORI_EAGAIN; i++) {
        result = load_once(cache, name, wall_seconds, &file);
    }
    if (result == 0) {
        remember(cache, file, hash, loop_now);
        *ret_file = file;
    }
    return result;
}

/* Finding ---------------------------------------------------------------------------------- */

/* Whether what is known of a file is still true; it is forgotten when it is not. */
static bool revalidate(struct gi_web_cache *cache, struct gi_web_file *file, gori_time loop_now)
{
    const struct gori_slice name = {file->text, file->name_size};
    set_disk_name(cache, name);
    struct gori_file_info info;
    int result = gori_root_stat(cache->root, cache->disk_name, &info);
    bool is_good = result == 0 ? file->settled && is_same(&info, &file->info) : is_lack(result);
    if (is_good) {
        file->check_at = gi_add_saturated_u64(loop_now, cache->config.revalidate);
    } else {
        forget(cache, file);
    }
    return is_good;
}

static int open_root(struct gi_web_cache *cache, struct gori_root **ret_root,
                     struct gori_file_info *ret_info)
{
    struct gori_root *root;
    int result = gori_root_open(cache->config.allocator, cache->config.root, &root);
    if (result < 0) {
        return result;
    }
    result = gori_root_stat(root, ".", ret_info);
    if (result < 0) {
        gori_root_close(root);
        return result;
    }
    *ret_root = root;
    return 0;
}

/* Follows a root that was switched.  One that cannot be opened now leaves the old one in place. */
static void revalidate_root(struct gi_web_cache *cache, gori_time loop_now)
{
    cache->root_check_at = gi_add_saturated_u64(loop_now, cache->config.revalidate);
    struct gori_root *root;
    struct gori_file_info info;
    if (open_root(cache, &root, &info) < 0) {
        return;
    }
    if (info.inode == cache->root_info.inode && info.device == cache->root_info.device) {
        gori_root_close(root);
        return;
    }
    forget_list(cache, &cache->small);
    forget_list(cache, &cache->large);
    gori_root_close(cache->root);
    cache->root = root;
    cache->root_info = info;
}

static struct gi_web_file *look_up(const struct gi_web_cache *cache, struct gori_slice name,
                                   uint32_t hash)
{
    struct gi_web_file *file = cache->buckets[hash & (cache->bucket_count - 1)];
    while (file != NULL && (file->hash != hash || file->name_size != name.size ||
                            memcmp(file->text, name.data, name.size) != 0)) {
        file = file->next;
    }
    return file;
}

int gi_web_cache_find(struct gi_web_cache *cache, struct gori_slice name, gori_time loop_now,
                      int64_t wall_seconds, struct gi_web_file **ret_file)
{
    GI_ASSERT(name.size > 0 && name.data[0] == '/');
    if (name.size > cache->config.name_bytes_max) {
        return GORI_ENAMETOOLONG;
    }
    if (GI_UNLIKELY(loop_now >= cache->root_check_at)) {
        revalidate_root(cache, loop_now);
    }
    uint32_t hash = hash_name(name);
    struct gi_web_file *file = look_up(cache, name, hash);
    if (file == NULL ||
        (GI_UNLIKELY(loop_now >= file->check_at) && !revalidate(cache, file, loop_now))) {
        return load(cache, name, hash, loop_now, wall_seconds, ret_file);
    }
    cache->hits++;
    file->used = true;
    *ret_file = file;
    return 0;
}

/* Beginning and end ------------------------------------------------------------------------ */

static size_t disk_name_bytes(const struct gi_web_cache *cache)
{
    return (size_t)cache->config.name_bytes_max + sizeof(INDEX_NAME);
}

static char *copy_text(const struct gori_allocator *allocator, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = gi_alloc(allocator, size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

static uint32_t bucket_count_for(uint32_t files)
{
    uint32_t count = 64;
    while (count < files && count < (1u << 20)) {
        count *= 2;
    }
    return count;
}

static void free_memory(struct gi_web_cache *cache)
{
    const struct gori_allocator *allocator = cache->config.allocator;
    gi_free(allocator, cache->disk_name, disk_name_bytes(cache));
    gi_free(allocator, cache->buckets, cache->bucket_count * sizeof(struct gi_web_file *));
    if (cache->config.root != NULL) {
        gi_free(allocator, (void *)(uintptr_t)cache->config.root, strlen(cache->config.root) + 1);
    }
}

int gi_web_cache_init(struct gi_web_cache *cache, const struct gi_web_cache_config *config)
{
    const struct gori_allocator *allocator = config->allocator;
    *cache = (struct gi_web_cache){
        .config = *config,
        .bucket_count = bucket_count_for(config->files_max),
        .small = {.count_max = config->files_max},
        .large = {.count_max = config->open_files_max},
    };
    gi_list_init(&cache->small.files);
    gi_list_init(&cache->large.files);
    cache->config.root = copy_text(allocator, config->root);
    cache->buckets = gi_alloc_array(allocator, cache->bucket_count, sizeof(struct gi_web_file *));
    cache->disk_name = gi_alloc(allocator, disk_name_bytes(cache));
    int result = GORI_ENOMEM;
    if (cache->config.root != NULL && cache->buckets != NULL && cache->disk_name != NULL) {
        result = open_root(cache, &cache->root, &cache->root_info);
    }
    if (result < 0) {
        free_memory(cache);
    }
    return result;
}

void gi_web_cache_fini(struct gi_web_cache *cache)
{
    forget_list(cache, &cache->small);
    forget_list(cache, &cache->large);
    GI_ASSERT(cache->bytes == 0);
    gori_root_close(cache->root);
    free_memory(cache);
}
