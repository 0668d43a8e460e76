/* SPDX-License-Identifier: MIT */
/*
 * The head of a response, written into the caller's buffer.
 *
 * Invariants: never a byte beyond the capacity, never half a line: a line that does not fit, or
 * that would let its value start another line, is not begun.  The first reason stays; what is
 * written after it is dropped.
 *
 * Thread: that of the writer.
 * Reading: RFC 9112 4 and 5.
 */
#include <string.h>

#include "base/assert.h"
#include "proto/http1.h"
#include "proto/http1_scan.h"

#define NUMBER_SIZE_MAX 20

void gi_http1_writer_init(struct gi_http1_writer *writer, uint8_t *data, size_t capacity)
{
    *writer = (struct gi_http1_writer){.data = data, .capacity = capacity};
}

/* Whether `size` more bytes may be written. */
static bool reserve(struct gi_http1_writer *writer, size_t size)
{
    if (writer->reason == 0 && writer->capacity - writer->size < size) {
        writer->reason = GI_HTTP1_E_OUTPUT_SIZE;
    }
    return writer->reason == 0;
}

static void append(struct gi_http1_writer *writer, const void *bytes, size_t size)
{
    if (size > 0) {
        memcpy(writer->data + writer->size, bytes, size);
        writer->size += size;
    }
}

/* Writes the digits of `value` and returns how many they are. */
static size_t format_number(char *digits, uint64_t value)
{
    char reversed[NUMBER_SIZE_MAX];
    size_t size = 0;

    do {
        reversed[size++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    for (size_t i = 0; i < size; i++) {
        digits[i] = reversed[size - 1 - i];
    }
    return size;
}

void gi_http1_write_status(struct gi_http1_writer *writer, int status)
{
    static const char version[] = "HTTP/1.1 ";
    const char *text = gi_http1_status_text(status);
    const size_t text_size = strlen(text);
    char digits[NUMBER_SIZE_MAX];

    GI_ASSERT(status >= 100 && status <= 999);
    GI_ASSERT(writer->size == 0);
    if (!reserve(writer, sizeof(version) - 1 + 3 + 1 + text_size + 2)) {
        return;
    }
    append(writer, version, sizeof(version) - 1);
    append(writer, digits, format_number(digits, (uint64_t)status));
    append(writer, " ", 1);
    append(writer, text, text_size);
    append(writer, "\r\n", 2);
}

void gi_http1_write_header(struct gi_http1_writer *writer, const char *name,
                           struct gori_slice value)
{
    const size_t name_size = strlen(name);

    if (name_size == 0 || gi_http1_scan_token((const uint8_t *)name, 0, name_size) != name_size ||
        gi_http1_scan_value(value.data, 0, value.size) != value.size) {
        writer->reason = writer->reason == 0 ? GI_HTTP1_E_OUTPUT_BYTE : writer->reason;
        return;
    }
    if (!reserve(writer, name_size + 2 + value.size + 2)) {
        return;
    }
    append(writer, name, name_size);
    append(writer, ": ", 2);
    append(writer, value.data, value.size);
    append(writer, "\r\n", 2);
}

void gi_http1_write_text(struct gi_http1_writer *writer, const char *name, const char *value)
{
    gi_http1_write_header(writer, name, (struct gori_slice){(const uint8_t *)value, strlen(value)});
}

void gi_http1_write_number(struct gi_http1_writer *writer, const char *name, uint64_t value)
{
    char digits[NUMBER_SIZE_MAX];
    const size_t size = format_number(digits, value);

    gi_http1_write_header(writer, name, (struct gori_slice){(const uint8_t *)digits, size});
}

void gi_http1_write_range(struct gi_http1_writer *writer, const char *name, uint64_t first,
                          uint64_t last, uint64_t total)
{
    char text[sizeof("bytes ") + 3 * (NUMBER_SIZE_MAX + 1)] = "bytes ";
    size_t size = sizeof("bytes ") - 1;

    GI_ASSERT(first <= last && last < total);
    size += format_number(text + size, first);
    text[size++] = '-';
    size += format_number(text + size, last);
    text[size++] = '/';
    size += format_number(text + size, total);
    gi_http1_write_header(writer, name, (struct gori_slice){(const uint8_t *)text, size});
}

void gi_http1_write_no_range(struct gi_http1_writer *writer, const char *name, uint64_t total)
{
    char text[sizeof("bytes */") + NUMBER_SIZE_MAX] = "bytes */";
    size_t size = sizeof("bytes */") - 1;

    size += format_number(text + size, total);
    gi_http1_write_header(writer, name, (struct gori_slice){(const uint8_t *)text, size});
}

void gi_http1_write_raw(struct gi_http1_writer *writer, struct gori_slice lines)
{
    if (reserve(writer, lines.size)) {
        append(writer, lines.data, lines.size);
    }
}

int gi_http1_write_end(struct gi_http1_writer *writer)
{
    if (reserve(writer, 2)) {
        append(writer, "\r\n", 2);
    }
    return writer->reason < 0 ? writer->reason : (int)writer->size;
}
