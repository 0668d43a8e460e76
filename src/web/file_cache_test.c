/* SPDX-License-Identifier: MIT */
/*
 * Goal: the cache gives what is on the disk, no older than it says, within its bounds.
 * Method: a folder of its own, times that the test chooses, and files whose times it sets.
 */
#include "web/file_cache.h"

#include <gori/error.h>
#include <stdio.h>
#include <string.h>

#include "base/fault_alloc.h"
#include "lib/system.h"
#include "lib/test.h"

#define WALL 2000000000 /* seconds since 1970: long after any file of the test */

struct bed {
    struct gi_fault_alloc memory;
    struct gi_web_cache cache;
    char root[GT_FOLDER_BYTES];
    gori_time now;
};

static void path_of(const struct bed *bed, const char *name, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s", bed->root, name);
}

/* Writes a file that was changed `age` seconds before WALL. */
static void write_aged(const struct bed *bed, const char *name, size_t size, int age)
{
    char path[2 * GT_FOLDER_BYTES];
    path_of(bed, name, path, sizeof(path));
    gt_write_file(bed->root, name, NULL, size);
    gt_set_modified(path, WALL - age);
}

static void begin(struct bed *bed, struct gi_web_cache_config config)
{
    memset(bed, 0, sizeof(*bed));
    gt_make_folder(bed->root);
    gi_fault_alloc_init(&bed->memory, NULL);
    config.allocator = &bed->memory.allocator;
    config.root = bed->root;
    config.bytes_max = config.bytes_max == 0 ? 1 << 20 : config.bytes_max;
    config.files_max = config.files_max == 0 ? 100 : config.files_max;
    config.open_files_max = config.open_files_max == 0 ? 10 : config.open_files_max;
    config.file_bytes_max = 16384;
    config.name_bytes_max = 64;
    config.revalidate = GORI_SECONDS;
    GT_EQUAL(gi_web_cache_init(&bed->cache, &config), 0);
}

static void end(struct bed *bed)
{
    gi_web_cache_fini(&bed->cache);
    gi_fault_alloc_fini(&bed->memory);
    gt_remove_tree(bed->root);
}

static int find(struct bed *bed, const char *name, struct gi_web_file **ret_file)
{
    const struct gori_slice slice = {(const uint8_t *)name, strlen(name)};
    return gi_web_cache_find(&bed->cache, slice, bed->now, WALL, ret_file);
}

static struct gi_web_file *found(struct bed *bed, const char *name)
{
    struct gi_web_file *file;
    GT_EQUAL(find(bed, name, &file), 0);
    return file;
}

static int missed(struct bed *bed, const char *name)
{
    struct gi_web_file *file;
    return find(bed, name, &file);
}

GT_TEST(small_files_are_in_memory_and_large_ones_open)
{
    struct bed bed;
    begin(&bed, (struct gi_web_cache_config){0});
    write_aged(&bed, "small", 100, 10);
    write_aged(&bed, "edge", 16384, 10);
    write_aged(&bed, "large", 16385, 10);
    write_aged(&bed, "empty", 0, 10);
    GT_EQUAL(gori_block_view(found(&bed, "/small")->body).size, 100);
    GT_EQUAL(gori_block_view(found(&bed, "/edge")->body).size, 16384);
    GT_CHECK(found(&bed, "/large")->file != NULL);
    GT_CHECK(!gi_web_file_is_small(found(&bed, "/large")));
    GT_CHECK(found(&bed, "/empty")->body == NULL);
    GT_CHECK(gi_web_file_is_small(found(&bed, "/empty")));
    GT_EQUAL(bed.cache.misses, 4);
    end(&bed);
}

GT_TEST(names)
{
    struct bed bed;
    char path[2 * GT_FOLDER_BYTES];
    begin(&bed, (struct gi_web_cache_config){0});
    path_of(&bed, "folder", path, sizeof(path));
    gt_make_directory(path);
    path_of(&bed, ".hidden", path, sizeof(path));
    gt_make_directory(path);
    write_aged(&bed, "index.html", 1, 10);
    write_aged(&bed, "folder/index.html", 2, 10);
    write_aged(&bed, ".hidden/file", 3, 10);
    GT_EQUAL(found(&bed, "/")->info.size, 1);
    GT_EQUAL(found(&bed, "/folder/")->info.size, 2);
    GT_EQUAL(missed(&bed, "/folder"), GI_WEB_IS_FOLDER);
    GT_EQUAL(missed(&bed, "/nothing"), GORI_ENOTFOUND);
    GT_EQUAL(missed(&bed, "/.hidden/file"), GORI_ENOTFOUND);
    GT_EQUAL(missed(&bed, "/index.html/"), GORI_ENOTDIR);
    GT_EQUAL(missed(&bed, "/a-name-that-is-longer-than-the-sixty-four-bytes-that-are-allowed-here"),
             GORI_ENAMETOOLONG);
    GT_EQUAL(bed.cache.small.count, 2);
    end(&bed);
}

