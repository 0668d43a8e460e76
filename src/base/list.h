/* SPDX-License-Identifier: MIT */
/*
 * Intrusive doubly linked lists over `struct gori_link`.
 *
 *  1. A list is a link of its own: a ring that goes through it; empty when it points to itself.
 *  2. A link that is in no list is all zeros (or was removed, which makes it so); gi_link_is_linked
 *     tells.  So zeroed objects need no further initialisation, lists do.
 *  3. A link is in one list at a time; putting it into a second one is a broken invariant.
 *
 * Thread: one at a time.
 */
#ifndef GI_BASE_LIST_H
#define GI_BASE_LIST_H

#include "base/assert.h"

#include <gori/base.h>
#include <stdbool.h>

/** Runs through `list`; `link` must not be removed meanwhile. */
#define GI_LIST_FOREACH(link, list)                                                                \
    for (struct gori_link *link = (list)->next; link != (list); link = link->next)

/** Runs through `list`; `link`, and nothing else, may be removed meanwhile. */
#define GI_LIST_FOREACH_SAFE(link, list)                                                           \
    for (struct gori_link *link = (list)->next, *link##_next = link->next; link != (list);         \
         link = link##_next, link##_next = link->next)

static inline void gi_list_init(struct gori_link *list)
{
    list->next = list;
    list->prev = list;
}

static inline bool gi_list_is_empty(const struct gori_link *list)
{
    return list->next == list;
}

/** Whether `link` is in some list. */
static inline bool gi_link_is_linked(const struct gori_link *link)
{
    return link->next != NULL;
}

/** The first link, or NULL when the list is empty. */
static inline struct gori_link *gi_list_first(const struct gori_link *list)
{
    return list->next == list ? NULL : list->next;
}

static inline void gi_list_push_front(struct gori_link *list, struct gori_link *link)
{
    GI_ASSERT(!gi_link_is_linked(link));
    link->next = list->next;
    link->prev = list;
    list->next->prev = link;
    list->next = link;
}

static inline void gi_list_push_back(struct gori_link *list, struct gori_link *link)
{
    GI_ASSERT(!gi_link_is_linked(link));
    link->next = list;
    link->prev = list->prev;
    list->prev->next = link;
    list->prev = link;
}

/** Takes `link` out of the list it is in, whichever that is. */
static inline void gi_list_remove(struct gori_link *link)
{
    GI_ASSERT(gi_link_is_linked(link));
    link->next->prev = link->prev;
    link->prev->next = link->next;
    link->next = NULL;
    link->prev = NULL;
}

/** Takes the first link out, or answers NULL when the list is empty. */
static inline struct gori_link *gi_list_pop_front(struct gori_link *list)
{
    struct gori_link *link = gi_list_first(list);
    if (link != NULL) {
        gi_list_remove(link);
    }
    return link;
}

/**
 * Appends all of `from` to the end of `to` in order, in constant time; `from` is empty after it.
 */
static inline void gi_list_move_all(struct gori_link *from, struct gori_link *to)
{
    GI_ASSERT(from != to);
    if (gi_list_is_empty(from)) {
        return;
    }
    from->next->prev = to->prev;
    from->prev->next = to;
    to->prev->next = from->next;
    to->prev = from->prev;
    gi_list_init(from);
}

#endif
