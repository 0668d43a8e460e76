/* SPDX-License-Identifier: MIT */
/*
 * Addresses and their text form.  A gori_addr is a sockaddr with its size; parsing is our own for
 * the port and the brackets, the system's for the digits of an IP address.
 * Thread: any.  Reading: ip(7), ipv6(7), unix(7), RFC 4007 11 (scopes).
 */
#include <gori/addr.h>

#include <gori/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "os/names.h"

#define HOST_BYTES 64 /* of an IP address with a scope, terminator included */
#define UNIX_MARK  "unix:"

_Static_assert(sizeof(struct sockaddr_un) <= sizeof(((struct gori_addr *)0)->as.native), "size");
_Static_assert(sizeof(struct sockaddr_in6) <= sizeof(((struct gori_addr *)0)->as.native), "size");

/* Views of the native form. */

static struct sockaddr_in *ipv4_of(const struct gori_addr *addr)
{
    return (struct sockaddr_in *)(uintptr_t)addr->as.native;
}

static struct sockaddr_in6 *ipv6_of(const struct gori_addr *addr)
{
    return (struct sockaddr_in6 *)(uintptr_t)addr->as.native;
}

static struct sockaddr_un *unix_of(const struct gori_addr *addr)
{
    return (struct sockaddr_un *)(uintptr_t)addr->as.native;
}

enum gori_addr_family gori_addr_family(const struct gori_addr *addr)
{
    if (addr->size < offsetof(struct sockaddr, sa_family) + sizeof(ipv4_of(addr)->sin_family)) {
        return GORI_ADDR_NONE;
    }
    switch (ipv4_of(addr)->sin_family) {
    case AF_INET:
        return GORI_ADDR_IPV4;
    case AF_INET6:
        return GORI_ADDR_IPV6;
    case AF_UNIX:
        return GORI_ADDR_UNIX;
    default:
        return GORI_ADDR_NONE;
    }
}

uint16_t gori_addr_port(const struct gori_addr *addr)
{
    switch (gori_addr_family(addr)) {
    case GORI_ADDR_IPV4:
        return ntohs(ipv4_of(addr)->sin_port);
    case GORI_ADDR_IPV6:
        return ntohs(ipv6_of(addr)->sin6_port);
    case GORI_ADDR_NONE:
    case GORI_ADDR_UNIX:
        break;
    }
    return 0;
}

void gori_addr_set_port(struct gori_addr *addr, uint16_t port)
{
    switch (gori_addr_family(addr)) {
    case GORI_ADDR_IPV4:
        ipv4_of(addr)->sin_port = htons(port);
        break;
    case GORI_ADDR_IPV6:
        ipv6_of(addr)->sin6_port = htons(port);
        break;
    case GORI_ADDR_NONE:
    case GORI_ADDR_UNIX:
        break;
    }
}

/* Parsing. */

/* A path, or a name without one ("@name", of Linux). */
static int parse_unix(const char *path, struct gori_addr *ret_addr)
{
    struct gori_addr addr = {0};
    struct sockaddr_un *name = unix_of(&addr);
    size_t size = strlen(path);
    bool is_abstract = path[0] == '@';
    if (size == 0 || (is_abstract && size == 1)) {
        return GORI_EINVAL;
    }
    if (size >= sizeof(name->sun_path)) {
        return GORI_ENAMETOOLONG;
    }
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path, path, size);
    if (is_abstract) {
        name->sun_path[0] = '\0';
    }
    size_t end_size = is_abstract ? 0 : 1; /* abstract names have no terminator */
    addr.size = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + size + end_size);
    *ret_addr = addr;
    return 0;
}

/* Decimal digits and nothing else, at most 65535. */
static bool parse_port(const char *text, uint16_t *ret_port)
{
    uint32_t port = 0;
    size_t count = 0;
    for (; text[count] >= '0' && text[count] <= '9' && count < 6; count++) {
        port = port * 10 + (uint32_t)(text[count] - '0');
    }
    if (count == 0 || text[count] != '\0' || port > UINT16_MAX) {
        return false;
    }
    *ret_port = (uint16_t)port;
    return true;
}

static bool parse_ipv4(const char *host, struct gori_addr *addr)
{
    struct sockaddr_in *name = ipv4_of(addr);
    name->sin_family = AF_INET;
    addr->size = sizeof(*name);
    return inet_pton(AF_INET, host, &name->sin_addr) == 1;
}

