/* SPDX-License-Identifier: MIT */
/*
 * The socket calls of the operating system as the runtime asks for them, the same for all engines
 * but the simulator.
 *
 * Sockets made here block, whoever will drive them: io_uring needs that (a socket with O_NONBLOCK
 * answers GORI_EAGAIN there instead of waiting), and the reactor does not care, because it says
 * with each call that it will not wait and switches the mode itself before the few calls that
 * cannot say so.  So a listener bound before any engine was chosen suits all of them. Thread: any.
 */
#include "engine/engine.h"
#include "os/os.h"

static int listen_on(struct gi_engine *engine, const struct gori_addr *addr,
                     const struct gi_listen_options *options, gori_native *ret_native)
{
    (void)engine;
    uint32_t flags = GI_OS_BLOCKING;
    flags |= options->reuse_port ? GI_OS_REUSE_PORT : 0;
    flags |= options->ipv6_only ? GI_OS_IPV6_ONLY : 0;
    flags |= options->no_delay ? GI_OS_NO_DELAY : 0;
    int fd;
    int error = gi_os_listen(addr, options->backlog, flags, &fd);
    if (error == 0) {
        *ret_native = fd;
    }
    return error;
}

static int open_socket(struct gi_engine *engine, enum gori_addr_family family,
                       gori_native *ret_native)
{
    (void)engine;
    int fd;
    int error = gi_os_socket(family, GI_OS_BLOCKING, &fd);
    if (error == 0) {
        *ret_native = fd;
    }
    return error;
}

static int accept_one(struct gi_engine *engine, gori_native listener, gori_native *ret_native)
{
    (void)engine;
    int fd;
    int error = gi_os_accept((int)listener, GI_OS_BLOCKING, &fd);
    if (error == 0) {
        *ret_native = fd;
    }
    return error;
}

static int shutdown_send(struct gi_engine *engine, gori_native native)
{
    (void)engine;
    return gi_os_shutdown_send((int)native);
}

static int set_no_delay(struct gi_engine *engine, gori_native native, bool on)
{
    (void)engine;
    return gi_os_set_no_delay((int)native, on);
}

static int set_reset_on_close(struct gi_engine *engine, gori_native native)
{
    (void)engine;
    return gi_os_set_reset_on_close((int)native);
}

static int ask_addr(struct gi_engine *engine, gori_native native, enum gi_socket_end end,
                    struct gori_addr *ret_addr)
{
    (void)engine;
    return end == GI_SOCKET_LOCAL ? gi_os_local_addr((int)native, ret_addr)
                                  : gi_os_peer_addr((int)native, ret_addr);
}

static void close_socket(struct gi_engine *engine, gori_native native)
{
    (void)engine;
    gi_os_close((int)native);
}

const struct gi_socket_calls gi_system_sockets = {
    .listen = listen_on,
    .open = open_socket,
    .accept = accept_one,
    .shutdown_send = shutdown_send,
    .set_no_delay = set_no_delay,
    .set_reset_on_close = set_reset_on_close,
    .addr = ask_addr,
    .close = close_socket,
};
