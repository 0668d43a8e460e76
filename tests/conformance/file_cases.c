/* SPDX-License-Identifier: MIT */
/*
 * Conformance of file ops: the rules of <gori/file_op.h>, on files of the system, and on simulated
 * ones.  Where an engine has none of its own the same cases run on the pool.
 */
#include "conformance/fixture.h"
#include "engine/sim/sim.h"
#include "lib/system.h"

#include <gori/file_op.h>
#include <gori/pool.h>

#define NAME "file"

/* A folder to work in, with a file of one name. */
struct site {
    struct fixture fixture;
    char folder[GT_FOLDER_BYTES];
    char path[2 * GT_FOLDER_BYTES];
};

struct attempt {
    struct fixture *fixture;
    struct gori_file_op op;
    unsigned completions;
    int64_t result;
    const unsigned *before; /* another's completions, counted when this one came */
    unsigned seen_before;
};

static void site_open(struct site *site)
{
    fixture_open(&site->fixture);
    if (site->fixture.sim != NULL) {
        snprintf(site->folder, sizeof(site->folder), "/folder");
        gi_sim_make_folder(site->fixture.sim, site->folder);
    } else {
        gt_make_folder(site->folder);
        gt_write_file(site->folder, NAME, "", 0);
    }
    snprintf(site->path, sizeof(site->path), "%s/" NAME, site->folder);
}

static void site_close(struct site *site)
{
    if (site->fixture.sim == NULL) {
        gt_remove_folder(site->folder, NAME);
    }
    fixture_close(&site->fixture);
}

static void attempt_complete(struct gori_file_op *op, int64_t result)
{
    struct attempt *attempt = op->user;
    GT_CHECK(!attempt->fixture->in_call);
    GT_CHECK(!gori_file_op_is_active(op));
    attempt->completions++;
    attempt->result = result;
    attempt->seen_before = attempt->before != NULL ? *attempt->before : 0;
}

static void attempt_init(struct fixture *fixture, struct attempt *attempt)
{
    *attempt = (struct attempt){.fixture = fixture};
    attempt->op.on_complete = attempt_complete;
    attempt->op.user = attempt;
}

/* Submits, which must be accepted and not call back. */
#define CALL(fixture, expression)                                                                  \
    do {                                                                                           \
        (fixture)->in_call = true;                                                                 \
        GT_EQUAL((expression), 0);                                                                 \
        (fixture)->in_call = false;                                                                \
    } while (0)

static int64_t wait_for(struct attempt *attempt)
{
    FIXTURE_UNTIL(attempt->fixture, attempt->completions > 0);
    GT_EQUAL(attempt->completions, 1);
    return attempt->result;
}

/* Opens; the file, or NULL with the error. */
static struct gori_file *open_path(struct fixture *fixture, const char *path,
                                   const struct gori_file_open_options *options, int *ret_error)
{
    struct attempt attempt;
    attempt_init(fixture, &attempt);
    CALL(fixture, gori_file_op_open(&attempt.op, fixture->loop, path, options));
    *ret_error = (int)wait_for(&attempt);
    GT_EQUAL(attempt.op.file != NULL, *ret_error == 0);
    return attempt.op.file;
}

static struct gori_file *open_both(struct site *site)
{
    const struct gori_file_open_options options = {.write = true, .read_too = true, .create = true};
    int error;
    struct gori_file *file = open_path(&site->fixture, site->path, &options, &error);
    GT_EQUAL(error, 0);
    return file;
}

static int open_error(struct site *site, const char *name,
                      const struct gori_file_open_options *options)
{
    char path[3 * GT_FOLDER_BYTES];
    snprintf(path, sizeof(path), "%s/%s", site->folder, name);
    int error;
    struct gori_file *file = open_path(&site->fixture, path, options, &error);
    GT_CHECK(file == NULL);
    return error;
}

static void close_file(struct fixture *fixture, struct gori_file *file)
{
    struct attempt attempt;
    attempt_init(fixture, &attempt);
    CALL(fixture, gori_file_op_close(&attempt.op, file));
    GT_EQUAL(wait_for(&attempt), 0);
    GT_CHECK(attempt.op.file == NULL);
}

static int64_t write_at(struct fixture *fixture, struct gori_file *file, uint64_t offset,
                        const void *data, size_t size)
{
    struct attempt attempt;
    attempt_init(fixture, &attempt);
    CALL(fixture, gori_file_op_write(&attempt.op, file, offset, data, size));
    return wait_for(&attempt);
}

