/* SPDX-License-Identifier: MIT */
/*
 * The program that the cases of processes run: does what its arguments say.
 *
 *   exit N      returns N                    signal N    ends itself by a signal
 *   cat         copies input to output       hang        waits until it is ended
 *   say TEXT    writes TEXT to output        complain T  writes T to the third stream
 *   env NAME    writes a variable            cwd         writes the folder it is in
 *   count       writes how many descriptors it has, and how many signals are blocked or ignored
 *   arguments   writes all that follows, one to a line
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/child.h"

static void put(int fd, const char *text)
{
    size_t size = strlen(text);
    if (child_write(fd, text, (int)size) != (int)size) {
        exit(99);
    }
}

static int cat(void)
{
    static char bytes[65536];
    for (;;) {
        int got = child_read(bytes, sizeof(bytes));
        if (got <= 0) {
            return got == 0 ? 0 : 98;
        }
        for (int done = 0; done < got;) {
            int written = child_write(1, bytes + done, got - done);
            if (written <= 0) {
                return 97;
            }
            done += written;
        }
    }
}

static void count(void)
{
    char line[64];
    (void)snprintf(line, sizeof(line), "%d %d", child_descriptors(), child_spoilt_signals());
    put(1, line);
}

static void hang(void)
{
    put(1, "here");
    child_sleep();
}

int main(int argc, char **argv)
{
    static char path[4096];
    const char *verb = argc > 1 ? argv[1] : "";
    const char *object = argc > 2 ? argv[2] : "";
    child_prepare();
    if (strcmp(verb, "exit") == 0) {
        return (int)strtol(object, NULL, 10);
    }
    if (strcmp(verb, "signal") == 0) {
        (void)raise((int)strtol(object, NULL, 10));
        return 96;
    }
    if (strcmp(verb, "cat") == 0) {
        return cat();
    }
    if (strcmp(verb, "hang") == 0) {
        hang();
    }
    if (strcmp(verb, "say") == 0) {
        put(1, object);
    } else if (strcmp(verb, "complain") == 0) {
        put(2, object);
    } else if (strcmp(verb, "env") == 0) {
        const char *value = getenv(object);
        put(1, value != NULL ? value : "(none)");
    } else if (strcmp(verb, "cwd") == 0) {
        put(1, child_folder(path, sizeof(path)) ? path : "(none)");
    } else if (strcmp(verb, "count") == 0) {
        count();
    } else if (strcmp(verb, "arguments") == 0) {
        for (int i = 2; i < argc; i++) {
            put(1, argv[i]);
            put(1, "\n");
        }
    } else {
        return 95;
    }
    return 0;
}
