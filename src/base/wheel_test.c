/* SPDX-License-Identifier: MIT */
/*
 * The timing wheel against a model: an array that is searched from end to end.
 */
#include "base/list.h"
#include "base/random.h"
#include "base/wheel.h"
#include "lib/test.h"

#define TICK ((gori_time)1 << GI_WHEEL_TICK_BITS)

static unsigned count_links(struct gori_link *list)
{
    unsigned count = 0;
    GI_LIST_FOREACH (link, list) {
        count++;
    }
    return count;
}

/* Advances and answers how many expired; they are unlinked. */
static unsigned advance(struct gi_wheel *wheel, gori_time now)
{
    struct gori_link expired;
    gi_list_init(&expired);
    gi_wheel_advance(wheel, now, &expired);
    unsigned count = count_links(&expired);
    while (gi_list_pop_front(&expired) != NULL) {
    }
    return count;
}

static gori_time round_up(gori_time deadline)
{
    return deadline > UINT64_MAX - TICK ? UINT64_MAX : (deadline + TICK - 1) & ~(TICK - 1);
}

GT_TEST(wheel_is_empty_at_first)
{
    struct gi_wheel wheel;
    struct gori_wheel_entry entry = {0};
    gi_wheel_init(&wheel, 12345);
    GT_CHECK(gi_wheel_is_empty(&wheel));
    GT_EQUAL(gi_wheel_next(&wheel), GORI_NEVER);
    GT_EQUAL(advance(&wheel, 99999999), 0);
    gi_wheel_stop(&wheel, &entry);
    GT_CHECK(!gi_wheel_is_started(&entry));
}

/* To the nanosecond, within one tick and at its edges. */
GT_TEST(wheel_is_never_early_and_never_late)
{
    static const gori_time deadlines[] = {1,
                                          2,
                                          TICK - 1,
                                          TICK,
                                          TICK + 1,
                                          2 * TICK,
                                          63 * TICK,
                                          64 * TICK,
                                          64 * TICK + 1,
                                          4096 * TICK,
                                          4096 * TICK - 1,
                                          4097 * TICK + 77,
                                          (gori_time)1 << 40,
                                          (gori_time)1 << 63,
                                          UINT64_MAX - TICK,
                                          UINT64_MAX - TICK + 1,
                                          UINT64_MAX - 1};
    for (size_t i = 0; i < GI_ARRAY_COUNT(deadlines); i++) {
        struct gi_wheel wheel;
        struct gori_wheel_entry entry = {0};
        gi_wheel_init(&wheel, 0);
        gi_wheel_start(&wheel, &entry, deadlines[i]);
        GT_CHECK(gi_wheel_is_started(&entry));
        GT_EQUAL(advance(&wheel, deadlines[i] - 1), 0);
        GT_CHECK(gi_wheel_next(&wheel) <= round_up(deadlines[i]));
        GT_EQUAL(advance(&wheel, deadlines[i]), 1);
        GT_CHECK(!gi_wheel_is_started(&entry));
        GT_CHECK(gi_wheel_is_empty(&wheel));
    }
}

GT_TEST(wheel_fires_the_past_at_the_next_advance)
{
    struct gi_wheel wheel;
    struct gori_wheel_entry entries[3] = {{.slot = 0}};
    gi_wheel_init(&wheel, 1000 * TICK);
    gi_wheel_start(&wheel, &entries[0], 0);
    gi_wheel_start(&wheel, &entries[1], 1000 * TICK);
    gi_wheel_start(&wheel, &entries[2], 1000 * TICK + 1);
    GT_EQUAL(gi_wheel_next(&wheel), 0);
    GT_EQUAL(advance(&wheel, 1000 * TICK), 2);
    GT_EQUAL(gi_wheel_next(&wheel), 1001 * TICK);
    gi_wheel_start(&wheel, &entries[0], 5);
    gi_wheel_stop(&wheel, &entries[0]);
    GT_EQUAL(advance(&wheel, 1000 * TICK + 1), 1);
    GT_CHECK(gi_wheel_is_empty(&wheel));
}

