/* SPDX-License-Identifier: MIT */
/*
 * The HTTP protocol, version 1.1, of the load generator: GET of one path, answers checked strictly.
 * An answer is 200, says its Content-Length once and has exactly that many bytes; anything else is
 * an error. It is not an HTTP client: it knows what the servers under measurement may say, and no
 * more.
 */
#include "load.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static size_t fill_http(const struct load_options *options, char *batch)
{
    char host[INET_ADDRSTRLEN];
    (void)inet_ntop(AF_INET, &options->target.sin_addr, host, sizeof host);
    size_t total = 0;
    for (unsigned i = 0; i < options->depth; i++) {
        int written = snprintf(batch + total, LOAD_BATCH_BYTES_MAX - total,
                               "GET %s HTTP/1.1\r\nHost: %s:%u\r\nUser-Agent: bench_load\r\n\r\n",
                               options->path, host, (unsigned)ntohs(options->target.sin_port));
        if (written < 0 || (size_t)written >= LOAD_BATCH_BYTES_MAX - total) {
            return 0;
        }
        total += (size_t)written;
    }
    return total;
}

/* Reads the digits at `text` up to the line's end; -1 when there is anything else. */
static int64_t parse_length(const char *text, const char *end)
{
    int64_t value = 0;
    const char *digit = text;
    while (digit < end && (*digit == ' ' || *digit == '\t')) {
        digit++;
    }
    const char *first = digit;
    for (; digit < end && *digit >= '0' && *digit <= '9' && value < INT64_MAX / 16; digit++) {
        value = value * 10 + (*digit - '0');
    }
    return digit == first || digit + 1 >= end || digit[0] != '\r' ? -1 : value;
}

/* The head's Content-Length; -1 when it is missing, doubled or malformed, or the body is
 * chunked. */
static int64_t find_length(const char *head, const char *end)
{
    static const char length_name[] = "Content-Length:";
    static const char coding_name[] = "Transfer-Encoding:";
    int64_t length = -1;
    const char *line = memchr(head, '\n', (size_t)(end - head));
    while (line != NULL && ++line < end) {
        size_t left = (size_t)(end - line);
        if (left > sizeof length_name &&
            strncasecmp(line, length_name, sizeof length_name - 1) == 0) {
            if (length >= 0) {
                return -1;
            }
            length = parse_length(line + sizeof length_name - 1, end);
            if (length < 0) {
                return -1;
            }
        } else if (left > sizeof coding_name &&
                   strncasecmp(line, coding_name, sizeof coding_name - 1) == 0) {
            return -1;
        }
        line = memchr(line, '\n', left);
    }
    return length;
}

/* Judges a complete head; returns 0 or -1 - enum load_error. */
static int take_head(const struct load_options *options, struct load_answer *answer,
                     const char *head, size_t size)
{
    if (size < 16 || memcmp(head, "HTTP/1.1 ", 9) != 0) {
        return -1 - LOAD_ERROR_FRAMING;
    }
    if (memcmp(head + 9, "200 ", 4) != 0) {
        return -1 - LOAD_ERROR_STATUS;
    }
    int64_t length = find_length(head, head + size);
    if (length < 0) {
        return -1 - LOAD_ERROR_FRAMING;
    }
    if (options->expected_size >= 0 && length != options->expected_size) {
        return -1 - LOAD_ERROR_LENGTH;
    }
    answer->in_body = true;
    answer->body_left = (uint64_t)length;
    return 0;
}

/* Bytes of `data` that belong to the head, which may have begun in earlier data; or a negative
 * error. */
static int64_t collect_head(const struct load_options *options, struct load_answer *answer,
                            const char *data, size_t size)
{
    const char *end = answer->head_size == 0 ? memmem(data, size, "\r\n\r\n", 4) : NULL;
    if (end != NULL) {
        size_t head_size = (size_t)(end - data) + 4;
        int error = take_head(options, answer, data, head_size);
        return error < 0 ? error : (int64_t)head_size;
    }
    uint32_t old = answer->head_size;
    size_t room = sizeof answer->head - old;
    size_t taken = size < room ? size : room;
    memcpy(answer->head + old, data, taken);
    size_t from = old < 3 ? 0 : old - 3;
    end = memmem(answer->head + from, old + taken - from, "\r\n\r\n", 4);
    if (end == NULL) {
        answer->head_size = (uint32_t)(old + taken);
        return taken < size || taken == room ? -1 - LOAD_ERROR_FRAMING : (int64_t)taken;
    }
    size_t head_size = (size_t)(end - answer->head) + 4;
    answer->head_size = 0;
    int error = take_head(options, answer, answer->head, head_size);
    return error < 0 ? error : (int64_t)(head_size - old);
}

static int take_http(const struct load_options *options, struct load_answer *answer,
                     const char *data, size_t size)
{
    int complete = 0;
    while (size > 0) {
        size_t used;
        if (!answer->in_body) {
            int64_t head = collect_head(options, answer, data, size);
            if (head < 0) {
                return (int)head;
            }
            used = (size_t)head;
        } else {
            used = answer->body_left < size ? (size_t)answer->body_left : size;
            answer->body_left -= used;
        }
        if (answer->in_body && answer->body_left == 0) {
            answer->in_body = false;
            complete++;
        }
        data += used;
        size -= used;
    }
    return complete;
}

const struct load_protocol load_http_protocol = {.fill = fill_http, .take = take_http};
