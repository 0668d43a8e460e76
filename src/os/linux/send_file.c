/* SPDX-License-Identifier: MIT */
/*
 * A range of a file to a socket, from the page cache without a copy through user memory; with one
 * where the file system cannot do that.
 * The socket must not block; sendfile knows no flag for that.
 * Thread: any.  Reading: sendfile(2).
 */
#include <errno.h>
#include <gori/op.h>
#include <sys/sendfile.h>

#include "base/compiler.h"
#include "os/os.h"

#define COPY_BYTES (16u << 10)

static int64_t send_copy(int fd, int file, uint64_t offset, size_t size)
{
    uint8_t copy[COPY_BYTES];
    int64_t result = gi_os_read_at(file, copy, gi_min_size(size, sizeof(copy)), offset);
    if (result <= 0) {
        return result;
    }
    struct gori_slice piece = {.data = copy, .size = (size_t)result};
    return gi_os_send(fd, &piece, 1, 0, false);
}

int64_t gi_os_send_file(int fd, int file, uint64_t offset, size_t size)
{
    for (;;) {
        off_t position = (off_t)offset;
        ssize_t result = sendfile(fd, file, &position, size);
        if (result >= 0) {
            return result;
        }
        if (errno == EINVAL || errno == ENOSYS) {
            return send_copy(fd, file, offset, size);
        }
        if (errno != EINTR) {
            return gi_os_error(errno);
        }
    }
}