GT_TEST(wheel_does_not_keep_never)
{
    struct gi_wheel wheel;
    struct gori_wheel_entry entry = {0};
    gi_wheel_init(&wheel, 0);
    gi_wheel_start(&wheel, &entry, GORI_NEVER);
    GT_CHECK(!gi_wheel_is_started(&entry));
    GT_CHECK(gi_wheel_is_empty(&wheel));
    gi_wheel_start(&wheel, &entry, 5);
    gi_wheel_start(&wheel, &entry, GORI_NEVER);
    GT_CHECK(gi_wheel_is_empty(&wheel));
    GT_EQUAL(advance(&wheel, UINT64_MAX), 0);
    gi_wheel_start(&wheel, &entry, GORI_NEVER);
    GT_EQUAL(advance(&wheel, UINT64_MAX), 0);
}

/* Near the end of time there is no tick to round up to; nothing is early, and nothing spins. */
GT_TEST(wheel_works_to_the_end_of_time)
{
    struct gi_wheel wheel;
    struct gori_wheel_entry entries[2] = {{.slot = 0}};
    gi_wheel_init(&wheel, UINT64_MAX - 10);
    gi_wheel_start(&wheel, &entries[0], UINT64_MAX - 1);
    gi_wheel_start(&wheel, &entries[1], UINT64_MAX - 5);
    GT_EQUAL(gi_wheel_next(&wheel), UINT64_MAX - 5);
    GT_EQUAL(advance(&wheel, UINT64_MAX - 6), 0);
    GT_EQUAL(advance(&wheel, UINT64_MAX - 5), 1);
    GT_EQUAL(gi_wheel_next(&wheel), UINT64_MAX - 1);
    GT_EQUAL(advance(&wheel, UINT64_MAX - 2), 0);
    GT_EQUAL(advance(&wheel, UINT64_MAX), 1);
    gi_wheel_start(&wheel, &entries[0], UINT64_MAX - 1);
    GT_EQUAL(advance(&wheel, UINT64_MAX), 1);
}

GT_TEST(wheel_takes_no_step_back)
{
    struct gi_wheel wheel;
    struct gori_wheel_entry entry = {0};
    gi_wheel_init(&wheel, 10 * TICK);
    GT_EQUAL(advance(&wheel, 20 * TICK), 0);
    gi_wheel_start(&wheel, &entry, 15 * TICK);
    GT_EQUAL(advance(&wheel, 5 * TICK), 1);
    gi_wheel_start(&wheel, &entry, 20 * TICK + 1);
    GT_EQUAL(advance(&wheel, 5 * TICK), 0);
    GT_EQUAL(advance(&wheel, 20 * TICK + 1), 1);
}

/* Entries of one tick come in order of start, also when some of them were dealt down from above. */
GT_TEST(wheel_keeps_the_order_of_start_within_a_tick)
{
    struct gi_wheel wheel;
    struct gori_wheel_entry entries[4] = {{.slot = 0}};
    struct gori_link expired;
    gori_time deadline = 5000 * TICK;
    gi_list_init(&expired);
    gi_wheel_init(&wheel, 0);
    gi_wheel_start(&wheel, &entries[0], deadline);
    gi_wheel_start(&wheel, &entries[1], deadline - 1);
    GT_EQUAL(advance(&wheel, 4990 * TICK), 0);
    gi_wheel_start(&wheel, &entries[2], deadline - 2);
    gi_wheel_start(&wheel, &entries[3], 4999 * TICK);
    gi_wheel_advance(&wheel, 6000 * TICK, &expired);
    static const int order[] = {3, 0, 1, 2};
    for (size_t i = 0; i < GI_ARRAY_COUNT(order); i++) {
        GT_CHECK(gi_list_pop_front(&expired) == &entries[order[i]].link);
    }
}

