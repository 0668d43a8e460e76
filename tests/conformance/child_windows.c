/* SPDX-License-Identifier: MIT */
/*
 * The system of child.c on Windows; contract: child.h.
 */
#include "conformance/child.h"

#include <direct.h>
#include <fcntl.h>
#include <io.h>
#include <windows.h>

void child_prepare(void)
{
    (void)_setmode(0, _O_BINARY);
    (void)_setmode(1, _O_BINARY);
}

int child_read(void *data, int size)
{
    return _read(0, data, (unsigned)size);
}

int child_write(int fd, const void *data, int size)
{
    return _write(fd, data, (unsigned)size);
}

bool child_folder(char *ret_path, int size)
{
    return _getcwd(ret_path, size) != NULL;
}

void child_sleep(void)
{
    Sleep(INFINITE);
}

int child_descriptors(void)
{
    return 3;
}

int child_spoilt_signals(void)
{
    return 0;
}
