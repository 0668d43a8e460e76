/* SPDX-License-Identifier: MIT */
/*
 * Lines of the combined log format.  What a client may choose is escaped, so that no request can
 * forge a line: quotes, backslashes and all bytes that are not printable ASCII become \xHH.
 */
#include "access_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "system.h"

/* A text of the client is cut beyond this, with all its bytes escaped a quarter of it is left. */
#define TEXT_BYTES_MAX 2048u

/* Room for what is not a text of the client. */
#define FIXED_BYTES 512u

#define LINE_BYTES_MAX (4 * TEXT_BYTES_MAX + FIXED_BYTES)

int access_log_open(const char *name)
{
    system_expect_full_files();
    if (strcmp(name, "-") == 0) {
        return STDOUT_FILENO;
    }
    return system_open_append(name);
}

static void complain_once(struct access_log *log, int error)
{
    if (!log->failing) {
        log->failing = true;
        fprintf(stderr,
                "gori serve: cannot write the access log: %s; lines are lost, "
                "serving goes on\n",
                strerror(error));
    }
}

static void flush(struct access_log *log)
{
    size_t done = 0;
    while (done < log->size) {
        /* At most ACCESS_LOG_BYTES, which fits whatever the system counts in. */
        unsigned left = (unsigned)(log->size - done);
        ssize_t result = write(log->descriptor, log->text + done, left);
        if (result > 0) {
            done += (size_t)result;
        } else if (result == 0 || errno != EINTR) {
            complain_once(log, result == 0 ? EIO : errno);
            break;
        }
    }
    if (log->size > 0 && done == log->size) {
        log->failing = false;
    }
    if (done > 0) {
        log->torn = log->text[done - 1] != '\n';
    }
    log->size = 0;
}

static void flush_due(struct gori_timer *timer)
{
    flush(timer->user);
}

void access_log_start(struct access_log *log, struct gori_loop *loop, int descriptor)
{
    log->loop = loop;
    log->descriptor = descriptor;
    log->timer.on_expire = flush_due;
    log->timer.user = log;
    log->date_seconds = -1;
}

static void put(struct access_log *log, const char *text, size_t size)
{
    memcpy(log->text + log->size, text, size);
    log->size += size;
}

static void put_text(struct access_log *log, const char *text)
{
    put(log, text, strlen(text));
}

/* Appends what a client sent, "-" for nothing. */
static void put_foreign(struct access_log *log, struct gori_slice text)
{
    static const char digits[] = "0123456789abcdef";
    size_t end = log->size + TEXT_BYTES_MAX;
    for (size_t i = 0; i < text.size && log->size + 4 <= end; i++) {
        uint8_t byte = text.data[i];
        if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\') {
            char escape[4] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
            put(log, escape, sizeof(escape));
        } else {
            log->text[log->size++] = (char)byte;
        }
    }
    if (text.size == 0) {
        log->text[log->size++] = '-';
    }
}

/* The host alone, without port and brackets; "-" for a UNIX peer, which has no name. */
static void put_peer(struct access_log *log, const struct gori_session *session)
{
    struct gori_addr peer;
    char text[GORI_ADDR_TEXT_BYTES] = "";
    if (gori_session_peer(session, &peer) >= 0 && gori_addr_port(&peer) != 0) {
        gori_addr_format(&peer, text, sizeof(text));
        *strrchr(text, ':') = '\0';
    }
    const char *host = text[0] == '[' ? text + 1 : text;
    size_t size = strcspn(host, "]");
    put(log, size == 0 ? "-" : host, size == 0 ? 1 : size);
}

static void update_date(struct access_log *log, int64_t seconds)
{
    if (seconds == log->date_seconds) {
        return;
    }
    struct tm parts;
    log->date_seconds = seconds;
    if (!system_split_time((time_t)seconds, &parts) ||
        strftime(log->date, sizeof(log->date), "%d/%b/%Y:%H:%M:%S +0000", &parts) == 0) {
        log->date[0] = '\0';
    }
}

void access_log_write(void *user, const struct gori_web_access *access)
{
    struct access_log *log = user;
    if (sizeof(log->text) - log->size < LINE_BYTES_MAX) {
        flush(log);
    }
    if (log->torn && log->size == 0) {
        put_text(log, "\n"); /* or this line would go on where the half one ends */
    }
    update_date(log, access->wall_seconds);
    put_peer(log, access->session);
    char middle[128];
    snprintf(middle, sizeof(middle), " - - [%s] \"", log->date);
    put_text(log, middle);
    put_foreign(log, access->method);
    put_text(log, " ");
    put_foreign(log, access->target);
    snprintf(middle, sizeof(middle), " HTTP/1.%u\" %u %llu \"", access->version_minor,
             access->status, (unsigned long long)access->body_bytes);
    put_text(log, middle);
    put_foreign(log, access->referer);
    put_text(log, "\" \"");
    put_foreign(log, access->user_agent);
    put_text(log, "\"\n");
    if (!gori_timer_is_active(&log->timer)) {
        gori_timer_start(log->loop, &log->timer, GORI_SECONDS);
    }
}

void access_log_end(struct access_log *log)
{
    gori_timer_stop(&log->timer);
    flush(log);
}
