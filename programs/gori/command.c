/* SPDX-License-Identifier: MIT */
/*
 * Command lines: options from a table, help from the same table.  Every complaint is one line that
 * names the option, what is wrong with it and what would be right.
 */
#include "command.h"

#include <errno.h>
#include <gori/engine.h>
#include <gori/error.h>
#include <gori/version.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line on standard error.  Result: the exit code of wrong usage. */
__attribute__((format(printf, 2, 3))) static int complain(const struct command *command,
                                                          const char *format, ...)
{
    va_list items;
    va_start(items, format);
    fprintf(stderr, "gori %s: ", command->name);
    vfprintf(stderr, format, items);
    fprintf(stderr, "; try 'gori %s --help'\n", command->name);
    va_end(items);
    return EXIT_USAGE;
}

static void print_help(const struct command *command)
{
    printf("gori %s: %s\n\nusage: gori %s%s%s [OPTIONS]\n\noptions:\n", command->name,
           command->summary, command->name, command->operand == NULL ? "" : " ",
           command->operand == NULL ? "" : command->operand);
    for (const struct option *option = command->options; option->name != NULL; option++) {
        char left[64];
        snprintf(left, sizeof(left), "%s %s", option->name,
                 option->argument == NULL ? "" : option->argument);
        printf("  %-26s %s\n", left, option->help);
    }
    printf("  %-26s %s\n  %-26s %s\n\nexamples:\n%s", "--help", "this text", "--version",
           "the version", command->examples);
}

static int read_count(const struct command *command, const struct option *option, const char *text)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value == 0 ||
        value > UINT32_MAX) {
        return complain(command, "%s wants a whole number from 1 on, not '%s'", option->name, text);
    }
    *(uint32_t *)option->target = (uint32_t)value;
    return PARSED;
}

static int read_bytes(const struct command *command, const struct option *option, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    unsigned shift = 0;
    if (*end != '\0') {
        const char *units = "kmg";
        const char *unit = strchr(units, *end | 0x20);
        shift = unit == NULL ? 64 : 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || shift == 64 ||
        value > (UINT64_MAX >> shift)) {
        return complain(command, "%s wants a number of bytes such as 4096, 64k or 16m, not '%s'",
                        option->name, text);
    }
    *(uint64_t *)option->target = (uint64_t)value << shift;
    return PARSED;
}

static int read_seconds(const struct command *command, const struct option *option,
                        const char *text)
{
    /* Whatever else strtod reads (0x10, 1e3) is more often a mistake than meant. */
    bool is_decimal = text[strspn(text, "0123456789.")] == '\0';
    char *end;
    double value = strtod(text, &end);
    if (*text < '0' || *text > '9' || !is_decimal || *end != '\0' || !(value <= 1e9)) {
        return complain(command, "%s wants seconds such as 0.5 or 30, not '%s'", option->name,
                        text);
    }
    /* A zero in a configuration would mean its default. */
    *(gori_time *)option->target = value == 0 ? GORI_NEVER : (gori_time)(value * 1e9);
    return PARSED;
}

/* Those of this system, for people. */
static void list_engines(char *text, size_t size)
{
    struct gori_engine_report report;
    snprintf(text, size, "auto");
    for (uint32_t i = 0; gori_engine_probe(i, &report) >= 0; i++) {
        size_t used = strlen(text);
        if (report.state != GORI_FEATURE_SYSTEM) {
            snprintf(text + used, size - used, ", %s", report.name);
        }
    }
}

/* `from` is what named the engine: an option, or the environment. */
static int check_engine(const struct command *command, const char *from, const char *name)
{
    bool found = strcmp(name, "auto") == 0;
    for (uint32_t i = 0; i < gori_engine_count(); i++) {
        found = found || strcmp(name, gori_engine_name(i)) == 0;
    }
    if (found) {
        return PARSED;
    }
    char known[128];
    list_engines(known, sizeof(known));
    return complain(command, "%s knows no engine '%s'; there are %s", from, name, known);
}

