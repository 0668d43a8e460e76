/* SPDX-License-Identifier: MIT */
/*
 * Lists: order, splicing, removal from anywhere, and misuse.
 */
#include "base/list.h"
#include "lib/test.h"

#define ITEM_COUNT 8

struct item {
    int number;
    struct gori_link link;
};

static struct item *item_of(struct gori_link *link)
{
    return gori_container_of(link, struct item, link);
}

static void make_items(struct item *items)
{
    memset(items, 0, sizeof(*items) * ITEM_COUNT);
    for (int i = 0; i < ITEM_COUNT; i++) {
        items[i].number = i;
    }
}

/* The numbers in the list, read forward, as decimal digits; the way back is checked against it. */
static unsigned long digits(struct gori_link *list)
{
    unsigned long forward = 0;
    unsigned long backward = 0;
    unsigned long weight = 1;
    GI_LIST_FOREACH (link, list) {
        forward = forward * 10 + (unsigned long)item_of(link)->number;
    }
    for (struct gori_link *link = list->prev; link != list; link = link->prev) {
        backward += weight * (unsigned long)item_of(link)->number;
        weight *= 10;
    }
    GT_EQUAL(forward, backward);
    return forward;
}

GT_TEST(list_is_empty_at_first)
{
    struct gori_link list;
    gi_list_init(&list);
    GT_CHECK(gi_list_is_empty(&list));
    GT_CHECK(gi_list_first(&list) == NULL);
    GT_CHECK(gi_list_pop_front(&list) == NULL);
}

GT_TEST(list_pushes_at_both_ends)
{
    struct item items[ITEM_COUNT];
    struct gori_link list;
    make_items(items);
    gi_list_init(&list);
    gi_list_push_back(&list, &items[2].link);
    gi_list_push_back(&list, &items[3].link);
    gi_list_push_front(&list, &items[1].link);
    GT_EQUAL(digits(&list), 123);
    GT_CHECK(gi_list_first(&list) == &items[1].link);
    GT_CHECK(gi_list_pop_front(&list) == &items[1].link);
    GT_CHECK(!gi_link_is_linked(&items[1].link));
    GT_EQUAL(digits(&list), 23);
}

GT_TEST(list_removes_from_anywhere)
{
    struct item items[ITEM_COUNT];
    struct gori_link list;
    make_items(items);
    gi_list_init(&list);
    for (int i = 1; i < 6; i++) {
        gi_list_push_back(&list, &items[i].link);
    }
    gi_list_remove(&items[3].link);
    GT_EQUAL(digits(&list), 1245);
    gi_list_remove(&items[1].link);
    gi_list_remove(&items[5].link);
    GT_EQUAL(digits(&list), 24);
    gi_list_push_back(&list, &items[3].link);
    GT_EQUAL(digits(&list), 243);
}

GT_TEST(list_foreach_safe_lets_the_present_one_go)
{
    struct item items[ITEM_COUNT];
    struct gori_link list;
    make_items(items);
    gi_list_init(&list);
    for (int i = 1; i < 7; i++) {
        gi_list_push_back(&list, &items[i].link);
    }
    GI_LIST_FOREACH_SAFE (link, &list) {
        if (item_of(link)->number % 2 == 0) {
            gi_list_remove(link);
        }
    }
    GT_EQUAL(digits(&list), 135);
}

GT_TEST(list_moves_all)
{
    struct item items[ITEM_COUNT];
    struct gori_link from;
    struct gori_link to;
    make_items(items);
    gi_list_init(&from);
    gi_list_init(&to);
    gi_list_move_all(&from, &to);
    GT_CHECK(gi_list_is_empty(&to));
    gi_list_push_back(&from, &items[1].link);
    gi_list_push_back(&from, &items[2].link);
    gi_list_move_all(&from, &to);
    GT_CHECK(gi_list_is_empty(&from));
    GT_EQUAL(digits(&to), 12);
    gi_list_push_back(&from, &items[3].link);
    gi_list_move_all(&from, &to);
    GT_EQUAL(digits(&to), 123);
    gi_list_move_all(&from, &to);
    GT_EQUAL(digits(&to), 123);
}

GT_TEST(list_misuse_aborts)
{
    struct item items[ITEM_COUNT];
    struct gori_link list;
    make_items(items);
    gi_list_init(&list);
    GT_DIES(gi_list_remove(&items[0].link));
    gi_list_push_back(&list, &items[0].link);
    GT_DIES(gi_list_push_back(&list, &items[0].link));
    GT_DIES(gi_list_push_front(&list, &items[0].link));
    GT_DIES(gi_list_move_all(&list, &list));
}

GT_MAIN()
