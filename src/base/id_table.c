/* SPDX-License-Identifier: MIT */
/*
 * The table behind 64-bit ids.
 *
 * Contract:
 *  1. An id that insert answered is live until it is removed.  After that it matches nothing, until
 *     its entry has been given out 2^32 - 1 times more.
 *  2. A generation is never 0, so no id is; 0 may stand for "none".
 *  3. Numbers that never were ids (from a peer, from a bug) are answered like stale ids: an index
 *     beyond the table, a foreign tag, a generation that is still to come.
 *  4. Entries live in chunks of GI_ID_TABLE_CHUNK that are allocated when first needed and neither
 *     move nor go before fini, so another thread may look at one while the table grows.
 *  5. An entry takes 16 bytes; the directory of chunks, 8 bytes for 1024 entries, is allocated at
 *     init for count_max.
 *
 * The free list is last in, first out, for the cache's sake: 32 bits of generation need no help
 * from it.  It runs through next_free, so that the object pointer can be NULL in every free entry.
 *
 * Shared with other threads (gi_id_table_is_live):
 *  - chunks[i]: stored with release when the chunk is ready, loaded with acquire; so generations
 *    are read initialised.
 *  - object: stored with release by insert and, as NULL, by remove; loaded with acquire.
 *  - generation: stored with release by remove after it has cleared the object, loaded with
 *    acquire.  It only moves on, so a mismatch is final.
 * A reader looks at the generation, the object, and the generation again.  Without the second look
 * it could see the old generation and then the object of the next id, and call an id live that it,
 * or somebody who told it, had just seen dead.  With it: an object stored by a later insert brings,
 * by release and acquire, the generation that remove stored before; so what is called live had its
 * own object at the moment of the second step.
 * All three are written by the owner only, so the owner itself reads them relaxed.
 */
#include "base/id_table.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <gori/error.h>
#include <string.h>

#define CHUNK_BYTES (sizeof(struct gi_id_entry) * GI_ID_TABLE_CHUNK)

_Static_assert(sizeof(struct gi_id_entry) <= 16, "an entry is 16 bytes");
_Static_assert(GI_ID_COUNT_MAX % GI_ID_TABLE_CHUNK == 0, "chunks divide the index range");

static uint64_t make_id(uint32_t generation, uint8_t tag, uint32_t index)
{
    return (uint64_t)generation << 32 | (uint64_t)tag << GI_ID_INDEX_BITS | index;
}

/* The entry at `index`, or NULL where no chunk has been made. */
static struct gi_id_entry *find_entry(const struct gi_id_table *table, uint32_t index,
                                      memory_order order)
{
    uint32_t chunk_index = index / GI_ID_TABLE_CHUNK;
    if (chunk_index >= table->chunk_count_max) {
        return NULL;
    }
    struct gi_id_entry *chunk = gi_atomic_pointer_load(&table->chunks[chunk_index], order);
    return chunk == NULL ? NULL : &chunk[index % GI_ID_TABLE_CHUNK];
}

/* The entry of a live id, for the owner; else NULL. */
static struct gi_id_entry *find_live(const struct gi_id_table *table, uint64_t id)
{
    if (gi_id_tag(id) != table->tag) {
        return NULL;
    }
    struct gi_id_entry *entry = find_entry(table, gi_id_index(id), GI_RELAXED);
    if (entry == NULL) {
        return NULL;
    }
    if (gi_atomic_u32_load(&entry->generation, GI_RELAXED) != gi_id_generation(id)) {
        return NULL;
    }
    return gi_atomic_pointer_load(&entry->object, GI_RELAXED) == NULL ? NULL : entry;
}

static int add_chunk(struct gi_id_table *table, uint32_t chunk_index)
{
    struct gi_id_entry *chunk = gi_alloc(table->allocator, CHUNK_BYTES);
    if (chunk == NULL) {
        return GORI_ENOMEM;
    }
    for (uint32_t i = 0; i < GI_ID_TABLE_CHUNK; i++) {
        gi_atomic_pointer_init(&chunk[i].object, NULL);
        gi_atomic_u32_init(&chunk[i].generation, GI_ID_GENERATION_FROM);
        chunk[i].next_free = GI_ID_TABLE_NO_INDEX;
    }
    gi_atomic_pointer_store(&table->chunks[chunk_index], chunk, GI_RELEASE);
    return 0;
}

