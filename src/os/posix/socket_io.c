/* SPDX-License-Identifier: MIT */
/*
 * Moving bytes through stream sockets without waiting: what the reactor makes completions from.
 * Receiving and sending do not depend on the mode of the socket (MSG_DONTWAIT); connecting,
 * accepting and sending files do, and need gi_os_set_blocking(fd, false) before.
 * Thread: any.  Reading: send(2), recv(2).
 */
#include <errno.h>
#include <gori/error.h>
#include <gori/op.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "os/os.h"

/* Where it is missing, sockets are made so that they cause no signal. */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef MSG_MORE
#define MSG_MORE 0 /* a hint */
#endif

/* A gori_slice is what the system calls an iovec, so that gathering needs no copy of the array. */
_Static_assert(sizeof(struct gori_slice) == sizeof(struct iovec), "slice and iovec differ");
_Static_assert(offsetof(struct gori_slice, data) == offsetof(struct iovec, iov_base), "base");
_Static_assert(offsetof(struct gori_slice, size) == offsetof(struct iovec, iov_len), "length");

int64_t gi_os_receive(int fd, void *data, size_t size)
{
    for (;;) {
        ssize_t result = recv(fd, data, size, MSG_DONTWAIT);
        if (result >= 0) {
            return result;
        }
        if (errno != EINTR) {
            return gi_os_error(errno);
        }
    }
}

static int send_flags(bool more)
{
    return MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
}

static int64_t send_one(int fd, const uint8_t *data, size_t size, bool more)
{
    for (;;) {
        ssize_t result = send(fd, data, size, send_flags(more));
        if (result >= 0) {
            return result;
        }
        if (errno != EINTR) {
            return gi_os_error(errno);
        }
    }
}

/* The type of the count differs between C libraries; this one fits into all of them. */
static int64_t send_vector(int fd, struct iovec *vector, uint16_t count, bool more)
{
    struct msghdr message = {.msg_iov = vector, .msg_iovlen = count};
    for (;;) {
        ssize_t result = sendmsg(fd, &message, send_flags(more));
        if (result >= 0) {
            return result;
        }
        if (errno != EINTR) {
            return gi_os_error(errno);
        }
    }
}

int64_t gi_os_send(int fd, const struct gori_slice *pieces, uint32_t count, size_t offset,
                   bool more)
{
    GI_ASSERT(count > 0);
    GI_ASSERT(count <= GORI_SEND_PIECES_MAX);
    GI_ASSERT(offset <= pieces[0].size);
    if (count == 1) {
        return send_one(fd, pieces[0].data + offset, pieces[0].size - offset, more);
    }
    if (offset == 0) {
        return send_vector(fd, (struct iovec *)(uintptr_t)pieces, (uint16_t)count, more);
    }
    struct iovec vector[GORI_SEND_PIECES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        vector[i].iov_base = (void *)(uintptr_t)pieces[i].data;
        vector[i].iov_len = pieces[i].size;
    }
    vector[0].iov_base = (uint8_t *)vector[0].iov_base + offset;
    vector[0].iov_len -= offset;
    return send_vector(fd, vector, (uint16_t)count, more);
}
