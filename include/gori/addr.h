/* SPDX-License-Identifier: MIT */
/*
 * Addresses of stream sockets: IPv4, IPv6 and UNIX paths, as values.  A text form exists for each:
 * "127.0.0.1:80", "[::1]:80", "*:80" (every IPv6 and IPv4 address), "unix:/run/x.sock".
 * No names are resolved here.  Stability: unstable until 1.0.
 */
#ifndef GORI_ADDR_H
#define GORI_ADDR_H

#include <gori/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gori_addr_family {
    GORI_ADDR_NONE = 0,
    GORI_ADDR_IPV4 = 1,
    GORI_ADDR_IPV6 = 2,
    GORI_ADDR_UNIX = 3
};

/** Room for the text of any address, its terminator included. */
#define GORI_ADDR_TEXT_BYTES 128

/** An address.  All zero is "none".  Private layout: the operating system's own form. */
struct gori_addr {
    uint32_t size; /* bytes of `native` in use, 0 for none */
    uint32_t reserved;
    union {
        uint64_t alignment[16];
        uint8_t native[128];
    } as;
};

/**
 * Reads an address from its text form.
 * Thread: any.  Memory: keeps nothing of `text`, a terminated string.
 * Errors: GORI_EINVAL when it is no address, GORI_ENAMETOOLONG for a UNIX path that does not fit.
 */
GORI_API GORI_MUST_USE int gori_addr_parse(const char *text, struct gori_addr *ret_addr);

/**
 * Writes the text form of an address, terminated, into `text` of `text_bytes` bytes
 * (GORI_ADDR_TEXT_BYTES is always enough; a shorter room gets a cut text).
 * Thread: any.  Result: the length of the whole text without its terminator.
 */
GORI_API size_t gori_addr_format(const struct gori_addr *addr, char *text, size_t text_bytes);

/** The family of an address.  Thread: any. */
GORI_API enum gori_addr_family gori_addr_family(const struct gori_addr *addr);

/** The port of an IPv4 or IPv6 address, 0 for others.  Thread: any. */
GORI_API uint16_t gori_addr_port(const struct gori_addr *addr);

/** Sets the port of an IPv4 or IPv6 address; does nothing to others.  Thread: any. */
GORI_API void gori_addr_set_port(struct gori_addr *addr, uint16_t port);

#ifdef __cplusplus
}
#endif

#endif
