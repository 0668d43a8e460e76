/* SPDX-License-Identifier: MIT */
/*
 * Conformance of watches of files (<gori/watch.h>): what is told, by whom it is told, and what is
 * not.  Changes are made in a folder of the system, or in the simulated world, one after the other,
 * each when the one before was told.
 *
 * Where systems may differ by the contract, the words of one change are normalised: what was
 * written at the moment of its creation need not be told as MODIFIED, and Windows says MODIFIED of
 * attributes and tells it late and often.
 */
#include <gori/watch.h>

#include "conformance/place.h"
#include "engine/sim/sim.h"

#define TRACE_BYTES 8192

/* A watch, and what it was told. */
struct seen {
    struct fixture *fixture;
    struct gori_watch watch;
    char words[TRACE_BYTES];
    unsigned lost;
    struct gori_watch *stop; /* one to be stopped by the next callback */
    struct seen *start;      /* one to be started by the next callback, */
    const char *start_path;  /* on this */
};

/* Adds a word that is not the last one already. */
static void add_word(struct seen *seen, const char *kind, const struct gori_change *change)
{
    char word[PLACE_PATH_BYTES];
    snprintf(word, sizeof(word), "%s:%s%s%s ", kind, change->from == NULL ? "" : change->from,
             change->from == NULL ? "" : ">", change->name);
    size_t size = strlen(word);
    size_t used = strlen(seen->words);
    GT_CHECK(used + size < TRACE_BYTES);
    if (used < size || strcmp(seen->words + used - size, word) != 0) {
        memcpy(seen->words + used, word, size + 1);
    }
}

static void changed(struct gori_watch *watch, const struct gori_change *change)
{
    static const char *const kinds[] = {
        [GORI_CHANGE_CREATED] = "created",    [GORI_CHANGE_DELETED] = "deleted",
        [GORI_CHANGE_RENAMED] = "renamed",    [GORI_CHANGE_MODIFIED] = "modified",
        [GORI_CHANGE_ATTRIBUTES] = "touched", [GORI_CHANGE_LOST] = "lost",
        [GORI_CHANGE_GONE] = "gone",
    };
    struct seen *seen = watch->user;
    GT_CHECK(!seen->fixture->in_call);
    GT_EQUAL(gori_watch_is_active(watch), change->kind != GORI_CHANGE_GONE);
    GT_EQUAL(change->from != NULL, change->kind == GORI_CHANGE_RENAMED);
    seen->lost += change->kind == GORI_CHANGE_LOST;
    add_word(seen, kinds[change->kind], change);
    struct gori_watch *stop = seen->stop;
    struct seen *start = seen->start;
    seen->stop = NULL;
    seen->start = NULL;
    if (stop != NULL) {
        gori_watch_stop(stop);
    }
    if (start != NULL) {
        GT_EQUAL(gori_watch_start_directory(seen->fixture->loop, seen->start_path, &start->watch),
                 0);
    }
}

static void seen_init(struct fixture *fixture, struct seen *seen)
{
    *seen = (struct seen){.fixture = fixture, .watch.on_change = changed, .watch.user = seen};
}

static void watch_directory(struct place *place, struct seen *seen)
{
    place->fixture->in_call = true;
    GT_EQUAL(gori_watch_start_directory(place->fixture->loop, place->folder, &seen->watch), 0);
    place->fixture->in_call = false;
    GT_CHECK(gori_watch_is_active(&seen->watch));
}

static void watch_file(struct place *place, const char *name, struct seen *seen)
{
    place->fixture->in_call = true;
    GT_EQUAL(gori_watch_start_file(place->fixture->loop, place_path(place, name), &seen->watch), 0);
    place->fixture->in_call = false;
}

