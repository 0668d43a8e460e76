/* SPDX-License-Identifier: MIT */
/*
 * Paths beneath a root.  One table of what every path means is put to both ways of resolving: what
 * the kernel's answers, ours does too.
 */
#include "lib/test.h"

#include <fcntl.h>
#include <gori/error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "os/resolve.h"

/* A tree with a root in it, and what lies around it.  The test's process ends in its folder. */
static int make_tree(void)
{
    static const char *const folders[] = {"root", "root/a", "root/a/b", "root/a/b/c", "outside"};
    static const char *const files[] = {"secret", "root/f", "root/a/f", "root/a/b/f", "root/..x"};
    static const char *const links[][2] = {
        {"f", "root/to-f"},          {"a", "root/to-a"},           {"../f", "root/a/up-f"},
        {"../secret", "root/out"},   {"/etc/passwd", "root/abs"},  {"../../secret", "root/a/out"},
        {"loop", "root/loop"},       {"nowhere", "root/dangling"}, {"to-f", "root/to-to-f"},
        {"a/b/c/../../f", "root/z"}, {"to-a/b", "root/y"},         {"..", "root/a/parent"},
        {"f/", "root/to-f-slash"},   {".", "root/self"},           {"..", "root/up"},
    };
    char folder[] = "/tmp/gori-file-XXXXXX";
    GT_CHECK(mkdtemp(folder) != NULL);
    GT_EQUAL(chdir(folder), 0);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        GT_EQUAL(mkdir(folders[i], 0755), 0);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd = open(files[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        GT_EQUAL(write(fd, files[i], strlen(files[i])), strlen(files[i]));
        gi_os_close(fd);
    }
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        GT_EQUAL(symlink(links[i][0], links[i][1]), 0);
    }
    GT_EQUAL(mkfifo("root/fifo", 0644), 0);
    int root;
    GT_EQUAL(gi_os_open_root("root", &root), 0);
    return root;
}

static void remove_tree(int root)
{
    char command[256];
    char folder[128];
    gi_os_close(root);
    GT_CHECK(getcwd(folder, sizeof(folder)) != NULL);
    GT_EQUAL(strncmp(folder, "/tmp/gori-file-", 15), 0);
    GT_EQUAL(chdir("/"), 0);
    (void)snprintf(command, sizeof(command), "rm -r '%s'", folder);
    GT_EQUAL(system(command), 0);
}

static const struct {
    const char *path;
    int result;
    bool is_directory;
    const char *content; /* of files: every one holds its own name */
} cases[] = {
    {"", 0, true, NULL},
    {".", 0, true, NULL},
    {"./", 0, true, NULL},
    {"./.", 0, true, NULL},
    {"f", 0, false, "root/f"},
    {"./f", 0, false, "root/f"},
    {".//f", 0, false, "root/f"},
    {"a", 0, true, NULL},
    {"a/", 0, true, NULL},
    {"a//b/./f", 0, false, "root/a/b/f"},
    {"a/..", 0, true, NULL},
    {"a/../f", 0, false, "root/f"},
    {"a/b/c/../../../a/f", 0, false, "root/a/f"},
    {"..x", 0, false, "root/..x"},
    {"to-f", 0, false, "root/f"},
    {"to-to-f", 0, false, "root/f"},
    {"to-a/f", 0, false, "root/a/f"},
    {"to-a/../f", 0, false, "root/f"},
    {"to-a/up-f", 0, false, "root/f"},
    {"a/parent/f", 0, false, "root/f"},
    {"a/parent", 0, true, NULL},
    {"self/self/a/f", 0, false, "root/a/f"},
    {"y/f", 0, false, "root/a/b/f"},
    {"y/../f", 0, false, "root/a/f"},
    {"z", 0, false, "root/a/f"},
    {"..", GORI_EXDEV, false, NULL},
    {"../root/f", GORI_EXDEV, false, NULL},
    {"a/../..", GORI_EXDEV, false, NULL},
    {"a/../../root/f", GORI_EXDEV, false, NULL},
    {"/", GORI_EXDEV, false, NULL},
    {"/etc/passwd", GORI_EXDEV, false, NULL},
    {"out", GORI_EXDEV, false, NULL},
    {"a/out", GORI_EXDEV, false, NULL},
    {"abs", GORI_EXDEV, false, NULL},
    {"up/f", GORI_EXDEV, false, NULL},
    {"loop", GORI_ELOOP, false, NULL},
    {"loop/x", GORI_ELOOP, false, NULL},
    {"dangling", GORI_ENOTFOUND, false, NULL},
    {"none", GORI_ENOTFOUND, false, NULL},
    {"none/..", GORI_ENOTFOUND, false, NULL},
    {"none/f", GORI_ENOTFOUND, false, NULL},
    {"f/", GORI_ENOTDIR, false, NULL},
    {"f/x", GORI_ENOTDIR, false, NULL},
    {"f/..", GORI_ENOTDIR, false, NULL},
    {"f/.", GORI_ENOTDIR, false, NULL},
    {"to-f/", GORI_ENOTDIR, false, NULL},
    {"to-f-slash", GORI_ENOTDIR, false, NULL},
    {"fifo", GORI_EACCESS, false, NULL},
    {"fifo/x", GORI_ENOTDIR, false, NULL},
};

