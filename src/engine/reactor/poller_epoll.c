/* SPDX-License-Identifier: MIT */
/*
 * The poller over epoll, edge-triggered: a descriptor is registered once with every direction, so
 * that no epoll_ctl comes between two messages of a connection.
 * Thread: the loop's.  Reading: epoll(7), epoll_wait(2).
 */
#include <errno.h>
#include <gori/error.h>
#include <limits.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "engine/reactor/poller.h"
#include "os/os.h"

#define EVENTS_MAX 256 /* asked for in one call */

struct epoll_poller {
    struct gi_poller base;
    const struct gori_allocator *allocator;
    int epoll_fd;
    bool has_nanoseconds; /* until epoll_pwait2 has answered that it is not there */
    struct epoll_event events[EVENTS_MAX];
};

static struct epoll_poller *epoll_of(struct gi_poller *poller)
{
    return gori_container_of(poller, struct epoll_poller, base);
}

static int create(const struct gori_allocator *allocator, struct gi_poller **ret_poller)
{
    struct epoll_poller *epoll = gi_alloc_zero(allocator, sizeof(*epoll));
    if (epoll == NULL) {
        return GORI_ENOMEM;
    }
    epoll->base.impl = &gi_poller_epoll;
    epoll->allocator = allocator;
    epoll->has_nanoseconds = true;
    epoll->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll->epoll_fd < 0) {
        int error = gi_os_error(errno);
        gi_free(allocator, epoll, sizeof(*epoll));
        return error;
    }
    *ret_poller = &epoll->base;
    return 0;
}

static void destroy(struct gi_poller *poller)
{
    struct epoll_poller *epoll = epoll_of(poller);
    gi_os_close(epoll->epoll_fd);
    gi_free(epoll->allocator, epoll, sizeof(*epoll));
}

static int add(struct gi_poller *poller, int fd, uint64_t token)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | (uint32_t)EPOLLET,
        .data.u64 = token,
    };
    int failed = epoll_ctl(epoll_of(poller)->epoll_fd, EPOLL_CTL_ADD, fd, &event);
    return failed == 0 ? 0 : gi_os_error(errno);
}

/* Closing is not enough: a registration lives for as long as any copy of the descriptor does. */
static void remove_fd(struct gi_poller *poller, int fd, uint64_t token)
{
    (void)token;
    struct epoll_event ignored = {0}; /* of use to kernels before 2.6.9 only */
    (void)epoll_ctl(epoll_of(poller)->epoll_fd, EPOLL_CTL_DEL, fd, &ignored);
}

/* Milliseconds, rounded up: a wait that ends early would be followed by one of no length. */
static int milliseconds(gori_time timeout)
{
    gori_time rounded = timeout / GORI_MILLISECONDS + (timeout % GORI_MILLISECONDS != 0);
    return rounded > INT_MAX ? INT_MAX : (int)rounded;
}

/* A wait of a length; result as epoll_wait's. */
static int wait_for(struct epoll_poller *epoll, gori_time timeout, int events_max)
{
#ifdef SYS_epoll_pwait2
    if (epoll->has_nanoseconds) {
        struct timespec length = {.tv_sec = (time_t)(timeout / GORI_SECONDS),
                                  .tv_nsec = (long)(timeout % GORI_SECONDS)};
        long result = syscall(SYS_epoll_pwait2, epoll->epoll_fd, epoll->events, events_max, &length,
                              NULL, (size_t)0);
        if (result >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return (int)result;
        }
        epoll->has_nanoseconds = false;
    }
#endif
    return epoll_wait(epoll->epoll_fd, epoll->events, events_max, milliseconds(timeout));
}

static uint32_t mask_of(uint32_t events)
{
    uint32_t mask = 0;
    if (events & EPOLLIN) {
        mask |= GI_POLL_READ;
    }
    if (events & EPOLLOUT) {
        mask |= GI_POLL_WRITE;
    }
    if (GI_UNLIKELY(events & (EPOLLRDHUP | EPOLLPRI))) {
        mask |= GI_POLL_READ | GI_POLL_DRAIN;
    }
    if (GI_UNLIKELY(events & (EPOLLHUP | EPOLLERR))) {
        mask |= GI_POLL_READ | GI_POLL_WRITE | GI_POLL_DRAIN;
    }
    return mask;
}

static int wait_events(struct gi_poller *poller, gori_time timeout,
                       struct gi_poller_event *ret_events, uint32_t events_max)
{
    struct epoll_poller *epoll = epoll_of(poller);
    int capacity = (int)gi_min_u32(events_max, EVENTS_MAX);
    int count;
    if (timeout == 0 || timeout == GORI_NEVER) {
        count = epoll_wait(epoll->epoll_fd, epoll->events, capacity, timeout == 0 ? 0 : -1);
    } else {
        count = wait_for(epoll, timeout, capacity);
    }
    if (count < 0) {
        return errno == EINTR ? 0 : gi_os_error(errno);
    }
    for (int i = 0; i < count; i++) {
        ret_events[i].token = epoll->events[i].data.u64;
        ret_events[i].mask = mask_of(epoll->events[i].events);
    }
    return count;
}

static void report_nanoseconds(struct epoll_poller *epoll, struct gori_feature *feature)
{
    (void)wait_for(epoll, 1, 1);
    feature->name = "epoll_pwait2";
    if (epoll->has_nanoseconds) {
        feature->state = GORI_FEATURE_USED;
        (void)snprintf(feature->text, sizeof(feature->text), "timers to the nanosecond");
        return;
    }
    feature->state = GORI_FEATURE_KERNEL;
    (void)snprintf(feature->text, sizeof(feature->text),
                   "timers are rounded up to milliseconds; Linux 5.11 or a newer filter has it");
}

static void report(struct gori_engine_report *ret_report)
{
    struct gi_poller *poller;
    int error = create(NULL, &poller);
    if (error < 0) {
        ret_report->state = error == GORI_ENOSYS ? GORI_FEATURE_KERNEL : GORI_FEATURE_ERROR;
        (void)snprintf(ret_report->text, sizeof(ret_report->text), "epoll_create1: %s",
                       gori_error_text(error));
        return;
    }
    ret_report->usable = true;
    ret_report->state = GORI_FEATURE_USED;
    (void)snprintf(ret_report->text, sizeof(ret_report->text),
                   "readiness, edge-triggered; what is used where io_uring is not to be had");
    report_nanoseconds(epoll_of(poller), &ret_report->features[ret_report->feature_count++]);
    destroy(poller);
}

const struct gi_poller_impl gi_poller_epoll = {
    .is_edge = true,
    .create = create,
    .destroy = destroy,
    .add = add,
    .remove = remove_fd,
    .wait = wait_events,
    .report = report,
};
