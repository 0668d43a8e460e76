/* SPDX-License-Identifier: MIT */
/*
 * The timing wheel.
 *
 * Contract:
 *  1. An entry expires at the first advance whose `now` is at or after its deadline: never before,
 *     and no later than that, to the nanosecond.  The tick only decides where an entry is kept.
 *  2. start, stop and restart touch the entry, its neighbours and one bitmap; no search.  A restart
 *     to a later deadline, which is what an idle timer does with every message, touches the entry
 *     only.  An entry is moved at most once per level on its way to its deadline.
 *  3. next never sleeps past a deadline rounded up to its tick, and is after the last advance
 *     unless something is due already, so that waiting for it and advancing makes progress:
 *     something expires or moves to a lower level, seven times at most, or one that was restarted
 *     goes from where it was to where it belongs, once, and begins anew.
 *  4. Entries that expire together come in order of ticks; within a tick in order of start, but one
 *     that was restarted comes anywhere in its tick.  What was due when it was started comes before
 *     all, in order of start.
 *  5. Time does not go back: an earlier `now` counts as the latest one.  GORI_NEVER is not kept.
 *  6. advance runs no callback: it fills a list, and whoever pops from it may meanwhile start and
 *     stop any entry, those in the list included.
 *
 * Design.  A deadline belongs to the tick that ends at or after it: ticks are counted by their
 * ends, so tick k holds deadlines in ((k - 1) * 2^16, k * 2^16] ns.  wheel->tick is the one that
 * the time after `now` is in; it always ends after `now`.  A tick is a number of 48 bits, eight
 * digits of 6 bits.  An entry is kept at the level of the highest digit in which its tick differs
 * from wheel->tick, in the slot of that digit.  From this follow:
 *
 *  - Level 0 holds what lies in the present group of 64 ticks, level 1 the rest of the present
 *    group of 4096, and so on.  Whatever is at a lower level comes before all that is at a higher
 *    one.
 *  - The slots of the present digit are empty at levels 1 to 7; at level 0 it is the present tick.
 *    The earliest slot is the lowest bit of the lowest level that has one, so next is O(1).
 *  - All entries of one tick are in one slot at any time and keep their order.
 *
 * A restart to a later deadline leaves the entry in its slot: the slot is then too early for it,
 * which is harmless, for it is looked at again when the slot's turn comes.  So the slot says "not
 * before", the deadline says when.  With a million timers each neighbour is a cache miss; this
 * saves four.
 *
 * advance walks from occupied slot to occupied slot, however far the time jumps, and deals each
 * out: a slot of level 0 expires, save what was restarted; a slot of a higher level goes down.  At
 * last the present tick is filtered by real deadlines.
 *
 * The last tick, which would end at 2^64, stands for everything after its beginning; its entries
 * are filtered by deadline like those of any present tick, so nothing is early there either.
 *
 * Reading: Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987.
 */
#include "base/wheel.h"

#include "base/assert.h"
#include "base/list.h"

#define DIGIT_MASK (GI_WHEEL_SLOT_COUNT - 1)
#define TICK_NS    ((uint64_t)1 << GI_WHEEL_TICK_BITS)
#define TICK_LAST  (((uint64_t)1 << (64 - GI_WHEEL_TICK_BITS)) - 1)
#define SLOT_DUE   (1 + GI_WHEEL_LEVEL_COUNT * GI_WHEEL_SLOT_COUNT)

_Static_assert(GI_WHEEL_TICK_BITS + GI_WHEEL_DIGIT_BITS * GI_WHEEL_LEVEL_COUNT == 64,
               "the levels cover all of time");

/* The tick a deadline belongs to: the first that ends at or after it. */
static uint64_t tick_of_deadline(gori_time deadline)
{
    uint64_t tick = (deadline >> GI_WHEEL_TICK_BITS) + ((deadline & (TICK_NS - 1)) != 0);
    return tick < TICK_LAST ? tick : TICK_LAST;
}

/* The tick that the time just after `now` is in. */
static uint64_t tick_after(gori_time now)
{
    uint64_t tick = (now >> GI_WHEEL_TICK_BITS) + 1;
    return tick < TICK_LAST ? tick : TICK_LAST;
}

