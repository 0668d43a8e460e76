/* SPDX-License-Identifier: MIT */
/*
 * Which engine: by name, by GORI_ENGINE, or the best that this machine lets us have.  "auto" passes
 * over an engine only when the system does not have it or refuses it; running out of something is
 * an error, because a server that quietly became slower is found much later than one that did not
 * start. Thread: any.
 */
#include "engine/choose.h"

#include <gori/error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static const struct gi_engine_list build_list = {
    .impls = gi_system_engines,
    .absent = gi_absent_engines,
    .simulated = &gi_engine_sim,
};

static bool is_auto(const char *name)
{
    return name == NULL || name[0] == '\0' || strcmp(name, "auto") == 0;
}

static const struct gi_engine_impl *find(const struct gi_engine_list *list, const char *name)
{
    for (size_t i = 0; list->impls[i] != NULL; i++) {
        if (strcmp(list->impls[i]->name, name) == 0) {
            return list->impls[i];
        }
    }
    const struct gi_engine_impl *simulated = list->simulated;
    return simulated != NULL && strcmp(simulated->name, name) == 0 ? simulated : NULL;
}

static bool is_absent(const struct gi_engine_list *list, const char *name)
{
    const struct gi_engine_absent *absent = list->absent;
    while (absent != NULL && absent->name != NULL && strcmp(absent->name, name) != 0) {
        absent++;
    }
    return absent != NULL && absent->name != NULL;
}

/* Why the best engine was passed over, as a sentence that says what to do. */
static const char *reason_of(enum gori_feature_state state)
{
    switch (state) {
    case GORI_FEATURE_KERNEL:
        return "this kernel lacks what the io_uring engine needs; a newer one (6.1 or later) has "
               "it";
    case GORI_FEATURE_SECCOMP:
        return "a seccomp filter refuses io_uring; a container profile that allows "
               "io_uring_setup, io_uring_enter and io_uring_register lets it be used";
    case GORI_FEATURE_SYSCTL:
        return "the administrator has switched io_uring off; the sysctl "
               "kernel.io_uring_disabled=0 allows it";
    case GORI_FEATURE_MEMLOCK:
        return "the limit of locked memory is too small for io_uring; raise RLIMIT_MEMLOCK";
    case GORI_FEATURE_OPTION:
        return "io_uring is switched off by an option or the environment";
    case GORI_FEATURE_KNOWN_BAD:
        return "io_uring is known to be faulty in this kernel; update it";
    case GORI_FEATURE_USED:
    case GORI_FEATURE_UNNEEDED:
    case GORI_FEATURE_ERROR:
    case GORI_FEATURE_SYSTEM:
        break;
    }
    return "the system refused to set up io_uring; `gori doctor` shows what it said";
}

static bool is_refusal(int error)
{
    return error == GORI_ENOSYS || error == GORI_EPERM;
}

static const char *ask_reason(const struct gi_engine_impl *impl)
{
    struct gori_engine_report report = {0};
    impl->report(&report);
    return reason_of(report.state);
}

static int choose_best(const struct gi_engine_list *list, const struct gi_engine_config *config,
                       struct gi_engine_choice *ret_choice)
{
    struct gi_engine_choice choice = {0};
    int error = GORI_ENOSYS;
    for (size_t i = 0; list->impls[i] != NULL; i++) {
        const struct gi_engine_impl *impl = list->impls[i];
        error = impl->create(config, &choice.engine);
        if (error >= 0) {
            *ret_choice = choice;
            return 0;
        }
        if (!is_refusal(error)) {
            return error;
        }
        if (i == 0) {
            choice.fallback_reason = ask_reason(impl);
        }
    }
    return error;
}

int gi_engine_choose_from(const struct gi_engine_list *list, const char *name,
                          const struct gi_engine_config *config,
                          struct gi_engine_choice *ret_choice)
{
    if (is_auto(name)) {
        return choose_best(list, config, ret_choice);
    }
    const struct gi_engine_impl *impl = find(list, name);
    if (impl == NULL) {
        return is_absent(list, name) ? GORI_ENOSYS : GORI_EINVAL;
    }
    struct gi_engine_choice choice = {0};
    int error = impl->create(config, &choice.engine);
    if (error < 0) {
        return error;
    }
    *ret_choice = choice;
    return 0;
}

int gi_engine_choose(const char *name, const struct gi_engine_config *config,
                     struct gi_engine_choice *ret_choice)
{
    return gi_engine_choose_from(&build_list, is_auto(name) ? getenv("GORI_ENGINE") : name, config,
                                 ret_choice);
}

static uint32_t count_present(void)
{
    uint32_t count = 0;
    while (build_list.impls[count] != NULL) {
        count++;
    }
    return count;
}

static uint32_t count_absent(void)
{
    uint32_t count = 0;
    while (build_list.absent[count].name != NULL) {
        count++;
    }
    return count;
}

uint32_t gori_engine_count(void)
{
    return count_present() + count_absent();
}

const char *gori_engine_name(uint32_t index)
{
    uint32_t present = count_present();
    if (index < present) {
        return build_list.impls[index]->name;
    }
    return index < gori_engine_count() ? build_list.absent[index - present].name : NULL;
}

/* Who does file ops is told of every engine; one that has files of its own has said so. */
static void add_files(struct gori_engine_report *report)
{
    for (uint32_t i = 0; i < report->feature_count; i++) {
        if (strcmp(report->features[i].name, "files") == 0) {
            return;
        }
    }
    if (report->usable && report->feature_count < GORI_FEATURES_MAX) {
        report->features[report->feature_count++] = (struct gori_feature){
            .name = "files",
            .state = GORI_FEATURE_KERNEL,
            .text = "what is ready tells nothing of files: threads of a pool do their operations",
        };
    }
}

int gori_engine_probe(uint32_t index, struct gori_engine_report *ret_report)
{
    if (index >= gori_engine_count()) {
        return GORI_EINVAL;
    }
    uint32_t present = count_present();
    *ret_report = (struct gori_engine_report){.name = gori_engine_name(index)};
    if (index < present) {
        build_list.impls[index]->report(ret_report);
        add_files(ret_report);
        GI_ASSERT(ret_report->feature_count <= GORI_FEATURES_MAX);
    } else {
        ret_report->state = GORI_FEATURE_SYSTEM;
        (void)snprintf(ret_report->text, sizeof(ret_report->text), "%s",
                       build_list.absent[index - present].reason);
    }
    return 0;
}

const char *gori_feature_state_name(enum gori_feature_state state)
{
    switch (state) {
    case GORI_FEATURE_USED:
        return "used";
    case GORI_FEATURE_KERNEL:
        return "kernel";
    case GORI_FEATURE_SECCOMP:
        return "seccomp";
    case GORI_FEATURE_SYSCTL:
        return "sysctl";
    case GORI_FEATURE_MEMLOCK:
        return "memlock";
    case GORI_FEATURE_OPTION:
        return "option";
    case GORI_FEATURE_KNOWN_BAD:
        return "known-bad";
    case GORI_FEATURE_UNNEEDED:
        return "unneeded";
    case GORI_FEATURE_ERROR:
        return "error";
    case GORI_FEATURE_SYSTEM:
        return "system";
    }
    return "unknown";
}
