/* SPDX-License-Identifier: MIT */
/*
 * Assertions about our own invariants.  They are on in release builds too: a server that continues
 * with a broken invariant answers one client with the data of another.  What a peer, a file or a
 * configuration says never trips one; that is an error value.
 *
 * GI_ASSERT   always on; cheap conditions, one fact each.
 * GI_DASSERT  debug builds only; conditions that cost (walks of lists, checks in hot inner loops).
 */
#ifndef GI_BASE_ASSERT_H
#define GI_BASE_ASSERT_H

#include "base/compiler.h"

#define GI_ASSERT(condition)                                                                       \
    (GI_LIKELY(condition) ? (void)0 : gi_assert_fail(#condition, __FILE__, __LINE__, __func__))

#ifdef NDEBUG
#define GI_DASSERT(condition) ((void)sizeof((condition) ? 1 : 0))
#else
#define GI_DASSERT(condition) GI_ASSERT(condition)
#endif

/** Writes what was violated and where to standard error and aborts. */
GI_NORETURN GI_COLD void gi_assert_fail(const char *condition, const char *file, int line,
                                        const char *function);

#endif
