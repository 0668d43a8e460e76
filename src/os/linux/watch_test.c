/* SPDX-License-Identifier: MIT */
/*
 * The watcher over inotify against a kernel that we play ourselves: numbers that are used again at
 * once, events of removed places, overflows and refusals cannot be had from the real one on demand.
 * Method: the linker puts our inotify calls in place of the C library's; the queue is a pipe.  What
 * the real kernel does is in the conformance suite.
 */
#include "os/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <gori/error.h>
#include <lib/test.h>
#include <sys/inotify.h>

#include "base/compiler.h"
#include "base/fault_alloc.h"
#include "os/event.h"

/* The kernel: what it answers, and what it was asked. */
static struct {
    int queue; /* where its events are put in */
    int init_error;
    int add_error;
    int next_number; /* the answer to the next add */
    int removed;     /* the latest */
    unsigned remove_count;
} g_kernel;

int __wrap_inotify_init1(int flags);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_rm_watch(int fd, int number);

int __wrap_inotify_init1(int flags)
{
    int fds[2];
    GT_EQUAL(flags, IN_NONBLOCK | IN_CLOEXEC);
    if (g_kernel.init_error != 0) {
        errno = g_kernel.init_error;
        return -1;
    }
    GT_EQUAL(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    g_kernel.queue = fds[1];
    return fds[0];
}

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    GT_CHECK(fd >= 0 && path != NULL && (mask & IN_ONLYDIR));
    if (g_kernel.add_error != 0) {
        errno = g_kernel.add_error;
        return -1;
    }
    return g_kernel.next_number;
}

int __wrap_inotify_rm_watch(int fd, int number)
{
    GT_CHECK(fd >= 0);
    g_kernel.removed = number;
    g_kernel.remove_count++;
    return 0;
}

/* Puts an event into the queue, the name padded as the kernel does. */
static void put(int number, uint32_t mask, uint32_t cookie, const char *name)
{
    char bytes[sizeof(struct inotify_event) + 16] = {0};
    struct inotify_event event = {.wd = number, .mask = mask, .cookie = cookie};
    if (name != NULL) {
        event.len = 16;
        snprintf(bytes + sizeof(event), 16, "%s", name);
    }
    memcpy(bytes, &event, sizeof(event));
    GT_EQUAL(write(g_kernel.queue, bytes, sizeof(event) + event.len), sizeof(event) + event.len);
}

struct bed {
    struct gi_fault_alloc memory;
    struct gi_watcher *watcher;
    struct gi_os_place places[4];
};

static void bed_open(struct bed *bed)
{
    gi_fault_alloc_init(&bed->memory, NULL);
    GT_EQUAL(gi_os_watcher_create(&bed->memory.allocator, &bed->watcher), 0);
}

static void bed_close(struct bed *bed)
{
    int source = (int)gi_os_watcher_source(bed->watcher);
    gi_os_watcher_destroy(bed->watcher);
    gi_os_event_close(source);
    close(g_kernel.queue);
    GT_EQUAL(gi_fault_alloc_live_blocks(&bed->memory), 0);
    gi_fault_alloc_fini(&bed->memory);
}

static void add(struct bed *bed, int index, int number)
{
    struct gi_os_place *place;
    g_kernel.next_number = number;
    GT_EQUAL(gi_os_watcher_add(bed->watcher, "folder", NULL, &bed->places[index], &place), 0);
    GT_CHECK(place == &bed->places[index]);
}

/* The next record is of that place, or of all (-1), and says so much. */
static void expect(struct bed *bed, int index, enum gi_watch_kind kind, const char *name)
{
    struct gi_watch_record record;
    GT_EQUAL(gi_os_watcher_next(bed->watcher, &record), 1);
    GT_CHECK(record.place == (index < 0 ? NULL : &bed->places[index]));
    GT_EQUAL(record.kind, kind);
    GT_EQUAL_STRING(record.name, name);
}

static void expect_nothing(struct bed *bed)
{
    struct gi_watch_record record;
    GT_EQUAL(gi_os_watcher_next(bed->watcher, &record), 0);
}

