/* SPDX-License-Identifier: MIT */
/*
 * Decoding of paths, one segment after the other: decode into the result, look at what came out,
 * and take it back if it was `.` or nothing.
 *
 * Invariants: each escape is decoded exactly once, so `%252e` is the name `%2e`; `..` is refused
 * rather than resolved, since no client that resolves references sends it; a slash that was escaped
 * is data and cannot be shown in a file path, so it is refused with a reason of its own.
 *
 * Thread: any.
 */
#include "proto/http_path.h"

#include "proto/http1.h"
#include "proto/http1_scan.h"

struct decoder {
    struct gori_slice path;
    size_t position;
    uint8_t *out;
    size_t capacity;
    size_t size;
};

/* The next byte of a segment, or a reason. */
static int decode_byte(struct decoder *decoder)
{
    const uint8_t *data = decoder->path.data + decoder->position;
    uint8_t byte = data[0];

    if (byte == '%') {
        if (decoder->path.size - decoder->position < 3 ||
            !gi_http1_is(data[1], GI_HTTP1_CLASS_HEX) ||
            !gi_http1_is(data[2], GI_HTTP1_CLASS_HEX)) {
            return GI_HTTP1_E_PATH_ESCAPE;
        }
        byte = (uint8_t)(gi_http1_hex_value(data[1]) << 4 | gi_http1_hex_value(data[2]));
        if (byte == '/') {
            return GI_HTTP1_E_PATH_SLASH;
        }
        decoder->position += 2;
    }
    decoder->position++;
    return byte < 0x20 || byte == 0x7f || byte == '\\' ? GI_HTTP1_E_PATH_BYTE : byte;
}

static int put(struct decoder *decoder, uint8_t byte)
{
    if (decoder->size == decoder->capacity) {
        return GI_HTTP1_E_PATH_SIZE;
    }
    decoder->out[decoder->size++] = byte;
    return 0;
}

/* Reads up to the next slash or the end.  The result ends with a slash before and after. */
static int decode_segment(struct decoder *decoder)
{
    const size_t start = decoder->size;
    size_t size;

    while (decoder->position < decoder->path.size && decoder->path.data[decoder->position] != '/') {
        const int byte = decode_byte(decoder);

        if (byte < 0) {
            return byte;
        }
        if (put(decoder, (uint8_t)byte) < 0) {
            return GI_HTTP1_E_PATH_SIZE;
        }
    }
    size = decoder->size - start;
    if (size == 2 && decoder->out[start] == '.' && decoder->out[start + 1] == '.') {
        return GI_HTTP1_E_PATH_PARENT;
    }
    if (size == 1 && decoder->out[start] == '.') {
        decoder->size = start;
        size = 0;
    }
    if (decoder->position == decoder->path.size) {
        return 0;
    }
    decoder->position++;
    return size == 0 ? 0 : put(decoder, '/');
}

int gi_http_path_decode(struct gori_slice path, uint8_t *ret_path, size_t capacity)
{
    struct decoder decoder = {.path = path, .position = 1, .out = ret_path, .capacity = capacity};
    int result;

    if (path.size > 0 && path.data[0] != '/') {
        return GI_HTTP1_E_PATH_BYTE;
    }
    result = put(&decoder, '/');
    while (result == 0 && decoder.position < path.size) {
        result = decode_segment(&decoder);
    }
    return result < 0 ? result : (int)decoder.size;
}
