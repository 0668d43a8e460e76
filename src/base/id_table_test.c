/* SPDX-License-Identifier: MIT */
/*
 * Ids: stale ones find nothing, forged ones find nothing, bounds hold, other threads may look.
 */
#include "base/fault_alloc.h"
#include "base/id_table.h"
#include "base/random.h"
#include "lib/test.h"

#include <gori/error.h>
#include <pthread.h>

#define TAG 0x5a

GT_TEST(id_is_made_of_generation_tag_and_index)
{
    struct gi_id_table table;
    int object;
    uint64_t id;
    GT_EQUAL(gi_id_table_init(&table, NULL, TAG, 10), 0);
    GT_EQUAL(gi_id_table_insert(&table, &object, &id), 0);
    GT_EQUAL(id, 0x000000015a000000ULL);
    GT_EQUAL(gi_id_tag(id), TAG);
    GT_EQUAL(gi_id_index(id), 0);
    GT_EQUAL(gi_id_generation(id), 1);
    GT_EQUAL(gi_id_table_count(&table), 1);
    GT_CHECK(gi_id_table_get(&table, id) == &object);
    GT_CHECK(gi_id_table_is_live(&table, id));
    GT_CHECK(gi_id_table_remove(&table, id) == &object);
    GT_EQUAL(gi_id_table_count(&table), 0);
    gi_id_table_fini(&table);
}

GT_TEST(id_that_is_stale_finds_nothing_after_reuse)
{
    struct gi_id_table table;
    int first;
    int second;
    uint64_t stale;
    uint64_t id;
    GT_EQUAL(gi_id_table_init(&table, NULL, TAG, 1), 0);
    GT_EQUAL(gi_id_table_insert(&table, &first, &stale), 0);
    GT_CHECK(gi_id_table_remove(&table, stale) == &first);
    GT_CHECK(gi_id_table_get(&table, stale) == NULL);
    GT_CHECK(gi_id_table_remove(&table, stale) == NULL);
    GT_EQUAL(gi_id_table_insert(&table, &second, &id), 0);
    GT_EQUAL(gi_id_index(id), gi_id_index(stale));
    GT_CHECK(gi_id_table_get(&table, stale) == NULL);
    GT_CHECK(!gi_id_table_is_live(&table, stale));
    GT_CHECK(gi_id_table_remove(&table, stale) == NULL);
    GT_CHECK(gi_id_table_remove(&table, id) == &second);
    gi_id_table_fini(&table);
}

/* Numbers that never were ids, the id that a free entry will give next among them. */
GT_TEST(id_that_never_was_finds_nothing)
{
    struct gi_id_table table;
    int object;
    uint64_t id;
    GT_EQUAL(gi_id_table_init(&table, NULL, TAG, 2000), 0);
    GT_EQUAL(gi_id_table_insert(&table, &object, &id), 0);
    uint64_t forged[] = {
        0,
        UINT64_MAX,
        id + 1,                   /* an entry never used */
        id + 1500,                /* a chunk never made */
        id + 5000,                /* beyond the table */
        id ^ (1 << 24),           /* another table's tag */
        id + ((uint64_t)1 << 32), /* a generation to come */
        id & 0xffffffff,          /* generation 0 */
    };
    for (size_t i = 0; i < GI_ARRAY_COUNT(forged); i++) {
        GT_CHECK(gi_id_table_get(&table, forged[i]) == NULL);
        GT_CHECK(!gi_id_table_is_live(&table, forged[i]));
        GT_CHECK(gi_id_table_remove(&table, forged[i]) == NULL);
    }
    GT_CHECK(gi_id_table_remove(&table, id) == &object);
    uint64_t next = id + ((uint64_t)1 << 32);
    GT_CHECK(gi_id_table_get(&table, next) == NULL);
    GT_CHECK(!gi_id_table_is_live(&table, next));
    GT_CHECK(gi_id_table_remove(&table, next) == NULL);
    gi_id_table_fini(&table);
}

