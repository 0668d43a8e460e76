/* SPDX-License-Identifier: MIT */
/*
 * The sockets of an address: bound once, taken for each run.  Contract: port.h.
 */
#include "rt/port.h"

#include <gori/error.h>
#include <gori/runtime.h>

#include "base/alloc.h"
#include "engine/engine.h"
#include "os/os.h"
#include "rt/accept_policy.h"

static size_t port_bytes(uint32_t workers)
{
    return sizeof(struct gi_port) + workers * sizeof(gori_native);
}

static int create(const struct gori_allocator *allocator, struct gori_runtime *runtime,
                  const struct gori_listener_config *config, bool one_socket,
                  struct gi_port **ret_port)
{
    if (config->keep_socket && !gi_os_shares_sockets()) {
        return GORI_ENOTSUP;
    }
    uint32_t workers = gori_runtime_workers(runtime);
    struct gi_port *port = gi_alloc_zero(allocator, port_bytes(workers));
    if (port == NULL) {
        return GORI_ENOMEM;
    }
    port->allocator = allocator;
    port->config = *config;
    port->workers = workers;
    for (uint32_t i = 0; i < workers; i++) {
        port->natives[i] = GORI_NATIVE_NONE;
    }
    int result = gi_accept_create(allocator, runtime, config, one_socket, &port->accept);
    if (result < 0) {
        gi_free(allocator, port, port_bytes(workers));
        return result;
    }
    *ret_port = port;
    return 0;
}

void gi_port_destroy(struct gi_port *port)
{
    if (port == NULL) {
        return;
    }
    for (uint32_t i = 0; i < port->workers; i++) {
        if (port->natives[i] != GORI_NATIVE_NONE) {
            gi_system_sockets.close(NULL, port->natives[i]);
        }
    }
    gi_accept_destroy(port->allocator, port->accept);
    gi_free(port->allocator, port, port_bytes(port->workers));
}

static int duplicate(gori_native native, gori_native *ret_native)
{
    int descriptor;
    int result = gi_os_duplicate((int)native, &descriptor);
    if (result >= 0) {
        *ret_native = descriptor;
    }
    return result;
}

static bool needs_socket(const struct gi_port *port, uint32_t worker)
{
    return gi_accept_has_socket(port->accept, worker);
}

/* Whether somebody else has the port.  Sharing it among workers would share it with any other
 * server of the same user as well, which would then answer a part of the clients, unnoticed. */
static int check_is_free(const struct gi_port *port, struct gi_listen_options options)
{
    const struct gori_addr *addr = &port->config.addr;
    if (port->config.reuse_port || gori_addr_family(addr) == GORI_ADDR_UNIX ||
        gori_addr_port(addr) == 0) {
        return 0;
    }
    options.reuse_port = false;
    gori_native native;
    int result = gi_system_sockets.listen(NULL, addr, &options, &native);
    if (result >= 0) {
        gi_system_sockets.close(NULL, native);
    }
    return result;
}

/* The first socket.  Port 0 was a question; the others share the answer. */
static int bind_first(struct gi_port *port, const struct gi_listen_options *options)
{
    int result = check_is_free(port, *options);
    if (result >= 0) {
        result = gi_system_sockets.listen(NULL, &port->config.addr, options, &port->natives[0]);
    }
    return result < 0 ? result
                      : gi_system_sockets.addr(NULL, port->natives[0], GI_SOCKET_LOCAL,
                                               &port->config.addr);
}

static int bind_all(struct gi_port *port)
{
    const struct gi_listen_options options = {
        .backlog = port->config.backlog == 0 ? GI_BACKLOG : port->config.backlog,
        .reuse_port = port->config.reuse_port || (port->workers > 1 && needs_socket(port, 1)),
        .ipv6_only = port->config.ipv6_only,
        .no_delay = !port->config.options.delay,
    };
    int result = bind_first(port, &options);
    if (result < 0) {
        return result;
    }
    port->socket_count = 1;
    for (uint32_t i = 1; i < port->workers && needs_socket(port, i); i++) {
        result = gi_system_sockets.listen(NULL, &port->config.addr, &options, &port->natives[i]);
        if (result < 0) {
            return result;
        }
        port->socket_count++;
    }
    return 0;
}

int gi_port_bind(const struct gori_allocator *allocator, struct gori_runtime *runtime,
                 const struct gori_listener_config *config, struct gi_port **ret_port)
{
    if (gori_addr_family(&config->addr) == GORI_ADDR_NONE) {
        return GORI_EINVAL;
    }
    /* The system has no SO_REUSEPORT for a UNIX path. */
    bool one_socket = gori_addr_family(&config->addr) == GORI_ADDR_UNIX;
    struct gi_port *port;
    int result = create(allocator, runtime, config, one_socket, &port);
    if (result < 0) {
        return result;
    }
    result = bind_all(port);
    if (result < 0) {
        gi_port_destroy(port);
        return result;
    }
    *ret_port = port;
    return 0;
}

int gi_port_adopt(const struct gori_allocator *allocator, struct gori_runtime *runtime,
                  const struct gori_listener_config *config, gori_native native,
                  struct gi_port **ret_port)
{
    struct gi_port *port;
    int result = gi_os_check_listening((int)native);
    if (result >= 0) {
        result = create(allocator, runtime, config, true, &port);
    }
    if (result < 0) {
        return result;
    }
    result = gi_system_sockets.addr(NULL, native, GI_SOCKET_LOCAL, &port->config.addr);
    if (result < 0) {
        gi_port_destroy(port);
        return result;
    }
    port->natives[0] = native;
    port->socket_count = 1;
    *ret_port = port;
    return 0;
}

bool gi_port_is_open(const struct gi_port *port)
{
    for (uint32_t i = 0; i < port->workers && needs_socket(port, i); i++) {
        if (port->natives[i] == GORI_NATIVE_NONE) {
            return false;
        }
    }
    return true;
}

int gi_port_take(struct gi_port *port, uint32_t worker, gori_native *ret_native)
{
    gori_native native = port->natives[worker];
    if (port->config.keep_socket && native != GORI_NATIVE_NONE) {
        return duplicate(native, ret_native);
    }
    port->natives[worker] = GORI_NATIVE_NONE;
    *ret_native = native;
    return 0;
}