/* Whoever handles an expired entry may stop or restart others of the same batch. */
GT_TEST(wheel_lets_the_expired_be_stopped_and_restarted)
{
    struct gi_wheel wheel;
    struct gori_wheel_entry entries[3] = {{.slot = 0}};
    struct gori_link expired;
    gi_list_init(&expired);
    gi_wheel_init(&wheel, 0);
    for (int i = 0; i < 3; i++) {
        gi_wheel_start(&wheel, &entries[i], TICK);
    }
    gi_wheel_advance(&wheel, TICK, &expired);
    GT_EQUAL(count_links(&expired), 3);
    gi_wheel_stop(&wheel, &entries[1]);
    gi_wheel_start(&wheel, &entries[2], 3 * TICK);
    GT_CHECK(gi_list_pop_front(&expired) == &entries[0].link);
    GT_CHECK(gi_list_is_empty(&expired));
    GT_EQUAL(advance(&wheel, 2 * TICK), 0);
    GT_EQUAL(advance(&wheel, 3 * TICK), 1);
}

/*
 * Put off again and again, as idle timers are: it fires at the last deadline, from wherever it was.
 */
GT_TEST(wheel_puts_off)
{
    static const gori_time spans[] = {1,         TICK - 1,    TICK,
                                      70 * TICK, 5000 * TICK, (gori_time)1 << 50};
    for (size_t i = 0; i < GI_ARRAY_COUNT(spans); i++) {
        struct gi_wheel wheel;
        struct gori_wheel_entry entry = {0};
        gori_time now = 100 * TICK;
        gi_wheel_init(&wheel, now);
        for (int step = 0; step < 100; step++) {
            gi_wheel_start(&wheel, &entry, now + spans[i]);
            now += spans[i] - spans[i] / 4 - 1;
            GT_EQUAL(advance(&wheel, now), 0);
            GT_CHECK(gi_wheel_next(&wheel) > now);
        }
        gori_time deadline = entry.deadline;
        gi_wheel_start(&wheel, &entry, deadline + 3 * spans[i]);
        gi_wheel_start(&wheel, &entry, deadline + spans[i]);
        GT_EQUAL(advance(&wheel, deadline + spans[i] - 1), 0);
        GT_EQUAL(advance(&wheel, deadline + spans[i]), 1);
        GT_CHECK(gi_wheel_is_empty(&wheel));
    }
}

/* Waiting for next and advancing gets to any deadline in at most one turn a level and one more. */
GT_TEST(wheel_next_does_not_spin)
{
    struct gi_random random;
    gi_random_init(&random, 5);
    for (int round = 0; round < 2000; round++) {
        struct gi_wheel wheel;
        struct gori_wheel_entry entry = {0};
        gori_time now = gi_random_next(&random) >> gi_random_below(&random, 64);
        gori_time deadline = now + (gi_random_next(&random) >> gi_random_below(&random, 64));
        if (deadline < now || deadline == GORI_NEVER) {
            continue;
        }
        gi_wheel_init(&wheel, now);
        gi_wheel_start(&wheel, &entry, deadline);
        unsigned turn_count = 0;
        while (!gi_wheel_is_empty(&wheel)) {
            gori_time next = gi_wheel_next(&wheel);
            GT_CHECK(next > now || deadline <= now);
            GT_CHECK(next <= round_up(deadline));
            now = next > now ? next : now;
            GT_EQUAL(advance(&wheel, now), now >= deadline);
            turn_count++;
        }
        GT_CHECK(turn_count <= GI_WHEEL_LEVEL_COUNT);
    }
}

#define MODEL_COUNT 64

struct model_timer {
    struct gori_wheel_entry entry;
    bool started;
    bool restarted; /* while it was started */
    gori_time deadline;
    gori_time due_from; /* the deadline, or the time of the start if that was later */
    uint64_t start_number;
};

struct model {
    struct gi_wheel wheel;
    struct gi_random random;
    gori_time now;
    uint64_t start_count;
    struct model_timer timers[MODEL_COUNT];
};

/* Ticks as the wheel counts them: by their ends; the last one has none. */
static uint64_t model_tick(gori_time deadline)
{
    uint64_t tick = deadline / TICK + (deadline % TICK != 0);
    return tick > UINT64_MAX / TICK ? UINT64_MAX / TICK : tick;
}

static gori_time random_span(struct gi_random *random)
{
    return gi_random_next(random) >> gi_random_below(random, 64);
}