static bool has_word(const struct seen *seen, const char *word)
{
    const char *at = strstr(seen->words, word);
    return at != NULL && at[strlen(word)] == ' ';
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Whether a word may stand beside the expected one. */
static bool is_harmless(const struct seen *seen, const char *word, const char *expected)
{
    if (!starts_with(word, "modified:") && !starts_with(word, "touched:")) {
        return false;
    }
    if (place_is_windows(seen->fixture)) {
        return true;
    }
    return starts_with(expected, "created:") &&
           strcmp(strchr(word, ':'), strchr(expected, ':')) == 0;
}

/* Waits until a word was told, and finds that nothing else was. */
static void expect(struct seen *seen, const char *expected)
{
    FIXTURE_UNTIL(seen->fixture, has_word(seen, expected));
    fixture_settle(seen->fixture);
    unsigned count = 0;
    char *rest = seen->words;
    while (*rest != '\0') {
        char *word = rest;
        rest = strchr(rest, ' ') + 1;
        rest[-1] = '\0';
        if (strcmp(word, expected) == 0) {
            count++;
        } else if (!is_harmless(seen, word, expected)) {
            GT_EQUAL_STRING(word, expected);
        }
    }
    GT_CHECK(count == 1 || (count > 1 && starts_with(expected, "modified:")));
    seen->words[0] = '\0';
}

/* What attributes are told as. */
static void expect_touched(struct seen *seen, const char *name)
{
    char word[64];
    snprintf(word, sizeof(word), "%s:%s", place_is_windows(seen->fixture) ? "modified" : "touched",
             name);
    expect(seen, word);
}

static void expect_nothing(struct seen *seen)
{
    fixture_settle(seen->fixture);
    if (!place_is_windows(seen->fixture)) {
        GT_EQUAL_STRING(seen->words, "");
    }
}

GT_TEST(a_directory_tells_of_its_entries)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen;
    fixture_open(&fixture);
    place_open(&fixture, &place);
    seen_init(&fixture, &seen);
    watch_directory(&place, &seen);
    place_write(&place, "a");
    expect(&seen, "created:a");
    place_write(&place, "a");
    expect(&seen, "modified:a");
    place_write(&place, "a");
    expect(&seen, "modified:a");
    place_touch(&place, "a");
    expect_touched(&seen, "a");
    place_rename(&place, "a", "b");
    expect(&seen, "renamed:a>b");
    place_write(&place, "b");
    expect(&seen, "modified:b");
    place_make(&place, "folder");
    expect(&seen, "created:folder");
    place_write(&place, "folder/deep");
    expect_nothing(&seen);
    place_remove(&place, "folder/deep");
    expect_nothing(&seen);
    place_remove(&place, "folder");
    expect(&seen, "deleted:folder");
    place_remove(&place, "b");
    expect(&seen, "deleted:b");
    gori_watch_stop(&seen.watch);
    place_close(&place);
    fixture_close(&fixture);
}

/* Of two directories that are both watched each tells its half. */
GT_TEST(a_move_between_directories_is_an_end_and_a_beginning)
{
    struct fixture fixture = {0};
    struct place places[2];
    struct seen seen[2];
    fixture_open(&fixture);
    for (int i = 0; i < 2; i++) {
        place_open(&fixture, &places[i]);
        seen_init(&fixture, &seen[i]);
        watch_directory(&places[i], &seen[i]);
    }
    place_write(&places[0], "a");
    expect(&seen[0], "created:a");
    place_rename_path(&places[0], place_path(&places[0], "a"), place_path(&places[1], "b"));
    expect(&seen[0], "deleted:a");
    expect(&seen[1], "created:b");
    gori_watch_stop(&seen[0].watch);
    place_rename_path(&places[0], place_path(&places[1], "b"), place_path(&places[0], "a"));
    expect(&seen[1], "deleted:b");
    expect_nothing(&seen[0]);
    watch_directory(&places[0], &seen[0]);
    gori_watch_stop(&seen[1].watch);
    place_write(&places[1], "b");
    place_rename_path(&places[0], place_path(&places[1], "b"), place_path(&places[0], "b"));
    expect(&seen[0], "created:b");
    expect_nothing(&seen[1]);
    gori_watch_stop(&seen[0].watch);
    place_remove(&places[0], "a");
    place_remove(&places[0], "b");
    place_close(&places[0]);
    place_close(&places[1]);
    fixture_close(&fixture);
}

