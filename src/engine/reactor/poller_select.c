/* SPDX-License-Identifier: MIT */
/*
 * The poller over select: for systems that have nothing else, and for comparing.  Level-triggered.
 * A descriptor of FD_SETSIZE or above does not fit into its sets: `add` refuses it with GORI_ELIMIT
 * instead of writing beyond them.
 * Thread: the loop's.  Reading: select(2), "Bugs".
 */
#include <errno.h>
#include <gori/error.h>
#include <stdio.h>
#include <sys/select.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "engine/reactor/poller.h"
#include "os/os.h"

struct select_poller {
    struct gi_poller base;
    const struct gori_allocator *allocator;
    int end;   /* one more than the greatest descriptor ever watched */
    int start; /* where to look first, so that a full answer leaves nobody out for ever */
    fd_set wanted_read;
    fd_set wanted_write;
    fd_set read; /* as select has left them */
    fd_set write;
    fd_set urgent;
    uint64_t tokens[FD_SETSIZE]; /* of each descriptor */
};

static struct select_poller *select_of(struct gi_poller *poller)
{
    return gori_container_of(poller, struct select_poller, base);
}

static int create(const struct gori_allocator *allocator, struct gi_poller **ret_poller)
{
    struct select_poller *self = gi_alloc_zero(allocator, sizeof(*self));
    if (self == NULL) {
        return GORI_ENOMEM;
    }
    self->base.impl = &gi_poller_select;
    self->allocator = allocator;
    FD_ZERO(&self->wanted_read);
    FD_ZERO(&self->wanted_write);
    *ret_poller = &self->base;
    return 0;
}

static void destroy(struct gi_poller *poller)
{
    struct select_poller *self = select_of(poller);
    gi_free(self->allocator, self, sizeof(*self));
}

static int add(struct gi_poller *poller, int fd, uint64_t token)
{
    struct select_poller *self = select_of(poller);
    if (fd < 0 || fd >= FD_SETSIZE) {
        return GORI_ELIMIT;
    }
    self->tokens[fd] = token;
    self->end = fd >= self->end ? fd + 1 : self->end;
    return 0;
}

static void set(struct gi_poller *poller, int fd, uint64_t token, uint32_t mask)
{
    struct select_poller *self = select_of(poller);
    GI_ASSERT(fd >= 0 && fd < FD_SETSIZE);
    GI_ASSERT(self->tokens[fd] == token);
    FD_CLR(fd, &self->wanted_read);
    FD_CLR(fd, &self->wanted_write);
    if (mask & GI_POLL_READ) {
        FD_SET(fd, &self->wanted_read);
    }
    if (mask & GI_POLL_WRITE) {
        FD_SET(fd, &self->wanted_write);
    }
}

static void remove_fd(struct gi_poller *poller, int fd, uint64_t token)
{
    set(poller, fd, token, 0);
}

/*
 * select says "readable" of data, the end and errors alike, so that a short read is never taken for
 * the end of what there is; the next read finds out.
 */
static uint32_t mask_of(const struct select_poller *self, int fd)
{
    uint32_t mask = 0;
    if (FD_ISSET(fd, &self->read) || FD_ISSET(fd, &self->urgent)) {
        mask |= GI_POLL_READ | GI_POLL_DRAIN;
    }
    if (FD_ISSET(fd, &self->write)) {
        mask |= GI_POLL_WRITE;
    }
    return mask;
}

static int collect(struct select_poller *self, struct gi_poller_event *ret_events,
                   uint32_t events_max)
{
    uint32_t found = 0;
    int fd = self->start < self->end ? self->start : 0;
    for (int i = 0; i < self->end && found < events_max; i++) {
        uint32_t mask = mask_of(self, fd);
        if (mask != 0) {
            ret_events[found].token = self->tokens[fd];
            ret_events[found].mask = mask;
            found++;
        }
        fd = fd + 1 < self->end ? fd + 1 : 0;
    }
    self->start = fd;
    return (int)found;
}

static int wait_events(struct gi_poller *poller, gori_time timeout,
                       struct gi_poller_event *ret_events, uint32_t events_max)
{
    struct select_poller *self = select_of(poller);
    struct timespec length = {.tv_sec = (time_t)(timeout / GORI_SECONDS),
                              .tv_nsec = (long)(timeout % GORI_SECONDS)};
    self->read = self->wanted_read;
    self->write = self->wanted_write;
    self->urgent = self->wanted_read;
    int count = pselect(self->end, &self->read, &self->write, &self->urgent,
                        timeout == GORI_NEVER ? NULL : &length, NULL);
    if (count < 0) {
        return errno == EINTR ? 0 : gi_os_error(errno);
    }
    return count > 0 ? collect(self, ret_events, events_max) : 0;
}

static void report(struct gori_engine_report *ret_report)
{
    ret_report->usable = true;
    ret_report->state = GORI_FEATURE_USED;
    (void)snprintf(ret_report->text, sizeof(ret_report->text),
                   "readiness by select; only for descriptors below %d, beyond which attaching "
                   "answers GORI_ELIMIT",
                   FD_SETSIZE);
}

const struct gi_poller_impl gi_poller_select = {
    .is_edge = false,
    .create = create,
    .destroy = destroy,
    .add = add,
    .set = set,
    .remove = remove_fd,
    .wait = wait_events,
    .report = report,
};
