/* SPDX-License-Identifier: MIT */
/*
 * Where the memory of a runtime comes from: given once at creation, used for everything below it.
 * Stability: unstable until 1.0.
 */
#ifndef GORI_ALLOCATOR_H
#define GORI_ALLOCATOR_H

#include <gori/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A source of memory.  Both functions may be called from every thread that uses objects made with
 * it, at the same time.  The allocator must outlive all that was allocated from it.
 */
struct gori_allocator {
    /**
     * `size` bytes (> 0) aligned for any object, contents undefined; NULL when there is no memory.
     */
    void *(*alloc)(void *user, size_t size);
    /** Gives back `pointer` (never NULL); `size` is what was asked for when it was allocated. */
    void (*free)(void *user, void *pointer, size_t size);
    void *user;
};

/**
 * The allocator that the C library gives.  Used wherever an allocator argument is NULL.
 *
 * Thread: any.
 * Memory: static.
 */
GORI_API const struct gori_allocator *gori_allocator_default(void);

#ifdef __cplusplus
}
#endif

#endif