/* A rename over another entry says nothing of that one. */
GT_TEST(a_directory_tells_a_replacement_as_a_rename)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen;
    fixture_open(&fixture);
    place_open(&fixture, &place);
    place_write(&place, "old");
    place_write(&place, "new");
    seen_init(&fixture, &seen);
    watch_directory(&place, &seen);
    place_rename(&place, "new", "old");
    FIXTURE_UNTIL(&fixture, has_word(&seen, "renamed:new>old"));
    fixture_settle(&fixture);
    if (!place_is_windows(&fixture)) { /* it says also that what was there before is deleted */
        GT_EQUAL_STRING(seen.words, "renamed:new>old ");
    }
    gori_watch_stop(&seen.watch);
    place_remove(&place, "old");
    place_close(&place);
    fixture_close(&fixture);
}

/* One that goes and another that comes, one after the other, are no rename. */
GT_TEST(a_way_out_and_a_way_in_are_no_rename)
{
    struct fixture fixture = {0};
    struct place places[2];
    struct seen seen;
    fixture_open(&fixture);
    for (int i = 0; i < 2; i++) {
        place_open(&fixture, &places[i]);
        place_write(&places[i], i == 0 ? "a" : "b");
    }
    seen_init(&fixture, &seen);
    watch_directory(&places[0], &seen);
    place_rename_path(&places[0], place_path(&places[0], "a"), place_path(&places[1], "a"));
    place_rename_path(&places[0], place_path(&places[1], "b"), place_path(&places[0], "b"));
    FIXTURE_UNTIL(&fixture, has_word(&seen, "deleted:a") && has_word(&seen, "created:b"));
    fixture_settle(&fixture);
    if (!place_is_windows(&fixture)) {
        GT_EQUAL_STRING(seen.words, "deleted:a created:b ");
    }
    gori_watch_stop(&seen.watch);
    place_remove(&places[0], "b");
    place_remove(&places[1], "a");
    place_close(&places[0]);
    place_close(&places[1]);
    fixture_close(&fixture);
}

/* The system makes the halves of a rename one after the other, and a look may fall in between; the
 * simulator's fault makes it. */
GT_TEST(a_rename_of_which_the_halves_come_apart_is_one)
{
    const struct gi_sim_config config = {.seed = 7, .faults.short_look = 500};
    struct fixture fixture = {.sim_config = &config};
    struct place place;
    struct seen seen;
    fixture_open(&fixture);
    place_open(&fixture, &place);
    place_write(&place, "a");
    seen_init(&fixture, &seen);
    watch_directory(&place, &seen);
    for (int i = 0; i < 25; i++) {
        place_rename(&place, "a", "b");
        expect(&seen, "renamed:a>b");
        place_rename(&place, "b", "a");
        expect(&seen, "renamed:b>a");
    }
    gori_watch_stop(&seen.watch);
    place_remove(&place, "a");
    place_close(&place);
    fixture_close(&fixture);
}

/* Longer than on any usual file system, so that only the simulator has it. */
GT_TEST(a_name_without_end_is_only_lost)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen;
    char path[2000];
    fixture_open(&fixture);
    place_open(&fixture, &place);
    if (fixture.sim != NULL) {
        int size = snprintf(path, sizeof(path), "%s/", place.folder);
        memset(path + size, 'n', sizeof(path) - (size_t)size - 1);
        path[sizeof(path) - 1] = '\0';
        seen_init(&fixture, &seen);
        watch_directory(&place, &seen);
        gi_sim_file_write(fixture.sim, path);
        expect(&seen, "lost:");
        place_write(&place, "a");
        expect(&seen, "created:a");
        place_remove(&place, "a");
        place_remove_path(&place, path);
        gori_watch_stop(&seen.watch);
    }
    place_close(&place);
    fixture_close(&fixture);
}

