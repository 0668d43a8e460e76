/* SPDX-License-Identifier: MIT */
/*
 * The media type of a file by the extension of its name.  Nothing is guessed from its content.
 */
#ifndef GI_WEB_MIME_H
#define GI_WEB_MIME_H

#include <gori/base.h>

/**
 * The value of Content-Type for a file of that name; "application/octet-stream" when the extension
 * is unknown or missing.  Upper and lower case are the same.  Text types come with charset=utf-8.
 * Thread: any.  Memory: static text.
 */
const char *gi_web_mime_type(struct gori_slice name);

#endif