static void model_start(struct model *model, struct model_timer *timer)
{
    gori_time deadline = model->now + random_span(&model->random);
    if (gi_random_chance(&model->random, 1, 8)) {
        deadline = model->now - random_span(&model->random);
    }
    gi_wheel_start(&model->wheel, &timer->entry, deadline);
    timer->restarted = timer->started;
    timer->started = deadline != GORI_NEVER;
    timer->deadline = deadline;
    timer->due_from = deadline < model->now ? model->now : deadline;
    timer->start_number = model->start_count++;
}

static void model_stop(struct model *model, struct model_timer *timer)
{
    gi_wheel_stop(&model->wheel, &timer->entry);
    timer->started = false;
}

static gori_time model_earliest(const struct model *model)
{
    gori_time earliest = GORI_NEVER;
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        const struct model_timer *timer = &model->timers[i];
        if (timer->started && timer->deadline < earliest) {
            earliest = timer->deadline;
        }
    }
    return earliest;
}

/* Whether `a` may come out before `b` when both do: see contract 4. */
static bool may_come_before(const struct model_timer *a, const struct model_timer *b,
                            gori_time before)
{
    bool a_due = a->due_from <= before;
    bool b_due = b->due_from <= before;
    if (a_due != b_due) {
        return a_due;
    }
    uint64_t a_tick = a_due ? 0 : model_tick(a->deadline);
    uint64_t b_tick = b_due ? 0 : model_tick(b->deadline);
    if (a_tick != b_tick) {
        return a_tick < b_tick;
    }
    return a->start_number < b->start_number || (!a_due && (a->restarted || b->restarted));
}

static void model_advance(struct model *model, gori_time now)
{
    struct gori_link expired;
    gori_time before = model->now;
    struct model_timer *last = NULL;
    gi_list_init(&expired);
    gi_wheel_advance(&model->wheel, now, &expired);
    model->now = now;
    struct gori_link *link;
    while ((link = gi_list_pop_front(&expired)) != NULL) {
        struct model_timer *timer = gori_container_of(link, struct model_timer, entry.link);
        GT_CHECK(timer->started);
        GT_CHECK(timer->deadline <= now);
        GT_CHECK(last == NULL || may_come_before(last, timer, before));
        timer->started = false;
        last = timer;
    }
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        const struct model_timer *timer = &model->timers[i];
        GT_CHECK(!timer->started || timer->deadline > now);
        GT_EQUAL(gi_wheel_is_started(&timer->entry), timer->started);
    }
}

static void model_step(struct model *model)
{
    size_t index = (size_t)gi_random_below(&model->random, MODEL_COUNT);
    struct model_timer *timer = &model->timers[index];
    uint64_t choice = gi_random_below(&model->random, 10);
    if (choice < 5) {
        model_start(model, timer);
    } else if (choice < 7) {
        model_stop(model, timer);
    } else {
        gori_time earliest = model_earliest(model);
        gori_time next = gi_wheel_next(&model->wheel);
        GT_EQUAL(next == GORI_NEVER, earliest == GORI_NEVER);
        GT_CHECK(earliest <= model->now ? next == 0 : next > model->now);
        GT_CHECK(earliest <= model->now || next <= round_up(earliest));
        gori_time now = choice == 7 ? gi_max_u64(next, model->now)
                                    : model->now + random_span(&model->random) / 2;
        if (now >= model->now && now != GORI_NEVER) {
            model_advance(model, now);
        }
    }
}

/* From many places in time, the end included, with jumps from 1 ns to centuries. */
GT_TEST(wheel_agrees_with_a_model)
{
    static struct model model;
    for (uint64_t seed = 0; seed < 400; seed++) {
        memset(&model, 0, sizeof(model));
        gi_random_init(&model.random, seed);
        model.now = random_span(&model.random);
        if (seed % 4 == 0) {
            model.now = UINT64_MAX - 1 - (model.now >> 24);
        }
        gi_wheel_init(&model.wheel, model.now);
        for (int step = 0; step < 300; step++) {
            model_step(&model);
        }
    }
}

GT_MAIN()