static int64_t read_at(struct fixture *fixture, struct gori_file *file, uint64_t offset, void *data,
                       size_t size)
{
    struct attempt attempt;
    attempt_init(fixture, &attempt);
    CALL(fixture, gori_file_op_read(&attempt.op, file, offset, data, size));
    return wait_for(&attempt);
}

static uint64_t size_of(struct fixture *fixture, struct gori_file *file)
{
    struct attempt attempt;
    attempt_init(fixture, &attempt);
    CALL(fixture, gori_file_op_stat(&attempt.op, file));
    GT_EQUAL(wait_for(&attempt), 0);
    return attempt.op.info.size;
}

GT_TEST(what_is_written_at_a_place_is_read_there)
{
    struct site site = {0};
    static uint8_t data[100000];
    static uint8_t room[100000];
    site_open(&site);
    struct gori_file *file = open_both(&site);
    GT_EQUAL(gori_file_describe(file)->size, 0);
    fixture_fill(data, sizeof(data), 3, 0);
    GT_EQUAL(write_at(&site.fixture, file, 5000, data, sizeof(data)), sizeof(data));
    GT_EQUAL(write_at(&site.fixture, file, 0, "hello", 5), 5);
    GT_EQUAL(size_of(&site.fixture, file), 5000 + sizeof(data));
    GT_EQUAL(read_at(&site.fixture, file, 5000, room, sizeof(room)), sizeof(room));
    fixture_check(room, sizeof(room), 3, 0);
    GT_EQUAL(read_at(&site.fixture, file, 5777, room, 1234), 1234);
    fixture_check(room, 1234, 3, 777);
    GT_EQUAL(read_at(&site.fixture, file, 0, room, 7), 7);
    GT_EQUAL_BYTES(room, 7, "hello\0\0", 7);
    close_file(&site.fixture, file);
    site_close(&site);
}

GT_TEST(a_read_is_short_at_the_end_only_and_nothing_beyond_it)
{
    struct site site = {0};
    uint8_t room[64];
    site_open(&site);
    struct gori_file *file = open_both(&site);
    GT_EQUAL(read_at(&site.fixture, file, 0, room, sizeof(room)), 0);
    GT_EQUAL(write_at(&site.fixture, file, 0, "abcdefghij", 10), 10);
    GT_EQUAL(read_at(&site.fixture, file, 0, room, 10), 10);
    GT_EQUAL(read_at(&site.fixture, file, 6, room, sizeof(room)), 4);
    GT_EQUAL_BYTES(room, 4, "ghij", 4);
    GT_EQUAL(read_at(&site.fixture, file, 10, room, sizeof(room)), 0);
    GT_EQUAL(read_at(&site.fixture, file, 1000000, room, sizeof(room)), 0);
    close_file(&site.fixture, file);
    site_close(&site);
}

GT_TEST(pieces_are_written_and_read_in_order_whatever_their_sizes)
{
    struct site site = {0};
    struct attempt attempt;
    static uint8_t data[GORI_FILE_PIECES_MAX * 700];
    static uint8_t room[sizeof(data) + 100];
    struct gori_slice pieces[GORI_FILE_PIECES_MAX];
    struct gori_room rooms[3] = {{room, 1}, {room + 1, 0}, {room + 1, sizeof(room) - 1}};
    site_open(&site);
    struct gori_file *file = open_both(&site);
    fixture_fill(data, sizeof(data), 5, 0);
    size_t done = 0;
    for (size_t i = 0; i < GORI_FILE_PIECES_MAX; i++) {
        size_t size = i % 7 == 0 ? 0 : 100 * (i % 7);
        size = i == GORI_FILE_PIECES_MAX - 1 ? sizeof(data) - done : size;
        pieces[i] = (struct gori_slice){data + done, size};
        done += size;
    }
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture,
         gori_file_op_write_pieces(&attempt.op, file, 11, pieces, GORI_FILE_PIECES_MAX));
    GT_EQUAL(wait_for(&attempt), sizeof(data));
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_read_pieces(&attempt.op, file, 11, rooms, 3));
    GT_EQUAL(wait_for(&attempt), sizeof(data));
    fixture_check(room, sizeof(data), 5, 0);
    close_file(&site.fixture, file);
    site_close(&site);
}

