/* SPDX-License-Identifier: MIT */
/*
 * kqueue and kevent: registering, scanning, waiting.  The words follow the kernels': a change is
 * registered, a wake-up makes a knote active if its filter agrees, a scan delivers.
 * Reading: kqueue(2) of FreeBSD and macOS; kern_event.c.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "double/kqueue/knote.h"
#include "double/kqueue/kqueue.h"

#define HARVEST_MAX 64

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static struct queue *g_queues;
static uint64_t g_next_id = 1;
static struct kqueue_calls g_calls;

/* The system's close: the one that the program calls is kqueue_closing's. */
static void close_fd(int fd)
{
    if (fd >= 0) {
        (void)syscall(SYS_close, fd);
    }
}

static struct queue *find_queue(int fd)
{
    struct queue *queue = g_queues;
    while (queue != NULL && queue->fd != fd) {
        queue = queue->next;
    }
    return queue;
}

static struct knote *find_knote(struct queue *queue, uintptr_t ident, short filter)
{
    struct knote *knote = queue->first;
    while (knote != NULL && (knote->event.ident != ident || knote->event.filter != filter)) {
        knote = knote->next;
    }
    return knote;
}

static void unlink_knote(struct queue *queue, const struct knote *knote)
{
    struct knote **at = &queue->first;
    while (*at != knote) {
        at = &(*at)->next;
    }
    *at = knote->next;
}

static void append_knote(struct queue *queue, struct knote *knote)
{
    struct knote **at = &queue->first;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    knote->next = NULL;
    *at = knote;
}

/* Whoever waits looks again. */
static void ring(struct queue *queue)
{
    uint64_t one = 1;
    ssize_t written = write(queue->bell_fd, &one, sizeof(one));
    (void)written;
}

static void activate(struct queue *queue, struct knote *knote)
{
    if (!knote->is_disabled && filter_of(knote->event.filter)->ask(knote)) {
        knote->is_active = true;
        ring(queue);
    }
}

static int watch(struct queue *queue, struct knote *knote)
{
    struct epoll_event event = {.events = (uint32_t)EPOLLET, .data.u64 = knote->id};
    static const uint32_t wanted[DIRECTION_COUNT] = {EPOLLIN | EPOLLRDHUP, EPOLLOUT, EPOLLPRI};
    int epoll_fd = queue->fd;
    int fd = knote->own_fd;
    if (knote->direction != DIRECTION_NONE) {
        epoll_fd = queue->direction_fds[knote->direction];
        fd = (int)knote->event.ident;
        event.events |= wanted[knote->direction];
    } else {
        event.events |= EPOLLIN;
    }
    if (fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0) {
        return 0;
    }
    if (errno == EPERM) { /* a plain file: there is nothing to wait for */
        knote->is_plain = true;
        return 0;
    }
    return errno;
}

static void delete_knote(struct queue *queue, struct knote *knote)
{
    if (knote->direction != DIRECTION_NONE && !knote->is_plain) {
        int epoll_fd = queue->direction_fds[knote->direction];
        (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, (int)knote->event.ident, NULL);
    }
    close_fd(knote->own_fd);
    unlink_knote(queue, knote);
    free(knote);
}

static int add_knote(struct queue *queue, const struct kevent *change, struct knote **ret_knote)
{
    const struct filter *filter = filter_of(change->filter);
    struct knote *knote = calloc(1, sizeof(*knote));
    if (knote == NULL) {
        return ENOMEM;
    }
    knote->event = *change;
    knote->event.flags =
        (unsigned short)((change->flags | filter->flags) & (EV_ONESHOT | EV_CLEAR | EV_DISPATCH));
    knote->event.fflags = 0;
    knote->event.data = 0;
    knote->wanted = change->fflags;
    knote->given = change->data;
    knote->direction = filter->direction;
    knote->own_fd = -1;
    knote->id = g_next_id++;
    int error = filter->attach(knote);
    if (error == 0) {
        error = watch(queue, knote);
    }
    if (error != 0) {
        close_fd(knote->own_fd);
        free(knote);
        return error;
    }
    append_knote(queue, knote);
    *ret_knote = knote;
    return 0;
}

static void touch_user(struct knote *knote, unsigned int fflags)
{
    unsigned int bits = fflags & NOTE_FFLAGSMASK;
    switch (fflags & NOTE_FFCTRLMASK) {
    case NOTE_FFAND:
        knote->wanted &= bits;
        break;
    case NOTE_FFOR:
        knote->wanted |= bits;
        break;
    case NOTE_FFCOPY:
        knote->wanted = bits;
        break;
    default:
        break;
    }
    knote->is_triggered = knote->is_triggered || (fflags & NOTE_TRIGGER) != 0;
}

