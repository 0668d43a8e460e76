/* SPDX-License-Identifier: MIT */
/*
 * From 64-bit ids to objects, so that a stale id finds nothing instead of the wrong object.
 * An id is generation(32) << 32 | tag(8) << 24 | index(24); it is never 0.
 * Thread: one owner; gi_id_table_is_live from any while the table exists.
 */
#ifndef GI_BASE_ID_TABLE_H
#define GI_BASE_ID_TABLE_H

#include "base/atomic.h"

#include <gori/allocator.h>
#include <gori/base.h>

#define GI_ID_INDEX_BITS      24
#define GI_ID_COUNT_MAX       (1U << GI_ID_INDEX_BITS)
#define GI_ID_TABLE_CHUNK     1024 /* entries */
#define GI_ID_TABLE_NO_INDEX  UINT32_MAX
#define GI_ID_GENERATION_FROM 1

struct gi_id_entry {
    struct gi_atomic_pointer object; /* NULL: free */
    struct gi_atomic_u32 generation; /* of the id that is out, or of the next one when free */
    uint32_t next_free;              /* index, while free */
};

struct gi_id_table {
    const struct gori_allocator *allocator;
    struct gi_atomic_pointer
        *chunks; /* of `struct gi_id_entry[GI_ID_TABLE_CHUNK]`, NULL: not yet */
    uint32_t chunk_count_max;
    uint32_t count_max;
    uint32_t count;     /* live */
    uint32_t used;      /* entries that were ever in use; those beyond are untouched */
    uint32_t free_head; /* index or GI_ID_TABLE_NO_INDEX */
    uint8_t tag;
};

/** The tag that the table of this id was made with: which loop, which kind; the owner's choice. */
static inline uint8_t gi_id_tag(uint64_t id)
{
    return (uint8_t)(id >> GI_ID_INDEX_BITS);
}

/** The place in the table; below the `count_max` of the table that made the id. */
static inline uint32_t gi_id_index(uint64_t id)
{
    return (uint32_t)id & (GI_ID_COUNT_MAX - 1);
}

static inline uint32_t gi_id_generation(uint64_t id)
{
    return (uint32_t)(id >> 32);
}

/**
 * Makes an empty table for at most `count_max` (1 to GI_ID_COUNT_MAX) objects.
 * Errors: GORI_EINVAL (count_max), GORI_ENOMEM.
 */
GORI_MUST_USE int gi_id_table_init(struct gi_id_table *table,
                                   const struct gori_allocator *allocator, uint8_t tag,
                                   uint32_t count_max);

/** Frees the table.  Asserts that it is empty. */
void gi_id_table_fini(struct gi_id_table *table);

/** Gives `object` (not NULL) an id.  Errors: GORI_ELIMIT (count_max are live), GORI_ENOMEM. */
GORI_MUST_USE int gi_id_table_insert(struct gi_id_table *table, void *object, uint64_t *ret_id);

/** The object of a live id, or NULL for any other number. */
void *gi_id_table_get(const struct gi_id_table *table, uint64_t id);

/** Ends a live id and answers its object; NULL, and nothing happens, for any other number. */
void *gi_id_table_remove(struct gi_id_table *table, uint64_t id);

/**
 * Whether the id is live.  Thread: any that got the id from the owner through something that orders
 * memory (a message, a lock).  False is final.  True may be over when it arrives.
 */
bool gi_id_table_is_live(const struct gi_id_table *table, uint64_t id);

/** How many ids are live. */
static inline uint32_t gi_id_table_count(const struct gi_id_table *table)
{
    return table->count;
}

#endif
