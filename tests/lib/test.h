/* SPDX-License-Identifier: MIT */
/*
 * The test library: one header, no dependency.
 *
 *     GT_TEST(parser_refuses_nul) { GT_EQUAL(parse("\0", 1), GORI_EPROTO); }
 *     GT_MAIN()
 *
 *  1. Every test runs in a process of its own with a timeout (60 s), so one that crashes or hangs
 *     is one failure, not the end of the run.  All that is particular to processes is in
 *     process_posix.h and process_windows.h.
 *  2. A failed check prints file:line and ends its test.  Checks work on any thread of the test and
 *     never compile out.
 *  3. A test that returns leaves by exit(), so that the leak sanitizer looks; what processes it
 *     started are killed.
 *  4. Each program answers to:  --list   --timeout=SECONDS   --no-fork   NAME...
 *     Exit status: 0 all passed or skipped, 1 something failed, 2 wrong usage.
 */
#ifndef GT_TEST_H
#define GT_TEST_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<sys/wait.h>)
#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#endif

#define GT_STATUS_FAILED  1
#define GT_STATUS_SKIPPED 77

typedef void gt_test_fn(void);

struct gt_test {
    const char *name;
    gt_test_fn *run;
    struct gt_test *next;
};

struct gt_state {
    struct gt_test *first;
    struct gt_test **tail;
    unsigned timeout_seconds;
    bool no_fork;
    bool is_child;        /* where processes do not fork: run one test, say nothing of it */
    unsigned dies_wanted; /* and in it the statement of this GT_DIES, counted from 1; or 0 */
    unsigned dies_count;
    const char *running; /* the test */
};

/* One for all files of a test program. */
#ifdef __declspec
__declspec(selectany) struct gt_state gt_state = {0};
#else
__attribute__((weak)) struct gt_state gt_state;
#endif

/** Defines a test; its body follows. */
#define GT_TEST(test_name)                                                                         \
    static void gt_run_##test_name(void);                                                          \
    __attribute__((constructor)) static void gt_register_##test_name(void)                         \
    {                                                                                              \
        static struct gt_test test = {.name = #test_name, .run = gt_run_##test_name};              \
        gt_register(&test);                                                                        \
    }                                                                                              \
    static void gt_run_##test_name(void)

/** Defines main. */
#define GT_MAIN()                                                                                  \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return gt_main(argc, argv);                                                                \
    }

/** The condition holds. */
#define GT_CHECK(condition) ((condition) ? (void)0 : gt_fail(__FILE__, __LINE__, #condition))

