/* SPDX-License-Identifier: MIT */
/*
 * Conformance of watches under random changes: whoever starts from a right picture of a directory,
 * and follows what he is told, has a right picture when all is quiet again.
 *
 * Method: folders with a few names each are changed at random, while watches of folders and of
 * files come and go.  Each watch keeps its own picture: which names are there.  LOST, and a start,
 * take it from the world.  Now and then everything stands still until all pictures are right; then
 * nothing more is told.  Random, but from a seed.
 */
#include <gori/watch.h>

#include "base/random.h"
#include "conformance/place.h"
#include "engine/sim/sim.h"

enum { PLACES = 3, NAMES = 5, WATCHES = 9, ROUNDS = 30, CHANGES = 12 };

struct world;

struct follower {
    struct world *world;
    struct gori_watch watch;
    int place;
    int file; /* a name, or -1 for the folder */
    bool is_there[NAMES];
};

struct world {
    struct fixture fixture;
    struct gi_random random;
    struct place places[PLACES];
    bool is_there[PLACES][NAMES];
    struct follower followers[WATCHES];
    unsigned told;
};

static int pick(struct world *world, int count)
{
    return (int)gi_random_below(&world->random, (uint64_t)count);
}

static const char *name_of(int name)
{
    static const char *const names[NAMES] = {"a", "b", "c", "d", "e"};
    return names[name];
}

static int index_of(const char *name)
{
    GT_CHECK(name[0] >= 'a' && name[0] < 'a' + NAMES && name[1] == '\0');
    return name[0] - 'a';
}

static void take_picture(struct follower *follower)
{
    memcpy(follower->is_there, follower->world->is_there[follower->place],
           sizeof(follower->is_there));
}

static bool is_right(const struct follower *follower)
{
    const bool *is_there = follower->world->is_there[follower->place];
    for (int i = 0; i < NAMES; i++) {
        bool matters = follower->file < 0 || follower->file == i;
        if (matters && follower->is_there[i] != is_there[i]) {
            return false;
        }
    }
    return true;
}

static void stop(struct follower *follower)
{
    gori_watch_stop(&follower->watch);
    GT_CHECK(!gori_watch_is_active(&follower->watch));
}

static void start(struct follower *follower)
{
    struct world *world = follower->world;
    struct gori_loop *loop = world->fixture.loop;
    follower->place = pick(world, PLACES);
    follower->file = pick(world, 2 * NAMES);
    struct place *place = &world->places[follower->place];
    int result;
    if (follower->file < NAMES) {
        const char *path = place_path(place, name_of(follower->file));
        result = gori_watch_start_file(loop, path, &follower->watch);
    } else {
        follower->file = -1;
        result = gori_watch_start_directory(loop, place->folder, &follower->watch);
    }
    GT_EQUAL(result, 0);
    take_picture(follower);
}

static void toggle(struct follower *follower)
{
    if (gori_watch_is_active(&follower->watch)) {
        stop(follower);
    } else {
        start(follower);
    }
}

static void changed(struct gori_watch *watch, const struct gori_change *change)
{
    struct follower *follower = watch->user;
    struct world *world = follower->world;
    GT_CHECK(gori_watch_is_active(watch));
    GT_CHECK(change->kind != GORI_CHANGE_GONE);
    world->told++;
    if (change->kind == GORI_CHANGE_LOST) {
        take_picture(follower);
        return;
    }
    int name = index_of(change->name);
    GT_CHECK(follower->file < 0 || follower->file == name);
    if (change->kind == GORI_CHANGE_RENAMED) {
        follower->is_there[index_of(change->from)] = false;
    }
    if (change->kind == GORI_CHANGE_RENAMED || change->kind == GORI_CHANGE_CREATED) {
        follower->is_there[name] = true;
    } else if (change->kind == GORI_CHANGE_DELETED) {
        follower->is_there[name] = false;
    }
    if (pick(world, 16) == 0) {
        toggle(&world->followers[pick(world, WATCHES)]);
    }
}