/* The number of an interface, by its name or its digits; 0 when there is none. */
static uint32_t parse_scope(const char *text)
{
    uint32_t scope = if_nametoindex(text);
    if (scope != 0) {
        return scope;
    }
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && number <= UINT32_MAX;
    return is_number ? (uint32_t)number : 0;
}

static bool parse_ipv6(char *host, struct gori_addr *addr)
{
    struct sockaddr_in6 *name = ipv6_of(addr);
    name->sin6_family = AF_INET6;
    addr->size = sizeof(*name);
    char *scope = strchr(host, '%');
    if (scope != NULL) {
        *scope = '\0';
        name->sin6_scope_id = parse_scope(scope + 1);
        if (name->sin6_scope_id == 0) {
            return false;
        }
    }
    return inet_pton(AF_INET6, host, &name->sin6_addr) == 1;
}

static bool parse_host(const char *text, size_t size, struct gori_addr *addr)
{
    char host[HOST_BYTES];
    if (size == 0 || size >= sizeof(host)) {
        return false;
    }
    memcpy(host, text, size);
    host[size] = '\0';
    if (strcmp(host, "*") == 0) {
        host[0] = ':';
        host[1] = ':';
        host[2] = '\0';
        return parse_ipv6(host, addr);
    }
    if (host[0] == '[' && host[size - 1] == ']') {
        host[size - 1] = '\0';
        return parse_ipv6(host + 1, addr);
    }
    return parse_ipv4(host, addr);
}

int gori_addr_parse(const char *text, struct gori_addr *ret_addr)
{
    size_t mark_size = sizeof(UNIX_MARK) - 1;
    if (strncmp(text, UNIX_MARK, mark_size) == 0) {
        return parse_unix(text + mark_size, ret_addr);
    }
    const char *colon = strrchr(text, ':');
    uint16_t port;
    struct gori_addr addr = {0};
    if (colon == NULL || !parse_port(colon + 1, &port) ||
        !parse_host(text, (size_t)(colon - text), &addr)) {
        return GORI_EINVAL;
    }
    gori_addr_set_port(&addr, port);
    *ret_addr = addr;
    return 0;
}

/* Formatting. */

static size_t clamp(int printed)
{
    return printed > 0 ? (size_t)printed : 0;
}

static size_t format_ipv4(const struct gori_addr *addr, char *text, size_t text_bytes)
{
    char host[INET_ADDRSTRLEN] = "?";
    (void)inet_ntop(AF_INET, &ipv4_of(addr)->sin_addr, host, sizeof(host));
    return clamp(snprintf(text, text_bytes, "%s:%u", host, gori_addr_port(addr)));
}

static size_t format_ipv6(const struct gori_addr *addr, char *text, size_t text_bytes)
{
    char host[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in6 *name = ipv6_of(addr);
    (void)inet_ntop(AF_INET6, &name->sin6_addr, host, sizeof(host));
    if (name->sin6_scope_id == 0) {
        return clamp(snprintf(text, text_bytes, "[%s]:%u", host, gori_addr_port(addr)));
    }
    char scope[IF_NAMESIZE];
    if (if_indextoname(name->sin6_scope_id, scope) == NULL) {
        (void)snprintf(scope, sizeof(scope), "%u", (unsigned)name->sin6_scope_id);
    }
    return clamp(snprintf(text, text_bytes, "[%s%%%s]:%u", host, scope, gori_addr_port(addr)));
}

static size_t format_unix(const struct gori_addr *addr, char *text, size_t text_bytes)
{
    const struct sockaddr_un *name = unix_of(addr);
    size_t room = addr->size - gi_min_size(addr->size, offsetof(struct sockaddr_un, sun_path));
    room = gi_min_size(room, sizeof(name->sun_path));
    bool is_abstract = room > 1 && name->sun_path[0] == '\0';
    const char *path = name->sun_path + (is_abstract ? 1 : 0);
    size_t size = strnlen(path, is_abstract ? room - 1 : room);
    return clamp(
        snprintf(text, text_bytes, UNIX_MARK "%s%.*s", is_abstract ? "@" : "", (int)size, path));
}

size_t gori_addr_format(const struct gori_addr *addr, char *text, size_t text_bytes)
{
    switch (gori_addr_family(addr)) {
    case GORI_ADDR_IPV4:
        return format_ipv4(addr, text, text_bytes);
    case GORI_ADDR_IPV6:
        return format_ipv6(addr, text, text_bytes);
    case GORI_ADDR_UNIX:
        return format_unix(addr, text, text_bytes);
    case GORI_ADDR_NONE:
        break;
    }
    return clamp(snprintf(text, text_bytes, "none"));
}
