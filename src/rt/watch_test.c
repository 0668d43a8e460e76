/* SPDX-License-Identifier: MIT */
/*
 * Watches of files where the conformance suite cannot go, since it is about one system: symbolic
 * links, paths relative to where the process stands, rights, and threads.
 */
#include <gori/error.h>
#include <gori/loop.h>
#include <gori/watch.h>
#include <lib/test.h>
#include <pthread.h>
#include <sys/stat.h>

#include "lib/system.h"

struct bed {
    struct gori_loop *loop;
    char folder[GT_FOLDER_BYTES];
    struct gori_watch watch;
    char words[256];
};

static void changed(struct gori_watch *watch, const struct gori_change *change)
{
    struct bed *bed = watch->user;
    size_t used = strlen(bed->words);
    snprintf(bed->words + used, sizeof(bed->words) - used, "%d:%s ", (int)change->kind,
             change->name);
}

/* The process stands in the new folder: all names are relative. */
static void bed_open(struct bed *bed)
{
    *bed = (struct bed){.watch.on_change = changed, .watch.user = bed};
    GT_EQUAL(gori_loop_create(NULL, &bed->loop), 0);
    gt_make_folder(bed->folder);
    GT_EQUAL(chdir(bed->folder), 0);
}

static void bed_close(struct bed *bed)
{
    gori_loop_destroy(bed->loop);
    GT_EQUAL(chdir("/"), 0);
    gt_remove(bed->folder);
}

static void settle(struct bed *bed)
{
    for (int i = 0; i < 50; i++) {
        GT_CHECK(gori_loop_turn(bed->loop, 0) >= 0);
    }
}

static void expect(struct bed *bed, enum gori_change_kind kind, const char *name)
{
    char word[64];
    snprintf(word, sizeof(word), "%d:%s ", (int)kind, name);
    while (bed->words[0] == '\0') {
        GT_CHECK(gori_loop_turn(bed->loop, GORI_MILLISECONDS) >= 0);
    }
    settle(bed);
    GT_EQUAL_STRING(bed->words, word);
    bed->words[0] = '\0';
}

static void expect_nothing(struct bed *bed)
{
    settle(bed);
    GT_EQUAL_STRING(bed->words, "");
}

static void make_link(const char *target, const char *name)
{
    GT_EQUAL(symlink(target, name), 0);
}

/* Rule 7: that the link is switched is seen, what happens to its target is not. */
GT_TEST(watch_of_a_link_is_of_the_link)
{
    struct bed bed;
    bed_open(&bed);
    gt_append_file("one", "x", 1);
    gt_append_file("two", "x", 1);
    make_link("one", "conf");
    GT_EQUAL(gori_watch_start_file(bed.loop, "conf", &bed.watch), 0);
    gt_append_file("one", "x", 1);
    expect_nothing(&bed);
    make_link("two", "conf.new");
    gt_rename("conf.new", "conf");
    expect(&bed, GORI_CHANGE_CREATED, "conf");
    gt_append_file("two", "x", 1);
    expect_nothing(&bed);
    gt_remove("conf");
    expect(&bed, GORI_CHANGE_DELETED, "conf");
    gori_watch_stop(&bed.watch);
    gt_remove("one");
    gt_remove("two");
    bed_close(&bed);
}

/* Rule 7: links on the way are followed once. */
GT_TEST(watch_follows_links_when_it_starts)
{
    struct bed bed;
    bed_open(&bed);
    gt_make_directory("one");
    gt_make_directory("two");
    make_link("one", "now");
    GT_EQUAL(gori_watch_start_directory(bed.loop, "now", &bed.watch), 0);
    gt_append_file("one/a", "", 0);
    expect(&bed, GORI_CHANGE_CREATED, "a");
    make_link("two", "new");
    gt_rename("new", "now");
    gt_append_file("now/b", "", 0);
    expect_nothing(&bed);
    gt_append_file("one/c", "", 0);
    expect(&bed, GORI_CHANGE_CREATED, "c");
    gori_watch_stop(&bed.watch);
    make_link("none", "dangling");
    make_link("loop", "loop");
    GT_EQUAL(gori_watch_start_directory(bed.loop, "dangling", &bed.watch), GORI_ENOTFOUND);
    GT_EQUAL(gori_watch_start_directory(bed.loop, "loop", &bed.watch), GORI_ELOOP);
    GT_EQUAL(gori_watch_start_file(bed.loop, "now/b/c", &bed.watch), GORI_ENOTDIR);
    static const char *const names[] = {"one/a", "one/c", "two/b", "one",
                                        "two",   "now",   "loop",  "dangling"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        gt_remove(names[i]);
    }
    bed_close(&bed);
}

