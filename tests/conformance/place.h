/* SPDX-License-Identifier: MIT */
/*
 * A folder in which the cases of watches make their changes, as another program would: on the disk,
 * or in the world of the simulator.  All changes succeed, or the test fails.
 */
#ifndef TESTS_CONFORMANCE_PLACE_H
#define TESTS_CONFORMANCE_PLACE_H

#include "conformance/fixture.h"
#include "lib/system.h"

#define PLACE_PATH_BYTES (3 * GT_FOLDER_BYTES)

struct place {
    struct fixture *fixture;
    char folder[GT_FOLDER_BYTES];
    char paths[4][PLACE_PATH_BYTES]; /* the latest that were asked for */
    unsigned turn;
};

void place_open(struct fixture *fixture, struct place *place);
void place_close(struct place *place); /* when all that was in it is gone */

/** The path of a name in the folder; good until it was asked for others. */
const char *place_path(struct place *place, const char *name);

void place_write(struct place *place, const char *name); /* makes it if need be */
void place_touch(struct place *place, const char *name); /* its attributes */
void place_make(struct place *place, const char *name);  /* a folder */
void place_rename(struct place *place, const char *from, const char *to);
void place_remove(struct place *place, const char *name);

/* The same with whole paths. */
void place_rename_path(struct place *place, const char *from, const char *to);
void place_remove_path(struct place *place, const char *path);

/** Whether directories are looked at (kqueue): there is no queue, but many descriptors are open. */
bool place_is_looked_at(const struct fixture *fixture);

/** Whether it is Windows that tells. */
bool place_is_windows(const struct fixture *fixture);

#endif
