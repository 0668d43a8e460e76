/* SPDX-License-Identifier: MIT */
/*
 * The interface of kqueue as the BSDs and macOS publish it, for the double of this folder.  Names
 * and meanings are those of kqueue(2); values are ours where they do not matter.
 */
#ifndef DOUBLE_SYS_EVENT_H
#define DOUBLE_SYS_EVENT_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define EVFILT_READ   (-1)
#define EVFILT_WRITE  (-2)
#define EVFILT_VNODE  (-4)
#define EVFILT_PROC   (-5)
#define EVFILT_SIGNAL (-6)
#define EVFILT_TIMER  (-7)
#define EVFILT_USER   (-10)
#define EVFILT_EXCEPT (-15)

/* Actions. */
#define EV_ADD     0x0001
#define EV_DELETE  0x0002
#define EV_ENABLE  0x0004
#define EV_DISABLE 0x0008

/* Ways. */
#define EV_ONESHOT  0x0010
#define EV_CLEAR    0x0020
#define EV_RECEIPT  0x0040
#define EV_DISPATCH 0x0080

/* Answers. */
#define EV_ERROR 0x4000
#define EV_EOF   0x8000

/* Of EVFILT_READ. */
#define NOTE_LOWAT 0x0001

/* Of EVFILT_EXCEPT. */
#define NOTE_OOB 0x0002

/* Of EVFILT_VNODE. */
#define NOTE_DELETE 0x0001
#define NOTE_WRITE  0x0002
#define NOTE_EXTEND 0x0004
#define NOTE_ATTRIB 0x0008
#define NOTE_LINK   0x0010
#define NOTE_RENAME 0x0020

/* Of EVFILT_PROC. */
#define NOTE_EXIT 0x80000000u

/* Of EVFILT_TIMER; milliseconds without. */
#define NOTE_SECONDS  0x0001
#define NOTE_USECONDS 0x0002
#define NOTE_NSECONDS 0x0004

/* Of EVFILT_USER. */
#define NOTE_TRIGGER    0x01000000u
#define NOTE_FFNOP      0x00000000u
#define NOTE_FFAND      0x40000000u
#define NOTE_FFOR       0x80000000u
#define NOTE_FFCOPY     0xc0000000u
#define NOTE_FFCTRLMASK 0xc0000000u
#define NOTE_FFLAGSMASK 0x00ffffffu

struct kevent {
    uintptr_t ident;
    short filter;
    unsigned short flags;
    unsigned int fflags;
    intptr_t data;
    void *udata;
};

#define EV_SET(event, an_ident, a_filter, some_flags, some_fflags, some_data, an_udata)            \
    do {                                                                                           \
        struct kevent *ev_set = (event);                                                           \
        ev_set->ident = (uintptr_t)(an_ident);                                                     \
        ev_set->filter = (a_filter);                                                               \
        ev_set->flags = (some_flags);                                                              \
        ev_set->fflags = (some_fflags);                                                            \
        ev_set->data = (some_data);                                                                \
        ev_set->udata = (an_udata);                                                                \
    } while (0)

int kqueue(void);
int kevent(int queue_fd, const struct kevent *changes, int change_count, struct kevent *events,
           int event_count, const struct timespec *timeout);

#endif
