/* SPDX-License-Identifier: MIT */
/*
 * The program's close and dup2 (the linker's --wrap): a kernel with kqueue removes the filters of a
 * descriptor when it is closed, which Linux does not tell anybody.
 */
#include <unistd.h>

#include "double/kqueue/kqueue.h"

int __real_close(int fd);
int __real_dup2(int fd, int target_fd);
int __wrap_close(int fd);
int __wrap_dup2(int fd, int target_fd);

int __wrap_close(int fd)
{
    kqueue_closing(fd);
    return __real_close(fd);
}

int __wrap_dup2(int fd, int target_fd)
{
    if (fd != target_fd) {
        kqueue_closing(target_fd);
    }
    return __real_dup2(fd, target_fd);
}