/* A file need not be there, may come and go, and is told of under its name whoever has it. */
GT_TEST(a_file_is_its_name)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen;
    fixture_open(&fixture);
    place_open(&fixture, &place);
    seen_init(&fixture, &seen);
    watch_file(&place, "conf", &seen);
    place_write(&place, "other");
    expect_nothing(&seen);
    place_write(&place, "conf");
    expect(&seen, "created:conf");
    place_write(&place, "conf");
    expect(&seen, "modified:conf");
    place_touch(&place, "conf");
    expect_touched(&seen, "conf");
    place_rename(&place, "conf", "away");
    expect(&seen, "deleted:conf");
    place_write(&place, "away");
    expect_nothing(&seen);
    place_rename(&place, "away", "conf");
    expect(&seen, "created:conf");
    place_remove(&place, "conf");
    expect(&seen, "deleted:conf");
    place_write(&place, "conf");
    expect(&seen, "created:conf");
    place_remove(&place, "other");
    expect_nothing(&seen);
    gori_watch_stop(&seen.watch);
    place_remove(&place, "conf");
    place_close(&place);
    fixture_close(&fixture);
}

/* The way of editors and deployments: write another file, and rename it into place. */
GT_TEST(a_file_that_is_replaced_does_not_go_silent)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen;
    fixture_open(&fixture);
    place_open(&fixture, &place);
    place_write(&place, "conf");
    seen_init(&fixture, &seen);
    watch_file(&place, "conf", &seen);
    for (int i = 0; i < 10; i++) {
        place_write(&place, "conf.new");
        place_rename(&place, "conf.new", "conf");
        FIXTURE_UNTIL(&fixture, has_word(&seen, "created:conf"));
        fixture_settle(&fixture);
        seen.words[0] = '\0';
        place_write(&place, "conf");
        FIXTURE_UNTIL(&fixture, has_word(&seen, "modified:conf"));
        fixture_settle(&fixture);
        seen.words[0] = '\0';
    }
    gori_watch_stop(&seen.watch);
    place_remove(&place, "conf");
    place_close(&place);
    fixture_close(&fixture);
}

/* The end of the directory is told once, to all; then it may be watched again when it is back. */
GT_TEST(a_directory_that_is_removed_is_gone)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen[3];
    fixture_open(&fixture);
    if (gt_is_wine() && fixture.sim == NULL) {
        GT_SKIP("Wine 8 does not tell that a watched directory is removed");
    }
    place_open(&fixture, &place);
    for (int i = 0; i < 3; i++) {
        seen_init(&fixture, &seen[i]);
    }
    place_make(&place, "folder");
    const char *folder = place_path(&place, "folder");
    GT_EQUAL(gori_watch_start_directory(fixture.loop, folder, &seen[0].watch), 0);
    watch_file(&place, "folder/conf", &seen[1]);
    seen[0].start = &seen[2];
    seen[0].start_path = place.folder;
    place_remove(&place, "folder");
    for (int i = 0; i < 2; i++) {
        FIXTURE_UNTIL(&fixture, has_word(&seen[i], "gone:"));
        fixture_settle(&fixture);
        GT_EQUAL_STRING(seen[i].words, "gone: ");
        GT_CHECK(!gori_watch_is_active(&seen[i].watch));
        seen[i].words[0] = '\0';
    }
    GT_CHECK(gori_watch_is_active(&seen[2].watch));
    folder = place_path(&place, "folder");
    GT_EQUAL(gori_watch_start_directory(fixture.loop, folder, &seen[0].watch), GORI_ENOTFOUND);
    place_make(&place, "folder");
    expect_nothing(&seen[1]);
    folder = place_path(&place, "folder");
    GT_EQUAL(gori_watch_start_directory(fixture.loop, folder, &seen[0].watch), 0);
    place_write(&place, "folder/a");
    expect(&seen[0], "created:a");
    gori_watch_stop(&seen[0].watch);
    gori_watch_stop(&seen[2].watch);
    place_remove(&place, "folder/a");
    place_remove(&place, "folder");
    place_close(&place);
    fixture_close(&fixture);
}

