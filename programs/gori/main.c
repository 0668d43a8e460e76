/* SPDX-License-Identifier: MIT */
/*
 * gori: one program, one file per subcommand.  This file finds the subcommand.
 */
#include <errno.h>
#include <fcntl.h>
#include <gori/version.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "system.h"

struct subcommand {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
};

static const struct subcommand subcommands[] = {
    {"doctor", "what this machine gives, what is used, what is not and why", command_doctor},
    {"echo", "a server that sends back what it gets", command_echo},
    {"serve", "a web server for the files of a folder", command_serve},
};

enum { SUBCOMMAND_COUNT = sizeof(subcommands) / sizeof(subcommands[0]) };

static void print_help(void)
{
    printf("gori %s: network servers on io_uring, and on what else there is\n\n"
           "usage: gori COMMAND [OPTIONS]\n\ncommands:\n",
           GORI_VERSION_TEXT);
    for (int i = 0; i < SUBCOMMAND_COUNT; i++) {
        printf("  %-8s %s\n", subcommands[i].name, subcommands[i].summary);
    }
    printf("\n'gori COMMAND --help' explains a command, with examples.\n"
           "'gori --version' prints the version.\n");
}

/* A descriptor of ours in the place of a closed standard one would get what is meant for people: a
 * client, say, an error message. */
static void fill_standard_descriptors(void)
{
    int descriptor;
    do {
        descriptor = open("/dev/null", O_RDWR);
    } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor >= 0) {
        close(descriptor);
    }
}

static int run_command(int argc, char **argv)
{
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help();
        return EXIT_DONE;
    }
    if (strcmp(name, "--version") == 0) {
        printf("gori %s\n", GORI_VERSION_TEXT);
        return EXIT_DONE;
    }
    for (int i = 0; i < SUBCOMMAND_COUNT; i++) {
        if (strcmp(name, subcommands[i].name) == 0) {
            return subcommands[i].run(argc - 2, argv + 2);
        }
    }
    fprintf(stderr, "gori: there is no command '%s'; try 'gori --help'\n", name);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    fill_standard_descriptors();
    if (!system_read_arguments(&argc, &argv)) {
        fprintf(stderr, "gori: an argument is no text\n");
        return EXIT_USAGE;
    }
    if (argc < 2) {
        fprintf(stderr, "gori: a command is missing; try 'gori --help'\n");
        return EXIT_USAGE;
    }
    int code = run_command(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "gori: cannot write to standard output: %s\n", strerror(errno));
        return code == EXIT_DONE ? EXIT_FAILED : code;
    }
    return code;
}
