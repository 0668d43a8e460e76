/* SPDX-License-Identifier: MIT */
/*
 * The scenario of the sweeps over watches.  Contract: watch_scenario.h.
 */
#include "fault/watch_scenario.h"

#include <gori/loop.h>
#include <gori/watch.h>

#include "engine/sim/sim.h"
#include "lib/system.h"
#include "lib/test.h"

#define PATH_BYTES 192
#define CALM_TURNS 20 /* of the failing part, before it is declared over */

enum { WATCHES = 2, FOLDER = 0, FILE_IN_IT = 1 };

struct play {
    struct gi_sim *sim;
    struct gori_loop *loop;
    char folder[GT_FOLDER_BYTES];
    char file[PATH_BYTES];
    char other[PATH_BYTES];
    struct gori_watch watches[WATCHES];
    bool is_created[WATCHES]; /* told, or LOST, since it was cleared */
    int error;                /* the first */
};

static void changed(struct gori_watch *watch, const struct gori_change *change)
{
    struct play *play = watch->user;
    GT_CHECK(change->kind != GORI_CHANGE_GONE);
    if (change->kind == GORI_CHANGE_CREATED || change->kind == GORI_CHANGE_LOST) {
        play->is_created[watch - play->watches] = true;
    }
}

static void start_all(struct play *play)
{
    for (int i = 0; i < WATCHES; i++) {
        struct gori_watch *watch = &play->watches[i];
        watch->on_change = changed;
        watch->user = play;
        if (gori_watch_is_active(watch)) {
            continue;
        }
        int error = i == FOLDER ? gori_watch_start_directory(play->loop, play->folder, watch)
                                : gori_watch_start_file(play->loop, play->file, watch);
        GT_EQUAL(gori_watch_is_active(watch), error == 0);
        play->error = play->error < 0 ? play->error : error;
    }
}

static void write_file(struct play *play, const char *path)
{
    if (play->sim != NULL) {
        gi_sim_file_write(play->sim, path);
    } else {
        gt_append_file(path, "x", 1);
    }
}

static void rename_file(struct play *play, const char *from, const char *to)
{
    if (play->sim == NULL) {
        gt_rename(from, to);
    } else {
        GT_EQUAL(gi_sim_file_rename(play->sim, from, to), 0);
    }
}

static void remove_path(struct play *play, const char *path)
{
    if (play->sim == NULL) {
        gt_remove(path);
    } else {
        GT_EQUAL(gi_sim_file_remove(play->sim, path), 0);
    }
}

static void turns(struct play *play, int count)
{
    for (int i = 0; i < count; i++) {
        GT_CHECK(gori_loop_turn(play->loop, i % 8 == 7 ? GORI_MILLISECONDS : 0) >= 0);
    }
}

/* While failures may happen. */
static void play_changes(struct play *play)
{
    start_all(play);
    write_file(play, play->other);
    turns(play, CALM_TURNS / 2);
    rename_file(play, play->other, play->file);
    write_file(play, play->file);
    turns(play, CALM_TURNS);
    remove_path(play, play->file);
    turns(play, CALM_TURNS / 2);
    gori_watch_stop(&play->watches[FILE_IN_IT]);
}

/* After all failures: everything works as if nothing had been. */
static void play_afterwards(struct play *play)
{
    int error = play->error;
    play->error = 0;
    start_all(play);
    GT_EQUAL(play->error, 0);
    play->error = error;
    turns(play, CALM_TURNS);
    play->is_created[FOLDER] = play->is_created[FILE_IN_IT] = false;
    write_file(play, play->file);
    while (!play->is_created[FOLDER] || !play->is_created[FILE_IN_IT]) {
        GT_CHECK(gori_loop_turn(play->loop, GORI_SECONDS) >= 0);
    }
    remove_path(play, play->file);
}

static void open_folder(struct play *play, const char *engine)
{
    if (strcmp(engine, "sim") == 0) {
        struct gi_sim_config config = {.changes_max = 64};
        GT_EQUAL(gi_sim_create(gori_allocator_default(), &config, &play->sim), 0);
        snprintf(play->folder, sizeof(play->folder), "/world");
        gi_sim_directory_make(play->sim, play->folder);
    } else {
        gt_make_folder(play->folder);
    }
    snprintf(play->file, sizeof(play->file), "%s/file", play->folder);
    snprintf(play->other, sizeof(play->other), "%s/other", play->folder);
}

int watch_scenario_play(const char *engine, struct gi_fault_alloc *memory, watch_calm_fn *calm,
                        void *user)
{
    struct play play = {0};
    int descriptors = gt_open_descriptors();
    open_folder(&play, engine);
    struct gori_loop_config config = {
        .allocator = &memory->allocator, .engine = engine, .simulation = play.sim};
    play.error = gori_loop_create(&config, &play.loop);
    if (play.error == 0) {
        play_changes(&play);
        calm(user);
        play_afterwards(&play);
    }
    calm(user);
    gori_loop_destroy(play.loop);
    remove_path(&play, play.folder);
    gi_sim_destroy(play.sim);
    GT_EQUAL(gi_fault_alloc_live_blocks(memory), 0);
    GT_EQUAL(gt_open_descriptors(), descriptors);
    return play.error;
}
