/* SPDX-License-Identifier: MIT */
/*
 * The system of child.c on POSIX; contract: child.h.
 */
#include "conformance/child.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

void child_prepare(void)
{
    /* They are that already. */
}

int child_read(void *data, int size)
{
    return (int)read(0, data, (size_t)size);
}

int child_write(int fd, const void *data, int size)
{
    return (int)write(fd, data, (size_t)size);
}

bool child_folder(char *ret_path, int size)
{
    return getcwd(ret_path, (size_t)size) != NULL;
}

void child_sleep(void)
{
    for (;;) {
        (void)pause();
    }
}

int child_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL) {
        return -1;
    }
    while (readdir(directory) != NULL) {
        count++;
    }
    (void)closedir(directory);
    return count - 3; /* two dots, and the folder itself */
}

int child_spoilt_signals(void)
{
    int count = 0;
    sigset_t mask;
    (void)sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number < 32; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0) {
            count += sigismember(&mask, number) == 1 || action.sa_handler == SIG_IGN;
        }
    }
    return count;
}