static unsigned digit_at(uint64_t tick, unsigned level)
{
    return (unsigned)(tick >> (level * GI_WHEEL_DIGIT_BITS)) & DIGIT_MASK;
}

static struct gori_wheel_entry *entry_of(struct gori_link *link)
{
    return gori_container_of(link, struct gori_wheel_entry, link);
}

/* Puts a free entry whose deadline is after wheel->now into its slot. */
static void insert(struct gi_wheel *wheel, struct gori_wheel_entry *entry)
{
    uint64_t tick = tick_of_deadline(entry->deadline);
    GI_DASSERT(tick >= wheel->tick);
    /* The lowest bit changes nothing but makes an equal tick differ at level 0. */
    unsigned highest_bit = 63U - (unsigned)__builtin_clzll((tick ^ wheel->tick) | 1);
    unsigned level = highest_bit / GI_WHEEL_DIGIT_BITS;
    unsigned index = digit_at(tick, level);
    gi_list_push_back(&wheel->slots[level][index], &entry->link);
    wheel->occupied[level] |= (uint64_t)1 << index;
    entry->slot = 1 + level * GI_WHEEL_SLOT_COUNT + index;
}

/* The lowest level with an occupied slot, or GI_WHEEL_LEVEL_COUNT. */
static unsigned first_level(const struct gi_wheel *wheel)
{
    unsigned level = 0;
    while (level < GI_WHEEL_LEVEL_COUNT && wheel->occupied[level] == 0) {
        level++;
    }
    return level;
}

static unsigned first_index(const struct gi_wheel *wheel, unsigned level)
{
    return (unsigned)__builtin_ctzll(wheel->occupied[level]);
}

/* The first tick of a slot: the present digits above the level, the slot's own, zeros below. */
static uint64_t first_tick(const struct gi_wheel *wheel, unsigned level, unsigned index)
{
    unsigned shift = level * GI_WHEEL_DIGIT_BITS;
    return ((wheel->tick >> shift & ~(uint64_t)DIGIT_MASK) | index) << shift;
}

static void expire(struct gori_wheel_entry *entry, struct gori_link *expired)
{
    entry->slot = 0;
    gi_list_push_back(expired, &entry->link);
}

/*
 * Empties a slot that has begun, at level 0 one that has ended: each entry goes where it belongs.
 */
static void deal_out(struct gi_wheel *wheel, unsigned level, unsigned index,
                     struct gori_link *expired)
{
    struct gori_link entries;
    gi_list_init(&entries);
    gi_list_move_all(&wheel->slots[level][index], &entries);
    wheel->occupied[level] &= ~((uint64_t)1 << index);
    struct gori_link *link;
    while ((link = gi_list_pop_front(&entries)) != NULL) {
        struct gori_wheel_entry *entry = entry_of(link);
        if (level == 0 && tick_of_deadline(entry->deadline) == wheel->tick) {
            expire(entry, expired);
        } else {
            insert(wheel, entry);
        }
    }
}

/* Expires what is due of the present tick, and sends away what was restarted. */
static void filter_present(struct gi_wheel *wheel, struct gori_link *expired)
{
    unsigned index = digit_at(wheel->tick, 0);
    struct gori_link *present = &wheel->slots[0][index];
    GI_LIST_FOREACH_SAFE (link, present) {
        struct gori_wheel_entry *entry = entry_of(link);
        if (entry->deadline <= wheel->now) {
            gi_list_remove(link);
            expire(entry, expired);
        } else if (tick_of_deadline(entry->deadline) != wheel->tick) {
            gi_list_remove(link);
            insert(wheel, entry);
        }
    }
    if (gi_list_is_empty(present)) {
        wheel->occupied[0] &= ~((uint64_t)1 << index);
    }
}