/* Finds a free index: one that was used before, else the first that never was. */
static int take_index(struct gi_id_table *table, uint32_t *ret_index)
{
    if (table->free_head != GI_ID_TABLE_NO_INDEX) {
        *ret_index = table->free_head;
        table->free_head = find_entry(table, *ret_index, GI_RELAXED)->next_free;
        return 0;
    }
    if (table->used == table->count_max) {
        return GORI_ELIMIT;
    }
    if (find_entry(table, table->used, GI_RELAXED) == NULL) {
        int error = add_chunk(table, table->used / GI_ID_TABLE_CHUNK);
        if (error < 0) {
            return error;
        }
    }
    *ret_index = table->used++;
    return 0;
}

int gi_id_table_init(struct gi_id_table *table, const struct gori_allocator *allocator, uint8_t tag,
                     uint32_t count_max)
{
    if (count_max == 0 || count_max > GI_ID_COUNT_MAX) {
        return GORI_EINVAL;
    }
    uint32_t chunk_count_max = (count_max + GI_ID_TABLE_CHUNK - 1) / GI_ID_TABLE_CHUNK;
    struct gi_atomic_pointer *chunks = gi_alloc_array(allocator, chunk_count_max, sizeof(*chunks));
    if (chunks == NULL) {
        return GORI_ENOMEM;
    }
    *table = (struct gi_id_table){
        .allocator = allocator,
        .chunks = chunks,
        .chunk_count_max = chunk_count_max,
        .count_max = count_max,
        .free_head = GI_ID_TABLE_NO_INDEX,
        .tag = tag,
    };
    return 0;
}

void gi_id_table_fini(struct gi_id_table *table)
{
    GI_ASSERT(table->count == 0);
    for (uint32_t i = 0; i < table->chunk_count_max; i++) {
        void *chunk = gi_atomic_pointer_load(&table->chunks[i], GI_RELAXED);
        gi_free(table->allocator, chunk, CHUNK_BYTES);
    }
    gi_free(table->allocator, table->chunks, table->chunk_count_max * sizeof(*table->chunks));
    memset(table, 0, sizeof(*table));
}

int gi_id_table_insert(struct gi_id_table *table, void *object, uint64_t *ret_id)
{
    GI_ASSERT(object != NULL);
    uint32_t index;
    int error = take_index(table, &index);
    if (error < 0) {
        return error;
    }
    struct gi_id_entry *entry = find_entry(table, index, GI_RELAXED);
    GI_ASSERT(gi_atomic_pointer_load(&entry->object, GI_RELAXED) == NULL);
    gi_atomic_pointer_store(&entry->object, object, GI_RELEASE);
    table->count++;
    uint32_t generation = gi_atomic_u32_load(&entry->generation, GI_RELAXED);
    *ret_id = make_id(generation, table->tag, index);
    return 0;
}

void *gi_id_table_get(const struct gi_id_table *table, uint64_t id)
{
    struct gi_id_entry *entry = find_live(table, id);
    return entry == NULL ? NULL : gi_atomic_pointer_load(&entry->object, GI_RELAXED);
}

void *gi_id_table_remove(struct gi_id_table *table, uint64_t id)
{
    struct gi_id_entry *entry = find_live(table, id);
    if (entry == NULL) {
        return NULL;
    }
    GI_ASSERT(table->count > 0);
    void *object = gi_atomic_pointer_load(&entry->object, GI_RELAXED);
    uint32_t generation = gi_id_generation(id) + 1;
    if (generation == 0) {
        generation = GI_ID_GENERATION_FROM;
    }
    gi_atomic_pointer_store(&entry->object, NULL, GI_RELEASE);
    gi_atomic_u32_store(&entry->generation, generation, GI_RELEASE);
    entry->next_free = table->free_head;
    table->free_head = gi_id_index(id);
    table->count--;
    return object;
}

bool gi_id_table_is_live(const struct gi_id_table *table, uint64_t id)
{
    if (gi_id_tag(id) != table->tag) {
        return false;
    }
    const struct gi_id_entry *entry = find_entry(table, gi_id_index(id), GI_ACQUIRE);
    if (entry == NULL) {
        return false;
    }
    uint32_t generation = gi_id_generation(id);
    return gi_atomic_u32_load(&entry->generation, GI_ACQUIRE) == generation &&
           gi_atomic_pointer_load(&entry->object, GI_ACQUIRE) != NULL &&
           gi_atomic_u32_load(&entry->generation, GI_RELAXED) == generation;
}