/* Moving the watched directory is its end; its new name can be watched at once, also while others
 * have yet to be told. */
GT_TEST(a_directory_that_is_moved_is_gone)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen[2];
    char after[PLACE_PATH_BYTES];
    fixture_open(&fixture);
    place_open(&fixture, &place);
    snprintf(after, sizeof(after), "%s/after", place.folder);
    place_make(&place, "before");
    for (int i = 0; i < 2; i++) {
        seen_init(&fixture, &seen[i]);
        const char *before = place_path(&place, "before");
        GT_EQUAL(gori_watch_start_directory(fixture.loop, before, &seen[i].watch), 0);
    }
    place_rename(&place, "before", "after");
    if (place_is_windows(&fixture)) {
        expect_nothing(&seen[0]);
    } else {
        seen[0].start = &seen[0];
        seen[0].start_path = after;
        expect(&seen[0], "gone:");
        expect(&seen[1], "gone:");
    }
    place_write(&place, "after/a");
    expect(&seen[0], "created:a");
    GT_EQUAL(gori_watch_is_active(&seen[1].watch), place_is_windows(&fixture));
    gori_watch_stop(&seen[0].watch);
    gori_watch_stop(&seen[1].watch);
    place_remove(&place, "after/a");
    place_remove(&place, "after");
    place_close(&place);
    fixture_close(&fixture);
}

GT_TEST(what_cannot_be_watched_is_an_error)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen;
    fixture_open(&fixture);
    place_open(&fixture, &place);
    seen_init(&fixture, &seen);
    struct gori_loop *loop = fixture.loop;
    struct gori_watch *watch = &seen.watch;
    place_write(&place, "file");
    place_make(&place, "folder");
    GT_EQUAL(gori_watch_start_directory(loop, place_path(&place, "none"), watch), GORI_ENOTFOUND);
    GT_EQUAL(gori_watch_start_file(loop, place_path(&place, "none/file"), watch), GORI_ENOTFOUND);
    GT_EQUAL(gori_watch_start_directory(loop, place_path(&place, "file"), watch), GORI_ENOTDIR);
    GT_EQUAL(gori_watch_start_file(loop, place_path(&place, "folder"), watch), GORI_EISDIR);
    GT_EQUAL(gori_watch_start_file(loop, place_path(&place, ""), watch), GORI_EINVAL);
    GT_EQUAL(gori_watch_start_file(loop, place_path(&place, "."), watch), GORI_EINVAL);
    GT_EQUAL(gori_watch_start_file(loop, place_path(&place, "folder/.."), watch), GORI_EINVAL);
    GT_EQUAL(gori_watch_start_file(loop, "", watch), GORI_EINVAL);
    GT_EQUAL(gori_watch_start_directory(loop, "", watch), GORI_EINVAL);
    watch->on_change = NULL;
    GT_EQUAL(gori_watch_start_directory(loop, place.folder, watch), GORI_EINVAL);
    watch->on_change = changed;
    GT_CHECK(!gori_watch_is_active(watch));
    gori_watch_stop(watch);
    watch_directory(&place, &seen);
    GT_EQUAL(gori_watch_start_directory(loop, place.folder, watch), GORI_EBUSY);
    GT_EQUAL(gori_watch_start_file(loop, place_path(&place, "file"), watch), GORI_EBUSY);
    expect_nothing(&seen);
    place_remove(&place, "folder");
    expect(&seen, "deleted:folder");
    gori_watch_stop(watch);
    place_remove(&place, "file");
    place_close(&place);
    fixture_close(&fixture);
}

