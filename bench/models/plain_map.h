/* SPDX-License-Identifier: MIT */
/*
 * Id to session, for one thread at a time: open addressing with linear probing; removal shifts
 * back, so that no marks of what was there are left.
 */
#ifndef BENCH_MODELS_PLAIN_MAP_H
#define BENCH_MODELS_PLAIN_MAP_H

#include "model.h"

struct plain_map {
    struct session *slots[MAP_SLOTS];
};

static inline uint32_t plain_map_find(const struct plain_map *map, uint64_t id)
{
    uint32_t at = model_hash(id);
    while (map->slots[at] != NULL && map->slots[at]->id != id) {
        at = (at + 1) % MAP_SLOTS;
    }
    return at;
}

/* NULL when there is none. */
static inline struct session *plain_map_get(const struct plain_map *map, uint64_t id)
{
    return map->slots[plain_map_find(map, id)];
}

static inline void plain_map_insert(struct plain_map *map, struct session *session)
{
    map->slots[plain_map_find(map, session->id)] = session;
}

static inline void plain_map_remove(struct plain_map *map, uint64_t id)
{
    uint32_t hole = plain_map_find(map, id);
    for (uint32_t at = (hole + 1) % MAP_SLOTS; map->slots[at] != NULL; at = (at + 1) % MAP_SLOTS) {
        uint32_t home = model_hash(map->slots[at]->id);
        /* It may move when its home is not between the hole and itself. */
        if ((at - home) % MAP_SLOTS >= (at - hole) % MAP_SLOTS) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole] = NULL;
}

#endif
