/* SPDX-License-Identifier: MIT */
/*
 * The scenario "files": ops on files of the world, submitted, cancelled and closed at any time, by
 * writers that each know what must be in their file.
 *
 * What must hold, whatever happens: an accepted op completes once, outside of every call, on memory
 * that is freed right after; what was written whole is read back, at its place, until something
 * else may have been written there; a read is short at the end of the file only; a close is the
 * last completion of its file; no file stays open.
 */
#include <gori/error.h>
#include <gori/file_op.h>
#include <gori/timer.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "rt/loop.h"
#include "sim/run.h"

#define WRITERS_MAX 8
#define FILE_BYTES  5000
#define OP_BYTES    2000
#define PIECES_MAX  5
#define TICKS_MAX   60
#define OPS_MAX     4 /* in flight on one file */

struct files;

struct writer {
    struct files *files;
    struct sim_loop *on;
    struct gori_timer timer;
    struct gori_file *file;
    char path[32];
    uint32_t number;
    uint32_t ticks;
    uint32_t in_flight; /* all of them */
    uint32_t changing;  /* of them, those that may change the file */
    bool is_opening;
    bool is_closing;
    bool is_done;
    bool size_is_known;
    uint64_t size;
    uint8_t content[FILE_BYTES];
    bool is_known[FILE_BYTES];
};

/* One op, on memory of its own. */
struct attempt {
    struct gori_file_op op;
    struct writer *writer;
    uint8_t kind;
    uint64_t offset;
    size_t size;
    uint32_t count;
    uint8_t data[OP_BYTES];
    struct gori_slice pieces[PIECES_MAX];
};

struct files {
    struct sim_run run;
    struct writer writers[WRITERS_MAX];
    uint32_t writer_count;
    uint64_t submitted;
    uint64_t completed;
    bool in_call;
    bool is_over; /* submit no more */
};

static struct files files_run;

static bool changes(uint8_t kind)
{
    return kind == GORI_OP_FILE_WRITE || kind == GORI_OP_FILE_TRUNCATE;
}

/* What a writer knows ---------------------------------------------------------------------- */

static void forget(struct writer *writer, uint64_t from, uint64_t size)
{
    for (uint64_t i = from; i < from + size && i < FILE_BYTES; i++) {
        writer->is_known[i] = false;
    }
}

/* The file is `size` bytes long now; what came to it is zeros. */
static void learn_size(struct writer *writer, uint64_t size)
{
    for (uint64_t i = writer->size; writer->size_is_known && i < size; i++) {
        writer->content[i] = 0;
        writer->is_known[i] = true;
    }
    if (!writer->size_is_known) {
        forget(writer, 0, FILE_BYTES);
    }
    writer->size = size;
    writer->size_is_known = true;
}

static void learn_write(struct writer *writer, const struct attempt *attempt, int64_t result)
{
    if (result < 0) {
        forget(writer, attempt->offset, attempt->size);
        writer->size_is_known &= attempt->offset + attempt->size <= writer->size;
        return;
    }
    SIM_CHECK(&writer->files->run, (uint64_t)result == attempt->size);
    if (writer->size_is_known && attempt->offset + attempt->size > writer->size) {
        learn_size(writer, attempt->offset + attempt->size);
    }
    memcpy(writer->content + attempt->offset, attempt->data, attempt->size);
    for (uint64_t i = 0; i < attempt->size; i++) {
        writer->is_known[attempt->offset + i] = true;
    }
}

static void check_read(const struct writer *writer, const struct attempt *attempt, int64_t result)
{
    const struct sim_run *run = &writer->files->run;
    SIM_CHECK(run, result <= (int64_t)attempt->size);
    if (writer->size_is_known) {
        uint64_t end = gi_min_u64(attempt->offset + attempt->size, writer->size);
        uint64_t there = end > attempt->offset ? end - attempt->offset : 0;
        SIM_CHECK(run, (uint64_t)result == there);
    }
    for (uint64_t i = 0; i < (uint64_t)result; i++) {
        uint64_t at = attempt->offset + i;
        SIM_CHECK(run, !writer->is_known[at] || attempt->data[i] == writer->content[at]);
    }
}

static void learn(struct writer *writer, struct attempt *attempt, int64_t result)
{
    switch (attempt->kind) {
    case GORI_OP_FILE_WRITE:
        learn_write(writer, attempt, result);
        break;
    case GORI_OP_FILE_TRUNCATE:
        if (result == 0) {
            learn_size(writer, attempt->offset);
            forget(writer, attempt->offset, FILE_BYTES);
        } else {
            writer->size_is_known = false;
            forget(writer, 0, FILE_BYTES);
        }
        break;
    case GORI_OP_FILE_READ:
        if (result >= 0 && writer->changing == 0) {
            check_read(writer, attempt, result);
        }
        break;
    case GORI_OP_FILE_STAT:
        if (result == 0 && writer->size_is_known && writer->changing == 0) {
            SIM_CHECK(&writer->files->run, attempt->op.info.size == writer->size);
        }
        break;
    default:
        break;
    }
}