GT_TEST(a_stopped_watch_is_told_nothing)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen;
    fixture_open(&fixture);
    place_open(&fixture, &place);
    seen_init(&fixture, &seen);
    watch_directory(&place, &seen);
    place_write(&place, "a");
    place_write(&place, "b");
    gori_watch_stop(&seen.watch);
    fixture_settle(&fixture);
    GT_EQUAL_STRING(seen.words, "");
    /* Nor is one that starts afterwards told of what is still in a queue. */
    place_write(&place, "c");
    watch_directory(&place, &seen);
    place_write(&place, "d");
    gori_watch_stop(&seen.watch);
    watch_directory(&place, &seen);
    fixture_settle(&fixture);
    GT_EQUAL_STRING(seen.words, "");
    place_write(&place, "e");
    expect(&seen, "created:e");
    gori_watch_stop(&seen.watch);
    for (const char *name = "abcde"; *name != '\0'; name++) {
        place_remove(&place, (const char[]){*name, '\0'});
    }
    place_close(&place);
    fixture_close(&fixture);
}

/* A callback stops the watch it is called for, and others whose turn has not come. */
GT_TEST(a_watch_is_stopped_in_a_callback)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen seen[4];
    fixture_open(&fixture);
    place_open(&fixture, &place);
    for (int i = 0; i < 4; i++) {
        seen_init(&fixture, &seen[i]);
    }
    for (int i = 0; i < 3; i++) {
        watch_directory(&place, &seen[i]);
    }
    seen[0].stop = &seen[0].watch;
    seen[0].start = &seen[3];
    seen[0].start_path = place.folder;
    seen[1].stop = &seen[2].watch;
    place_write(&place, "a");
    FIXTURE_UNTIL(&fixture, has_word(&seen[1], "created:a"));
    fixture_settle(&fixture);
    GT_EQUAL_STRING(seen[0].words, "created:a ");
    GT_CHECK(!gori_watch_is_active(&seen[0].watch));
    GT_CHECK(!gori_watch_is_active(&seen[2].watch));
    GT_CHECK(gori_watch_is_active(&seen[3].watch));
    seen[0].words[0] = seen[1].words[0] = seen[2].words[0] = seen[3].words[0] = '\0';
    place_remove(&place, "a");
    expect(&seen[1], "deleted:a");
    expect(&seen[3], "deleted:a");
    GT_EQUAL_STRING(seen[0].words, "");
    GT_EQUAL_STRING(seen[2].words, "");
    /* The last watch of a place, with more to tell. */
    gori_watch_stop(&seen[3].watch);
    seen[1].stop = &seen[1].watch;
    place_write(&place, "a");
    place_rename(&place, "a", "b");
    place_remove(&place, "b");
    FIXTURE_UNTIL(&fixture, place_is_looked_at(&fixture) || seen[1].words[0] != '\0');
    fixture_settle(&fixture);
    gori_watch_stop(&seen[1].watch);
    place_close(&place);
    fixture_close(&fixture);
}

/* Who stops does not take the place away from who stays. */
GT_TEST(one_thing_is_watched_twice)
{
    struct fixture fixture = {0};
    struct place place;
    struct seen all[2];
    struct seen file;
    fixture_open(&fixture);
    place_open(&fixture, &place);
    seen_init(&fixture, &all[0]);
    seen_init(&fixture, &all[1]);
    seen_init(&fixture, &file);
    watch_directory(&place, &all[0]);
    watch_directory(&place, &all[1]);
    watch_file(&place, "a", &file);
    place_write(&place, "a");
    expect(&all[0], "created:a");
    expect(&all[1], "created:a");
    expect(&file, "created:a");
    gori_watch_stop(&all[0].watch);
    place_remove(&place, "a");
    expect(&all[1], "deleted:a");
    expect(&file, "deleted:a");
    expect_nothing(&all[0]);
    gori_watch_stop(&all[1].watch);
    place_write(&place, "a");
    expect(&file, "created:a");
    place_write(&place, "b");
    expect_nothing(&file);
    gori_watch_stop(&file.watch);
    place_remove(&place, "a");
    place_remove(&place, "b");
    place_close(&place);
    fixture_close(&fixture);
}

