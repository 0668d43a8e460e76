/* SPDX-License-Identifier: MIT */
/*
 * Files and descriptors for tests on a POSIX system; contract: system.h.
 */
#include "lib/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/test.h"

int gt_open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    GT_CHECK(directory != NULL);
    int count = 0;
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

bool gt_is_wine(void)
{
    return false;
}

void gt_event_open(struct gt_event *event)
{
    int fds[2];
    GT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    *event = (struct gt_event){.native = fds[0], .other = fds[1]};
}

void gt_event_set(const struct gt_event *event, bool is_ready)
{
    char bytes[64];
    if (is_ready) {
        GT_EQUAL(write((int)event->other, "x", 1), 1);
    } else {
        while (read((int)event->native, bytes, sizeof(bytes)) > 0) {
        }
    }
}

bool gt_event_fill(const struct gt_event *event, bool is_full)
{
    char bytes[4096] = {0};
    if (is_full) {
        while (write((int)event->native, bytes, sizeof(bytes)) > 0) {
        }
    } else {
        while (read((int)event->other, bytes, sizeof(bytes)) > 0) {
        }
    }
    return true;
}

void gt_event_close(const struct gt_event *event)
{
    close((int)event->native);
    close((int)event->other);
}

bool gt_raise(int number)
{
    GT_EQUAL(kill(getpid(), number), 0);
    return true;
}

const char *gt_child_program(void)
{
    const char *path = getenv("GORI_TEST_CHILD");
    GT_CHECK(path != NULL);
    return path;
}

void gt_wait_for_child(int64_t id)
{
    siginfo_t info;
    GT_EQUAL(waitid(P_PID, (id_t)id, &info, WEXITED | WNOWAIT), 0);
}

void gt_reap_child(int64_t id)
{
    int status;
    GT_EQUAL(waitpid((pid_t)id, &status, 0), id);
}

void gt_spoil_process(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    GT_EQUAL(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    GT_CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    GT_CHECK(signal(SIGHUP, SIG_IGN) != SIG_ERR);
    for (int fd = 3; fd < 1024; fd++) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* what this program was started with */
    }
}

bool gt_is_same_folder(const char *one, const char *other)
{
    struct stat first;
    struct stat second;
    return stat(one, &first) == 0 && stat(other, &second) == 0 && first.st_ino == second.st_ino &&
           first.st_dev == second.st_dev;
}

bool gt_limit_descriptors(int room)
{
    static struct rlimit before;
    struct rlimit limit;
    GT_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (before.rlim_max == 0) {
        before = limit;
    }
    limit.rlim_cur = before.rlim_cur;
    GT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (room >= 0) {
        int next = dup(0); /* numbers are given out from below: this is the lowest free one */
        GT_CHECK(next >= 0);
        close(next);
        limit.rlim_cur = (rlim_t)(next + room);
        GT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    return true;
}

int gt_read_file(int file, void *data, size_t size)
{
    return (int)pread(file, data, size, 0);
}

int gt_make_file(const void *data, size_t size)
{
    char path[] = "/tmp/gori-test-XXXXXX";
    int file = mkstemp(path);
    GT_CHECK(file >= 0);
    unlink(path);
    GT_EQUAL(write(file, data, size), size);
    return file;
}

void gt_close_file(int file)
{
    close(file);
}

void gt_make_folder(char path[GT_FOLDER_BYTES])
{
    snprintf(path, GT_FOLDER_BYTES, "/tmp/gori-test-XXXXXX");
    GT_CHECK(mkdtemp(path) != NULL);
}

void gt_write_file(const char *folder, const char *name, const void *data, size_t size)
{
    char path[2 * GT_PROGRAM_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *stream = fopen(path, "wb");
    GT_CHECK(stream != NULL);
    GT_EQUAL(data == NULL || fwrite(data, 1, size, stream) == size, 1);
    GT_EQUAL(fflush(stream), 0);
    GT_EQUAL(ftruncate(fileno(stream), (off_t)size), 0);
    GT_EQUAL(fclose(stream), 0);
}

void gt_append_file(const char *path, const void *data, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    GT_CHECK(file >= 0);
    GT_EQUAL(write(file, data, size), size);
    close(file);
}

void gt_touch_file(const char *path)
{
    struct stat status;
    GT_EQUAL(stat(path, &status), 0);
    GT_EQUAL(chmod(path, (status.st_mode & 0777) ^ S_IRGRP), 0);
}

void gt_make_directory(const char *path)
{
    GT_EQUAL(mkdir(path, 0700), 0);
}

void gt_make_directory_if_missing(const char *path)
{
    GT_CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
}

void gt_rename(const char *from, const char *to)
{
    GT_EQUAL(rename(from, to), 0);
}

void gt_remove(const char *path)
{
    GT_EQUAL(remove(path), 0);
}

bool gt_make_fifo(const char *folder, const char *name)
{
    char path[2 * GT_FOLDER_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return mkfifo(path, 0600) == 0;
}

bool gt_limit_file_size(size_t size)
{
    const struct rlimit limit = {.rlim_cur = size, .rlim_max = size};
    return signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

void gt_set_modified(const char *path, int64_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = (time_t)seconds}, {.tv_sec = (time_t)seconds}};
    GT_EQUAL(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

void gt_remove_tree(const char *path)
{
    GT_EQUAL(nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void gt_program_path(char path[GT_PROGRAM_BYTES])
{
    ssize_t size = readlink("/proc/self/exe", path, GT_PROGRAM_BYTES - 1);
    GT_CHECK(size > 0 && size < GT_PROGRAM_BYTES - 1);
    path[size] = '\0';
}

void gt_pause(void)
{
    (void)poll(NULL, 0, 1);
}

void gt_remove_folder(const char *folder, const char *name)
{
    char path[2 * GT_FOLDER_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    GT_EQUAL(unlink(path), 0);
    GT_EQUAL(rmdir(folder), 0);
}
