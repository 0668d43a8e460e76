/* SPDX-License-Identifier: MIT */
/*
 * What is particular to Windows: names that are more than names, paths beneath a root, the codes of
 * two kinds, the clock, names of files that are watched.
 */
#include "lib/test.h"

#include <gori/error.h>

#include "lib/system.h"
#include "os/event.h"
#include "os/os.h"
#include "os/watch.h"
#include "os/windows/system.h"
#include "os/windows/walk.h"

GT_TEST(os_names_that_are_only_names)
{
    static const char *const plain[] = {"a",      "a.txt",    ".hidden", "..x",     "con1",
                                        "nulls",  "COM",      "COM10",   "a b",     "~",
                                        "LPTx.1", "aux_.txt", "a..b",    "\xc3\xa4"};
    static const char *const others[] = {
        "",     ".",           "..",      "a.",       "a ",    "a\\b", "a:b",  "a::$DATA", "a?",
        "a*",   "NUL",         "nul.txt", "Con",      "aux.c", "prn ", "COM1", "lpt9.log", "a\x01",
        "CON.", "COM\xc2\xb9", "CONIN$",  "NUL .txt", "a|b",   "a<b",  "a>b",  "a\"b"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        GT_CHECK(gi_os_name_is_plain(plain[i], strlen(plain[i])));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        GT_CHECK(!gi_os_name_is_plain(others[i], strlen(others[i])));
    }
}

GT_TEST(os_paths_beneath_a_root)
{
    static const struct {
        const char *path;
        int result;
    } cases[] = {
        {"", 0},
        {".", 0},
        {"file", 0},
        {"./file", 0},
        {".//FILE", 0},
        {"..", GORI_EXDEV},
        {"/file", GORI_EXDEV},
        {"none/..", GORI_ENOTFOUND},
        {"file/", GORI_ENOTDIR},
        {"file/..", GORI_ENOTDIR},
        {"file::$DATA", GORI_ENOTFOUND},
        {"file.", GORI_ENOTFOUND},
        {"file ", GORI_ENOTFOUND},
        {".\\file", GORI_ENOTFOUND},
        {"NUL", GORI_ENOTFOUND},
        {"C:/windows", GORI_ENOTFOUND},
        {"..\\..\\windows", GORI_ENOTFOUND},
        {"\xff", GORI_ENOTFOUND},
    };
    char folder[GT_FOLDER_BYTES];
    int root;
    gt_make_folder(folder);
    gt_write_file(folder, "file", "hello", 5);
    GT_EQUAL(gi_os_open_root(folder, &root), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gori_file_info info;
        int fd = -1;
        GT_EQUAL(gi_os_stat_beneath(root, cases[i].path, &info), cases[i].result);
        GT_EQUAL(gi_os_open_beneath(root, cases[i].path, &fd, &info), cases[i].result);
        GT_EQUAL(fd >= 0, cases[i].result == 0);
        if (fd >= 0) {
            gi_os_close_file(fd);
        }
    }
    int fd;
    struct gori_file_info info;
    char bytes[8];
    GT_EQUAL(gi_os_open_beneath(root, "file", &fd, &info), 0);
    GT_EQUAL(info.size, 5);
    GT_CHECK(info.modified_s > INT64_C(1700000000));
    GT_EQUAL(gi_os_read_at(fd, bytes, sizeof(bytes), 1), 4);
    GT_EQUAL_BYTES(bytes, 4, "ello", 4);
    gi_os_close_file(fd);
    gi_os_close_file(root);
    gt_remove_folder(folder, "file");
}

/* What the system tells next, waited for, but for what was written into a file. */
static void next_record(struct gi_watcher *watcher, struct gi_watch_record *ret_record)
{
    HANDLE source = (HANDLE)gi_os_watcher_source(watcher);
    int result;
    do {
        result = gi_os_watcher_next(watcher, ret_record);
        if (result == 0) {
            GT_EQUAL(WaitForSingleObject(source, 20000), WAIT_OBJECT_0);
        }
    } while (result == 0 || (result == 1 && ret_record->kind == GI_WATCH_MODIFIED));
    GT_EQUAL(result, 1);
}

