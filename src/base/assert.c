/* SPDX-License-Identifier: MIT */
/*
 * The end of a process whose invariants are broken.
 *
 * Contract:
 *  1. One line goes to standard error: file, line, function, condition.
 *  2. The process then dies by SIGABRT, so that a core can be kept; no exit handler runs.
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void gi_assert_fail(const char *condition, const char *file, int line, const char *function)
{
    fprintf(stderr, "%s:%d: %s: broken invariant: %s\n", file, line, function, condition);
    fflush(stderr);
    abort();
}