GT_TEST(watch_translates_each_event)
{
    static const struct {
        uint32_t mask;
        enum gi_watch_kind kind;
    } cases[] = {
        {IN_CREATE, GI_WATCH_CREATED},
        {IN_CREATE | IN_ISDIR, GI_WATCH_CREATED},
        {IN_DELETE, GI_WATCH_DELETED},
        {IN_MOVED_FROM, GI_WATCH_MOVED_FROM},
        {IN_MOVED_TO | IN_ISDIR, GI_WATCH_MOVED_TO},
        {IN_MODIFY, GI_WATCH_MODIFIED},
        {IN_ATTRIB, GI_WATCH_ATTRIBUTES},
    };
    struct bed bed;
    bed_open(&bed);
    add(&bed, 0, 7);
    add(&bed, 1, 3);
    for (size_t i = 0; i < GI_ARRAY_COUNT(cases); i++) {
        put(i % 2 == 0 ? 7 : 3, cases[i].mask, 0, "name");
        put(7, IN_ATTRIB | IN_ISDIR, 0, NULL); /* of the directory itself */
    }
    for (size_t i = 0; i < GI_ARRAY_COUNT(cases); i++) {
        expect(&bed, i % 2 == 0 ? 0 : 1, cases[i].kind, "name");
    }
    expect_nothing(&bed);
    bed_close(&bed);
}

GT_TEST(watch_gives_the_pair_of_a_rename)
{
    struct bed bed;
    struct gi_watch_record record;
    bed_open(&bed);
    add(&bed, 0, 1);
    put(1, IN_MOVED_FROM, 77, "a");
    put(1, IN_MOVED_TO, 77, "b");
    for (int i = 0; i < 2; i++) {
        GT_EQUAL(gi_os_watcher_next(bed.watcher, &record), 1);
        GT_EQUAL(record.pair, 77);
    }
    bed_close(&bed);
}

/* W4: the events of a removed place stand before IN_IGNORED, and reach nobody. */
GT_TEST(watch_forgets_what_a_removed_place_was_told)
{
    struct bed bed;
    bed_open(&bed);
    add(&bed, 0, 1);
    put(1, IN_CREATE, 0, "a");
    gi_os_watcher_remove(bed.watcher, &bed.places[0]);
    GT_EQUAL(g_kernel.removed, 1);
    put(1, IN_IGNORED, 0, NULL);
    add(&bed, 1, 2);
    put(2, IN_CREATE, 0, "b");
    expect(&bed, 1, GI_WATCH_CREATED, "b");
    expect_nothing(&bed);
    bed_close(&bed);
}

/* The numbers have gone round: the new place is told what comes after IN_IGNORED, not before. */
GT_TEST(watch_tells_a_reused_number_from_the_old_one)
{
    struct bed bed;
    bed_open(&bed);
    add(&bed, 0, 1);
    put(1, IN_CREATE, 0, "old");
    put(1, IN_DELETE_SELF, 0, NULL);
    gi_os_watcher_remove(bed.watcher, &bed.places[0]);
    put(1, IN_IGNORED, 0, NULL);
    add(&bed, 1, 1);
    put(1, IN_CREATE, 0, "new");
    expect(&bed, 1, GI_WATCH_CREATED, "new");
    expect_nothing(&bed);
    gi_os_watcher_remove(bed.watcher, &bed.places[1]);
    bed_close(&bed);
}

/* An overflow has swallowed IN_IGNORED: the empty queue says as much. */
GT_TEST(watch_tells_a_reused_number_after_an_overflow)
{
    struct bed bed;
    bed_open(&bed);
    add(&bed, 0, 1);
    put(1, IN_CREATE, 0, "old");
    put(-1, IN_Q_OVERFLOW, 0, NULL);
    gi_os_watcher_remove(bed.watcher, &bed.places[0]);
    add(&bed, 1, 1);
    expect(&bed, -1, GI_WATCH_LOST, "");
    expect_nothing(&bed);
    put(1, IN_CREATE, 0, "new");
    expect(&bed, 1, GI_WATCH_CREATED, "new");
    bed_close(&bed);
}