GT_TEST(what_cannot_be_opened_says_why)
{
    struct site site = {0};
    site_open(&site);
    const struct gori_file_open_options make = {.write = true, .create = true, .exclusive = true};
    const struct gori_file_open_options write = {.write = true};
    close_file(&site.fixture, open_both(&site));
    GT_EQUAL(open_error(&site, "nothing", NULL), GORI_ENOTFOUND);
    GT_EQUAL(open_error(&site, "nothing", &write), GORI_ENOTFOUND);
    GT_EQUAL(open_error(&site, "nothing/more", NULL), GORI_ENOTFOUND);
    GT_EQUAL(open_error(&site, NAME "/more", NULL), GORI_ENOTDIR);
    GT_EQUAL(open_error(&site, NAME, &make), GORI_EEXIST);
    GT_EQUAL(open_error(&site, ".", &write), GORI_EISDIR);
    site_close(&site);
}

GT_TEST(a_pipe_with_a_name_is_refused_and_not_waited_for)
{
    struct site site = {0};
    struct attempt attempt;
    char path[3 * GT_FOLDER_BYTES];
    site_open(&site);
    if (site.fixture.sim != NULL || !gt_make_fifo(site.folder, "fifo")) {
        site_close(&site);
        GT_SKIP("no such thing here");
    }
    GT_EQUAL(open_error(&site, "fifo", NULL), GORI_EACCESS);
    snprintf(path, sizeof(path), "%s/fifo", site.folder);
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_stat_path(&attempt.op, site.fixture.loop, NULL, path));
    GT_EQUAL(wait_for(&attempt), GORI_EACCESS);
    gt_remove(path);
    site_close(&site);
}

GT_TEST(a_folder_is_opened_and_asked_for_but_not_read)
{
    struct site site = {0};
    struct attempt attempt;
    int error;
    uint8_t byte;
    site_open(&site);
    struct gori_file *folder = open_path(&site.fixture, site.folder, NULL, &error);
    GT_EQUAL(error, 0);
    GT_CHECK(gori_file_describe(folder)->is_directory);
    attempt_init(&site.fixture, &attempt);
    GT_EQUAL(gori_file_op_read(&attempt.op, folder, 0, &byte, 1), GORI_EISDIR);
    CALL(&site.fixture, gori_file_op_sync(&attempt.op, folder));
    GT_EQUAL(wait_for(&attempt), 0);
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_stat(&attempt.op, folder));
    GT_EQUAL(wait_for(&attempt), 0);
    GT_CHECK(attempt.op.info.is_directory);
    close_file(&site.fixture, folder);
    site_close(&site);
}

GT_TEST(a_path_is_asked_for_without_opening_it)
{
    struct site site = {0};
    struct attempt attempt;
    site_open(&site);
    struct gori_file *file = open_both(&site);
    GT_EQUAL(write_at(&site.fixture, file, 0, "1234567", 7), 7);
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_stat_path(&attempt.op, site.fixture.loop, NULL, site.path));
    GT_EQUAL(wait_for(&attempt), 0);
    GT_EQUAL(attempt.op.info.size, 7);
    GT_CHECK(!attempt.op.info.is_directory);
    GT_EQUAL(attempt.op.info.inode, gori_file_describe(file)->inode);
    GT_EQUAL(attempt.op.info.device, gori_file_describe(file)->device);
    close_file(&site.fixture, file);
    attempt_init(&site.fixture, &attempt);
    site.path[strlen(site.path) - 1] = '_';
    CALL(&site.fixture, gori_file_op_stat_path(&attempt.op, site.fixture.loop, NULL, site.path));
    GT_EQUAL(wait_for(&attempt), GORI_ENOTFOUND);
    site_close(&site);
}

GT_TEST(what_is_beneath_a_root_does_not_leave_it)
{
    struct site site = {0};
    struct attempt attempt;
    struct gori_root *root;
    char path[3 * GT_FOLDER_BYTES];
    uint8_t room[8];
    int error;
    site_open(&site);
    if (site.fixture.sim != NULL) {
        site_close(&site);
        GT_SKIP("a simulated world has no roots");
    }
    GT_EQUAL(gori_root_open(&site.fixture.memory.allocator, site.folder, &root), 0);
    const struct gori_file_open_options make = {
        .root = root, .write = true, .read_too = true, .create = true, .exclusive = true};
    const struct gori_file_open_options read = {.root = root};
    struct gori_file *file = open_path(&site.fixture, "new", &make, &error);
    GT_EQUAL(error, 0);
    GT_EQUAL(write_at(&site.fixture, file, 0, "inside", 6), 6);
    GT_EQUAL(read_at(&site.fixture, file, 0, room, sizeof(room)), 6);
    close_file(&site.fixture, file);
    GT_CHECK(open_path(&site.fixture, "new", &make, &error) == NULL);
    GT_EQUAL(error, GORI_EEXIST);
    GT_CHECK(open_path(&site.fixture, "../x", &make, &error) == NULL);
    GT_EQUAL(error, GORI_EXDEV);
    GT_CHECK(open_path(&site.fixture, "/" NAME, &read, &error) == NULL);
    GT_EQUAL(error, GORI_EXDEV);
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_stat_path(&attempt.op, site.fixture.loop, root, "new"));
    GT_EQUAL(wait_for(&attempt), 0);
    GT_EQUAL(attempt.op.info.size, 6);
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_stat_path(&attempt.op, site.fixture.loop, root, "../x"));
    GT_EQUAL(wait_for(&attempt), GORI_EXDEV);
    gori_root_close(root);
    snprintf(path, sizeof(path), "%s/new", site.folder);
    gt_remove(path);
    site_close(&site);
}