GT_TEST(a_change_is_seen_when_its_time_has_come)
{
    struct bed bed;
    begin(&bed, (struct gi_web_cache_config){0});
    write_aged(&bed, "file", 100, 100);
    GT_EQUAL(found(&bed, "/file")->info.size, 100);
    write_aged(&bed, "file", 200, 50);
    GT_EQUAL(found(&bed, "/file")->info.size, 100);
    bed.now += GORI_SECONDS;
    GT_EQUAL(found(&bed, "/file")->info.size, 200);
    GT_EQUAL(bed.cache.misses, 2);
    bed.now += GORI_SECONDS;
    GT_EQUAL(found(&bed, "/file")->info.size, 200);
    GT_EQUAL(bed.cache.misses, 2);
    end(&bed);
}

GT_TEST(a_file_of_this_moment_is_not_believed)
{
    struct bed bed;
    begin(&bed, (struct gi_web_cache_config){0});
    write_aged(&bed, "file", 100, 0);
    GT_CHECK(!found(&bed, "/file")->settled);
    bed.now += GORI_SECONDS;
    GT_CHECK(found(&bed, "/file") != NULL);
    GT_EQUAL(bed.cache.misses, 2);
    end(&bed);
}

GT_TEST(a_time_to_come_is_not_told)
{
    struct bed bed;
    begin(&bed, (struct gi_web_cache_config){0});
    write_aged(&bed, "file", 100, -1000);
    const struct gi_web_file *file = found(&bed, "/file");
    struct gori_slice lines = gi_web_file_validator_lines(file);
    GT_CHECK(!file->has_modified);
    GT_CHECK(memmem(lines.data, lines.size, "Last-Modified", 13) == NULL);
    GT_CHECK(gi_web_file_etag(file).data[0] == '"');
    end(&bed);
}

GT_TEST(bounds_hold_and_what_is_used_stays)
{
    struct bed bed;
    char name[32];
    begin(&bed,
          (struct gi_web_cache_config){.bytes_max = 100000, .files_max = 20, .open_files_max = 3});
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        write_aged(&bed, name, 10000, 10);
        snprintf(name, sizeof(name), "l%d", i);
        write_aged(&bed, name, 20000, 10);
    }
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "/s%d", i);
        (void)found(&bed, name);
        (void)found(&bed, "/s0");
        snprintf(name, sizeof(name), "/l%d", i);
        (void)found(&bed, name);
        GT_CHECK(bed.cache.bytes <= 100000);
        GT_CHECK(bed.cache.small.count <= 20);
        GT_CHECK(bed.cache.large.count <= 3);
    }
    GT_EQUAL(bed.cache.misses, 80);
    GT_EQUAL(bed.cache.hits, 40);
    end(&bed);
}

GT_TEST(a_root_that_was_switched)
{
    struct bed bed;
    if (gt_is_wine()) {
        GT_SKIP("Wine cannot say what a file beneath a folder that was moved is like");
    }
    begin(&bed, (struct gi_web_cache_config){0});
    write_aged(&bed, "file", 100, 100);
    GT_EQUAL(found(&bed, "/file")->info.size, 100);
    char moved[GT_FOLDER_BYTES + 8];
    snprintf(moved, sizeof(moved), "%s-moved", bed.root);
    gt_rename(bed.root, moved);
    bed.now += GORI_SECONDS;
    GT_EQUAL(found(&bed, "/file")->info.size, 100); /* a root that is gone for a moment */
    gt_make_directory(bed.root);
    write_aged(&bed, "file", 200, 100);
    bed.now += GORI_SECONDS;
    GT_EQUAL(found(&bed, "/file")->info.size, 200);
    gt_remove_tree(moved);
    end(&bed);
}

GT_TEST(every_allocation_fails)
{
    uint64_t failed = 1;
    for (uint64_t number = 1; failed > 0; number++) {
        struct bed bed;
        begin(&bed, (struct gi_web_cache_config){0});
        write_aged(&bed, "small", 100, 10);
        write_aged(&bed, "large", 20000, 10);
        gi_fault_alloc_fail_once(&bed.memory, number);
        const char *names[] = {"/small", "/large"};
        for (size_t i = 0; i < 2; i++) {
            struct gi_web_file *file;
            int result = find(&bed, names[i], &file);
            GT_CHECK(result == 0 || result == GORI_ENOMEM);
            GT_EQUAL(find(&bed, names[i], &file), 0);
        }
        failed = gi_fault_alloc_failed_count(&bed.memory);
        end(&bed);
    }
}

GT_MAIN()
