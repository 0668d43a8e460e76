/* SPDX-License-Identifier: MIT */
/*
 * The access log of `gori serve`: one line a request, in the combined format that every log tool
 * reads.  Each worker gathers whole lines and appends them once a second, or sooner when there are
 * many; nothing is shared between workers but the file.  What cannot be written is lost, said once
 * on standard error, and serving goes on; a line that was cut off is ended before the next one.
 * Thread: that of the worker, but for open and close.
 */
#ifndef GORI_PROGRAM_ACCESS_LOG_H
#define GORI_PROGRAM_ACCESS_LOG_H

#include <gori/loop.h>
#include <gori/timer.h>
#include <gori/web/server.h>
#include <stdbool.h>

#define ACCESS_LOG_BYTES 32768

/** One worker's end of the log.  Zero it before access_log_start. */
struct access_log {
    struct gori_loop *loop;
    struct gori_timer timer; /* active while something waits */
    int descriptor;
    bool failing; /* and said so */
    bool torn;    /* the last line that was written is not whole */
    int64_t date_seconds;
    char date[32];
    size_t size;
    char text[ACCESS_LOG_BYTES];
};

/** Opens a file for appending; "-" is standard output.  Result: a descriptor, or -1 and errno. */
int access_log_open(const char *name);

void access_log_start(struct access_log *log, struct gori_loop *loop, int descriptor);

/** Adds a line.  `user` is the struct access_log. */
void access_log_write(void *user, const struct gori_web_access *access);

/** Writes what waits, and ends it. */
void access_log_end(struct access_log *log);

#endif