/* W2: a name is told as it was given, whichever way it is written on the disk. */
GT_TEST(os_watch_compares_names_as_the_system_does)
{
    struct gi_watcher *watcher;
    struct gi_os_place places[2];
    struct gi_os_place *place;
    struct gi_watch_record record;
    char folder[GT_FOLDER_BYTES];
    gt_make_folder(folder);
    GT_EQUAL(gi_os_watcher_create(gori_allocator_default(), &watcher), 0);
    GT_EQUAL(gi_os_watcher_add(watcher, folder, "CONF.ini", &places[0], &place), 0);
    GT_CHECK(place == &places[0]);
    gt_write_file(folder, "other", "x", 1);
    gt_write_file(folder, "conf.INI", "x", 1);
    next_record(watcher, &record);
    GT_EQUAL(record.kind, GI_WATCH_CREATED);
    GT_CHECK(record.place == &places[0]);
    GT_EQUAL_STRING(record.name, "CONF.ini");
    GT_EQUAL(gi_os_watcher_add(watcher, folder, NULL, &places[1], &place), 0);
    gi_os_watcher_remove(watcher, &places[0]);
    gt_write_file(folder, "Third", "x", 1);
    next_record(watcher, &record);
    GT_EQUAL(record.kind, GI_WATCH_CREATED);
    GT_CHECK(record.place == &places[1]);
    GT_EQUAL_STRING(record.name, "Third");
    int source = (int)gi_os_watcher_source(watcher);
    gi_os_watcher_destroy(watcher);
    gi_os_event_close(source);
    static const char *const names[] = {"other", "Third"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[2 * GT_FOLDER_BYTES];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        gt_remove(path);
    }
    gt_remove_folder(folder, "conf.INI");
}

GT_TEST(os_watch_finds_the_directory_of_a_path)
{
    GT_EQUAL(gi_os_directory_size("C:\\a\\b"), 5);
    GT_EQUAL(gi_os_directory_size("C:b"), 2);
    GT_EQUAL(gi_os_directory_size("a/b"), 2);
    GT_EQUAL(gi_os_directory_size("b"), 0);
    GT_CHECK(gi_os_is_directory("C:\\windows"));
    GT_CHECK(!gi_os_is_directory("C:\\none"));
}

GT_TEST(os_error_keeps_its_meaning)
{
    GT_EQUAL(gi_os_error(0), 0);
    GT_EQUAL(gi_os_error(WSAEWOULDBLOCK), GORI_EAGAIN);
    GT_EQUAL(gi_os_error(WSAECONNRESET), GORI_ECONNRESET);
    GT_EQUAL(gi_os_error(ERROR_NETNAME_DELETED), GORI_ECONNRESET);
    GT_EQUAL(gi_os_error(ERROR_CONNECTION_REFUSED), GORI_ECONNREFUSED);
    GT_EQUAL(gi_os_error(WSAESHUTDOWN), GORI_EPIPE);
    GT_EQUAL(gi_os_error(ERROR_OPERATION_ABORTED), GORI_ECANCELED);
    GT_EQUAL(gi_os_error(ERROR_FILE_NOT_FOUND), GORI_ENOTFOUND);
    GT_EQUAL(gi_os_error(ERROR_HANDLE_EOF), GORI_ETRUNCATED);
    GT_EQUAL(gi_os_error(WSAEMFILE), GORI_EMFILE);
    GT_EQUAL(gi_os_error(-5), GORI_EUNKNOWN);
    for (int i = 1; i < 20000; i++) {
        GT_CHECK(gi_os_error(i) < 0);
    }
}

GT_TEST(os_now_is_monotonic)
{
    gori_time before = gi_os_now();
    for (int i = 0; i < 1000; i++) {
        gori_time now = gi_os_now();
        GT_CHECK(now >= before);
        before = now;
    }
    GT_CHECK(gi_os_calendar_seconds() > INT64_C(1700000000));
    GT_CHECK(gi_os_entropy() != gi_os_entropy());
}

GT_TEST(os_signals_are_interrupted)
{
    struct gi_os_signals signals;
    struct gi_os_signals second;
    GT_EQUAL(gi_os_signals_open(&signals), 0);
    GT_EQUAL(gi_os_signals_open(&second), 0); /* each hears of its own interrupts only */
    gi_os_signals_interrupt(&second);
    GT_EQUAL(gi_os_signals_wait(&second), 0);
    gi_os_signals_close(&second);
    gi_os_signals_interrupt(&signals);
    gi_os_signals_interrupt(&signals);
    GT_EQUAL(gi_os_signals_wait(&signals), 0);
    gi_os_signals_close(&signals);
    GT_EQUAL(gi_os_signals_open(&signals), 0);
    gi_os_signals_close(&signals);
}

GT_MAIN()
