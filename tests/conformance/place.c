/* SPDX-License-Identifier: MIT */
/*
 * The folder of place.h.
 */
#include "conformance/place.h"

#include "engine/sim/sim.h"

const char *place_path(struct place *place, const char *name)
{
    char *path = place->paths[place->turn++ % 4];
    snprintf(path, PLACE_PATH_BYTES, "%s/%s", place->folder, name);
    return path;
}

void place_open(struct fixture *fixture, struct place *place)
{
    *place = (struct place){.fixture = fixture};
    if (fixture->sim != NULL) {
        static unsigned count;
        snprintf(place->folder, sizeof(place->folder), "/world/%u", count++);
        gi_sim_directory_make(fixture->sim, place->folder);
    } else {
        gt_make_folder(place->folder);
    }
}

void place_write(struct place *place, const char *name)
{
    if (place->fixture->sim != NULL) {
        gi_sim_file_write(place->fixture->sim, place_path(place, name));
    } else {
        gt_append_file(place_path(place, name), "x", 1);
    }
}

void place_touch(struct place *place, const char *name)
{
    if (place->fixture->sim != NULL) {
        GT_EQUAL(gi_sim_file_touch(place->fixture->sim, place_path(place, name)), 0);
    } else {
        gt_touch_file(place_path(place, name));
    }
}

void place_make(struct place *place, const char *name)
{
    if (place->fixture->sim != NULL) {
        gi_sim_directory_make(place->fixture->sim, place_path(place, name));
    } else {
        gt_make_directory(place_path(place, name));
    }
}

void place_rename_path(struct place *place, const char *from, const char *to)
{
    if (place->fixture->sim != NULL) {
        GT_EQUAL(gi_sim_file_rename(place->fixture->sim, from, to), 0);
    } else {
        gt_rename(from, to);
    }
}

void place_rename(struct place *place, const char *from, const char *to)
{
    place_rename_path(place, place_path(place, from), place_path(place, to));
}

void place_remove_path(struct place *place, const char *path)
{
    if (place->fixture->sim != NULL) {
        GT_EQUAL(gi_sim_file_remove(place->fixture->sim, path), 0);
    } else {
        gt_remove(path);
    }
}

void place_remove(struct place *place, const char *name)
{
    place_remove_path(place, place_path(place, name));
}

void place_close(struct place *place)
{
    place_remove_path(place, place->folder);
}

bool place_is_looked_at(const struct fixture *fixture)
{
#ifdef CONFORMANCE_KQUEUE
    return fixture->sim == NULL;
#else
    (void)fixture;
    return false;
#endif
}

bool place_is_windows(const struct fixture *fixture)
{
    return strcmp(fixture->engine, "iocp") == 0;
}
