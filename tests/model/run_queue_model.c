/* SPDX-License-Identifier: MIT */
/*
 * The run queue under the model checker: what its owner and thieves take is taken once, in order,
 * and is theirs: they see what was written before it was put in.  Four places, so that slots are
 * used again.
 */
#include "base/run_queue.c"

#include "model/model.h"

enum { ITEMS = 6 };

static struct gi_run_queue victim;
static struct gi_run_queue owns[MODEL_THREADS_MAX];
static unsigned items[ITEMS]; /* how often each was taken */
static unsigned pushed;

static void set_up_with(unsigned count)
{
    gi_run_queue_init(&victim);
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++) {
        gi_run_queue_init(&owns[i]);
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        items[i] = 0;
    }
    for (pushed = 0; pushed < count; pushed++) {
        MODEL_CHECK(gi_run_queue_push(&victim, &items[pushed]));
    }
}

static void set_up(void)
{
    set_up_with(0);
}

static void set_up_two(void)
{
    set_up_with(2);
}

static void set_up_four(void)
{
    set_up_with(4);
}

static void push(void)
{
    model_write(&items[pushed]);
    if (gi_run_queue_push(&victim, &items[pushed])) {
        pushed++;
    }
}

/* Taken; what one taker gets comes in the order of the pushes. */
static void take(unsigned *item, unsigned **last)
{
    model_read(item);
    model_write(item);
    MODEL_CHECK(*item == 0);
    (*item)++;
    MODEL_CHECK(*last == NULL || *last < item);
    *last = item;
}

static void push_and_pop(void)
{
    unsigned *last = NULL;
    push();
    push();
    for (unsigned *item; (item = gi_run_queue_pop(&victim)) != NULL;) {
        take(item, &last);
    }
}

/* Goes once around, so that the third push uses a slot again that a thief may be looking at. */
static void pop_and_push(void)
{
    unsigned *last = NULL;
    unsigned *item = gi_run_queue_pop(&victim);
    if (item != NULL) {
        take(item, &last);
    }
    push();
    item = gi_run_queue_pop(&victim);
    if (item != NULL) {
        take(item, &last);
    }
}

static void steal(void)
{
    unsigned *last = NULL;
    uint32_t count = 0;
    struct gi_run_queue *own = &owns[model_self()];
    unsigned *item = gi_run_queue_steal(&victim, own, 1, &count);
    if (item == NULL) {
        return;
    }
    take(item, &last);
    while ((item = gi_run_queue_pop(own)) != NULL) {
        take(item, &last);
        count--;
    }
    MODEL_CHECK(count == 1);
}

/* Steals, and shows what it stole to a thief of its own. */
static void steal_once(void)
{
    unsigned *last = NULL;
    uint32_t count = 0;
    unsigned *item = gi_run_queue_steal(&victim, &owns[1], 1, &count);
    if (item != NULL) {
        take(item, &last);
    }
}

static void steal_from_thief(void)
{
    unsigned *last = NULL;
    uint32_t count = 0;
    unsigned *item = gi_run_queue_steal(&owns[1], &owns[2], 1, &count);
    if (item != NULL) {
        take(item, &last);
    }
}

static void check(void)
{
    unsigned *last = NULL;
    for (unsigned i = 0; i <= MODEL_THREADS_MAX; i++) {
        struct gi_run_queue *queue = i == 0 ? &victim : &owns[i - 1];
        for (unsigned *item; (item = gi_run_queue_pop(queue)) != NULL; last = NULL) {
            take(item, &last);
        }
    }
    for (unsigned i = 0; i < pushed; i++) {
        MODEL_CHECK(items[i] == 1);
    }
}

int main(int argc, char **argv)
{
    static const struct model_scenario scenarios[] = {
        {"an owner and two thieves", set_up, {push_and_pop, steal, steal}, check, 1, 0},
        {"an owner and a thief", set_up_two, {push_and_pop, steal}, check, 3, 0},
        {"a full queue", set_up_four, {pop_and_push, steal}, check, 3, 0},
        {"a thief that is robbed",
         set_up_four,
         {pop_and_push, steal_once, steal_from_thief},
         check,
         1,
         0},
        {.name = NULL},
    };
    return model_main(argc, argv, scenarios);
}