/* Completions ------------------------------------------------------------------------------- */

static void take_file(struct writer *writer, struct attempt *attempt, int64_t result)
{
    SIM_CHECK(&writer->files->run, (attempt->op.file != NULL) == (result == 0));
    writer->is_opening = false;
    if (result < 0) {
        return;
    }
    writer->file = attempt->op.file;
    if (writer->files->is_over) {
        gori_file_unref(writer->file);
        writer->file = NULL;
    }
}

static void completed(struct gori_file_op *op, int64_t result)
{
    struct attempt *attempt = op->user;
    struct writer *writer = attempt->writer;
    struct files *files = writer->files;
    SIM_CHECK(&files->run, !files->in_call && !gori_file_op_is_active(op));
    files->completed++;
    writer->in_flight--;
    writer->changing -= changes(attempt->kind) ? 1 : 0;
    if (attempt->kind == GORI_OP_FILE_OPEN) {
        take_file(writer, attempt, result);
    } else if (attempt->kind == GORI_OP_FILE_CLOSE) {
        SIM_CHECK(&files->run, writer->in_flight == 0);
        SIM_CHECK(&files->run, result == 0 || result == GORI_EIO);
        writer->is_closing = false;
    } else {
        learn(writer, attempt, result);
    }
    gi_free(&files->run.memory.allocator, attempt, sizeof(*attempt));
}

/* Acting ------------------------------------------------------------------------------------ */

static void cut_pieces(struct files *files, struct attempt *attempt)
{
    size_t done = 0;
    attempt->count = 1 + sim_below(&files->run, PIECES_MAX);
    for (uint32_t i = 0; i < attempt->count; i++) {
        size_t left = attempt->size - done;
        bool is_last = i + 1 == attempt->count;
        size_t size = is_last ? left : sim_below(&files->run, (uint32_t)left + 1);
        attempt->pieces[i] = (struct gori_slice){attempt->data + done, size};
        done += size;
    }
}

static int submit(struct attempt *attempt)
{
    struct writer *writer = attempt->writer;
    struct gori_file_op *op = &attempt->op;
    const struct gori_file_open_options options = {.write = true, .read_too = true, .create = true};
    switch (attempt->kind) {
    case GORI_OP_FILE_OPEN:
        return gori_file_op_open(op, writer->on->loop, writer->path, &options);
    case GORI_OP_FILE_READ:
        return gori_file_op_read_pieces(op, writer->file, attempt->offset,
                                        (const struct gori_room *)(const void *)attempt->pieces,
                                        attempt->count);
    case GORI_OP_FILE_WRITE:
        return gori_file_op_write_pieces(op, writer->file, attempt->offset, attempt->pieces,
                                         attempt->count);
    case GORI_OP_FILE_SYNC:
        return gori_file_op_sync(op, writer->file);
    case GORI_OP_FILE_STAT:
        return gori_file_op_stat(op, writer->file);
    case GORI_OP_FILE_TRUNCATE:
        return gori_file_op_truncate(op, writer->file, attempt->offset);
    default:
        return gori_file_op_close(op, writer->file);
    }
}

static struct attempt *prepare(struct writer *writer, uint8_t kind)
{
    struct files *files = writer->files;
    struct attempt *attempt = gi_alloc_zero(&files->run.memory.allocator, sizeof(*attempt));
    if (attempt == NULL) {
        return NULL; /* the sweep over allocations is after us too */
    }
    attempt->op.on_complete = completed;
    attempt->op.user = attempt;
    attempt->writer = writer;
    attempt->kind = kind;
    attempt->size = 1 + sim_below(&files->run, OP_BYTES);
    attempt->offset = sim_below(&files->run, FILE_BYTES - OP_BYTES);
    if (kind == GORI_OP_FILE_WRITE) {
        sim_stream_fill(sim_below(&files->run, 1000), 0, attempt->data, attempt->size);
    }
    cut_pieces(files, attempt);
    return attempt;
}

static void act(struct writer *writer, uint8_t kind)
{
    struct files *files = writer->files;
    struct attempt *attempt = prepare(writer, kind);
    if (attempt == NULL) {
        return;
    }
    files->in_call = true;
    int result = submit(attempt);
    files->in_call = false;
    if (result < 0) {
        SIM_CHECK(&files->run, result == GORI_ENOMEM);
        gi_free(&files->run.memory.allocator, attempt, sizeof(*attempt));
        return;
    }
    files->submitted++;
    writer->in_flight++;
    writer->changing += changes(kind) ? 1 : 0;
    writer->is_opening |= kind == GORI_OP_FILE_OPEN;
    if (kind == GORI_OP_FILE_CLOSE) {
        writer->is_closing = true;
        writer->file = NULL;
    } else if (sim_once_in(&files->run, 8)) {
        files->in_call = true;
        gori_file_op_cancel(&attempt->op);
        files->in_call = false;
    }
}

