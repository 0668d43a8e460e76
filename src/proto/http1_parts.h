/* SPDX-License-Identifier: MIT */
/*
 * What the files of the HTTP/1 head parser say to each other.  Not for anybody else.
 *
 * Thread: that of the parser.
 */
#ifndef GI_PROTO_HTTP1_PARTS_H
#define GI_PROTO_HTTP1_PARTS_H

#include "proto/http1.h"

/** The method with that text. */
enum gi_http1_method gi_http1_method_find(struct gori_slice text);

/** Sorts out head->target, once method and version are known.  Returns 0 or a reason. */
GORI_MUST_USE int gi_http1_target_read(struct gi_http1_head *head, const uint8_t *data);

/** Whether `text` is `host` or `host:port` as RFC 3986 has it, and not empty. */
bool gi_http1_host_valid(struct gori_slice text, bool port_required);

/** The known field of that name. */
enum gi_http1_field gi_http1_field_find(struct gori_slice name);

/** Takes the header just read, headers[header_count], into account.  Returns 0 or a reason. */
GORI_MUST_USE int gi_http1_field_read(struct gi_http1_parser *parser, const uint8_t *data);

/** The checks that need all headers.  Returns 0 or a reason. */
GORI_MUST_USE int gi_http1_fields_finish(struct gi_http1_parser *parser);

/** Whether `text` equals `lower`, which is in lower case, in any case. */
bool gi_http1_equals(struct gori_slice text, const char *lower);

#endif
