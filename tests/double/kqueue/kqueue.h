/* SPDX-License-Identifier: MIT */
/*
 * What a test may ask of the double that no kernel would answer.
 */
#ifndef DOUBLE_KQUEUE_H
#define DOUBLE_KQUEUE_H

#include <sys/event.h>

/** Counts of calls, and how to make changes fail. */
struct kqueue_calls {
    unsigned kevents; /* calls of kevent */
    unsigned changes; /* changes in them */
    /* The errno with which a change fails, 0 for what it does by itself; NULL for none.  It is
       called with the double's lock held. */
    int (*fail_change)(const struct kevent *change);
};

struct kqueue_calls *kqueue_calls(void);

/** The descriptor is about to be closed: its filters go with it.  Called by the program's close. */
void kqueue_closing(int fd);

#endif