/* A change is alone on its file, so that the writer knows what came of it; the rest is not. */
static void act_on_file(struct writer *writer)
{
    static const uint8_t kinds[] = {GORI_OP_FILE_READ,    GORI_OP_FILE_READ, GORI_OP_FILE_WRITE,
                                    GORI_OP_FILE_WRITE,   GORI_OP_FILE_SYNC, GORI_OP_FILE_STAT,
                                    GORI_OP_FILE_TRUNCATE};
    uint8_t kind = kinds[sim_below(&writer->files->run, GI_ARRAY_COUNT(kinds))];
    bool is_free = changes(kind) ? writer->in_flight == 0 : writer->changing == 0;
    if (is_free && writer->in_flight < OPS_MAX) {
        act(writer, kind);
    }
}

static void on_tick(struct gori_timer *timer)
{
    struct writer *writer = gori_container_of(timer, struct writer, timer);
    struct files *files = writer->files;
    bool is_last = writer->ticks == 0;
    if (writer->file == NULL) {
        writer->is_done = is_last && !writer->is_opening && !writer->is_closing;
        if (!is_last && !writer->is_opening && !writer->is_closing) {
            act(writer, GORI_OP_FILE_OPEN);
        }
    } else if (is_last || sim_once_in(&files->run, 12)) {
        act(writer, GORI_OP_FILE_CLOSE);
    } else {
        act_on_file(writer);
    }
    writer->ticks -= is_last ? 0 : 1;
    if (!writer->is_done) {
        gori_timer_start(writer->on->loop, timer,
                         gi_random_below(&files->run.random, 2 * GORI_MILLISECONDS));
    }
}

/* The run ------------------------------------------------------------------------------------ */

static bool writers_are_done(void *user)
{
    const struct files *files = user;
    for (uint32_t i = 0; i < files->writer_count; i++) {
        if (!files->writers[i].is_done) {
            return false;
        }
    }
    return true;
}

static bool enough_steps(void *user)
{
    const struct files *files = user;
    return files->run.steps > 100 || writers_are_done(user);
}

static void add_writer(struct files *files, uint32_t number)
{
    struct writer *writer = &files->writers[number];
    writer->files = files;
    writer->number = number;
    writer->on = &files->run.loops[sim_below(&files->run, files->run.loop_count)];
    writer->ticks = sim_below(&files->run, TICKS_MAX);
    writer->size_is_known = true;
    writer->timer.on_expire = on_tick;
    snprintf(writer->path, sizeof(writer->path), "/disk/%u", number);
    gori_timer_start(writer->on->loop, &writer->timer, 0);
}

static uint64_t play_files(uint64_t seed)
{
    struct files *files = &files_run;
    memset(files, 0, sizeof(*files));
    sim_run_begin(&files->run, seed);
    uint32_t loop_count = 1 + sim_below(&files->run, 2);
    for (uint32_t i = 0; i < loop_count; i++) {
        const struct gori_loop_config config = {.ops_max = 1000};
        struct sim_loop *loop;
        int result = sim_run_add_loop(&files->run, &config, &loop);
        GI_ASSERT(result == 0);
    }
    gi_sim_make_folder(files->run.sim, "/disk");
    if (sim_once_in(&files->run, 3)) {
        gi_sim_limit_files(files->run.sim, sim_below(&files->run, 2 * FILE_BYTES));
    }
    (void)sim_run_arm(&files->run);
    files->writer_count = 1 + sim_below(&files->run, WRITERS_MAX);
    for (uint32_t i = 0; i < files->writer_count; i++) {
        add_writer(files, i);
    }
    sim_run_until(&files->run, sim_once_in(&files->run, 4) ? enough_steps : writers_are_done,
                  files);
    files->is_over = true;
    for (uint32_t i = 0; i < files->writer_count; i++) {
        gori_timer_stop(&files->writers[i].timer);
        gori_file_unref(files->writers[i].file); /* under what is in flight */
        files->writers[i].file = NULL;
    }
    for (uint32_t i = 0; i < files->run.loop_count; i++) {
        sim_run_destroy_loop(&files->run, &files->run.loops[i]);
    }
    SIM_CHECK(&files->run, files->submitted == files->completed);
    return sim_run_end(&files->run);
}

const struct sim_scenario sim_files = {.name = "files", .seeds = 500, .play = play_files};
