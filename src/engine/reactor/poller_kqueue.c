/* SPDX-License-Identifier: MIT */
/*
 * The poller over kqueue, edge-triggered (EV_CLEAR): a descriptor is registered once in each
 * direction, and nothing changes there as long as it lives.
 *
 *  K1  Changes are kept and go out in the same call that waits, also in one that does not wait.
 *  K2  A filter is never deleted.  It ends with its descriptor, which is closed right after
 *      `remove` (P5), and changes that were still kept are forgotten.  A deletion that is sent
 *      later would hit whoever has got the number by then.
 *  K3  The end is no event of its own: EV_EOF comes together with the bytes before it, so that it
 *      is READ with DRAIN, and reading finds out.  EV_EOF of writing with fflags 0 says that the
 *      peer reads no more, not that anything failed; what it has sent may still be there.
 *  K4  A change that failed comes back as an event with EV_ERROR.  Want of memory is tried again;
 *      else the descriptor is told to be ready, so that the next call on it says what is wrong.
 * Thread: the loop's, but for `wake`.  Reading: kqueue(2), kevent(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <gori/error.h>
#include <stdio.h>
#include <sys/types.h>

#include <sys/event.h>
#include <sys/time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "engine/reactor/poller.h"
#include "os/os.h"

/* Asked for in one call.  Each kept change may come back as an error: that must fit too. */
#define EVENTS_MAX 256

/* Kept at most, filters of each descriptor together; beyond, they go out at once. */
#define FILTERS_MAX 3
#define CHANGES_MAX (64 * FILTERS_MAX)

_Static_assert(CHANGES_MAX <= EVENTS_MAX, "an answer to each change fits");
_Static_assert(sizeof(void *) >= sizeof(uint64_t), "a token fits into udata");

/* How long to wait at most while changes have to be tried again, and how long at all. */
#define RETRY_TIME (5 * GORI_MILLISECONDS)
#define TIME_MAX   (GORI_SECONDS * INT32_MAX)

struct kqueue_poller {
    struct gi_poller base;
    const struct gori_allocator *allocator;
    uint64_t wake_token;
    int kqueue_fd;
    bool must_retry; /* a change has come back for want of memory */
    int change_count;
    struct kevent changes[CHANGES_MAX];
    struct kevent events[EVENTS_MAX];
};

static struct kqueue_poller *kqueue_of(struct gi_poller *poller)
{
    return gori_container_of(poller, struct kqueue_poller, base);
}

static void *udata_of(uint64_t token)
{
    return (void *)(uintptr_t)token;
}

static uint64_t token_of(const struct kevent *event)
{
    return (uint64_t)(uintptr_t)event->udata;
}

static int create(const struct gori_allocator *allocator, struct gi_poller **ret_poller)
{
    struct kqueue_poller *self = gi_alloc_zero(allocator, sizeof(*self));
    if (self == NULL) {
        return GORI_ENOMEM;
    }
    self->base.impl = &gi_poller_kqueue;
    self->allocator = allocator;
    self->kqueue_fd = kqueue();
    if (self->kqueue_fd < 0) {
        int error = gi_os_error(errno);
        gi_free(allocator, self, sizeof(*self));
        return error;
    }
    (void)fcntl(self->kqueue_fd, F_SETFD, FD_CLOEXEC);
    *ret_poller = &self->base;
    return 0;
}

static void destroy(struct gi_poller *poller)
{
    struct kqueue_poller *self = kqueue_of(poller);
    gi_os_close(self->kqueue_fd);
    gi_free(self->allocator, self, sizeof(*self));
}

static uint32_t mask_of(const struct kevent *event)
{
    bool at_end = (event->flags & EV_EOF) != 0;
    switch (event->filter) {
    case EVFILT_USER:
        return GI_POLL_READ;
    case EVFILT_READ:
        return at_end ? GI_POLL_READ | GI_POLL_DRAIN : GI_POLL_READ;
    case EVFILT_WRITE:
        return at_end && event->fflags != 0 ? GI_POLL_READ | GI_POLL_WRITE | GI_POLL_DRAIN
                                            : GI_POLL_WRITE;
    default: /* urgent data */
        return GI_POLL_READ | GI_POLL_DRAIN;
    }
}

/* Whether the system refused a change that matters: urgent data is not to be had everywhere. */
static bool has_failed(const struct kevent *event)
{
    bool matters = event->filter == EVFILT_READ || event->filter == EVFILT_WRITE;
    return matters && (event->flags & EV_ERROR) && event->data != 0;
}

static void keep_change(struct kqueue_poller *self, uintptr_t fd, short filter, void *udata)
{
    GI_ASSERT(self->change_count < CHANGES_MAX);
    struct kevent *change = &self->changes[self->change_count++];
    EV_SET(change, fd, filter, EV_ADD | EV_CLEAR, 0, 0, udata);
}

/* K4.  True when `ret_event` is filled. */
static bool take_error(struct kqueue_poller *self, const struct kevent *event,
                       struct gi_poller_event *ret_event)
{
    if (!has_failed(event)) {
        return false;
    }
    if (event->data == ENOMEM) {
        keep_change(self, event->ident, (short)event->filter, event->udata);
        self->must_retry = true;
        return false;
    }
    ret_event->token = token_of(event);
    ret_event->mask = GI_POLL_READ | GI_POLL_WRITE | GI_POLL_DRAIN;
    return true;
}

