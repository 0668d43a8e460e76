/* SPDX-License-Identifier: MIT */
/*
 * The poller over poll: on every system, for any descriptor, at a cost that grows with all of them.
 * Level-triggered; entry i of the array belongs to the token with the number i.  An entry without
 * directions has descriptor -1, because poll tells errors and hang-ups also to those who did not
 * ask. Thread: the loop's.  Reading: poll(2).
 */
#include <gori/error.h>
#include <poll.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "engine/reactor/poller.h"
#include "os/os.h"

/* Where there is no such thing, the end is found by reading: a level poller may (R2). */
#ifndef POLLRDHUP
#define POLLRDHUP 0
#endif

#define CAPACITY_FIRST 64

struct poll_poller {
    struct gi_poller base;
    const struct gori_allocator *allocator;
    struct pollfd *entries;
    uint64_t *tokens; /* of each entry */
    uint32_t capacity;
    uint32_t count; /* one more than the greatest number ever in use */
    uint32_t start; /* where to look first, so that a full answer leaves nobody out for ever */
};

static struct poll_poller *poll_of(struct gi_poller *poller)
{
    return gori_container_of(poller, struct poll_poller, base);
}

static int create(const struct gori_allocator *allocator, struct gi_poller **ret_poller)
{
    struct poll_poller *self = gi_alloc_zero(allocator, sizeof(*self));
    if (self == NULL) {
        return GORI_ENOMEM;
    }
    self->base.impl = &gi_poller_poll;
    self->allocator = allocator;
    *ret_poller = &self->base;
    return 0;
}

static void destroy(struct gi_poller *poller)
{
    struct poll_poller *self = poll_of(poller);
    gi_free(self->allocator, self->entries, self->capacity * sizeof(*self->entries));
    gi_free(self->allocator, self->tokens, self->capacity * sizeof(*self->tokens));
    gi_free(self->allocator, self, sizeof(*self));
}

/* Room for the entry `number`.  Both arrays grow or neither does. */
static int reserve(struct poll_poller *self, uint32_t number)
{
    if (number < self->capacity) {
        return 0;
    }
    uint32_t capacity = self->capacity == 0 ? CAPACITY_FIRST : self->capacity;
    while (capacity <= number) {
        capacity *= 2;
    }
    struct pollfd *entries = gi_alloc_array(self->allocator, capacity, sizeof(*entries));
    uint64_t *tokens = gi_alloc_array(self->allocator, capacity, sizeof(*tokens));
    if (entries == NULL || tokens == NULL) {
        gi_free(self->allocator, entries, capacity * sizeof(*entries));
        gi_free(self->allocator, tokens, capacity * sizeof(*tokens));
        return GORI_ENOMEM;
    }
    for (uint32_t i = 0; i < capacity; i++) {
        entries[i] = i < self->count ? self->entries[i] : (struct pollfd){.fd = -1};
        tokens[i] = i < self->count ? self->tokens[i] : 0;
    }
    gi_free(self->allocator, self->entries, self->capacity * sizeof(*entries));
    gi_free(self->allocator, self->tokens, self->capacity * sizeof(*tokens));
    self->entries = entries;
    self->tokens = tokens;
    self->capacity = capacity;
    return 0;
}

static int add(struct gi_poller *poller, int fd, uint64_t token)
{
    (void)fd;
    struct poll_poller *self = poll_of(poller);
    uint32_t number = (uint32_t)token;
    int error = reserve(self, number);
    if (error < 0) {
        return error;
    }
    self->tokens[number] = token;
    self->count = gi_max_u32(self->count, number + 1);
    return 0;
}

static void set(struct gi_poller *poller, int fd, uint64_t token, uint32_t mask)
{
    struct poll_poller *self = poll_of(poller);
    struct pollfd *entry = &self->entries[(uint32_t)token];
    GI_ASSERT(self->tokens[(uint32_t)token] == token);
    int events = 0;
    if (mask & GI_POLL_READ) {
        events |= POLLIN | POLLPRI | POLLRDHUP;
    }
    if (mask & GI_POLL_WRITE) {
        events |= POLLOUT;
    }
    entry->fd = mask != 0 ? fd : -1;
    entry->events = (short)events;
}

static void remove_fd(struct gi_poller *poller, int fd, uint64_t token)
{
    set(poller, fd, token, 0);
}

static uint32_t mask_of(int events)
{
    uint32_t mask = 0;
    if (events & POLLIN) {
        mask |= GI_POLL_READ;
    }
    if (events & POLLOUT) {
        mask |= GI_POLL_WRITE;
    }
    if (events & (POLLRDHUP | POLLPRI)) {
        mask |= GI_POLL_READ | GI_POLL_DRAIN;
    }
    if (events & (POLLHUP | POLLERR | POLLNVAL)) {
        mask |= GI_POLL_READ | GI_POLL_WRITE | GI_POLL_DRAIN;
    }
    return mask;
}

/* Fills in up to `events_max` of the `left` entries that poll has marked. */
static int collect(struct poll_poller *self, struct gi_poller_event *ret_events,
                   uint32_t events_max, int left)
{
    uint32_t found = 0;
    uint32_t index = self->start < self->count ? self->start : 0;
    for (uint32_t i = 0; i < self->count && left > 0 && found < events_max; i++) {
        const struct pollfd *entry = &self->entries[index];
        if (entry->fd >= 0 && entry->revents != 0) {
            ret_events[found].token = self->tokens[index];
            ret_events[found].mask = mask_of(entry->revents);
            found++;
            left--;
        }
        index = index + 1 < self->count ? index + 1 : 0;
    }
    self->start = left > 0 ? index : 0;
    return (int)found;
}

static int wait_events(struct gi_poller *poller, gori_time timeout,
                       struct gi_poller_event *ret_events, uint32_t events_max)
{
    struct poll_poller *self = poll_of(poller);
    int left = gi_os_poll(self->entries, self->count, timeout);
    if (left < 0) {
        return left;
    }
    return collect(self, ret_events, events_max, left);
}

static void report(struct gori_engine_report *ret_report)
{
    ret_report->usable = true;
    ret_report->state = GORI_FEATURE_USED;
    (void)snprintf(ret_report->text, sizeof(ret_report->text),
                   "readiness by poll; each wait costs time for every connection, so it is only "
                   "for where nothing better is to be had");
}

const struct gi_poller_impl gi_poller_poll = {
    .is_edge = false,
    .create = create,
    .destroy = destroy,
    .add = add,
    .set = set,
    .remove = remove_fd,
    .wait = wait_events,
    .report = report,
};