/* Where the process stands later does not matter. */
GT_TEST(watch_takes_relative_paths)
{
    struct bed bed;
    bed_open(&bed);
    GT_EQUAL(gori_watch_start_file(bed.loop, "conf", &bed.watch), 0);
    GT_EQUAL(chdir("/"), 0);
    char path[2 * GT_FOLDER_BYTES];
    snprintf(path, sizeof(path), "%s/conf", bed.folder);
    gt_append_file(path, "", 0);
    expect(&bed, GORI_CHANGE_CREATED, "conf");
    gori_watch_stop(&bed.watch);
    GT_EQUAL(chdir(bed.folder), 0);
    GT_EQUAL(gori_watch_start_directory(bed.loop, ".", &bed.watch), 0);
    gt_remove(path);
    expect(&bed, GORI_CHANGE_DELETED, "conf");
    bed_close(&bed);
}

/* A name of more bytes than any system has, and one that just fits. */
GT_TEST(watch_takes_long_names)
{
    struct bed bed;
    bed_open(&bed);
    char name[2001];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    GT_EQUAL(gori_watch_start_file(bed.loop, name, &bed.watch), GORI_ENAMETOOLONG);
    name[255] = '\0';
    GT_EQUAL(gori_watch_start_directory(bed.loop, ".", &bed.watch), 0);
    bed.words[0] = '\0';
    gt_append_file(name, "", 0);
    while (bed.words[0] == '\0') {
        GT_CHECK(gori_loop_turn(bed.loop, GORI_MILLISECONDS) >= 0);
    }
    GT_EQUAL(strncmp(bed.words, "1:nnnn", 6), 0);
    gori_watch_stop(&bed.watch);
    gt_remove(name);
    bed_close(&bed);
}

GT_TEST(watch_needs_the_right_to_read_the_directory)
{
    struct bed bed;
    bed_open(&bed);
    gt_make_directory("closed");
    GT_EQUAL(chmod("closed", 0), 0);
    bool was_root = geteuid() == 0;
    GT_EQUAL(was_root ? chmod(".", 0755) : 0, 0);
    GT_EQUAL(was_root ? seteuid(65534) : 0, 0);
    GT_EQUAL(gori_watch_start_directory(bed.loop, "closed", &bed.watch), GORI_EACCESS);
    GT_EQUAL(gori_watch_start_file(bed.loop, "closed/conf", &bed.watch), GORI_EACCESS);
    GT_EQUAL(was_root ? seteuid(0) : 0, 0);
    GT_CHECK(!gori_watch_is_active(&bed.watch));
    gt_remove("closed");
    bed_close(&bed);
}

static void *start_elsewhere(void *user)
{
    struct bed *bed = user;
    GT_EQUAL(gori_watch_start_directory(bed->loop, ".", &bed->watch), GORI_EWRONGTHREAD);
    return NULL;
}

GT_TEST(watch_starts_on_the_thread_of_its_loop)
{
    struct bed bed;
    pthread_t thread;
    bed_open(&bed);
    GT_EQUAL(gori_loop_turn(bed.loop, 0), 0);
    GT_EQUAL(pthread_create(&thread, NULL, start_elsewhere, &bed), 0);
    GT_EQUAL(pthread_join(thread, NULL), 0);
    bed_close(&bed);
}

GT_MAIN()