/* More than a queue of the system holds is told, and the watch goes on.  kqueue has no queue. */
GT_TEST(what_was_lost_is_told)
{
    enum { WRITES = 20000 };
    struct fixture fixture = {0};
    struct place place;
    struct seen seen[2];
    fixture_open(&fixture);
    place_open(&fixture, &place);
    place_write(&place, "a");
    place_write(&place, "b");
    seen_init(&fixture, &seen[0]);
    seen_init(&fixture, &seen[1]);
    watch_directory(&place, &seen[0]);
    watch_file(&place, "none", &seen[1]);
    /* By turns, so that no event is the like of the one before. */
    for (int i = 0; i < WRITES; i++) {
        place_write(&place, i % 2 == 0 ? "a" : "b");
    }
    unsigned wanted = place_is_looked_at(&fixture) ? 0 : place_is_windows(&fixture) ? 1 : 2;
    while (seen[0].lost + seen[1].lost < wanted) {
        seen[0].words[0] = '\0';
        fixture_turn(&fixture);
    }
    for (int i = 0; i < 200; i++) {
        seen[0].words[0] = '\0';
        GT_CHECK(gori_loop_turn(fixture.loop, 0) >= 0);
    }
    seen[0].words[0] = '\0';
    place_write(&place, "c");
    FIXTURE_UNTIL(&fixture, has_word(&seen[0], "created:c"));
    gori_watch_stop(&seen[0].watch);
    gori_watch_stop(&seen[1].watch);
    place_remove(&place, "a");
    place_remove(&place, "b");
    place_remove(&place, "c");
    place_close(&place);
    fixture_close(&fixture);
}

/* Each is told of its own; those that are still open end with the loop. */
GT_TEST(many_directories_are_watched)
{
    struct fixture fixture = {0};
    static struct place places[200];
    static struct seen seen[200];
    fixture_open(&fixture);
    /* The double takes a descriptor of a kind of which a user has few for each. */
    unsigned count = place_is_looked_at(&fixture) ? 10 : 200;
    for (unsigned i = 0; i < count; i++) {
        place_open(&fixture, &places[i]);
        seen_init(&fixture, &seen[i]);
        watch_directory(&places[i], &seen[i]);
    }
    for (unsigned i = 0; i < count; i += 3) {
        place_write(&places[i], "a");
    }
    for (unsigned i = 0; i < count; i += 3) {
        FIXTURE_UNTIL(&fixture, has_word(&seen[i], "created:a"));
    }
    fixture_settle(&fixture);
    for (unsigned i = 0; i < count; i++) {
        GT_EQUAL(seen[i].words[0] != '\0', i % 3 == 0);
        seen[i].words[0] = '\0';
    }
    for (unsigned i = 0; i < count; i += 2) {
        gori_watch_stop(&seen[i].watch);
    }
    for (unsigned i = 0; i < count; i += 3) {
        place_remove(&places[i], "a");
    }
    for (unsigned i = 3; i < count; i += 6) {
        FIXTURE_UNTIL(&fixture, has_word(&seen[i], "deleted:a"));
    }
    for (unsigned i = 0; i < count; i += 2) {
        GT_EQUAL_STRING(seen[i].words, "");
    }
    for (unsigned i = 0; i < count && fixture.sim != NULL; i++) {
        place_close(&places[i]);
    }
    struct gi_sim *sim = fixture.sim;
    fixture_close(&fixture);
    for (unsigned i = 0; i < count && sim == NULL; i++) {
        place_close(&places[i]);
    }
}