/* One change; 0 or an errno. */
static int apply(struct queue *queue, const struct kevent *change)
{
    if (filter_of(change->filter) == NULL) {
        return EINVAL;
    }
    struct knote *knote = find_knote(queue, change->ident, change->filter);
    if (knote == NULL) {
        if (!(change->flags & EV_ADD)) {
            return ENOENT;
        }
        int error = add_knote(queue, change, &knote);
        if (error != 0) {
            return error;
        }
    } else if (change->flags & EV_DELETE) {
        delete_knote(queue, knote);
        return 0;
    } else {
        knote->event.udata = change->udata;
        if (change->filter != EVFILT_USER) {
            knote->wanted = change->fflags;
            knote->given = change->data;
        }
    }
    if (change->filter == EVFILT_USER) {
        touch_user(knote, change->fflags);
    }
    if (change->flags & EV_DISABLE) {
        knote->is_disabled = true;
    } else if (change->flags & (EV_ENABLE | EV_ADD)) {
        knote->is_disabled = false;
    }
    activate(queue, knote);
    return 0;
}

/* All changes; how many answers are in `events`, or -1 with errno. */
static int apply_all(struct queue *queue, const struct kevent *changes, int change_count,
                     struct kevent *events, int event_count)
{
    int answers = 0;
    for (int i = 0; i < change_count; i++) {
        int error = g_calls.fail_change != NULL ? g_calls.fail_change(&changes[i]) : 0;
        if (error == 0) {
            error = apply(queue, &changes[i]);
        }
        if (error == 0 && !(changes[i].flags & EV_RECEIPT)) {
            continue;
        }
        if (answers >= event_count) {
            errno = error;
            return error == 0 ? answers : -1;
        }
        events[answers] = changes[i];
        events[answers].flags |= EV_ERROR;
        events[answers].data = error;
        answers++;
    }
    return answers;
}

static struct knote *find_id(struct queue *queue, uint64_t id)
{
    struct knote *knote = queue->first;
    while (knote != NULL && knote->id != id) {
        knote = knote->next;
    }
    return knote;
}

/* D1: the occasion to ask. */
static void note(struct queue *queue, uint64_t id)
{
    struct knote *knote = find_id(queue, id);
    if (knote == NULL) {
        return;
    }
    const struct filter *filter = filter_of(knote->event.filter);
    if (filter->note != NULL) {
        filter->note(knote);
    }
    activate(queue, knote);
}

/* What Linux has to tell of one epoll. */
static void harvest_from(struct queue *queue, int epoll_fd)
{
    struct epoll_event events[HARVEST_MAX];
    int count = HARVEST_MAX;
    while (count == HARVEST_MAX) {
        count = epoll_wait(epoll_fd, events, HARVEST_MAX, 0);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 != 0) {
                note(queue, events[i].data.u64);
            }
        }
        if (epoll_fd == queue->fd) {
            return; /* what it holds besides stays ready: once is enough */
        }
    }
}

static void harvest(struct queue *queue)
{
    uint64_t rung;
    ssize_t got = read(queue->bell_fd, &rung, sizeof(rung));
    (void)got;
    for (int i = 0; i < DIRECTION_COUNT; i++) {
        harvest_from(queue, queue->direction_fds[i]);
    }
    harvest_from(queue, queue->fd);
}

/* Delivers one knote; it may be gone after that. */
static void deliver(struct queue *queue, struct knote *knote, struct kevent *ret_event)
{
    *ret_event = knote->event;
    knote->event.flags &= (unsigned short)~EV_EOF;
    if (knote->event.flags & EV_ONESHOT) {
        delete_knote(queue, knote);
        return;
    }
    if (knote->event.flags & (EV_CLEAR | EV_DISPATCH)) {
        knote->is_active = false;
        knote->is_disabled = (knote->event.flags & EV_DISPATCH) != 0;
    }
    if (knote->event.flags & EV_CLEAR) {
        knote->is_triggered = false;
        knote->event.fflags = 0;
        knote->event.data = 0;
    }
    unlink_knote(queue, knote); /* whoever waits longer comes first */
    append_knote(queue, knote);
}

static unsigned count_knotes(const struct queue *queue)
{
    unsigned count = 0;
    for (const struct knote *knote = queue->first; knote != NULL; knote = knote->next) {
        count++;
    }
    return count;
}

/* Each knote once: whoever was delivered is at the end. */
static int scan(struct queue *queue, struct kevent *events, int event_count)
{
    int count = 0;
    struct knote *knote = queue->first;
    for (unsigned left = count_knotes(queue); left > 0 && count < event_count; left--) {
        struct knote *next = knote->next;
        knote->is_active =
            knote->is_active && !knote->is_disabled && filter_of(knote->event.filter)->ask(knote);
        if (knote->is_active) {
            deliver(queue, knote, &events[count++]);
        }
        knote = next;
    }
    return count;
}

static bool has_active(const struct queue *queue)
{
    const struct knote *knote = queue->first;
    while (knote != NULL && (!knote->is_active || knote->is_disabled)) {
        knote = knote->next;
    }
    return knote != NULL;
}

