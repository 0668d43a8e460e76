/* SPDX-License-Identifier: MIT */
/*
 * What is particular to Windows: names that are more than names, paths beneath a root, the codes of
 * two kinds, the clock.
 */
#include "lib/test.h"

#include <gori/error.h>

#include "lib/system.h"
#include "os/os.h"
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