static void check_case(gi_os_resolve_fn *resolve, int root, size_t i)
{
    struct gori_file_info info = {.size = 999};
    struct gori_file_info again = {0};
    int fd = -1;
    int result = gi_os_open_by(resolve, root, cases[i].path, &fd, &info);
    if (result != cases[i].result) {
        fprintf(stderr, "path \"%s\"\n", cases[i].path);
    }
    GT_EQUAL(result, cases[i].result);
    GT_EQUAL(gi_os_stat_by(resolve, root, cases[i].path, &again), cases[i].result);
    if (result < 0) {
        GT_EQUAL(fd, -1);
        GT_EQUAL(info.size, 999);
        return;
    }
    GT_EQUAL(info.inode, again.inode);
    GT_EQUAL(info.is_directory, cases[i].is_directory);
    GT_CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    if (cases[i].content != NULL) {
        char content[64];
        GT_EQUAL(info.size, strlen(cases[i].content));
        GT_EQUAL(gi_os_read_at(fd, content, sizeof(content), 0), info.size);
        GT_EQUAL_BYTES(content, info.size, cases[i].content, strlen(cases[i].content));
    }
    gi_os_close(fd);
}

/* Descriptors open now, by the lowest number that is free. */
static int lowest_free(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    gi_os_close(fd);
    return fd;
}

static void check_all(gi_os_resolve_fn *resolve)
{
    int root = make_tree();
    int before = lowest_free();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_case(resolve, root, i);
    }
    GT_EQUAL(lowest_free(), before);
    remove_tree(root);
}

GT_TEST(os_paths_by_walk)
{
    check_all(gi_os_resolve_by_walk);
}

/* Not everywhere: an emulator, a filter or an old kernel may refuse it. */
static bool has_openat2(void)
{
    int fd;
    bool has = gi_os_resolve_by_kernel(AT_FDCWD, ".", O_RDONLY, 0, &fd) == 0;
    if (has) {
        close(fd);
    }
    return has;
}

GT_TEST(os_paths_by_kernel)
{
    if (!has_openat2()) {
        GT_SKIP("this machine has no openat2");
    }
    check_all(gi_os_resolve_by_kernel);
}

/* Chains of links are followed up to the kernel's number, on both ways. */
GT_TEST(os_link_chains_have_one_limit)
{
    gi_os_resolve_fn *const ways[] = {gi_os_resolve_by_walk, gi_os_resolve_by_kernel};
    int way_count = has_openat2() ? 2 : 1;
    int root = make_tree();
    char name[16] = "f";
    char next[16];
    for (int i = 1; i <= 41; i++) {
        (void)snprintf(next, sizeof(next), "link%d", i);
        GT_EQUAL(symlinkat(name, root, next), 0);
        memcpy(name, next, sizeof(name));
    }
    struct gori_file_info info;
    for (int i = 0; i < way_count; i++) {
        GT_EQUAL(gi_os_stat_by(ways[i], root, "link40", &info), 0);
        GT_EQUAL(gi_os_stat_by(ways[i], root, "link41", &info), GORI_ELOOP);
    }
    remove_tree(root);
}

