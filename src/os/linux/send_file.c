/* SPDX-License-Identifier: MIT */
/*
 * A range of a file to a socket, from the page cache without a copy through user memory.
 * The socket must not block; sendfile knows no flag for that.
 * Thread: any.  Reading: sendfile(2).
 */
#include <errno.h>
#include <sys/sendfile.h>

#include "os/os.h"

int64_t gi_os_send_file(int fd, int file, uint64_t offset, size_t size)
{
    for (;;) {
        off_t position = (off_t)offset;
        ssize_t result = sendfile(fd, file, &position, size);
        if (result >= 0) {
            return result;
        }
        if (errno != EINTR) {
            return gi_os_error(errno);
        }
    }
}