GT_TEST(appended_bytes_go_to_the_end_whatever_their_offset)
{
    struct site site = {0};
    const struct gori_file_open_options append = {
        .write = true, .read_too = true, .create = true, .append = true};
    const struct gori_slice pieces[2] = {{(const uint8_t *)"cc", 2}, {(const uint8_t *)"dd", 2}};
    struct attempt attempt;
    uint8_t room[16];
    int error;
    site_open(&site);
    struct gori_file *reader = open_both(&site);
    struct gori_file *file = open_path(&site.fixture, site.path, &append, &error);
    GT_EQUAL(error, 0);
    GT_EQUAL(write_at(&site.fixture, file, 0, "aa", 2), 2);
    GT_EQUAL(write_at(&site.fixture, reader, 2, "bb", 2), 2);
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_write_pieces(&attempt.op, file, 0, pieces, 2));
    GT_EQUAL(wait_for(&attempt), 4);
    GT_EQUAL(read_at(&site.fixture, reader, 0, room, sizeof(room)), 8);
    GT_EQUAL_BYTES(room, 8, "aabbccdd", 8);
    GT_EQUAL(read_at(&site.fixture, file, 4, room, 2), 2); /* reads keep their place */
    GT_EQUAL_BYTES(room, 2, "cc", 2);
    close_file(&site.fixture, file);
    close_file(&site.fixture, reader);
    site_close(&site);
}

GT_TEST(a_file_is_emptied_cut_and_stretched)
{
    struct site site = {0};
    const struct gori_file_open_options empty = {.write = true, .truncate = true};
    struct attempt attempt;
    uint8_t room[16];
    int error;
    site_open(&site);
    struct gori_file *file = open_both(&site);
    GT_EQUAL(write_at(&site.fixture, file, 0, "abcdefgh", 8), 8);
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_truncate(&attempt.op, file, 3));
    GT_EQUAL(wait_for(&attempt), 0);
    GT_EQUAL(size_of(&site.fixture, file), 3);
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_truncate(&attempt.op, file, 5));
    GT_EQUAL(wait_for(&attempt), 0);
    GT_EQUAL(read_at(&site.fixture, file, 0, room, sizeof(room)), 5);
    GT_EQUAL_BYTES(room, 5, "abc\0\0", 5);
    struct gori_file *other = open_path(&site.fixture, site.path, &empty, &error);
    GT_EQUAL(error, 0);
    GT_EQUAL(read_at(&site.fixture, file, 0, room, sizeof(room)), 0);
    close_file(&site.fixture, other);
    close_file(&site.fixture, file);
    site_close(&site);
}

GT_TEST(a_read_of_a_file_that_is_cut_meanwhile_ends_where_it_ends)
{
    struct site site = {0};
    enum { BYTES = 400000, LEFT = 100000 };
    static uint8_t data[BYTES];
    static uint8_t rooms[8][BYTES]; /* threads of a pool may read at once */
    struct attempt reads[8];
    struct attempt cut;
    site_open(&site);
    struct gori_file *file = open_both(&site);
    fixture_fill(data, BYTES, 4, 0);
    GT_EQUAL(write_at(&site.fixture, file, 0, data, BYTES), BYTES);
    for (size_t i = 0; i < 8; i++) {
        if (i == 4) {
            attempt_init(&site.fixture, &cut);
            CALL(&site.fixture, gori_file_op_truncate(&cut.op, file, LEFT));
        }
        attempt_init(&site.fixture, &reads[i]);
        CALL(&site.fixture, gori_file_op_read(&reads[i].op, file, 0, rooms[i], BYTES));
    }
    GT_EQUAL(wait_for(&cut), 0);
    for (size_t i = 0; i < 8; i++) {
        int64_t result = wait_for(&reads[i]);
        GT_CHECK(result >= LEFT && result <= BYTES);
        fixture_check(rooms[i], LEFT, 4, 0);
    }
    GT_EQUAL(read_at(&site.fixture, file, 0, rooms[0], BYTES), LEFT);
    close_file(&site.fixture, file);
    site_close(&site);
}