GT_TEST(os_long_paths_are_refused)
{
    gi_os_resolve_fn *const ways[] = {gi_os_resolve_by_walk, gi_os_resolve_by_kernel};
    int way_count = has_openat2() ? 2 : 1;
    static char path[8192];
    int root = make_tree();
    struct gori_file_info info;
    for (int i = 0; i < way_count; i++) {
        memset(path, 'x', 256);
        path[256] = '\0';
        GT_EQUAL(gi_os_stat_by(ways[i], root, path, &info), GORI_ENAMETOOLONG);
        for (size_t at = 0; at + 2 < sizeof(path); at += 2) {
            memcpy(path + at, "./", 3);
        }
        GT_EQUAL(gi_os_stat_by(ways[i], root, path, &info), GORI_ENAMETOOLONG);
        path[4090] = '\0';
        GT_EQUAL(gi_os_stat_by(ways[i], root, path, &info), 0);
    }
    remove_tree(root);
}

GT_TEST(os_root_is_a_folder)
{
    int fd = -1;
    GT_EQUAL(gi_os_open_root("/dev/null", &fd), GORI_ENOTDIR);
    GT_EQUAL(gi_os_open_root("/no/such/folder", &fd), GORI_ENOTFOUND);
    GT_EQUAL(fd, -1);
    int root = make_tree();
    GT_EQUAL(gi_os_open_root("root/to-a", &fd), 0);
    gi_os_close(fd);
    struct gori_file_info info;
    GT_EQUAL(gi_os_open_beneath(root, "f", &fd, &info), 0);
    GT_EQUAL(gi_os_stat_beneath(root, "a", &info), 0);
    GT_CHECK(info.is_directory);
    GT_EQUAL(gi_os_read_at(fd, &info, 100, 1), 5);
    GT_EQUAL(gi_os_read_at(fd, &info, 100, 6), 0);
    gi_os_close(fd);
    remove_tree(root);
}

/* Each is tried once more with O_EXCL, when whatever is there is in the way, a link too. */
static const struct {
    const char *path;
    int result;
    int again;
    const char *made; /* seen from the folder around the root */
} makes[] = {
    {"new", 0, GORI_EEXIST, "root/new"},
    {"./a/b/new", 0, GORI_EEXIST, "root/a/b/new"},
    {"a/../beside", 0, GORI_EEXIST, "root/beside"},
    {"to-a/linked", 0, GORI_EEXIST, "root/a/linked"},
    {"f", 0, GORI_EEXIST, "root/f"},
    {"to-f", 0, GORI_EEXIST, "root/f"},
    {"dangling", 0, GORI_EEXIST, "root/nowhere"},
    {"a", GORI_EISDIR, GORI_EEXIST, NULL},
    {"none/new", GORI_ENOTFOUND, GORI_ENOTFOUND, NULL},
    {"f/new", GORI_ENOTDIR, GORI_ENOTDIR, NULL},
    {"../new", GORI_EXDEV, GORI_EXDEV, NULL},
    {"up/new", GORI_EXDEV, GORI_EXDEV, NULL},
    {"out", GORI_EXDEV, GORI_EEXIST, NULL},
    {"loop", GORI_ELOOP, GORI_EEXIST, NULL},
};

static void check_makes(gi_os_resolve_fn *resolve)
{
    int root = make_tree();
    int flags = gi_os_open_flags(GI_OS_FILE_WRITE | GI_OS_FILE_CREATE);
    for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]); i++) {
        int fd = -1;
        int result = resolve(root, makes[i].path, flags, 0640, &fd);
        int again = resolve(root, makes[i].path, flags | O_EXCL, 0640, &fd);
        if (result != makes[i].result || again != makes[i].again) {
            fprintf(stderr, "path \"%s\": %d, %d\n", makes[i].path, result, again);
        }
        GT_EQUAL(result, makes[i].result);
        GT_EQUAL(again, makes[i].again);
        if (result == 0) {
            struct stat by_fd;
            struct stat by_path;
            GT_EQUAL(fstat(fd, &by_fd), 0);
            GT_EQUAL(stat(makes[i].made, &by_path), 0);
            GT_EQUAL(by_fd.st_ino, by_path.st_ino);
            gi_os_close(fd);
        }
    }
    struct stat status;
    GT_EQUAL(stat("new", &status), -1);
    GT_EQUAL(stat("root/new", &status), 0);
    GT_EQUAL(status.st_mode & 0777, 0640);
    remove_tree(root);
}

GT_TEST(os_files_are_made_beneath_the_root_by_walk)
{
    (void)umask(022);
    check_makes(gi_os_resolve_by_walk);
}

GT_TEST(os_files_are_made_beneath_the_root_by_kernel)
{
    if (!has_openat2()) {
        GT_SKIP("this machine has no openat2");
    }
    (void)umask(022);
    check_makes(gi_os_resolve_by_kernel);
}

GT_MAIN()
