/* SPDX-License-Identifier: MIT */
/*
 * A range of a file to a socket.  This sendfile says how much it has sent also when it fails, and
 * that counts: what was sent must not be sent again.
 * The socket must not block.  Thread: any.  Reading: sendfile(2).
 */
#include <errno.h>
#include <gori/error.h>
#include <sys/types.h>

#include <sys/socket.h>
#include <sys/uio.h>

#include "os/os.h"

int64_t gi_os_send_file(int fd, int file, uint64_t offset, size_t size)
{
    for (;;) {
        off_t count = (off_t)size; /* 0 would mean: to the end */
        if (size == 0 || sendfile(file, fd, (off_t)offset, &count, NULL, 0) == 0) {
            return size == 0 ? 0 : count;
        }
        if ((errno == EAGAIN || errno == EINTR) && count > 0) {
            return count;
        }
        if (errno != EINTR) {
            return gi_os_error(errno);
        }
    }
}