/* Moves to `target`, expiring all ticks before it. */
static void move_to(struct gi_wheel *wheel, uint64_t target, struct gori_link *expired)
{
    for (;;) {
        unsigned level = first_level(wheel);
        if (level == GI_WHEEL_LEVEL_COUNT) {
            break;
        }
        unsigned index = first_index(wheel, level);
        uint64_t tick = first_tick(wheel, level, index);
        GI_ASSERT(tick >= wheel->tick);
        if (tick > target || (level == 0 && tick == target)) {
            break;
        }
        wheel->tick = tick;
        deal_out(wheel, level, index, expired);
    }
    wheel->tick = target;
}

/* The exact earliest deadline of the last tick, which has no end to round up to. */
static gori_time earliest_of_last_tick(const struct gi_wheel *wheel)
{
    const struct gori_link *slot = &wheel->slots[0][DIGIT_MASK];
    gori_time earliest = GORI_NEVER;
    GI_LIST_FOREACH (link, slot) {
        gori_time deadline = entry_of(link)->deadline;
        earliest = deadline < earliest ? deadline : earliest;
    }
    return earliest;
}

void gi_wheel_init(struct gi_wheel *wheel, gori_time now)
{
    *wheel = (struct gi_wheel){.now = now, .tick = tick_after(now)};
    gi_list_init(&wheel->due);
    for (unsigned level = 0; level < GI_WHEEL_LEVEL_COUNT; level++) {
        for (unsigned index = 0; index < GI_WHEEL_SLOT_COUNT; index++) {
            gi_list_init(&wheel->slots[level][index]);
        }
    }
}

void gi_wheel_start(struct gi_wheel *wheel, struct gori_wheel_entry *entry, gori_time deadline)
{
    if (entry->slot != 0 && entry->slot != SLOT_DUE && deadline >= entry->deadline &&
        deadline != GORI_NEVER) {
        entry->deadline = deadline;
        return;
    }
    gi_wheel_stop(wheel, entry);
    entry->deadline = deadline;
    if (deadline == GORI_NEVER) {
        return;
    }
    if (deadline <= wheel->now) {
        gi_list_push_back(&wheel->due, &entry->link);
        entry->slot = SLOT_DUE;
        return;
    }
    insert(wheel, entry);
}

void gi_wheel_stop(struct gi_wheel *wheel, struct gori_wheel_entry *entry)
{
    if (!gi_link_is_linked(&entry->link)) {
        GI_ASSERT(entry->slot == 0);
        return;
    }
    gi_list_remove(&entry->link);
    if (entry->slot != 0 && entry->slot != SLOT_DUE) {
        unsigned level = (entry->slot - 1) / GI_WHEEL_SLOT_COUNT;
        unsigned index = (entry->slot - 1) % GI_WHEEL_SLOT_COUNT;
        GI_ASSERT(level < GI_WHEEL_LEVEL_COUNT);
        if (gi_list_is_empty(&wheel->slots[level][index])) {
            wheel->occupied[level] &= ~((uint64_t)1 << index);
        }
    }
    entry->slot = 0;
}

gori_time gi_wheel_next(const struct gi_wheel *wheel)
{
    if (!gi_list_is_empty(&wheel->due)) {
        return 0;
    }
    unsigned level = first_level(wheel);
    if (level == GI_WHEEL_LEVEL_COUNT) {
        return GORI_NEVER;
    }
    uint64_t tick = first_tick(wheel, level, first_index(wheel, level));
    if (level == 0 && tick == TICK_LAST) {
        return earliest_of_last_tick(wheel);
    }
    return tick << GI_WHEEL_TICK_BITS;
}

void gi_wheel_advance(struct gi_wheel *wheel, gori_time now, struct gori_link *expired)
{
    GI_LIST_FOREACH (link, &wheel->due) {
        entry_of(link)->slot = 0;
    }
    gi_list_move_all(&wheel->due, expired);
    if (now > wheel->now) {
        wheel->now = now;
        move_to(wheel, tick_after(now), expired);
        filter_present(wheel, expired);
    }
}

bool gi_wheel_is_empty(const struct gi_wheel *wheel)
{
    return gi_list_is_empty(&wheel->due) && first_level(wheel) == GI_WHEEL_LEVEL_COUNT;
}