/* W5: whichever way the kernel says it, and however often. */
GT_TEST(watch_tells_once_that_a_place_is_gone)
{
    static const uint32_t masks[] = {IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_IGNORED};
    for (size_t i = 0; i < GI_ARRAY_COUNT(masks); i++) {
        struct bed bed;
        bed_open(&bed);
        add(&bed, 0, 1);
        put(1, masks[i], 0, NULL);
        put(1, IN_IGNORED, 0, NULL);
        put(1, IN_CREATE, 0, "a");
        expect(&bed, 0, GI_WATCH_GONE, "");
        expect_nothing(&bed);
        gi_os_watcher_remove(bed.watcher, &bed.places[0]);
        add(&bed, 1, 1);
        expect_nothing(&bed);
        put(1, IN_CREATE, 0, "b");
        expect(&bed, 1, GI_WATCH_CREATED, "b");
        bed_close(&bed);
    }
}

GT_TEST(watch_answers_the_place_that_a_directory_is)
{
    struct bed bed;
    struct gi_os_place *place;
    bed_open(&bed);
    add(&bed, 0, 5);
    GT_EQUAL(gi_os_watcher_add(bed.watcher, "same", NULL, &bed.places[1], &place), 0);
    GT_CHECK(place == &bed.places[0]);
    g_kernel.remove_count = 0;
    gi_os_watcher_remove(bed.watcher, &bed.places[0]);
    GT_EQUAL(g_kernel.remove_count, 1);
    bed_close(&bed);
}

/* What comes and goes while nobody looks must not pile up once somebody does. */
GT_TEST(watch_keeps_many_numbers_in_order)
{
    enum { COUNT = 1000 };
    struct bed bed;
    static struct gi_os_place places[COUNT];
    struct gi_os_place *place;
    struct gi_watch_record record;
    bed_open(&bed);
    for (int i = 0; i < COUNT; i++) {
        g_kernel.next_number = (i * 7) % COUNT + 1; /* each once */
        GT_EQUAL(gi_os_watcher_add(bed.watcher, "x", NULL, &places[i], &place), 0);
        GT_CHECK(place == &places[i]);
    }
    for (int i = 0; i < COUNT; i += 2) {
        gi_os_watcher_remove(bed.watcher, &places[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        put((i * 7) % COUNT + 1, IN_CREATE, 0, "a");
        bool is_there = i % 2 == 1;
        GT_EQUAL(gi_os_watcher_next(bed.watcher, &record), is_there);
        GT_CHECK(!is_there || record.place == &places[i]);
    }
    bed_close(&bed);
}

GT_TEST(watch_says_what_has_run_out)
{
    struct bed bed;
    struct gi_os_place *place = NULL;
    gi_fault_alloc_init(&bed.memory, NULL);
    g_kernel.init_error = EMFILE;
    GT_EQUAL(gi_os_watcher_create(&bed.memory.allocator, &bed.watcher), GORI_EMFILE);
    g_kernel.init_error = 0;
    bed_open(&bed);
    static const struct {
        int system;
        int error;
    } cases[] = {{ENOSPC, GORI_ELIMIT},   {ENOMEM, GORI_ENOMEM},  {ENOENT, GORI_ENOTFOUND},
                 {ENOTDIR, GORI_ENOTDIR}, {EACCES, GORI_EACCESS}, {ELOOP, GORI_ELOOP}};
    for (size_t i = 0; i < GI_ARRAY_COUNT(cases); i++) {
        g_kernel.add_error = cases[i].system;
        GT_EQUAL(gi_os_watcher_add(bed.watcher, "x", NULL, &bed.places[0], &place), cases[i].error);
        GT_CHECK(place == NULL);
    }
    g_kernel.add_error = 0;
    bed_close(&bed);
}

GT_TEST(watch_finds_the_directory_of_a_path)
{
    GT_EQUAL(gi_os_directory_size("name"), 0);
    GT_EQUAL(gi_os_directory_size("/name"), 1);
    GT_EQUAL(gi_os_directory_size("a/b/name"), 4);
    GT_EQUAL(gi_os_directory_size("a/"), 2);
    GT_EQUAL(gi_os_directory_size(""), 0);
    GT_CHECK(gi_os_is_directory("/"));
    GT_CHECK(!gi_os_is_directory("/proc/self/exe"));
    GT_CHECK(!gi_os_is_directory("/none"));
}

GT_MAIN()