GT_TEST(a_sync_of_all_and_of_the_bytes)
{
    struct site site = {0};
    struct attempt all;
    struct attempt data;
    site_open(&site);
    struct gori_file *file = open_both(&site);
    GT_EQUAL(write_at(&site.fixture, file, 0, "durable", 7), 7);
    attempt_init(&site.fixture, &all);
    attempt_init(&site.fixture, &data);
    CALL(&site.fixture, gori_file_op_sync(&all.op, file));
    CALL(&site.fixture, gori_file_op_sync_data(&data.op, file));
    GT_EQUAL(wait_for(&all), 0);
    GT_EQUAL(wait_for(&data), 0);
    close_file(&site.fixture, file);
    site_close(&site);
}

GT_TEST(a_wrong_call_is_refused_and_never_completes)
{
    struct site site = {0};
    struct attempt attempt;
    uint8_t room[4];
    struct gori_slice pieces[GORI_FILE_PIECES_MAX + 1] = {{room, 1}};
    const struct gori_slice nothing = {room, 0};
    const struct gori_file_open_options bad[] = {
        {.create = true}, {.write = true, .exclusive = true}, {.truncate = true}, {.append = true}};
    int error;
    site_open(&site);
    struct fixture *fixture = &site.fixture;
    close_file(fixture, open_both(&site));
    attempt_init(fixture, &attempt);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        GT_EQUAL(gori_file_op_open(&attempt.op, fixture->loop, site.path, &bad[i]), GORI_EINVAL);
    }
    GT_EQUAL(gori_file_op_open(&attempt.op, fixture->loop, NULL, NULL), GORI_EINVAL);
    struct gori_file *reader = open_path(fixture, site.path, NULL, &error);
    const struct gori_file_open_options write = {.write = true};
    struct gori_file *writer = open_path(fixture, site.path, &write, &error);
    GT_EQUAL(gori_file_op_read(&attempt.op, reader, 0, room, 0), GORI_EINVAL);
    GT_EQUAL(gori_file_op_read(&attempt.op, reader, INT64_MAX, room, 1), GORI_EINVAL);
    GT_EQUAL(gori_file_op_write(&attempt.op, reader, 0, room, 1), GORI_EACCESS);
    GT_EQUAL(gori_file_op_truncate(&attempt.op, reader, 0), GORI_EACCESS);
    GT_EQUAL(gori_file_op_read(&attempt.op, writer, 0, room, 1), GORI_EACCESS);
    GT_EQUAL(gori_file_op_write_pieces(&attempt.op, writer, 0, pieces, 0), GORI_EINVAL);
    GT_EQUAL(gori_file_op_write_pieces(&attempt.op, writer, 0, pieces, GORI_FILE_PIECES_MAX + 1),
             GORI_EINVAL);
    GT_EQUAL(gori_file_op_write_pieces(&attempt.op, writer, 0, &nothing, 1), GORI_EINVAL);
    attempt.op.on_complete = NULL;
    GT_EQUAL(gori_file_op_sync(&attempt.op, writer), GORI_EINVAL);
    attempt.op.on_complete = attempt_complete;
    CALL(fixture, gori_file_op_sync(&attempt.op, writer));
    GT_EQUAL(gori_file_op_sync(&attempt.op, writer), GORI_EBUSY);
    GT_EQUAL(wait_for(&attempt), 0);
    close_file(fixture, writer);
    close_file(fixture, reader);
    fixture_settle(fixture);
    GT_EQUAL(attempt.completions, 1);
    site_close(&site);
}

GT_TEST(an_open_that_is_cancelled_completes_once_and_leaks_no_descriptor)
{
    struct site site = {0};
    site_open(&site);
    close_file(&site.fixture, open_both(&site));
    int descriptors = gt_open_descriptors();
    unsigned canceled = 0;
    for (int i = 0; i < 2000; i++) {
        struct attempt attempt;
        attempt_init(&site.fixture, &attempt);
        CALL(&site.fixture, gori_file_op_open(&attempt.op, site.fixture.loop, site.path, NULL));
        if (i % 3 != 0) {
            GT_CHECK(gori_loop_turn(site.fixture.loop, 0) >= 0);
        }
        gori_file_op_cancel(&attempt.op);
        gori_file_op_cancel(&attempt.op);
        int64_t result = wait_for(&attempt);
        GT_CHECK(result == 0 || result == GORI_ECANCELED);
        GT_EQUAL(attempt.op.file != NULL, result == 0);
        canceled += result != 0 ? 1 : 0;
        gori_file_unref(attempt.op.file);
    }
    GT_CHECK(canceled > 0);
    GT_EQUAL(gt_open_descriptors(), descriptors);
    site_close(&site);
}

