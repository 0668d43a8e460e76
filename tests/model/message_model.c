/* SPDX-License-Identifier: MIT */
/*
 * The store of messages under the model checker: nobody is given what somebody else has, what is
 * given back comes with all that was done to it, and the bound holds.
 */
#include "rt/message.c"

#include "model/model.h"

static struct gi_message_store store;
static struct gi_message *keys[2]; /* what a thread has at the moment */
static _Alignas(16) uint8_t memory[4096];
static size_t used;

static void *take_memory(void *user, size_t size)
{
    (void)user;
    void *taken = memory + used;
    used += (size + 15) & ~(size_t)15;
    MODEL_CHECK(used <= sizeof(memory));
    return taken;
}

static void leave_memory(void *user, void *pointer, size_t size)
{
    (void)user;
    (void)pointer;
    (void)size;
}

static void set_up_with(uint32_t count_max)
{
    static const struct gori_allocator allocator = {.alloc = take_memory, .free = leave_memory};
    used = 0;
    gi_message_store_init(&store, &allocator, count_max);
    keys[0] = NULL;
    keys[1] = NULL;
}

static void set_up(void)
{
    set_up_with(2);
}

/* Both messages were used, and are free. */
static void set_up_used(void)
{
    struct gi_message *one;
    struct gi_message *two;
    set_up_with(2);
    MODEL_CHECK(gi_message_acquire(&store, &one) == 0);
    MODEL_CHECK(gi_message_acquire(&store, &two) == 0);
    gi_message_release(&store, one);
    gi_message_release(&store, two);
}

static void set_up_one(void)
{
    set_up_with(1);
}

static bool use(void)
{
    struct gi_message *message;
    if (gi_message_acquire(&store, &message) < 0) {
        return false;
    }
    unsigned self = model_self();
    MODEL_CHECK(keys[1 - self] != message);
    keys[self] = message;
    model_write(message);
    keys[self] = NULL;
    gi_message_release(&store, message);
    return true;
}

static void use_once(void)
{
    MODEL_CHECK(use());
}

static void use_twice(void)
{
    MODEL_CHECK(use());
    MODEL_CHECK(use());
}

static void try_once(void)
{
    (void)use();
}

/* Takes both, gives the first back and keeps the second for a while: the head is again what it was,
   what comes after it is not. */
static void shuffle(void)
{
    struct gi_message *one;
    struct gi_message *two;
    unsigned self = model_self();
    if (gi_message_acquire(&store, &one) < 0) {
        return;
    }
    bool has_two = gi_message_acquire(&store, &two) == 0;
    keys[self] = has_two ? two : NULL;
    model_write(one);
    gi_message_release(&store, one);
    if (has_two) {
        MODEL_CHECK(keys[1 - self] != two);
        model_write(two);
        keys[self] = NULL;
        gi_message_release(&store, two);
    }
}

static void check(void)
{
    struct gi_message *messages[3];
    uint32_t count = 0;
    while (count < 3 && gi_message_acquire(&store, &messages[count]) == 0) {
        count++;
    }
    MODEL_CHECK(count == store.count_max);
}

int main(int argc, char **argv)
{
    static const struct model_scenario scenarios[] = {
        {"the first of all", set_up, {use_once, use_once}, check, 2, 0},
        {"one of two, twice", set_up_used, {use_once, use_twice}, check, 1, 0},
        {"two that take both", set_up_used, {shuffle, shuffle}, check, 0, 0},
        {"only one", set_up_one, {try_once, try_once}, check, 2, 0},
        {.name = NULL},
    };
    return model_main(argc, argv, scenarios);
}