/* 2^32 reuses take too long to wait for: the entry is set near the end of its generations. */
GT_TEST(id_generation_wraps_past_zero)
{
    struct gi_id_table table;
    int object;
    uint64_t id;
    GT_EQUAL(gi_id_table_init(&table, NULL, TAG, 1), 0);
    GT_EQUAL(gi_id_table_insert(&table, &object, &id), 0);
    GT_CHECK(gi_id_table_remove(&table, id) == &object);
    struct gi_id_entry *entry = gi_atomic_pointer_load(&table.chunks[0], GI_RELAXED);
    gi_atomic_u32_store(&entry->generation, UINT32_MAX, GI_RELAXED);
    GT_EQUAL(gi_id_table_insert(&table, &object, &id), 0);
    GT_EQUAL(gi_id_generation(id), UINT32_MAX);
    GT_CHECK(gi_id_table_remove(&table, id) == &object);
    GT_CHECK(!gi_id_table_is_live(&table, id));
    GT_EQUAL(gi_id_table_insert(&table, &object, &id), 0);
    GT_EQUAL(gi_id_generation(id), 1);
    GT_CHECK(gi_id_table_remove(&table, id) == &object);
    gi_id_table_fini(&table);
}

GT_TEST(id_table_keeps_its_bounds)
{
    struct gi_id_table table;
    int object;
    uint64_t ids[3];
    uint64_t untouched = 77;
    GT_EQUAL(gi_id_table_init(&table, NULL, TAG, 0), GORI_EINVAL);
    GT_EQUAL(gi_id_table_init(&table, NULL, TAG, GI_ID_COUNT_MAX + 1), GORI_EINVAL);
    GT_EQUAL(gi_id_table_init(&table, NULL, TAG, 3), 0);
    for (size_t i = 0; i < 3; i++) {
        GT_EQUAL(gi_id_table_insert(&table, &object, &ids[i]), 0);
    }
    GT_EQUAL(gi_id_table_insert(&table, &object, &untouched), GORI_ELIMIT);
    GT_EQUAL(untouched, 77);
    GT_DIES(gi_id_table_fini(&table));
    GT_DIES((void)!gi_id_table_insert(&table, NULL, &untouched));
    for (size_t i = 0; i < 3; i++) {
        GT_CHECK(gi_id_table_remove(&table, ids[i]) == &object);
    }
    gi_id_table_fini(&table);
}

/* The largest index of the largest table; chunks come on demand, so this is cheap. */
GT_TEST(id_table_fills_across_chunks)
{
    enum { COUNT = 3 * GI_ID_TABLE_CHUNK + 7 };
    static uint64_t ids[COUNT];
    struct gi_fault_alloc fault;
    struct gi_id_table table;
    gi_fault_alloc_init(&fault, NULL);
    GT_EQUAL(gi_id_table_init(&table, &fault.allocator, TAG, GI_ID_COUNT_MAX), 0);
    GT_EQUAL(gi_fault_alloc_live_blocks(&fault), 1);
    for (size_t i = 0; i < COUNT; i++) {
        GT_EQUAL(gi_id_table_insert(&table, &ids[i], &ids[i]), 0);
        GT_EQUAL(gi_id_index(ids[i]), i);
    }
    GT_EQUAL(gi_fault_alloc_live_blocks(&fault), 5);
    for (size_t i = 0; i < COUNT; i++) {
        GT_CHECK(gi_id_table_get(&table, ids[i]) == &ids[i]);
        GT_CHECK(gi_id_table_remove(&table, ids[i]) == &ids[i]);
    }
    gi_id_table_fini(&table);
    gi_fault_alloc_fini(&fault);
}

/* Every allocation fails once: the error is told, the table still works, nothing leaks. */
GT_TEST(id_table_survives_lack_of_memory)
{
    struct gi_fault_alloc fault;
    struct gi_id_table table;
    int object;
    uint64_t id;
    gi_fault_alloc_init(&fault, NULL);
    gi_fault_alloc_fail_once(&fault, 1);
    GT_EQUAL(gi_id_table_init(&table, &fault.allocator, TAG, 10), GORI_ENOMEM);
    gi_fault_alloc_fail_once(&fault, 2);
    GT_EQUAL(gi_id_table_init(&table, &fault.allocator, TAG, 10), 0);
    GT_EQUAL(gi_id_table_insert(&table, &object, &id), GORI_ENOMEM);
    GT_EQUAL(gi_id_table_count(&table), 0);
    GT_EQUAL(gi_id_table_insert(&table, &object, &id), 0);
    GT_CHECK(gi_id_table_remove(&table, id) == &object);
    gi_id_table_fini(&table);
    gi_fault_alloc_fini(&fault);
}