GT_TEST(reads_and_writes_that_are_cancelled_complete_once)
{
    struct site site = {0};
    enum { COUNT = 200, BYTES = 20000 };
    static struct attempt attempts[COUNT];
    static uint8_t data[BYTES];
    static uint8_t room[COUNT][BYTES];
    site_open(&site);
    struct gori_file *file = open_both(&site);
    GT_EQUAL(write_at(&site.fixture, file, 0, data, BYTES), BYTES);
    for (size_t i = 0; i < COUNT; i++) {
        attempt_init(&site.fixture, &attempts[i]);
        if (i % 2 == 0) {
            CALL(&site.fixture, gori_file_op_write(&attempts[i].op, file, 0, data, BYTES));
        } else {
            CALL(&site.fixture, gori_file_op_read(&attempts[i].op, file, 0, room[i], BYTES));
        }
    }
    for (size_t i = 0; i < COUNT; i += 3) {
        gori_file_op_cancel(&attempts[COUNT - 1 - i].op);
    }
    for (size_t i = 0; i < COUNT; i++) {
        int64_t result = wait_for(&attempts[i]);
        bool asked = (COUNT - 1 - i) % 3 == 0;
        GT_CHECK(result == BYTES || (asked && result == GORI_ECANCELED));
    }
    close_file(&site.fixture, file);
    site_close(&site);
}

GT_TEST(a_close_ends_what_is_in_flight_and_comes_last)
{
    struct site site = {0};
    enum { COUNT = 50, BYTES = 5000 };
    static struct attempt attempts[COUNT];
    static uint8_t data[BYTES];
    struct attempt close;
    unsigned completions = 0;
    site_open(&site);
    int descriptors = gt_open_descriptors();
    struct gori_file *file = open_both(&site);
    for (size_t i = 0; i < COUNT; i++) {
        attempt_init(&site.fixture, &attempts[i]);
        CALL(&site.fixture, gori_file_op_write(&attempts[i].op, file, 0, data, BYTES));
    }
    attempt_init(&site.fixture, &close);
    close.before = &completions;
    CALL(&site.fixture, gori_file_op_close(&close.op, file));
    GT_EQUAL(gori_file_op_sync(&attempts[0].op, file), GORI_ECLOSED);
    GT_EQUAL(gori_file_op_close(&attempts[0].op, file), GORI_ECLOSED);
    while (close.completions == 0) {
        fixture_turn(&site.fixture);
        completions = 0;
        for (size_t i = 0; i < COUNT; i++) {
            completions += attempts[i].completions;
        }
    }
    GT_EQUAL(close.result, 0);
    GT_EQUAL(completions, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        GT_EQUAL(attempts[i].completions, 1);
        GT_CHECK(attempts[i].result == BYTES || attempts[i].result == GORI_ECANCELED);
    }
    GT_EQUAL(gt_open_descriptors(), descriptors);
    site_close(&site);
}

GT_TEST(a_close_leaves_the_file_to_others_who_hold_it)
{
    struct site site = {0};
    uint8_t room[4];
    site_open(&site);
    struct gori_file *file = open_both(&site);
    GT_EQUAL(write_at(&site.fixture, file, 0, "held", 4), 4);
    gori_file_ref(file);
    close_file(&site.fixture, file);
    GT_EQUAL(gori_file_read(file, 0, room, 4), 4);
    GT_EQUAL_BYTES(room, 4, "held", 4);
    gori_file_unref(file);
    site_close(&site);
}

GT_TEST(an_op_holds_its_file_open)
{
    struct site site = {0};
    struct attempt attempt;
    site_open(&site);
    int descriptors = gt_open_descriptors();
    struct gori_file *file = open_both(&site);
    attempt_init(&site.fixture, &attempt);
    CALL(&site.fixture, gori_file_op_write(&attempt.op, file, 0, "alone", 5));
    gori_file_unref(file);
    GT_EQUAL(wait_for(&attempt), 5);
    GT_EQUAL(gt_open_descriptors(), descriptors);
    site_close(&site);
}

