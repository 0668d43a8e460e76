/* SPDX-License-Identifier: MIT */
/*
 * Assertions: silent when they hold, fatal when not, in every build.
 */
#include "base/assert.h"
#include "lib/test.h"

GT_TEST(assert_that_holds_does_nothing)
{
    int evaluated_count = 0;
    GI_ASSERT(++evaluated_count == 1);
    GT_EQUAL(evaluated_count, 1);
}

GT_TEST(assert_that_fails_aborts)
{
    int one = 1;
    GT_DIES(GI_ASSERT(one == 2));
}

/* GI_DASSERT must cost nothing where it is off: not even the evaluation of its condition. */
GT_TEST(dassert_follows_the_build)
{
    int evaluated_count = 0;
    GI_DASSERT(++evaluated_count > 0);
#ifdef NDEBUG
    GT_EQUAL(evaluated_count, 0);
#else
    GT_EQUAL(evaluated_count, 1);
    GT_DIES(GI_DASSERT(evaluated_count == 0));
#endif
}

/* What was violated and where goes to standard error. */
GT_TEST(assert_says_what_and_where)
{
    int pipe_fds[2];
    GT_EQUAL(pipe(pipe_fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    GT_CHECK(pid >= 0);
    if (pid == 0) {
        GT_CHECK(dup2(pipe_fds[1], STDERR_FILENO) == STDERR_FILENO);
        gi_assert_fail("water == wet", "pond.c", 42, "swim");
    }
    close(pipe_fds[1]);
    char text[256];
    ssize_t size = read(pipe_fds[0], text, sizeof(text) - 1);
    GT_CHECK(size > 0);
    text[size] = '\0';
    GT_EQUAL_STRING(text, "pond.c:42: swim: broken invariant: water == wet\n");
    GT_EQUAL(waitpid(pid, NULL, 0), pid);
    close(pipe_fds[0]);
}

GT_MAIN()
