/* SPDX-License-Identifier: MIT */
/*
 * The inside of the double: what a kernel with kqueue keeps, in its own words.  A *knote* is one
 * registration, of an ident with a filter; it is *active* when it has something to say.
 *
 *     registered ──filter says yes──> active ──kevent takes it──> with EV_CLEAR: registered
 *         ^                             │                         with EV_ONESHOT: gone
 *         └──filter says no, when asked again before delivery     else: active, at the end
 *
 *  D1  Whether a knote is active is always the filter's answer about the present state; what Linux
 *      tells (an edge of epoll) is only the occasion to ask.
 *  D2  A queue is five descriptors: `fd`, which is an epoll and which the caller knows, three more
 *      epolls, since one knows a descriptor only once, and an eventfd for knotes without any.
 *  D3  One lock for all queues: kevent may be called from any thread, and does not hold it while
 *      it waits.
 */
#ifndef DOUBLE_KNOTE_H
#define DOUBLE_KNOTE_H

#include <stdbool.h>
#include <sys/event.h>

enum direction { DIRECTION_READ, DIRECTION_WRITE, DIRECTION_EXCEPT, DIRECTION_COUNT };

#define DIRECTION_NONE (-1)

struct knote {
    struct kevent event; /* as registered; fflags and data are those of the next delivery */
    unsigned int wanted; /* fflags as registered */
    intptr_t given;      /* data as registered */
    bool is_active;
    bool is_disabled;
    bool is_triggered; /* EVFILT_USER */
    bool is_socket;
    bool is_plain;      /* a file, which is always ready */
    int direction;      /* enum direction, of filters of descriptors */
    int own_fd;         /* what Linux tells by: timer, signals, process, file; or -1 */
    off_t size;         /* EVFILT_VNODE: when last looked */
    nlink_t links;      /* the same */
    int parent_watch;   /* EVFILT_VNODE of a directory: who sees it go */
    uint64_t id;        /* never used again */
    struct knote *next; /* of its queue, in order of delivery */
};

struct queue {
    int fd;
    int direction_fds[DIRECTION_COUNT];
    int bell_fd;
    struct knote *first;
    struct queue *next;
};

/** What a filter knows. */
struct filter {
    short name;
    int direction;
    unsigned short flags;               /* always set */
    int (*attach)(struct knote *knote); /* 0 or an errno */
    void (*note)(struct knote *knote);  /* its own_fd has something to read; or NULL */
    bool (*ask)(struct knote *knote);   /* whether it is active; fills fflags, data and EV_EOF */
};

/** NULL when there is no such filter. */
const struct filter *filter_of(short name);

#endif