GT_TEST(a_thousand_at_once_and_no_more_than_the_limit)
{
    struct site site = {0};
    enum { COUNT = 1000, BYTES = 512 };
    static struct attempt attempts[COUNT];
    static uint8_t data[COUNT * BYTES];
    static uint8_t room[COUNT * BYTES];
    struct attempt surplus;
    site.fixture.config.ops_max = COUNT;
    site_open(&site);
    struct gori_file *file = open_both(&site);
    fixture_fill(data, sizeof(data), 9, 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t at = i * BYTES;
            attempt_init(&site.fixture, &attempts[i]);
            if (round == 0) {
                CALL(&site.fixture,
                     gori_file_op_write(&attempts[i].op, file, at, data + at, BYTES));
            } else {
                CALL(&site.fixture, gori_file_op_read(&attempts[i].op, file, at, room + at, BYTES));
            }
        }
        attempt_init(&site.fixture, &surplus);
        GT_EQUAL(gori_file_op_sync(&surplus.op, file), GORI_ELIMIT);
        for (size_t i = 0; i < COUNT; i++) {
            GT_EQUAL(wait_for(&attempts[i]), BYTES);
        }
        GT_EQUAL(surplus.completions, 0);
    }
    fixture_check(room, sizeof(room), 9, 0);
    close_file(&site.fixture, file);
    site_close(&site);
}

/* Round and round until many have completed, each submitting the next in its completion. */
struct chain {
    struct site *site;
    struct gori_file *file;
    unsigned left;
};

static void chain_step(struct gori_file_op *op, int64_t result)
{
    struct chain *chain = op->user;
    GT_EQUAL(result, 3);
    if (--chain->left > 0) {
        GT_EQUAL(gori_file_op_write(op, chain->file, 3 * chain->left, "abc", 3), 0);
    }
}

GT_TEST(an_op_is_used_again_in_its_own_completion)
{
    struct site site = {0};
    site_open(&site);
    struct chain chain = {.site = &site, .file = open_both(&site), .left = 300};
    struct gori_file_op op = {.on_complete = chain_step, .user = &chain};
    CALL(&site.fixture, gori_file_op_write(&op, chain.file, 0, "abc", 3));
    FIXTURE_UNTIL(&site.fixture, chain.left == 0);
    close_file(&site.fixture, chain.file);
    site_close(&site);
}

GT_TEST(a_loop_that_ends_completes_its_ops_first)
{
    struct site site = {0};
    enum { COUNT = 100, BYTES = 30000 };
    static struct attempt attempts[COUNT];
    static uint8_t data[BYTES];
    struct attempt opens;
    struct attempt close;
    site_open(&site);
    struct gori_file *file = open_both(&site);
    for (size_t i = 0; i < COUNT; i++) {
        attempt_init(&site.fixture, &attempts[i]);
        CALL(&site.fixture, gori_file_op_write(&attempts[i].op, file, 0, data, BYTES));
    }
    attempt_init(&site.fixture, &opens);
    CALL(&site.fixture, gori_file_op_open(&opens.op, site.fixture.loop, site.path, NULL));
    attempt_init(&site.fixture, &close);
    CALL(&site.fixture, gori_file_op_close(&close.op, file));
    site_close(&site);
    for (size_t i = 0; i < COUNT; i++) {
        GT_EQUAL(attempts[i].completions, 1);
    }
    GT_EQUAL(opens.completions, 1);
    GT_CHECK(opens.result == GORI_ECANCELED);
    GT_EQUAL(close.completions, 1);
    GT_EQUAL(close.result, 0);
}

/* Closes the file when its own op completes. */
struct last_words {
    struct attempt write;
    struct attempt close;
    struct gori_file *file;
};

static void close_when_written(struct gori_file_op *op, int64_t result)
{
    struct last_words *words = gori_container_of(op, struct last_words, write.op);
    (void)result;
    GT_EQUAL(gori_file_op_close(&words->close.op, words->file), 0);
}

GT_TEST(a_file_is_closed_by_a_completion_at_the_end_of_its_loop)
{
    struct site site = {0};
    struct last_words words;
    static uint8_t data[300000];
    site_open(&site);
    words.file = open_both(&site);
    attempt_init(&site.fixture, &words.write);
    attempt_init(&site.fixture, &words.close);
    words.write.op.on_complete = close_when_written;
    CALL(&site.fixture, gori_file_op_write(&words.write.op, words.file, 0, data, sizeof(data)));
    site_close(&site); /* which finds every descriptor closed */
    GT_EQUAL(words.close.completions, 1);
    GT_EQUAL(words.close.result, 0);
}

