/* SPDX-License-Identifier: MIT */
/*
 * What watchers of file changes need to know of a path, the same on all POSIX systems; the watchers
 * are in linux/watch.c and darwin/watch.c.
 * Thread: any.
 */
#include "os/watch.h"

#include <string.h>
#include <sys/stat.h>

size_t gi_os_directory_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash + 1 - path);
}

bool gi_os_is_directory(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}
