/* SPDX-License-Identifier: MIT */
/*
 * Paths beneath a root, component by component: for systems without openat2.
 *
 * The walk keeps two texts: `done`, the way from the root to where it stands, free of links and of
 * "..", and `rest`, what is still to go.  A directory is entered with O_NOFOLLOW; a link is read
 * and put before the rest; ".." shortens `done` and goes there again from the root, so that a
 * directory that somebody moves out of the root meanwhile takes nobody with it. Thread: any.
 * Reading: path_resolution(7).
 */
#include <errno.h>
#include <fcntl.h>
#include <gori/error.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/resolve.h"

#define PATH_BYTES 4096 /* of a whole path, as the kernel has it */
#define LINKS_MAX  40

struct walk {
    int root_fd;
    int fd; /* where the walk stands; the root's own descriptor at the start */
    int links;
    int open_flags; /* for the end of the way */
    mode_t mode;
    size_t done_size;
    char done[PATH_BYTES];
    char rest[PATH_BYTES];
};

static void stand_at(struct walk *walk, int fd)
{
    if (walk->fd != walk->root_fd) {
        gi_os_close(walk->fd);
    }
    walk->fd = fd;
}

static int enter(struct walk *walk, const char *name)
{
    int fd = openat(walk->fd, name, GI_OS_O_LOOK | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return gi_os_error(errno);
    }
    stand_at(walk, fd);
    return 0;
}

/* Takes the first component of a path off it: skips what separates, ends it, answers the rest. */
static char *split(char *path, char **ret_name)
{
    char *name = path + strspn(path, "/");
    char *end = name + strcspn(name, "/");
    *ret_name = name;
    if (*end == '\0') {
        return end;
    }
    *end = '\0';
    return end + 1;
}

/* Goes again from the root to `done`. */
static int walk_again(struct walk *walk)
{
    char path[PATH_BYTES];
    memcpy(path, walk->done, walk->done_size);
    path[walk->done_size] = '\0';
    stand_at(walk, walk->root_fd);
    char *name;
    char *next = split(path, &name);
    while (*name != '\0') {
        int error = enter(walk, name);
        if (error < 0) {
            return error;
        }
        next = split(next, &name);
    }
    return 0;
}

static int leave(struct walk *walk)
{
    if (walk->done_size == 0) {
        return GORI_EXDEV;
    }
    do {
        walk->done_size--;
    } while (walk->done[walk->done_size] != '/');
    return walk_again(walk);
}

static int step_into(struct walk *walk, const char *name)
{
    size_t size = strlen(name);
    if (walk->done_size + size + 2 > sizeof(walk->done)) {
        return GORI_ENAMETOOLONG;
    }
    int error = enter(walk, name);
    if (error < 0) {
        return error;
    }
    walk->done[walk->done_size] = '/';
    memcpy(walk->done + walk->done_size + 1, name, size);
    walk->done_size += size + 1;
    return 0;
}

/* Puts what the link `name` says before `rest` (which may be a part of walk->rest). */
static int follow(struct walk *walk, const char *name, const char *rest, bool has_rest)
{
    if (++walk->links > LINKS_MAX) {
        return GORI_ELOOP;
    }
    char target[PATH_BYTES];
    ssize_t size = readlinkat(walk->fd, name, target, sizeof(target));
    if (size < 0) {
        return gi_os_error(errno);
    }
    if (size == 0) {
        return GORI_ENOTFOUND;
    }
    if (target[0] == '/') {
        return GORI_EXDEV;
    }
    size_t rest_size = strlen(rest);
    size_t target_size = (size_t)size;
    if (target_size + rest_size + 2 > sizeof(walk->rest)) {
        return GORI_ENAMETOOLONG;
    }
    memmove(walk->rest + target_size + (has_rest ? 1 : 0), rest, rest_size + 1);
    memcpy(walk->rest, target, target_size);
    if (has_rest) {
        walk->rest[target_size] = '/';
    }
    return 0;
}

/* Opens the last component, which is no link: O_NOFOLLOW holds should it have become one. */
static int open_last(struct walk *walk, const char *name, int *ret_fd)
{
    int fd = openat(walk->fd, name, walk->open_flags | O_NOFOLLOW | O_CLOEXEC, walk->mode);
    if (fd < 0) {
        return gi_os_error(errno);
    }
    *ret_fd = fd;
    return 0;
}

static bool is_special(const char *name)
{
    return name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* The last component is not there: it is made, if that is wanted. */
static int make_last(struct walk *walk, const char *name, int *ret_fd)
{
    if (errno != ENOENT || !(walk->open_flags & O_CREAT)) {
        return gi_os_error(errno);
    }
    return open_last(walk, name, ret_fd);
}

/* Goes one component of `rest`.  Result: 1 when `ret_fd` is the end of the way, 0 to go on. */
static int step(struct walk *walk, int *ret_fd)
{
    char *name;
    char *end = walk->rest + strspn(walk->rest, "/");
    end += strcspn(end, "/");
    bool has_rest = *end == '/';
    char *rest = split(walk->rest, &name);
    if (is_special(name)) {
        int error = name[0] != '\0' && name[1] == '.' ? leave(walk) : 0;
        if (error < 0) {
            return error;
        }
        if (!has_rest) {
            error = open_last(walk, ".", ret_fd);
            return error < 0 ? error : 1;
        }
        memmove(walk->rest, rest, strlen(rest) + 1);
        return 0;
    }
    struct stat status;
    if (fstatat(walk->fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        int error = has_rest ? gi_os_error(errno) : make_last(walk, name, ret_fd);
        return error < 0 ? error : 1;
    }
    if (!has_rest && (walk->open_flags & O_CREAT) && (walk->open_flags & O_EXCL)) {
        return GORI_EEXIST; /* a link too, wherever it leads */
    }
    if (S_ISLNK(status.st_mode)) {
        return follow(walk, name, rest, has_rest);
    }
    if (!has_rest) {
        /* Looking opens nothing, but not on every system: a FIFO or a device is left alone. */
        bool is_special_file = !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
        int error = is_special_file ? GORI_EACCESS : open_last(walk, name, ret_fd);
        return error < 0 ? error : 1;
    }
    int error = step_into(walk, name);
    if (error == 0) {
        memmove(walk->rest, rest, strlen(rest) + 1);
    }
    return error;
}

int gi_os_resolve_by_walk(int root_fd, const char *path, int open_flags, mode_t mode, int *ret_fd)
{
    struct walk walk;
    size_t size = strlen(path);
    if (size >= sizeof(walk.rest)) {
        return GORI_ENAMETOOLONG;
    }
    if (path[0] == '/') {
        return GORI_EXDEV;
    }
    walk.root_fd = root_fd;
    walk.fd = root_fd;
    walk.links = 0;
    walk.open_flags = open_flags;
    walk.mode = mode;
    walk.done_size = 0;
    memcpy(walk.rest, path, size + 1);
    int result;
    do {
        result = step(&walk, ret_fd);
    } while (result == 0);
    stand_at(&walk, root_fd);
    return result < 0 ? result : 0;
}
