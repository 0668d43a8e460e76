/* SPDX-License-Identifier: MIT */
/*
 * Goal: names get the type that browsers expect.  Method: names of every shape, and every extension
 * that a site needs to work at all.
 */
#include "web/mime.h"

#include <string.h>

#include "lib/test.h"

static const char *type_of(const char *name)
{
    return gi_web_mime_type((struct gori_slice){(const uint8_t *)name, strlen(name)});
}

GT_TEST(what_a_page_is_made_of)
{
    GT_CHECK(strcmp(type_of("/index.html"), "text/html; charset=utf-8") == 0);
    GT_CHECK(strcmp(type_of("/a/style.css"), "text/css; charset=utf-8") == 0);
    GT_CHECK(strcmp(type_of("/script.js"), "text/javascript; charset=utf-8") == 0);
    GT_CHECK(strcmp(type_of("/module.mjs"), "text/javascript; charset=utf-8") == 0);
    GT_CHECK(strcmp(type_of("/ring.svg"), "image/svg+xml") == 0);
    GT_CHECK(strcmp(type_of("/a.wasm"), "application/wasm") == 0);
    GT_CHECK(strcmp(type_of("/font.woff2"), "font/woff2") == 0);
}

GT_TEST(the_first_and_the_last_of_the_table)
{
    GT_CHECK(strcmp(type_of("a.7z"), "application/x-7z-compressed") == 0);
    GT_CHECK(strcmp(type_of("a.zst"), "application/zstd") == 0);
}

GT_TEST(case_does_not_count)
{
    GT_CHECK(strcmp(type_of("/PHOTO.JPG"), "image/jpeg") == 0);
    GT_CHECK(strcmp(type_of("/x.WebManifest"), "application/manifest+json") == 0);
}

GT_TEST(names_without_a_known_extension)
{
    const char *names[] = {"",        "/",        "/README",    "/a.b/c",
                           "/a.",     "/a.html/", "/x.unknown", "/x.averyveryverylongextension",
                           "/x.html~"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        GT_CHECK(strcmp(type_of(names[i]), "application/octet-stream") == 0);
    }
}

GT_TEST(only_the_last_extension_counts)
{
    GT_CHECK(strcmp(type_of("/a.html.txt"), "text/plain; charset=utf-8") == 0);
    GT_CHECK(strcmp(type_of("/a.tar.gz"), "application/gzip") == 0);
}

GT_MAIN()
