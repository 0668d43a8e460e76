/* SPDX-License-Identifier: MIT */
/*
 * Tests that are the same on several engines: the body follows the macro, is given the engine's
 * name in `engine`, and runs once for each.  One that cannot be had here is the body's to skip.
 */
#ifndef GT_ENGINES_H
#define GT_ENGINES_H

#include "lib/test.h"

#if __has_include(<sys/epoll.h>)
#define GT_RUN_ON_SYSTEM(name)                                                                     \
    GT_TEST(name##_epoll)                                                                          \
    {                                                                                              \
        name("epoll");                                                                             \
    }                                                                                              \
    GT_TEST(name##_io_uring)                                                                       \
    {                                                                                              \
        name("io_uring");                                                                          \
    }
#else
#define GT_RUN_ON_SYSTEM(name)                                                                     \
    GT_TEST(name##_iocp)                                                                           \
    {                                                                                              \
        name("iocp");                                                                              \
    }
#endif

/** On the native engines of this system. */
#define GT_TEST_ON_SYSTEM(name)                                                                    \
    static void name(const char *engine);                                                          \
    GT_RUN_ON_SYSTEM(name)                                                                         \
    static void name(const char *engine)

/** On those and in the simulated world. */
#define GT_TEST_ON_ALL(name)                                                                       \
    static void name(const char *engine);                                                          \
    GT_TEST(name##_sim)                                                                            \
    {                                                                                              \
        name("sim");                                                                               \
    }                                                                                              \
    GT_RUN_ON_SYSTEM(name)                                                                         \
    static void name(const char *engine)

#endif
