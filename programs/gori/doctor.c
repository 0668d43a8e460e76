/* SPDX-License-Identifier: MIT */
/*
 * gori doctor: what this machine gives, what is used, what is not and why, for people and, with
 * --json, for machines.  It changes nothing.
 */
#include <gori/engine.h>
#include <gori/error.h>
#include <gori/loop.h>
#include <gori/version.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "system.h"

#define ENGINES_MAX 8

struct findings {
    struct system_description system;
    struct system_limit limits[SYSTEM_LIMITS];
    struct gori_engine_report engines[ENGINES_MAX];
    uint32_t engine_count;
    char chosen[32]; /* empty when there is none */
    char reason[256];
};

/* What `auto` takes here: asked by letting it choose. */
static void choose(struct findings *findings)
{
    struct gori_loop *loop;
    int result = gori_loop_create(NULL, &loop);
    if (result < 0) {
        snprintf(findings->reason, sizeof(findings->reason), "no loop can be made: %s (%s)",
                 gori_error_text(result), gori_error_name(result));
        return;
    }
    snprintf(findings->chosen, sizeof(findings->chosen), "%s", gori_loop_engine(loop));
    const char *reason = gori_loop_engine_reason(loop);
    const char *forced = getenv("GORI_ENGINE");
    if (reason != NULL) {
        snprintf(findings->reason, sizeof(findings->reason), "%s", reason);
    } else if (forced != NULL && forced[0] != '\0') {
        snprintf(findings->reason, sizeof(findings->reason), "GORI_ENGINE=%s asks for it", forced);
    } else {
        snprintf(findings->reason, sizeof(findings->reason), "the best that works here");
    }
    gori_loop_destroy(loop);
}

static struct findings examine(void)
{
    struct findings findings = {0};
    system_describe(&findings.system);
    system_limits(findings.limits);
    while (findings.engine_count < ENGINES_MAX &&
           gori_engine_probe(findings.engine_count, &findings.engines[findings.engine_count]) >=
               0) {
        findings.engine_count++;
    }
    choose(&findings);
    return findings;
}

static void print_limit_value(uint64_t value)
{
    if (value == UINT64_MAX) {
        printf("unlimited");
    } else {
        printf("%" PRIu64, value);
    }
}

static void print_features(const struct gori_engine_report *engine)
{
    for (uint32_t i = 0; i < engine->feature_count; i++) {
        const struct gori_feature *feature = &engine->features[i];
        printf("    %-24s %-10s %s\n", feature->name, gori_feature_state_name(feature->state),
               feature->text);
    }
}

static void print_for_people(const struct findings *findings)
{
    printf("gori %s on %s %s, %s, %ld CPUs\n\n", GORI_VERSION_TEXT, findings->system.name,
           findings->system.release, findings->system.machine, findings->system.cpus);
    if (findings->chosen[0] == '\0') {
        printf("engine: none works; %s\n", findings->reason);
    } else {
        printf("engine: %s (%s)\n", findings->chosen, findings->reason);
    }
    printf("\nlimits:\n");
    for (size_t i = 0; i < sizeof(findings->limits) / sizeof(findings->limits[0]); i++) {
        const struct system_limit *limit = &findings->limits[i];
        printf("    %-24s ", limit->name);
        print_limit_value(limit->soft);
        printf(" of ");
        print_limit_value(limit->hard);
        printf("; %s\n", limit->text);
    }
    printf("\nengines:\n");
    for (uint32_t i = 0; i < findings->engine_count; i++) {
        const struct gori_engine_report *engine = &findings->engines[i];
        printf("  %s: %s%s%s\n", engine->name, engine->usable ? "usable" : "not usable",
               engine->text[0] == '\0' ? "" : "; ", engine->text);
        print_features(engine);
    }
}

static void print_json_text(const char *text)
{
    putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            printf("\\%c", *at);
        } else if (*at < 0x20) {
            printf("\\u%04x", *at);
        } else {
            putchar(*at);
        }
    }
    putchar('"');
}

static void print_json_member(const char *before, const char *name, const char *text)
{
    printf("%s\"%s\": ", before, name);
    print_json_text(text);
}

static void print_json_limit(const struct system_limit *limit)
{
    printf("{\"name\": \"%s\", \"soft\": ", limit->name);
    printf(limit->soft == UINT64_MAX ? "null" : "%" PRIu64, limit->soft);
    printf(", \"hard\": ");
    printf(limit->hard == UINT64_MAX ? "null" : "%" PRIu64, limit->hard);
    printf("}");
}

static void print_json_engine(const struct gori_engine_report *engine)
{
    print_json_member("{", "name", engine->name);
    printf(", \"usable\": %s", engine->usable ? "true" : "false");
    print_json_member(", ", "state", gori_feature_state_name(engine->state));
    print_json_member(", ", "text", engine->text);
    printf(", \"features\": [");
    for (uint32_t i = 0; i < engine->feature_count; i++) {
        const struct gori_feature *feature = &engine->features[i];
        printf("%s\n    ", i == 0 ? "" : ",");
        print_json_member("{", "name", feature->name);
        print_json_member(", ", "state", gori_feature_state_name(feature->state));
        print_json_member(", ", "text", feature->text);
        printf("}");
    }
    printf("]}");
}

static void print_for_machines(const struct findings *findings)
{
    print_json_member("{", "gori", GORI_VERSION_TEXT);
    print_json_member(",\n ", "system", findings->system.name);
    print_json_member(", ", "kernel", findings->system.release);
    print_json_member(", ", "machine", findings->system.machine);
    printf(", \"cpus\": %ld", findings->system.cpus);
    print_json_member(",\n ", "engine", findings->chosen);
    print_json_member(", ", "reason", findings->reason);
    printf(",\n \"limits\": [");
    for (size_t i = 0; i < sizeof(findings->limits) / sizeof(findings->limits[0]); i++) {
        printf("%s", i == 0 ? "" : ", ");
        print_json_limit(&findings->limits[i]);
    }
    printf("],\n \"engines\": [");
    for (uint32_t i = 0; i < findings->engine_count; i++) {
        printf("%s\n  ", i == 0 ? "" : ",");
        print_json_engine(&findings->engines[i]);
    }
    printf("]}\n");
}

int command_doctor(int argc, char **argv)
{
    bool json = false;
    const struct command command = {
        .name = "doctor",
        .summary = "what this machine gives, what is used, what is not and why",
        .examples = "  gori doctor\n"
                    "  gori doctor --json | python3 -m json.tool\n"
                    "  GORI_ENGINE=epoll gori doctor\n",
        .options = {{"--json", NULL, "print JSON", OPTION_FLAG, &json}}};
    int result = command_parse(&command, argc, argv, NULL);
    if (result != PARSED) {
        return result;
    }
    const struct findings findings = examine();
    if (json) {
        print_for_machines(&findings);
    } else {
        print_for_people(&findings);
    }
    return findings.chosen[0] == '\0' || fflush(stdout) != 0 ? EXIT_FAILED : EXIT_DONE;
}
