/* SPDX-License-Identifier: MIT */
/*
 * From the path of a request target to the path of a file below a root: decoded once, normalised,
 * and refused where two readers could see two paths.  Not a defence by itself: symbolic links and
 * the file system are the business of who opens it.
 *
 * Thread: any.
 * Reading: RFC 3986 2.1 and 6.2.2.
 */
#ifndef GI_PROTO_HTTP_PATH_H
#define GI_PROTO_HTTP_PATH_H

#include <gori/base.h>

/**
 * Decodes `path` into `ret_path` of `capacity` bytes and returns the size written (1 at least), or
 * a reason (GI_HTTP1_E_PATH_..., < 0).  The result starts with a slash, is not terminated, never
 * has an empty, `.` or `..` segment, a control byte, NUL or a backslash, and ends with a slash
 * exactly when the path meant a folder.  An empty path (of an absolute target) is `/`.
 *
 * `ret_path` may hold anything after a failure.  It never needs more than path.size + 1 bytes.
 */
GORI_MUST_USE int gi_http_path_decode(struct gori_slice path, uint8_t *ret_path, size_t capacity);

#endif
