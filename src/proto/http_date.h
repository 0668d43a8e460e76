/* SPDX-License-Identifier: MIT */
/*
 * Dates of HTTP, to and from seconds since 1970-01-01T00:00:00Z.  No clock: now is an argument.
 *
 * Thread: any.
 * Reading: RFC 9110 5.6.7.
 */
#ifndef GI_PROTO_HTTP_DATE_H
#define GI_PROTO_HTTP_DATE_H

#include <gori/base.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
#define GI_HTTP_DATE_SIZE 29

/** What can be written: years 0000 to 9999. */
#define GI_HTTP_DATE_SECONDS_MIN (-INT64_C(62167219200))
#define GI_HTTP_DATE_SECONDS_MAX INT64_C(253402300799)

/**
 * Writes the 29 bytes of the preferred form, not terminated.  Seconds beyond the years that can be
 * written are taken as the nearest that can.
 */
void gi_http_date_format(int64_t seconds, uint8_t *ret_text);

/**
 * Reads any of the three forms: the preferred one, that of RFC 850, whose two digits of a year mean
 * the one at most fifty years after `now_seconds`, and that of asctime().  Returns 0, or -1 when
 * `text` is none of them; the day of the week must be a name and is not checked against the date.
 */
GORI_MUST_USE int gi_http_date_parse(struct gori_slice text, int64_t now_seconds,
                                     int64_t *ret_seconds);

#endif
