/* SPDX-License-Identifier: MIT */
/*
 * The scenario of the sweeps over file ops.  Contract: file_scenario.h.
 */
#include "fault/file_scenario.h"

#include <gori/error.h>
#include <gori/file_op.h>
#include <gori/loop.h>

#include "engine/sim/sim.h"
#include "lib/system.h"
#include "lib/test.h"

#define BYTES 3000

struct play {
    struct gori_loop *loop;
    struct gori_file_op op;
    struct gori_file *file;
    char path[2 * GT_FOLDER_BYTES];
    int error; /* the first */
    bool is_done;
    int64_t result;
    uint8_t data[BYTES];
    uint8_t room[BYTES];
};

static void note(struct play *play, int64_t error)
{
    if (play->error == 0 && error < 0) {
        play->error = (int)error;
    }
}

static void completed(struct gori_file_op *op, int64_t result)
{
    struct play *play = op->user;
    GT_CHECK(!play->is_done);
    play->is_done = true;
    play->result = result;
    note(play, result);
}

/* Waits for the op if it was accepted.  Result: what became of it. */
static int64_t finish(struct play *play, int submitted)
{
    note(play, submitted);
    if (submitted < 0) {
        return submitted;
    }
    while (!play->is_done) {
        /* An engine that gives up tells why, and nothing else may fail in this turn. */
        int result = gori_loop_turn(play->loop, GORI_MILLISECONDS);
        note(play, result);
    }
    play->is_done = false;
    return play->result;
}

static bool open_file(struct play *play)
{
    const struct gori_file_open_options options = {.write = true, .read_too = true, .create = true};
    int result = gori_file_op_open(&play->op, play->loop, play->path, &options);
    if (finish(play, result) < 0) {
        return false;
    }
    play->file = play->op.file;
    return true;
}

static bool write_and_sync(struct play *play)
{
    const struct gori_slice pieces[2] = {{play->data, 1000}, {play->data + 1000, BYTES - 1000}};
    return finish(play, gori_file_op_write(&play->op, play->file, 0, play->data, BYTES)) == BYTES &&
           finish(play, gori_file_op_write_pieces(&play->op, play->file, 0, pieces, 2)) == BYTES &&
           finish(play, gori_file_op_sync(&play->op, play->file)) == 0 &&
           finish(play, gori_file_op_sync_data(&play->op, play->file)) == 0 &&
           finish(play, gori_file_op_truncate(&play->op, play->file, BYTES - 500)) == 0;
}

static bool ask_and_read(struct play *play)
{
    const struct gori_room pieces[2] = {{play->room, 100}, {play->room + 100, BYTES - 100}};
    if (finish(play, gori_file_op_stat(&play->op, play->file)) < 0 ||
        finish(play, gori_file_op_stat_path(&play->op, play->loop, NULL, play->path)) < 0) {
        return false;
    }
    GT_EQUAL(play->op.info.size, BYTES - 500);
    if (finish(play, gori_file_op_read(&play->op, play->file, 0, play->room, 10)) < 0 ||
        finish(play, gori_file_op_read_pieces(&play->op, play->file, 0, pieces, 2)) < 0) {
        return false;
    }
    GT_EQUAL(play->result, BYTES - 500);
    GT_EQUAL_BYTES(play->room, BYTES - 500, play->data, BYTES - 500);
    return true;
}

static void run(struct play *play)
{
    if (!open_file(play)) {
        return;
    }
    if (write_and_sync(play)) {
        (void)ask_and_read(play);
    }
    int result = gori_file_op_close(&play->op, play->file);
    if (result < 0) {
        gori_file_unref(play->file);
    }
    (void)finish(play, result);
}

static int create_loop(struct play *play, const char *engine, struct gi_fault_alloc *memory,
                       struct gi_sim *sim)
{
    const struct gori_loop_config config = {
        .allocator = &memory->allocator, .engine = engine, .simulation = sim};
    int result = gori_loop_create(&config, &play->loop);
    note(play, result);
    return result;
}

int file_scenario_play(const char *engine, struct gi_fault_alloc *memory,
                       const struct file_scenario_hooks *hooks)
{
    struct play play = {.op = {.on_complete = completed, .user = &play}};
    struct gi_sim *sim = NULL;
    char folder[GT_FOLDER_BYTES] = "/folder";
    for (size_t i = 0; i < BYTES; i++) {
        play.data[i] = (uint8_t)(i * 7 + i / 251);
    }
    if (strcmp(engine, "sim") == 0) {
        const struct gi_sim_config config = {.seed = 1};
        GT_EQUAL(gi_sim_create(NULL, &config, &sim), 0);
        gi_sim_make_folder(sim, folder);
    } else {
        gt_make_folder(folder);
        gt_write_file(folder, "file", "", 0);
    }
    snprintf(play.path, sizeof(play.path), "%s/file", folder);
    int descriptors = gt_open_descriptors();
    hooks->arm(hooks->user);
    if (create_loop(&play, engine, memory, sim) == 0) {
        run(&play);
    }
    hooks->calm(hooks->user);
    int error = play.error;
    play.error = 0;
    if (play.loop != NULL || create_loop(&play, engine, memory, sim) == 0) {
        run(&play);
    }
    GT_EQUAL(play.error, 0);
    gori_loop_destroy(play.loop);
    GT_EQUAL(gi_fault_alloc_live_blocks(memory), 0);
    GT_EQUAL(gt_open_descriptors(), descriptors);
    if (sim != NULL) {
        gi_sim_destroy(sim);
    } else {
        gt_remove_folder(folder, "file");
    }
    return error;
}
