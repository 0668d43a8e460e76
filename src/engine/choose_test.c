/* SPDX-License-Identifier: MIT */
/*
 * The choice of an engine over made-up ones that refuse, fail or work.
 */
#include "lib/test.h"

#include <gori/error.h>
#include <stdlib.h>
#include <string.h>

#include "engine/choose.h"

static struct gi_engine made;

static int refuse(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    (void)config;
    (void)ret_engine;
    return GORI_EPERM;
}

static int miss(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    (void)config;
    (void)ret_engine;
    return GORI_ENOSYS;
}

static int run_out(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    (void)config;
    (void)ret_engine;
    return GORI_EMFILE;
}

static int work(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    (void)config;
    *ret_engine = &made;
    return 0;
}

static void report_seccomp(struct gori_engine_report *ret_report)
{
    ret_report->state = GORI_FEATURE_SECCOMP;
}

static void report_kernel(struct gori_engine_report *ret_report)
{
    ret_report->state = GORI_FEATURE_KERNEL;
}

static const struct gi_engine_impl refusing = {
    .name = "refusing", .create = refuse, .report = report_seccomp};
static const struct gi_engine_impl missing = {
    .name = "missing", .create = miss, .report = report_kernel};
static const struct gi_engine_impl starving = {.name = "starving", .create = run_out};
static const struct gi_engine_impl working = {.name = "working", .create = work};
static const struct gi_engine_impl simulated = {.name = "sim", .create = work};

static int choose(const struct gi_engine_impl *first, const struct gi_engine_impl *second,
                  const char *name, struct gi_engine_choice *ret_choice)
{
    const struct gi_engine_impl *const impls[] = {first, second, NULL};
    struct gi_engine_list list = {.impls = impls, .simulated = &simulated};
    struct gi_engine_config config = {0};
    return gi_engine_choose_from(&list, name, &config, ret_choice);
}

GT_TEST(choose_takes_the_best)
{
    static const char *const names[] = {NULL, "", "auto"};
    for (size_t i = 0; i < 3; i++) {
        struct gi_engine_choice choice = {0};
        GT_EQUAL(choose(&working, &starving, names[i], &choice), 0);
        GT_CHECK(choice.engine == &made);
        GT_CHECK(choice.fallback_reason == NULL);
    }
}

GT_TEST(choose_passes_over_refusals_and_says_why)
{
    struct gi_engine_choice choice = {0};
    GT_EQUAL(choose(&refusing, &working, NULL, &choice), 0);
    GT_CHECK(choice.engine == &made);
    GT_CHECK(strstr(choice.fallback_reason, "seccomp") != NULL);
    GT_EQUAL(choose(&missing, &working, NULL, &choice), 0);
    GT_CHECK(strstr(choice.fallback_reason, "kernel") != NULL);
}

/* Running out of something is an error, not a reason for a slower engine. */
GT_TEST(choose_does_not_hide_a_lack)
{
    struct gi_engine_choice choice = {0};
    GT_EQUAL(choose(&starving, &working, NULL, &choice), GORI_EMFILE);
    GT_EQUAL(choose(&refusing, &starving, NULL, &choice), GORI_EMFILE);
    GT_EQUAL(choose(&missing, &refusing, NULL, &choice), GORI_EPERM);
    GT_CHECK(choice.engine == NULL);
}

GT_TEST(choose_by_name_means_that_one)
{
    struct gi_engine_choice choice = {0};
    GT_EQUAL(choose(&refusing, &working, "refusing", &choice), GORI_EPERM);
    GT_EQUAL(choose(&refusing, &working, "nonsense", &choice), GORI_EINVAL);
    GT_CHECK(choice.engine == NULL);
    GT_EQUAL(choose(&refusing, &working, "working", &choice), 0);
    GT_CHECK(choice.fallback_reason == NULL);
    GT_EQUAL(choose(&refusing, &working, "sim", &choice), 0);
}

/* The least of this system, which is to be had on every machine. */
static const struct gi_engine_impl *last_of_system(void)
{
    size_t count = 0;
    while (gi_system_engines[count + 1] != NULL) {
        count++;
    }
    return gi_system_engines[count];
}

GT_TEST(choose_looks_at_the_environment)
{
    const struct gi_engine_impl *last = last_of_system();
    struct gi_buffers buffers;
    struct gi_engine_choice choice = {0};
    struct gi_engine_config config = {.buffers = &buffers};
    GT_EQUAL(gi_buffers_init(&buffers, NULL, 512, 1), 0);
    GT_EQUAL(setenv("GORI_ENGINE", last->name, 1), 0);
    GT_EQUAL(gi_engine_choose(NULL, &config, &choice), 0);
    GT_CHECK(choice.engine->impl == last);
    choice.engine->impl->destroy(choice.engine);
    GT_EQUAL(setenv("GORI_ENGINE", "nonsense", 1), 0);
    GT_EQUAL(gi_engine_choose("auto", &config, &choice), GORI_EINVAL);
    GT_EQUAL(gi_engine_choose(last->name, &config, &choice), 0);
    choice.engine->impl->destroy(choice.engine);
}

GT_TEST(choose_by_name_of_another_system_is_not_a_wrong_name)
{
    struct gi_engine_config config = {0};
    struct gi_engine_choice choice = {0};
    GT_EQUAL(gi_engine_choose(gi_absent_engines[0].name, &config, &choice), GORI_ENOSYS);
    GT_CHECK(choice.engine == NULL);
}

/* What `gori doctor` asks: every engine of every system has a name, a state and a sentence, and
   those of this one come first. */
GT_TEST(choose_probes_every_engine)
{
    static const char *const names[] = {"io_uring", "epoll", "kqueue", "poll", "select", "iocp"};
    static struct gori_engine_report report;
    uint32_t found = 0;
    bool is_elsewhere = false;
    GT_EQUAL(gori_engine_count(), sizeof(names) / sizeof(names[0]));
    for (uint32_t i = 0; i < gori_engine_count(); i++) {
        GT_EQUAL(gori_engine_probe(i, &report), 0);
        GT_EQUAL_STRING(report.name, gori_engine_name(i));
        GT_CHECK(report.text[0] != '\0');
        GT_EQUAL(report.usable, report.state == GORI_FEATURE_USED);
        GT_CHECK(!is_elsewhere || report.state == GORI_FEATURE_SYSTEM);
        is_elsewhere = report.state == GORI_FEATURE_SYSTEM;
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            found |= strcmp(report.name, names[j]) == 0 ? 1u << j : 0;
        }
        for (uint32_t j = 0; j < report.feature_count; j++) {
            GT_CHECK(report.features[j].name != NULL);
            GT_CHECK(report.features[j].text[0] != '\0');
        }
    }
    GT_EQUAL(found, (1u << sizeof(names) / sizeof(names[0])) - 1);
    GT_CHECK(gori_engine_name(gori_engine_count()) == NULL);
    GT_EQUAL(gori_engine_probe(gori_engine_count(), &report), GORI_EINVAL);
}

GT_TEST(choose_names_every_state)
{
    for (int i = GORI_FEATURE_USED; i <= GORI_FEATURE_SYSTEM; i++) {
        const char *name = gori_feature_state_name((enum gori_feature_state)i);
        GT_CHECK(strcmp(name, "unknown") != 0);
    }
    GT_EQUAL_STRING(gori_feature_state_name((enum gori_feature_state)77), "unknown");
}

GT_MAIN()