static struct timespec after(struct timespec now, const struct timespec *length)
{
    now.tv_sec += length->tv_sec;
    now.tv_nsec += length->tv_nsec;
    if (now.tv_nsec >= 1000000000) {
        now.tv_nsec -= 1000000000;
        now.tv_sec++;
    }
    return now;
}

/* The length that is left until a time; false when it is past. */
static bool left_until(const struct timespec *end, struct timespec *ret_left)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    ret_left->tv_sec = end->tv_sec - now.tv_sec;
    ret_left->tv_nsec = end->tv_nsec - now.tv_nsec;
    if (ret_left->tv_nsec < 0) {
        ret_left->tv_nsec += 1000000000;
        ret_left->tv_sec--;
    }
    return ret_left->tv_sec >= 0 && (ret_left->tv_sec > 0 || ret_left->tv_nsec > 0);
}

/* With the lock; gives it up while it waits.  Events, or -1 with errno. */
static int wait_and_scan(struct queue *queue, struct kevent *events, int event_count,
                         const struct timespec *timeout)
{
    struct timespec now;
    struct timespec end = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (timeout != NULL) {
        end = after(now, timeout);
    }
    int queue_fd = queue->fd;
    for (;;) {
        harvest(queue);
        int count = scan(queue, events, event_count);
        struct timespec left = {0};
        if (count > 0 || (timeout != NULL && !left_until(&end, &left))) {
            if (has_active(queue)) {
                ring(queue); /* a queue with something in it is readable itself */
            }
            return count;
        }
        (void)pthread_mutex_unlock(&g_lock);
        struct pollfd ready = {.fd = queue_fd, .events = POLLIN};
        int result = ppoll(&ready, 1, timeout != NULL ? &left : NULL, NULL);
        int error = errno;
        (void)pthread_mutex_lock(&g_lock);
        if (result < 0 || find_queue(queue_fd) != queue) {
            errno = result < 0 ? error : EBADF;
            return -1;
        }
    }
}

int kevent(int queue_fd, const struct kevent *changes, int change_count, struct kevent *events,
           int event_count, const struct timespec *timeout)
{
    if (timeout != NULL &&
        (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec > 999999999)) {
        errno = EINVAL;
        return -1;
    }
    (void)pthread_mutex_lock(&g_lock);
    struct queue *queue = find_queue(queue_fd);
    int count = -1;
    errno = EBADF;
    if (queue != NULL) {
        g_calls.kevents++;
        g_calls.changes += (unsigned)change_count;
        count = apply_all(queue, changes, change_count, events, event_count);
        if (count == 0 && event_count > 0) {
            count = wait_and_scan(queue, events, event_count, timeout);
        }
    }
    (void)pthread_mutex_unlock(&g_lock);
    return count;
}

static void free_queue(struct queue *queue)
{
    while (queue->first != NULL) {
        delete_knote(queue, queue->first);
    }
    for (int i = 0; i < DIRECTION_COUNT; i++) {
        close_fd(queue->direction_fds[i]);
    }
    close_fd(queue->bell_fd);
    free(queue);
}

static bool hold(struct queue *queue, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return fd >= 0 && epoll_ctl(queue->fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int kqueue(void)
{
    struct queue *queue = calloc(1, sizeof(*queue));
    if (queue == NULL) {
        errno = ENOMEM;
        return -1;
    }
    queue->fd = epoll_create1(0);
    queue->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool complete = queue->fd >= 0 && hold(queue, queue->bell_fd);
    for (int i = 0; i < DIRECTION_COUNT; i++) {
        queue->direction_fds[i] = epoll_create1(EPOLL_CLOEXEC);
        complete = complete && hold(queue, queue->direction_fds[i]);
    }
    if (!complete) {
        int error = errno;
        close_fd(queue->fd);
        free_queue(queue);
        errno = error;
        return -1;
    }
    (void)pthread_mutex_lock(&g_lock);
    queue->next = g_queues;
    g_queues = queue;
    (void)pthread_mutex_unlock(&g_lock);
    return queue->fd;
}

static void forget_descriptor(struct queue *queue, int fd)
{
    struct knote *next;
    for (struct knote *knote = queue->first; knote != NULL; knote = next) {
        next = knote->next;
        bool is_of_descriptor =
            knote->direction != DIRECTION_NONE || knote->event.filter == EVFILT_VNODE;
        if (is_of_descriptor && knote->event.ident == (uintptr_t)fd) {
            delete_knote(queue, knote);
        }
    }
}

void kqueue_closing(int fd)
{
    (void)pthread_mutex_lock(&g_lock);
    struct queue **at = &g_queues;
    while (*at != NULL) {
        struct queue *queue = *at;
        if (queue->fd == fd) {
            *at = queue->next;
            free_queue(queue);
            continue;
        }
        forget_descriptor(queue, fd);
        at = &queue->next;
    }
    (void)pthread_mutex_unlock(&g_lock);
}

struct kqueue_calls *kqueue_calls(void)
{
    return &g_calls;
}
