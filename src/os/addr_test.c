/* SPDX-License-Identifier: MIT */
/*
 * Addresses: text to value and back, and everything that is no address.
 */
#include "lib/test.h"

#include <gori/addr.h>
#include <gori/error.h>
#include <string.h>

/* What parses, its family and port, and the text it comes back as. */
static const struct {
    const char *text;
    const char *formatted;
    enum gori_addr_family family;
    uint16_t port;
} good[] = {
    {"127.0.0.1:80", "127.0.0.1:80", GORI_ADDR_IPV4, 80},
    {"0.0.0.0:0", "0.0.0.0:0", GORI_ADDR_IPV4, 0},
    {"255.255.255.255:65535", "255.255.255.255:65535", GORI_ADDR_IPV4, 65535},
    {"127.0.0.1:00080", "127.0.0.1:80", GORI_ADDR_IPV4, 80},
    {"[::1]:80", "[::1]:80", GORI_ADDR_IPV6, 80},
    {"[2001:DB8:0:0::1]:443", "[2001:db8::1]:443", GORI_ADDR_IPV6, 443},
    {"[::ffff:1.2.3.4]:1", "[::ffff:1.2.3.4]:1", GORI_ADDR_IPV6, 1},
#if __has_include(<net/if.h>) /* where the first interface is called so */
    {"[fe80::1%lo]:5", "[fe80::1%lo]:5", GORI_ADDR_IPV6, 5},
    {"[fe80::1%1]:5", "[fe80::1%lo]:5", GORI_ADDR_IPV6, 5},
#endif
    {"*:8080", "[::]:8080", GORI_ADDR_IPV6, 8080},
    {"unix:/run/x.sock", "unix:/run/x.sock", GORI_ADDR_UNIX, 0},
    {"unix:x:1", "unix:x:1", GORI_ADDR_UNIX, 0},
    {"unix:@name", "unix:@name", GORI_ADDR_UNIX, 0},
};

GT_TEST(addr_text_and_back)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct gori_addr addr;
        char text[GORI_ADDR_TEXT_BYTES];
        GT_EQUAL(gori_addr_parse(good[i].text, &addr), 0);
        GT_EQUAL(gori_addr_family(&addr), good[i].family);
        GT_EQUAL(gori_addr_port(&addr), good[i].port);
        GT_EQUAL(gori_addr_format(&addr, text, sizeof(text)), strlen(good[i].formatted));
        GT_EQUAL_STRING(text, good[i].formatted);
    }
}

GT_TEST(addr_refuses_what_is_none)
{
    static const char *const bad[] = {
        "",
        ":",
        ":80",
        "80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:99999999999",
        "127.0.0.1:-1",
        "127.0.0.1:+1",
        "127.0.0.1: 1",
        "127.0.0.1:8o",
        "127.1:80",
        "127.0.0.256:80",
        "localhost:80",
        "::1:80",
        "[]:80",
        "[:80",
        "]:80",
        "[::1]80",
        "[::1%]:80",
        "[::1%no-such-interface]:80",
        "[::1%0]:80",
        "[127.0.0.1]:80",
        "**:80",
        "[1111:2222:3333:4444:5555:6666:7777:8888:9999:1111:2222:3333:4444:5555:6666]:1",
        "unix:",
        "unix:@",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct gori_addr addr = {.size = 7};
        GT_EQUAL(gori_addr_parse(bad[i], &addr), GORI_EINVAL);
        GT_EQUAL(addr.size, 7);
    }
}

/* A UNIX path of the greatest length goes through whole; one more byte is refused. */
GT_TEST(addr_unix_path_limit)
{
    char text[GORI_ADDR_TEXT_BYTES] = "unix:";
    char back[GORI_ADDR_TEXT_BYTES];
    struct gori_addr addr;
    memset(text + 5, 'p', 107);
    GT_EQUAL(gori_addr_parse(text, &addr), 0);
    GT_EQUAL(gori_addr_format(&addr, back, sizeof(back)), 112);
    GT_EQUAL_STRING(back, text);
    text[112] = 'p';
    GT_EQUAL(gori_addr_parse(text, &addr), GORI_ENAMETOOLONG);
}

GT_TEST(addr_short_room_gets_a_cut_text)
{
    struct gori_addr addr;
    char text[6];
    GT_EQUAL(gori_addr_parse("127.0.0.1:80", &addr), 0);
    GT_EQUAL(gori_addr_format(&addr, text, sizeof(text)), 12);
    GT_EQUAL_STRING(text, "127.0");
    GT_EQUAL(gori_addr_format(&addr, NULL, 0), 12);
}

GT_TEST(addr_port_of_what_has_none)
{
    struct gori_addr addr = {0};
    char text[GORI_ADDR_TEXT_BYTES];
    gori_addr_set_port(&addr, 5);
    GT_EQUAL(gori_addr_port(&addr), 0);
    GT_EQUAL(gori_addr_family(&addr), GORI_ADDR_NONE);
    (void)gori_addr_format(&addr, text, sizeof(text));
    GT_EQUAL_STRING(text, "none");
    GT_EQUAL(gori_addr_parse("unix:/x", &addr), 0);
    gori_addr_set_port(&addr, 5);
    GT_EQUAL(gori_addr_port(&addr), 0);
    GT_EQUAL(gori_addr_parse("[::1]:1", &addr), 0);
    gori_addr_set_port(&addr, 513);
    GT_EQUAL(gori_addr_port(&addr), 513);
}

GT_MAIN()
