/* SPDX-License-Identifier: MIT */
/*
 * The table of media types, sorted by extension so that it can be searched by halves; the test
 * holds the order.  Thread: any.  Reading: the registry of media types at IANA, RFC 9239.
 */
#include "web/mime.h"

#include <string.h>

#include "base/compiler.h"

/* Room for the longest extension of the table, its terminator included. */
#define EXTENSION_BYTES 16

struct type {
    const char *extension;
    const char *value;
};

static const struct type types[] = {
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"apng", "image/apng"},
    {"atom", "application/atom+xml"},
    {"avif", "image/avif"},
    {"bin", "application/octet-stream"},
    {"bmp", "image/bmp"},
    {"br", "application/x-brotli"},
    {"bz2", "application/x-bzip2"},
    {"c", "text/plain; charset=utf-8"},
    {"conf", "text/plain; charset=utf-8"},
    {"cpp", "text/plain; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"eot", "application/vnd.ms-fontobject"},
    {"epub", "application/epub+zip"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h", "text/plain; charset=utf-8"},
    {"heic", "image/heic"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/vnd.microsoft.icon"},
    {"ics", "text/calendar; charset=utf-8"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"jsonld", "application/ld+json"},
    {"jxl", "image/jxl"},
    {"log", "text/plain; charset=utf-8"},
    {"m3u8", "application/vnd.apple.mpegurl"},
    {"m4a", "audio/mp4"},
    {"m4s", "video/iso.segment"},
    {"m4v", "video/mp4"},
    {"map", "application/json"},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mkv", "video/matroska"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpd", "application/dash+xml"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"rss", "application/rss+xml"},
    {"rtf", "application/rtf"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"ts", "video/mp2t"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain; charset=utf-8"},
    {"vtt", "text/vtt; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"weba", "audio/webm"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

/* Copies the extension in lower case; leaves "" when there is none or it is in no table. */
static void copy_extension(struct gori_slice name, char *ret_extension)
{
    ret_extension[0] = '\0';
    size_t dot = name.size;
    while (dot > 0 && name.data[dot - 1] != '.' && name.data[dot - 1] != '/') {
        dot--;
    }
    size_t size = name.size - dot;
    if (dot == 0 || name.data[dot - 1] != '.' || size >= EXTENSION_BYTES) {
        return;
    }
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = name.data[dot + i];
        ret_extension[i] = (char)(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
    }
    ret_extension[size] = '\0';
}

const char *gi_web_mime_type(struct gori_slice name)
{
    char extension[EXTENSION_BYTES];
    copy_extension(name, extension);
    size_t low = 0;
    size_t high = GI_ARRAY_COUNT(types);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(extension, types[middle].extension);
        if (order == 0) {
            return types[middle].value;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return "application/octet-stream";
}