GT_TEST(a_file_that_an_op_opened_is_sent)
{
    struct site site = {0};
    struct pair pair;
    struct probe probe;
    static uint8_t data[50000];
    static uint8_t room[50000];
    site_open(&site);
    struct gori_file *file = open_both(&site);
    fixture_fill(data, sizeof(data), 6, 0);
    GT_EQUAL(write_at(&site.fixture, file, 0, data, sizeof(data)), sizeof(data));
    pair_open(&site.fixture, &pair);
    probe_init(&site.fixture, &probe);
    const struct gori_file_range range = {.file = gori_file_descriptor(file), .size = sizeof(data)};
    GT_EQUAL(gori_op_send_file(&probe.op, &pair.handle, &range), 0);
    size_t got = 0;
    while (got < sizeof(room)) {
        int64_t result = gt_peer_recv(pair.peer, room + got, sizeof(room) - got);
        GT_CHECK(result > 0 || result == GORI_EAGAIN);
        got += result > 0 ? (size_t)result : 0;
        fixture_turn(&site.fixture);
    }
    fixture_check(room, sizeof(room), 6, 0);
    FIXTURE_UNTIL(&site.fixture, probe.last == 1);
    GT_EQUAL(probe.result, sizeof(data));
    pair_close(&pair);
    close_file(&site.fixture, file);
    site_close(&site);
}

GT_TEST(a_full_device_is_told_and_what_fits_is_written)
{
    struct site site = {0};
    enum { LIMIT = 20000 };
    static uint8_t data[LIMIT + 1];
    site_open(&site);
    struct gori_file *file = open_both(&site);
    if (site.fixture.sim != NULL) {
        gi_sim_limit_files(site.fixture.sim, LIMIT);
    } else if (!gt_limit_file_size(LIMIT)) {
        close_file(&site.fixture, file);
        site_close(&site);
        GT_SKIP("no way to have it full");
    }
    GT_EQUAL(write_at(&site.fixture, file, 0, data, sizeof(data)), GORI_ENOSPC);
    GT_EQUAL(size_of(&site.fixture, file), LIMIT);
    GT_EQUAL(write_at(&site.fixture, file, 0, data, LIMIT), LIMIT);
    close_file(&site.fixture, file);
    site_close(&site);
}

/* The pool of the loop's configuration is shared with work that leaves it no place. */
struct hog {
    struct gori_work work;
    bool is_done;
};

static void hog_done(struct gori_work *work, int result)
{
    (void)result;
    ((struct hog *)work->user)->is_done = true;
}

static void hog_run(struct gori_work *work)
{
    while (!gori_work_is_canceled(work)) {
    }
}

GT_TEST(a_pool_without_a_place_refuses_or_lets_wait)
{
    struct site site = {0};
    struct gori_pool *pool;
    struct attempt attempts[2];
    struct hog hogs[2] = {{.is_done = false}, {.is_done = false}};
    const struct gori_pool_config config = {.threads_max = 1, .works_max = 1};
    GT_EQUAL(gori_pool_create(&config, &pool), 0);
    site.fixture.config.pool = pool;
    site_open(&site);
    struct fixture *fixture = &site.fixture;
    if (fixture->sim != NULL) {
        site_close(&site);
        gori_pool_destroy(pool);
        GT_SKIP("a simulated world has one thread");
    }
    struct gori_pool_stats stats = {0};
    for (size_t i = 0; i < 2; i++) {
        hogs[i].work = (struct gori_work){.run = hog_run, .on_done = hog_done, .user = &hogs[i]};
        GT_EQUAL(gori_pool_submit(pool, fixture->loop, &hogs[i].work), 0);
        while (stats.running == 0) {
            gori_pool_read_stats(pool, &stats);
        }
    }
    attempt_init(fixture, &attempts[0]);
    int result = gori_file_op_stat_path(&attempts[0].op, fixture->loop, NULL, site.folder);
    GT_CHECK(result == 0 || result == GORI_ELIMIT); /* 0 where the engine needs no pool */
    for (size_t i = 0; i < 2; i++) {
        gori_work_cancel(&hogs[i].work);
    }
    FIXTURE_UNTIL(fixture, hogs[0].is_done && hogs[1].is_done);
    FIXTURE_UNTIL(fixture, result < 0 || attempts[0].completions == 1);
    GT_EQUAL(attempts[0].completions, result == 0 ? 1 : 0);
    for (size_t i = 0; i < 2; i++) { /* the second waits on the loop while the first runs */
        attempt_init(fixture, &attempts[i]);
        CALL(fixture, gori_file_op_stat_path(&attempts[i].op, fixture->loop, NULL, site.folder));
    }
    for (size_t i = 0; i < 2; i++) {
        GT_EQUAL(wait_for(&attempts[i]), 0);
        GT_CHECK(attempts[i].op.info.is_directory);
    }
    site_close(&site);
    gori_pool_destroy(pool);
}