/* Random inserts and removes against a plain array of what should be live, and of what was. */
GT_TEST(id_table_agrees_with_a_model)
{
    enum { COUNT = 300, STEPS = 60000 };
    struct gi_random random;
    struct gi_id_table table;
    uint64_t live[COUNT] = {0};
    uint64_t stale[COUNT] = {0};
    uint32_t live_count = 0;
    gi_random_init(&random, 11);
    GT_EQUAL(gi_id_table_init(&table, NULL, TAG, COUNT), 0);
    for (int step = 0; step < STEPS; step++) {
        size_t i = (size_t)gi_random_below(&random, COUNT);
        if (live[i] == 0) {
            GT_EQUAL(gi_id_table_insert(&table, &live[i], &live[i]), 0);
            live_count++;
        } else {
            GT_CHECK(gi_id_table_remove(&table, live[i]) == &live[i]);
            stale[i] = live[i];
            live[i] = 0;
            live_count--;
        }
        GT_EQUAL(gi_id_table_count(&table), live_count);
        size_t probe = (size_t)gi_random_below(&random, COUNT);
        GT_CHECK(gi_id_table_get(&table, stale[probe]) == NULL);
        if (live[probe] != 0) {
            GT_CHECK(gi_id_table_get(&table, live[probe]) == &live[probe]);
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        GT_CHECK((gi_id_table_remove(&table, live[i]) != NULL) == (live[i] != 0));
    }
    gi_id_table_fini(&table);
}

struct watched {
    struct gi_id_table table;
    struct gi_atomic_u64 announced; /* an id, stored with release after it was made */
    struct gi_atomic_u64 buried;    /* an id, stored with release after it was removed */
    struct gi_atomic_bool stop;
};

static void *watch(void *user)
{
    struct watched *watched = user;
    while (!gi_atomic_bool_load(&watched->stop, GI_ACQUIRE)) {
        uint64_t buried = gi_atomic_u64_load(&watched->buried, GI_ACQUIRE);
        GT_CHECK(!gi_id_table_is_live(&watched->table, buried));
        uint64_t announced = gi_atomic_u64_load(&watched->announced, GI_ACQUIRE);
        bool live = gi_id_table_is_live(&watched->table, announced);
        /* Dead is final: whoever saw it dead may count on it. */
        GT_CHECK(live || !gi_id_table_is_live(&watched->table, announced));
        GT_CHECK(!gi_id_table_is_live(&watched->table, announced + ((uint64_t)1 << 52)));
    }
    return NULL;
}

/* Other threads ask while the owner inserts, removes and grows the table. */
GT_TEST(id_table_is_live_from_other_threads)
{
    enum { ROUNDS = 3000 };
    static struct watched watched;
    static uint64_t held[ROUNDS];
    GT_EQUAL(gi_id_table_init(&watched.table, NULL, TAG, 2 * ROUNDS), 0);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        GT_EQUAL(pthread_create(&threads[i], NULL, watch, &watched), 0);
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        uint64_t id;
        GT_EQUAL(gi_id_table_insert(&watched.table, &held[i], &held[i]), 0);
        GT_EQUAL(gi_id_table_insert(&watched.table, &watched, &id), 0);
        gi_atomic_u64_store(&watched.announced, id, GI_RELEASE);
        GT_CHECK(gi_id_table_is_live(&watched.table, id));
        GT_CHECK(gi_id_table_remove(&watched.table, id) == &watched);
        gi_atomic_u64_store(&watched.buried, id, GI_RELEASE);
    }
    gi_atomic_bool_store(&watched.stop, true, GI_RELEASE);
    for (int i = 0; i < 2; i++) {
        GT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        GT_CHECK(gi_id_table_remove(&watched.table, held[i]) == &held[i]);
    }
    gi_id_table_fini(&watched.table);
}

GT_MAIN()