/** Two integers, or values that convert to them, are equal; both are printed when not. */
#define GT_EQUAL(a, b)                                                                             \
    gt_equal(__FILE__, __LINE__, #a " == " #b, (unsigned long long)(a), (unsigned long long)(b))

/** Two terminated strings are equal; NULL equals NULL only. */
#define GT_EQUAL_STRING(a, b) gt_equal_string(__FILE__, __LINE__, #a " == " #b, (a), (b))

/** Two runs of bytes are equal in size and content. */
#define GT_EQUAL_BYTES(a, a_size, b, b_size)                                                       \
    gt_equal_bytes(__FILE__, __LINE__, #a " == " #b, (a), (a_size), (b), (b_size))

/**
 * Ends the test as skipped: what it needs is impossible on this machine.  Never for convenience.
 */
#define GT_SKIP(reason) gt_skip(__FILE__, __LINE__, (reason))

/** The statement aborts: the way to test an assertion.  It runs in a process of its own. */
#define GT_DIES(statement)                                                                         \
    do {                                                                                           \
        int gt_pid = gt_fork_silently();                                                           \
        if (gt_pid == 0) {                                                                         \
            statement;                                                                             \
            _exit(0);                                                                              \
        }                                                                                          \
        gt_died(__FILE__, __LINE__, #statement, gt_pid);                                           \
    } while (0)

__attribute__((noreturn)) static inline void gt_leave(int status)
{
    fflush(NULL);
    _exit(status);
}

__attribute__((noreturn, cold)) static inline void gt_fail(const char *file, int line,
                                                           const char *what)
{
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    gt_leave(GT_STATUS_FAILED);
}

__attribute__((noreturn, cold)) static inline void gt_skip(const char *file, int line,
                                                           const char *reason)
{
    printf("%s:%d: skipped: %s\n", file, line, reason);
    gt_leave(GT_STATUS_SKIPPED);
}

static inline void gt_equal(const char *file, int line, const char *what, unsigned long long a,
                            unsigned long long b)
{
    if (a != b) {
        fprintf(stderr, "%s:%d: left %lld (0x%llx), right %lld (0x%llx)\n", file, line,
                (long long)a, a, (long long)b, b);
        gt_fail(file, line, what);
    }
}

static inline void gt_equal_string(const char *file, int line, const char *what, const char *a,
                                   const char *b)
{
    bool equal = a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
    if (!equal) {
        fprintf(stderr, "%s:%d: left \"%s\"\n%s:%d: right \"%s\"\n", file, line,
                a != NULL ? a : "(null)", file, line, b != NULL ? b : "(null)");
        gt_fail(file, line, what);
    }
}

static inline void gt_print_bytes(const char *side, const unsigned char *bytes, size_t size,
                                  size_t from)
{
    size_t end = size - from > 32 ? from + 32 : size;
    fprintf(stderr, "  %s, %zu bytes, from %zu:", side, size, from);
    for (size_t i = from; i < end; i++) {
        fprintf(stderr, " %02x", bytes[i]);
    }
    fprintf(stderr, "%s\n", end < size ? " ..." : "");
}

static inline void gt_equal_bytes(const char *file, int line, const char *what, const void *a,
                                  size_t a_size, const void *b, size_t b_size)
{
    const unsigned char *left = (const unsigned char *)a;
    const unsigned char *right = (const unsigned char *)b;
    size_t common = a_size < b_size ? a_size : b_size;
    size_t at = 0;
    while (at < common && left[at] == right[at]) {
        at++;
    }
    if (at < a_size || at < b_size) {
        fprintf(stderr, "%s:%d: bytes differ at %zu\n", file, line, at);
        gt_print_bytes("left", left, a_size, at);
        gt_print_bytes("right", right, b_size, at);
        gt_fail(file, line, what);
    }
}

static inline void gt_register(struct gt_test *test)
{
    if (gt_state.tail == NULL) {
        gt_state.tail = &gt_state.first;
    }
    *gt_state.tail = test;
    gt_state.tail = &test->next;
}

#if __has_include(<sys/wait.h>)
#include "lib/process_posix.h"
#else
#include "lib/process_windows.h"
#endif

static inline int gt_run_one(const struct gt_test *test)
{
    char reason[128] = "a check failed";
    int status = 0;
    double start = gt_now_seconds();
    gt_state.running = test->name;
    if (gt_state.is_child) {
        test->run();
        exit(0);
    }
    if (gt_state.no_fork) {
        test->run();
    } else {
        status = gt_run_apart(test, gt_state.timeout_seconds, reason, sizeof(reason));
    }
    double milliseconds = (gt_now_seconds() - start) * 1e3;
    if (status == 0) {
        printf("PASS %s (%.0f ms)\n", test->name, milliseconds);
    } else if (status == GT_STATUS_SKIPPED) {
        printf("SKIP %s\n", test->name);
    } else {
        printf("FAIL %s (%.0f ms): %s\n", test->name, milliseconds, reason);
    }
    fflush(stdout);
    return status;
}

static inline bool gt_is_wanted(const struct gt_test *test, int argc, char **argv)
{
    bool any_name = false;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            any_name = true;
            if (strcmp(argv[i], test->name) == 0) {
                return true;
            }
        }
    }
    return !any_name;
}

static inline bool gt_is_known(const char *name)
{
    for (const struct gt_test *test = gt_state.first; test != NULL; test = test->next) {
        if (strcmp(name, test->name) == 0) {
            return true;
        }
    }
    return false;
}

/* Reads the options; answers -1 to go on, else the status to leave with. */
static inline int gt_read_options(int argc, char **argv)
{
    gt_state.timeout_seconds = 60;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--list") == 0) {
            for (const struct gt_test *test = gt_state.first; test != NULL; test = test->next) {
                printf("%s\n", test->name);
            }
            return 0;
        }
        if (strcmp(option, "--no-fork") == 0) {
            gt_state.no_fork = true;
        } else if (strncmp(option, "--child=", 8) == 0) {
            gt_state.is_child = true;
            gt_state.dies_wanted = (unsigned)strtoul(option + 8, NULL, 10);
        } else if (strncmp(option, "--timeout=", 10) == 0 && strtoul(option + 10, NULL, 10) > 0) {
            gt_state.timeout_seconds = (unsigned)strtoul(option + 10, NULL, 10);
        } else if (option[0] == '-' || !gt_is_known(option)) {
            fprintf(stderr, "unknown test or option: %s\n", option);
            fprintf(stderr, "usage: %s [--list] [--timeout=SECONDS] [--no-fork] [NAME...]\n",
                    argv[0]);
            return 2;
        }
    }
    return -1;
}

static inline int gt_main(int argc, char **argv)
{
    int leave = gt_read_options(argc, argv);
    if (leave >= 0) {
        return leave;
    }
    unsigned passed_count = 0;
    unsigned failed_count = 0;
    unsigned skipped_count = 0;
    for (const struct gt_test *test = gt_state.first; test != NULL; test = test->next) {
        if (!gt_is_wanted(test, argc, argv)) {
            continue;
        }
        int status = gt_run_one(test);
        passed_count += status == 0;
        skipped_count += status == GT_STATUS_SKIPPED;
        failed_count += status != 0 && status != GT_STATUS_SKIPPED;
    }
    printf("%u passed, %u failed, %u skipped\n", passed_count, failed_count, skipped_count);
    return failed_count > 0 ? 1 : 0;
}

#endif