/* What the system has answered, in our words. */
static int translate(struct kqueue_poller *self, int count, struct gi_poller_event *ret_events)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        const struct kevent *event = &self->events[i];
        if (GI_UNLIKELY(event->flags & EV_ERROR)) {
            found += take_error(self, event, &ret_events[found]) ? 1 : 0;
            continue;
        }
        ret_events[found].token = token_of(event);
        ret_events[found].mask = mask_of(event);
        found++;
    }
    return found;
}

/*
 * Sends the kept changes and takes no event: each change is answered by a receipt instead.  Those
 * that failed are kept, so that the next wait hears of it.
 */
static void flush(struct kqueue_poller *self)
{
    int count = self->change_count;
    for (int i = 0; i < count; i++) {
        self->changes[i].flags |= EV_RECEIPT;
    }
    count = kevent(self->kqueue_fd, self->changes, count, self->events, count, NULL);
    if (count < 0) {
        return; /* kept as they are */
    }
    self->change_count = 0;
    for (int i = 0; i < count; i++) {
        const struct kevent *receipt = &self->events[i];
        if (has_failed(receipt)) {
            keep_change(self, receipt->ident, (short)receipt->filter, receipt->udata);
        }
    }
}

static int add(struct gi_poller *poller, int fd, uint64_t token)
{
    struct kqueue_poller *self = kqueue_of(poller);
    if (GI_UNLIKELY(self->change_count > CHANGES_MAX - FILTERS_MAX)) {
        flush(self);
    }
    if (self->change_count > CHANGES_MAX - FILTERS_MAX) {
        return GORI_ENOMEM;
    }
    keep_change(self, (uintptr_t)fd, EVFILT_READ, udata_of(token));
    keep_change(self, (uintptr_t)fd, EVFILT_WRITE, udata_of(token));
#ifdef EVFILT_EXCEPT
    keep_change(self, (uintptr_t)fd, EVFILT_EXCEPT, udata_of(token));
    self->changes[self->change_count - 1].fflags = NOTE_OOB;
#endif
    return 0;
}

/* K2. */
static void remove_fd(struct gi_poller *poller, int fd, uint64_t token)
{
    (void)fd;
    struct kqueue_poller *self = kqueue_of(poller);
    int kept = 0;
    for (int i = 0; i < self->change_count; i++) {
        if (token_of(&self->changes[i]) != token) {
            self->changes[kept++] = self->changes[i];
        }
    }
    self->change_count = kept;
}

static int add_wake(struct gi_poller *poller, uint64_t token)
{
    struct kqueue_poller *self = kqueue_of(poller);
    struct kevent change;
    self->wake_token = token;
    EV_SET(&change, 0, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0, udata_of(token));
    int failed = kevent(self->kqueue_fd, &change, 1, NULL, 0, NULL);
    return failed < 0 ? gi_os_error(errno) : 0;
}

/* Its udata is what a kevent leaves when it changes a filter: the same again. */
static void wake(struct gi_poller *poller)
{
    struct kqueue_poller *self = kqueue_of(poller);
    struct kevent trigger;
    EV_SET(&trigger, 0, EVFILT_USER, 0, NOTE_TRIGGER, 0, udata_of(self->wake_token));
    int failed = kevent(self->kqueue_fd, &trigger, 1, NULL, 0, NULL);
    GI_ASSERT(failed == 0);
}

static int wait_events(struct gi_poller *poller, gori_time timeout,
                       struct gi_poller_event *ret_events, uint32_t events_max)
{
    struct kqueue_poller *self = kqueue_of(poller);
    if (GI_UNLIKELY(self->must_retry)) {
        self->must_retry = false;
        timeout = gi_min_u64(timeout, RETRY_TIME);
    }
    gori_time bounded = gi_min_u64(timeout, TIME_MAX);
    struct timespec length = {.tv_sec = (time_t)(bounded / GORI_SECONDS),
                              .tv_nsec = (long)(bounded % GORI_SECONDS)};
    int changes = self->change_count;
    int capacity = (int)gi_min_u32(events_max, EVENTS_MAX);
    GI_ASSERT(changes <= capacity);
    int count = kevent(self->kqueue_fd, self->changes, changes, self->events, capacity,
                       timeout == GORI_NEVER ? NULL : &length);
    if (count < 0 && errno != EINTR) {
        return gi_os_error(errno);
    }
    self->change_count = 0; /* also after a signal: the system takes them before it waits */
    return count < 0 ? 0 : translate(self, count, ret_events);
}

static void report(struct gori_engine_report *ret_report)
{
    struct gi_poller *poller;
    int error = create(NULL, &poller);
    if (error < 0) {
        ret_report->state = GORI_FEATURE_ERROR;
        (void)snprintf(ret_report->text, sizeof(ret_report->text), "kqueue: %s",
                       gori_error_text(error));
        return;
    }
    ret_report->usable = true;
    ret_report->state = GORI_FEATURE_USED;
    (void)snprintf(ret_report->text, sizeof(ret_report->text),
                   "readiness, edge-triggered; changes and waiting in one call");
    destroy(poller);
}

const struct gi_poller_impl gi_poller_kqueue = {
    .is_edge = true,
    .create = create,
    .destroy = destroy,
    .add = add,
    .remove = remove_fd,
    .add_wake = add_wake,
    .wake = wake,
    .wait = wait_events,
    .report = report,
};