static int read_engine(const struct command *command, const struct option *option, const char *text)
{
    int result = check_engine(command, option->name, text);
    if (result == PARSED) {
        *(const char **)option->target = text;
    }
    return result;
}

static int read_policy(const struct command *command, const struct option *option, const char *text)
{
    static const char *const names[] = {
        [GORI_ACCEPT_KERNEL] = "kernel",
        [GORI_ACCEPT_LEAST] = "least-connections",
        [GORI_ACCEPT_ROUND_ROBIN] = "round-robin",
        [GORI_ACCEPT_SINGLE] = "single",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *(enum gori_accept_policy *)option->target = (enum gori_accept_policy)i;
            return PARSED;
        }
    }
    return complain(command, "%s is kernel, least-connections, round-robin or single, not '%s'",
                    option->name, text);
}

static int read_value(const struct command *command, const struct option *option, const char *text)
{
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)option->target = true;
        return PARSED;
    case OPTION_TEXT:
        *(const char **)option->target = text;
        return PARSED;
    case OPTION_COUNT:
        return read_count(command, option, text);
    case OPTION_BYTES:
        return read_bytes(command, option, text);
    case OPTION_SECONDS:
        return read_seconds(command, option, text);
    case OPTION_ENGINE:
        return read_engine(command, option, text);
    case OPTION_POLICY:
        return read_policy(command, option, text);
    case OPTION_ADDR:
        if (gori_addr_parse(text, option->target) < 0) {
            return complain(command,
                            "%s wants an address such as 127.0.0.1:8080, [::1]:8080, *:80 or "
                            "unix:/run/x.sock, not '%s'",
                            option->name, text);
        }
        return PARSED;
    }
    return EXIT_FAILED;
}

/* The option that `word` names, as "--name" or "--name=value"; `ret_value` points behind the '='.
 */
static const struct option *find_option(const struct command *command, const char *word,
                                        const char **ret_value)
{
    const char *equals = strchr(word, '=');
    size_t size = equals == NULL ? strlen(word) : (size_t)(equals - word);
    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (strlen(option->name) == size && memcmp(option->name, word, size) == 0) {
            *ret_value = equals == NULL ? NULL : equals + 1;
            return option;
        }
    }
    return NULL;
}

/* Reads the option at argv[*index], and its value, which may be the next word. */
static int read_option(const struct command *command, int argc, char **argv, int *index)
{
    const char *value = NULL;
    const struct option *option = find_option(command, argv[*index], &value);
    if (option == NULL) {
        return complain(command, "there is no option '%s'", argv[*index]);
    }
    if (option->kind == OPTION_FLAG) {
        if (value != NULL) {
            return complain(command, "%s takes no value", option->name);
        }
    } else if (value == NULL) {
        if (*index + 1 >= argc) {
            return complain(command, "%s wants a value, %s", option->name, option->argument);
        }
        value = argv[++*index];
    }
    return read_value(command, option, value);
}

int command_parse(const struct command *command, int argc, char **argv, const char **ret_operand)
{
    const char *operand = NULL;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help(command);
            return EXIT_DONE;
        }
        if (strcmp(word, "--version") == 0) {
            printf("gori %s\n", GORI_VERSION_TEXT);
            return EXIT_DONE;
        }
        if (word[0] == '-' && word[1] != '\0') {
            int result = read_option(command, argc, argv, &i);
            if (result != PARSED) {
                return result;
            }
        } else if (command->operand == NULL) {
            return complain(command, "it takes no '%s'", word);
        } else if (operand != NULL) {
            return complain(command, "one %s is enough, '%s' is too many", command->operand, word);
        } else {
            operand = word;
        }
    }
    if (command->operand != NULL && operand == NULL) {
        return complain(command, "%s is missing", command->operand);
    }
    const char *engine = getenv("GORI_ENGINE");
    if (engine != NULL && engine[0] != '\0') {
        int result = check_engine(command, "GORI_ENGINE", engine);
        if (result != PARSED) {
            return result;
        }
    }
    if (ret_operand != NULL) {
        *ret_operand = operand;
    }
    return PARSED;
}