static void change_something(struct world *world)
{
    int from = pick(world, PLACES);
    int to = pick(world, 2) == 0 ? from : pick(world, PLACES);
    int name = pick(world, NAMES);
    int other = pick(world, NAMES);
    struct place *place = &world->places[from];
    bool *is_there = &world->is_there[from][name];
    if (!*is_there || pick(world, 4) == 0) {
        place_write(place, name_of(name));
        *is_there = true;
    } else if (pick(world, 3) == 0) {
        place_remove(place, name_of(name));
        *is_there = false;
    } else if (pick(world, 4) == 0) {
        place_touch(place, name_of(name));
    } else if (from != to || name != other) {
        place_rename_path(place, place_path(place, name_of(name)),
                          place_path(&world->places[to], name_of(other)));
        *is_there = false;
        world->is_there[to][other] = true;
    }
}

static bool all_right(const struct world *world)
{
    for (int i = 0; i < WATCHES; i++) {
        const struct follower *follower = &world->followers[i];
        if (gori_watch_is_active(&follower->watch) && !is_right(follower)) {
            return false;
        }
    }
    return true;
}

/* Until nothing more is told.  A picture may be right in passing, while more is on its way. */
static void let_settle(struct world *world)
{
    unsigned before;
    do {
        before = world->told;
        fixture_settle(&world->fixture);
        for (int i = 0; i < 50 && world->fixture.sim != NULL; i++) {
            fixture_turn(&world->fixture); /* its clock goes on only when a loop waits */
        }
    } while (world->told != before);
}

static void play_round(struct world *world)
{
    for (int i = 0; i < CHANGES; i++) {
        change_something(world);
        if (pick(world, 3) == 0) {
            GT_CHECK(gori_loop_turn(world->fixture.loop, 0) >= 0);
        }
        if (pick(world, 6) == 0) {
            toggle(&world->followers[pick(world, WATCHES)]);
        }
    }
    FIXTURE_UNTIL(&world->fixture, all_right(world));
    let_settle(world);
    GT_CHECK(all_right(world));
}

static void clean_up(struct world *world)
{
    for (int i = 0; i < PLACES; i++) {
        for (int name = 0; name < NAMES; name++) {
            if (world->is_there[i][name]) {
                place_remove(&world->places[i], name_of(name));
            }
        }
        place_close(&world->places[i]);
    }
}

static void play(uint64_t seed, const struct gi_sim_config *sim_config)
{
    static struct world world;
    memset(&world, 0, sizeof(world));
    gi_random_init(&world.random, seed);
    world.fixture.sim_config = sim_config;
    fixture_open(&world.fixture);
    for (int i = 0; i < PLACES; i++) {
        place_open(&world.fixture, &world.places[i]);
    }
    for (int i = 0; i < WATCHES; i++) {
        world.followers[i] = (struct follower){
            .world = &world, .watch.on_change = changed, .watch.user = &world.followers[i]};
        start(&world.followers[i]);
    }
    int rounds = place_is_looked_at(&world.fixture) ? ROUNDS / 4 : ROUNDS; /* the double is slow */
    for (int i = 0; i < rounds; i++) {
        play_round(&world);
    }
    GT_CHECK(world.told > (unsigned)rounds);
    for (int i = 0; i < WATCHES; i++) {
        stop(&world.followers[i]);
    }
    clean_up(&world);
    fixture_close(&world.fixture);
}

GT_TEST(who_follows_random_changes_has_a_right_picture)
{
    const char *text = getenv("GORI_TEST_SEED");
    uint64_t seed = text == NULL ? 1 : strtoull(text, NULL, 10);
    printf("GORI_TEST_SEED=%llu\n", (unsigned long long)seed);
    play(seed, NULL);
}

/* Looks that end too early, halves of renames apart, and queues that overflow. */
GT_TEST(who_follows_a_faulty_watcher_has_a_right_picture)
{
    const char *engine = getenv("GORI_TEST_ENGINE");
    if (engine == NULL || strcmp(engine, "sim") != 0) {
        return; /* the simulator's faults */
    }
    for (uint64_t seed = 1; seed <= 100; seed++) {
        const struct gi_sim_config config = {
            .seed = seed,
            .changes_max = seed % 2 == 0 ? 4 : 1000,
            .faults = {.short_look = 300, .late = 100, .late_submit = 100, .spurious = 100}};
        printf("seed %llu\n", (unsigned long long)seed);
        play(seed, &config);
    }
}
