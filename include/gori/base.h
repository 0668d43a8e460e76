/* SPDX-License-Identifier: MIT */
/*
 * The small words every other header is written in: export and must-use marks, time, byte slices,
 * and the links that embeddable objects carry.  Stability: unstable until 1.0.
 */
#ifndef GORI_BASE_H
#define GORI_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define GORI_API      __attribute__((visibility("default")))
#define GORI_MUST_USE __attribute__((warn_unused_result))
#else
#define GORI_API
#define GORI_MUST_USE
#endif

/** The object of type `type` whose member `member` is at `pointer`. */
#define gori_container_of(pointer, type, member)                                                   \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/** Time: nanoseconds of a monotonic clock, or a span of it.  GORI_NEVER is after all others. */
typedef uint64_t gori_time;

#define GORI_NEVER        UINT64_MAX
#define GORI_MICROSECONDS ((gori_time)1000)
#define GORI_MILLISECONDS ((gori_time)1000000)
#define GORI_SECONDS      ((gori_time)1000000000)

/** Bytes that somebody else owns; valid for as long as the text beside it says.  Not terminated. */
struct gori_slice {
    const uint8_t *data;
    size_t size; /* bytes */
};

/** Room for bytes, to be filled by somebody else. */
struct gori_room {
    uint8_t *data;
    size_t size; /* bytes */
};

/** A link of an intrusive list.  Private: embed it, never touch it. */
struct gori_link {
    struct gori_link *next;
    struct gori_link *prev;
};

/** An entry of a loop's timing wheel.  Private: it is embedded in `struct gori_timer`. */
struct gori_wheel_entry {
    struct gori_link link;
    gori_time deadline; /* absolute */
    uint32_t slot;      /* 1 + level * 64 + index while it is in the wheel, 0 when it is not */
};

/** What a mailbox chains its messages by.  Private: it is embedded in `struct gori_task`. */
struct gori_mailbox_node {
    struct gori_mailbox_node *next;
};

#endif
