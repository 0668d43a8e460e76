/* SPDX-License-Identifier: MIT */
/*
 * Goal: one path in, at most one path out, and nothing that leaves the root.  Method: tables; each
 * with every capacity too small; every single escaped byte.
 */
#include "proto/http_path.h"

#include "lib/http1_cut.h"
#include "lib/test.h"

static uint8_t decoded[256];

static int decode(const char *path, size_t capacity)
{
    const size_t size = strlen(path);

    memset(decoded, 0xee, sizeof(decoded));
    return gi_http_path_decode((struct gori_slice){gi_fenced(path, size), size}, decoded, capacity);
}

GT_TEST(paths_and_what_they_mean)
{
    static const char *const cases[][2] = {
        {"", "/"},
        {"/", "/"},
        {"/a/b.html", "/a/b.html"},
        {"/a/", "/a/"},
        {"/%61", "/a"},
        {"/a%20b", "/a b"},
        {"/%E4%BD%A0", "/\xe4\xbd\xa0"},
        {"/%252e%252e/x", "/%2e%2e/x"},
        {"/.%252e/.%252e/etc/passwd", "/.%2e/.%2e/etc/passwd"},
        {"//a///b//", "/a/b/"},
        {"/./a/./b/.", "/a/b/"},
        {"/%2e/a/%2E", "/a/"},
        {"/.", "/"},
        {"/...", "/..."},
        {"/..a/a../.b/b.", "/..a/a../.b/b."},
        {"/a:b;c=d,e", "/a:b;c=d,e"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *expected = cases[i][1];
        const int size = decode(cases[i][0], sizeof(decoded));

        GT_CHECK(size > 0);
        GT_EQUAL_BYTES(decoded, (size_t)size, expected, strlen(expected));
        GT_CHECK((size_t)size <= strlen(cases[i][0]) + 1);
        for (size_t capacity = 0; capacity < (size_t)size; capacity++) {
            GT_EQUAL(decode(cases[i][0], capacity), GI_HTTP1_E_PATH_SIZE);
            GT_EQUAL(decoded[capacity], 0xee);
        }
    }
}

GT_TEST(paths_that_are_refused)
{
    static const struct {
        const char *path;
        int expected;
    } cases[] = {
        {"/..", GI_HTTP1_E_PATH_PARENT},     {"/../etc/passwd", GI_HTTP1_E_PATH_PARENT},
        {"/a/../b", GI_HTTP1_E_PATH_PARENT}, {"/%2e%2e/%2e%2e/etc/passwd", GI_HTTP1_E_PATH_PARENT},
        {"/.%2E/a", GI_HTTP1_E_PATH_PARENT}, {"/a/%2e%2e%2f", GI_HTTP1_E_PATH_SLASH},
        {"/a%2Fb", GI_HTTP1_E_PATH_SLASH},   {"/%2e%2e%5c", GI_HTTP1_E_PATH_BYTE},
        {"/..\\a", GI_HTTP1_E_PATH_BYTE},    {"/secret.db%00.html", GI_HTTP1_E_PATH_BYTE},
        {"/a%0d%0ab", GI_HTTP1_E_PATH_BYTE}, {"/a%7f", GI_HTTP1_E_PATH_BYTE},
        {"/%", GI_HTTP1_E_PATH_ESCAPE},      {"/%2", GI_HTTP1_E_PATH_ESCAPE},
        {"/%2g", GI_HTTP1_E_PATH_ESCAPE},    {"/%g2", GI_HTTP1_E_PATH_ESCAPE},
        {"/%%20", GI_HTTP1_E_PATH_ESCAPE},   {"/%u0041", GI_HTTP1_E_PATH_ESCAPE},
        {"a", GI_HTTP1_E_PATH_BYTE},         {"*", GI_HTTP1_E_PATH_BYTE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        GT_EQUAL(decode(cases[i].path, sizeof(decoded)), cases[i].expected);
    }
}

GT_TEST(every_escaped_byte)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char path[8];
        int expected = 4;

        if (byte < 0x20 || byte == 0x7f || byte == '\\') {
            expected = GI_HTTP1_E_PATH_BYTE;
        } else if (byte == '/') {
            expected = GI_HTTP1_E_PATH_SLASH;
        }
        snprintf(path, sizeof(path), "/a%%%02Xb", byte);
        GT_EQUAL(decode(path, sizeof(decoded)), expected);
        if (expected > 0) {
            GT_EQUAL(decoded[2], byte);
        }
    }
}

GT_MAIN()
