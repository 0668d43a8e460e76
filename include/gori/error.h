/* SPDX-License-Identifier: MIT */
/*
 * The one table of errors: value, name, text and category of everything a gori function can answer.
 * Values are gori's own, the same on every system; what the system said is translated in src/os and
 * nowhere else.  A fallible function returns >= 0 for success and one of these for failure.
 * Stability: values are never reused or renumbered; new ones are added at the end.
 */
#ifndef GORI_ERROR_H
#define GORI_ERROR_H

#include <gori/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a caller can do about an error; the only question most callers ask. */
enum gori_category {
    GORI_CATEGORY_NONE,     /* no error */
    GORI_CATEGORY_AGAIN,    /* nothing is wrong: try again later */
    GORI_CATEGORY_CLOSED,   /* it is over: ended by the peer, by us or by a timeout */
    GORI_CATEGORY_REFUSED,  /* what was named or sent is not acceptable, or is not there */
    GORI_CATEGORY_IO,       /* the network or a device failed */
    GORI_CATEGORY_RESOURCE, /* something has run out */
    GORI_CATEGORY_USAGE,    /* the caller asked for what cannot be asked */
    GORI_CATEGORY_BUG       /* gori or the system broke its own rules */
};

/** The table: X(name, value, text, category). */
#define GORI_ERROR_MAP(X)                                                                          \
    X(GORI_EINVAL, -1, "invalid argument", GORI_CATEGORY_USAGE)                                    \
    X(GORI_ENOMEM, -2, "out of memory", GORI_CATEGORY_RESOURCE)                                    \
    X(GORI_EBUSY, -3, "the object is already in use", GORI_CATEGORY_USAGE)                         \
    X(GORI_ELIMIT, -4, "a configured limit is reached", GORI_CATEGORY_AGAIN)                       \
    X(GORI_EAGAIN, -5, "not possible now, try again", GORI_CATEGORY_AGAIN)                         \
    X(GORI_ECANCELED, -6, "canceled", GORI_CATEGORY_CLOSED)                                        \
    X(GORI_ETIMEDOUT, -7, "timed out", GORI_CATEGORY_CLOSED)                                       \
    X(GORI_ECLOSED, -8, "the object is closing or closed", GORI_CATEGORY_CLOSED)                   \
    X(GORI_ESTALE, -9, "the id no longer names anything", GORI_CATEGORY_CLOSED)                    \
    X(GORI_EEOF, -10, "end of data", GORI_CATEGORY_CLOSED)                                         \
    X(GORI_ECONNREFUSED, -11, "connection refused", GORI_CATEGORY_REFUSED)                         \
    X(GORI_ECONNRESET, -12, "connection reset by the peer", GORI_CATEGORY_CLOSED)                  \
    X(GORI_ECONNABORTED, -13, "connection aborted", GORI_CATEGORY_CLOSED)                          \
    X(GORI_EPIPE, -14, "the peer no longer reads", GORI_CATEGORY_CLOSED)                           \
    X(GORI_EADDRINUSE, -15, "address already in use", GORI_CATEGORY_REFUSED)                       \
    X(GORI_EADDRNOTAVAIL, -16, "address not available", GORI_CATEGORY_REFUSED)                     \
    X(GORI_EACCESS, -17, "access denied", GORI_CATEGORY_REFUSED)                                   \
    X(GORI_EPERM, -18, "operation not permitted", GORI_CATEGORY_REFUSED)                           \
    X(GORI_EMFILE, -19, "too many open files in this process", GORI_CATEGORY_RESOURCE)             \
    X(GORI_ENFILE, -20, "too many open files in the system", GORI_CATEGORY_RESOURCE)               \
    X(GORI_ENOBUFS, -21, "no buffer space available", GORI_CATEGORY_RESOURCE)                      \
    X(GORI_EHOSTUNREACH, -22, "host unreachable", GORI_CATEGORY_IO)                                \
    X(GORI_ENETUNREACH, -23, "network unreachable", GORI_CATEGORY_IO)                              \
    X(GORI_ENOTFOUND, -24, "not found", GORI_CATEGORY_REFUSED)                                     \
    X(GORI_EEXIST, -25, "already exists", GORI_CATEGORY_REFUSED)                                   \
    X(GORI_EISDIR, -26, "is a directory", GORI_CATEGORY_REFUSED)                                   \
    X(GORI_ENOTDIR, -27, "not a directory", GORI_CATEGORY_REFUSED)                                 \
    X(GORI_ENOSPC, -28, "no space left on the device", GORI_CATEGORY_RESOURCE)                     \
    X(GORI_EIO, -29, "input or output error", GORI_CATEGORY_IO)                                    \
    X(GORI_ETRUNCATED, -30, "shorter than promised", GORI_CATEGORY_IO)                             \
    X(GORI_ENOTSUP, -31, "not supported", GORI_CATEGORY_USAGE)                                     \
    X(GORI_ENOSYS, -32, "the system does not have it", GORI_CATEGORY_USAGE)                        \
    X(GORI_EPROTO, -33, "protocol error", GORI_CATEGORY_REFUSED)                                   \
    X(GORI_EMSGSIZE, -34, "message too large", GORI_CATEGORY_REFUSED)                              \
    X(GORI_ELOOP, -35, "too many symbolic links", GORI_CATEGORY_REFUSED)                           \
    X(GORI_ENAMETOOLONG, -36, "name too long", GORI_CATEGORY_REFUSED)                              \
    X(GORI_EWRONGTHREAD, -37, "called on the wrong thread", GORI_CATEGORY_USAGE)                   \
    X(GORI_EXDEV, -38, "crosses a boundary of file systems or roots", GORI_CATEGORY_REFUSED)       \
    X(GORI_EUNKNOWN, -39, "unknown error", GORI_CATEGORY_BUG)

/** The errors by name; the text in the table above says what each means. */
enum gori_error {
#define GORI_ERROR_ENUM(name, value, text, category) name = value,
    GORI_ERROR_MAP(GORI_ERROR_ENUM)
#undef GORI_ERROR_ENUM
};

/**
 * The name of an error as it is spelled in code, "GORI_EINVAL"; "GORI_EUNKNOWN" for a value that is
 * not in the table, "OK" for one that is not an error.
 *
 * Thread: any.
 * Memory: static text.
 */
GORI_API const char *gori_error_name(int error);

/**
 * The text of an error in English, lower case, without a full stop.  Unknown values give the text
 * of GORI_EUNKNOWN, values >= 0 give "success".
 *
 * Thread: any.
 * Memory: static text.
 */
GORI_API const char *gori_error_text(int error);

/**
 * The category of an error; GORI_CATEGORY_NONE for values >= 0, GORI_CATEGORY_BUG for unknown ones.
 *
 * Thread: any.
 */
GORI_API enum gori_category gori_error_category(int error);

#ifdef __cplusplus
}
#endif

#endif
