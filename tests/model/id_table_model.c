/* SPDX-License-Identifier: MIT */
/*
 * gi_id_table_is_live under the model checker: what another thread is told of an id while its owner
 * removes it and gives its place to the next.
 */
#include "base/id_table.c"

#include "model/model.h"

static struct gi_id_table table;
static uint64_t first;
static uint64_t second;
static struct gi_atomic_u64 told; /* the second id, once it is out */
static int objects[2];

/* Memory that is whole again in each execution, however the last one ended. */
static _Alignas(16) uint8_t memory[2 * CHUNK_BYTES];
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

static void set_up(void)
{
    static const struct gori_allocator allocator = {.alloc = take_memory, .free = leave_memory};
    used = 0;
    MODEL_CHECK(gi_id_table_init(&table, &allocator, 7, GI_ID_TABLE_CHUNK) == 0);
    MODEL_CHECK(gi_id_table_insert(&table, &objects[0], &first) == 0);
    gi_atomic_u64_init(&told, 0);
    second = 0;
}

static void replace(void)
{
    MODEL_CHECK(gi_id_table_remove(&table, first) == &objects[0]);
    MODEL_CHECK(gi_id_table_insert(&table, &objects[1], &second) == 0);
    gi_atomic_u64_store(&told, second, GI_RELEASE);
}

/* Once an id was seen dead it stays dead. */
static void look_twice(void)
{
    bool was_live = gi_id_table_is_live(&table, first);
    bool is_live = gi_id_table_is_live(&table, first);
    MODEL_CHECK(was_live || !is_live);
}

/* Who was told of the second id knows that the first is over, and that the second lives. */
static void be_told(void)
{
    uint64_t id = gi_atomic_u64_load(&told, GI_ACQUIRE);
    if (id != 0) {
        MODEL_CHECK(gi_id_table_is_live(&table, id));
        MODEL_CHECK(!gi_id_table_is_live(&table, first));
    }
}

/* Guesses the id that will be second: it is not live before it is out, and not taken for it after
   the first was seen alive again. */
static void guess(void)
{
    uint64_t next = first + (UINT64_C(1) << 32);
    bool is_next_live = gi_id_table_is_live(&table, next);
    bool is_first_live = gi_id_table_is_live(&table, first);
    MODEL_CHECK(!(is_next_live && is_first_live));
}

int main(int argc, char **argv)
{
    static const struct model_scenario scenarios[] = {
        {"an id that ends", set_up, {replace, look_twice}, NULL, 4, 0},
        {"an id that one is told of", set_up, {replace, be_told}, NULL, 4, 0},
        {"an id that one guesses", set_up, {replace, guess}, NULL, 4, 0},
        {.name = NULL},
    };
    return model_main(argc, argv, scenarios);
}
