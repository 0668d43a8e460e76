/* SPDX-License-Identifier: MIT */
/*
 * The network of a simulated world: listeners, connections as TCP has them, and the calls on
 * sockets.  What a real kernel does by itself (a reset for bytes that nobody will read, bytes that
 * arrive after a close, an error that is told once) is done here; faults are added where the seed
 * says so.  Event sources have their names from the same table.  Contract: sim.h and world.h.
 * Thread: one.
 */
#include <gori/error.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"
#include "engine/sim/world.h"

#define CONNECT_ATTEMPTS 6 /* of a connect whose listener has a full queue */

/* Bytes ------------------------------------------------------------------------------------ */

static void ring_init(struct gi_sim *sim, struct gi_sim_ring *ring, uint32_t capacity)
{
    *ring = (struct gi_sim_ring){.capacity = capacity};
    ring->data = gi_alloc(sim->allocator, capacity);
    GI_ASSERT(ring->data != NULL);
}

static void ring_fini(struct gi_sim *sim, struct gi_sim_ring *ring)
{
    gi_free(sim->allocator, ring->data, ring->capacity);
}

static uint32_t ring_room(const struct gi_sim_ring *ring)
{
    return ring->capacity - ring->size;
}

static void ring_clear(struct gi_sim_ring *ring)
{
    ring->first = 0;
    ring->size = 0;
}

static void ring_push(struct gi_sim_ring *ring, const uint8_t *data, uint32_t size)
{
    GI_ASSERT(size <= ring_room(ring));
    while (size > 0) {
        uint32_t at = (uint32_t)(((uint64_t)ring->first + ring->size) % ring->capacity);
        uint32_t run = gi_min_u32(size, ring->capacity - at);
        memcpy(ring->data + at, data, run);
        data += run;
        size -= run;
        ring->size += run;
    }
}

/* Takes `size` bytes out, into `data` unless that is NULL. */
static void ring_pop(struct gi_sim_ring *ring, uint8_t *data, uint32_t size)
{
    GI_ASSERT(size <= ring->size);
    while (size > 0) {
        uint32_t run = gi_min_u32(size, ring->capacity - ring->first);
        memcpy(data, ring->data + ring->first, run);
        data += run;
        size -= run;
        ring->size -= run;
        ring->first = (ring->first + run) % ring->capacity;
    }
}

static void ring_move(struct gi_sim_ring *from, struct gi_sim_ring *to, uint32_t size)
{
    while (size > 0) {
        uint32_t run = gi_min_u32(size, from->capacity - from->first);
        ring_push(to, from->data + from->first, run);
        from->first = (from->first + run) % from->capacity;
        from->size -= run;
        size -= run;
    }
}

static void ring_resize(struct gi_sim *sim, struct gi_sim_ring *ring, uint32_t capacity)
{
    struct gi_sim_ring old = *ring;
    ring_init(sim, ring, gi_max_u32(gi_max_u32(capacity, old.size), 1));
    ring_move(&old, ring, old.size);
    ring_fini(sim, &old);
}

/* Connections ------------------------------------------------------------------------------ */

static struct gi_sim_end *other_end(struct gi_sim_end *end)
{
    struct gi_sim_connection *connection = end->connection;
    return end == &connection->ends[0] ? &connection->ends[1] : &connection->ends[0];
}

/* What the trace calls an end: the connection's number, and the side as its sign. */
static int64_t end_name(const struct gi_sim_end *end)
{
    int64_t number = end->connection->number;
    return end == &end->connection->ends[0] ? number : -number;
}

static gori_time travel_time(struct gi_sim *sim, bool slow)
{
    if (slow) {
        return gi_random_range(&sim->random, GORI_MILLISECONDS, 50 * GORI_MILLISECONDS);
    }
    if (sim->config.delay_max == 0) {
        return 0;
    }
    return gi_random_range(&sim->random, sim->config.delay_min, sim->config.delay_max);
}

/* The end is over: N3.  What it had not sent is lost. */
static void end_dies(struct gi_sim *sim, struct gi_sim_end *end)
{
    end->dead = true;
    ring_clear(&end->out);
    gi_sim_unschedule(sim, &end->pump);
    gi_sim_unschedule(sim, &end->cut);
}

static void reset_arrives(struct gi_sim *sim, struct gi_sim_event *event)
{
    struct gi_sim_end *end = gori_container_of(event, struct gi_sim_end, cut);
    if (end->dead) {
        return;
    }
    end_dies(sim, end);
    if (end->closed) {
        return;
    }
    end->error = end->ended ? GORI_EPIPE : GORI_ECONNRESET;
    if (gi_sim_chance(sim, sim->config.faults.discard)) {
        ring_clear(&end->in);
    }
    gi_sim_trace(sim, "reset arrives", end_name(end), end->in.size, 0);
}

/* `end` tells the other end that the connection is no more. */
static void send_reset(struct gi_sim *sim, struct gi_sim_end *end)
{
    struct gi_sim_end *other = other_end(end);
    end_dies(sim, end);
    gori_time delay = travel_time(sim, end->connection->slow);
    if (delay > 0) {
        gi_sim_schedule(sim, &other->cut, delay, reset_arrives);
    } else {
        reset_arrives(sim, &other->cut);
    }
}

static bool can_flow(struct gi_sim_end *end)
{
    struct gi_sim_end *other = other_end(end);
    if (end->dead || end->end_sent || other->dead) {
        return false;
    }
    if (end->out.size == 0) {
        return end->shut;
    }
    return other->closed || ring_room(&other->in) > 0;
}

/* The network takes one step for the bytes of `end`. */
static void carry(struct gi_sim *sim, struct gi_sim_end *end)
{
    struct gi_sim_end *other = other_end(end);
    if (other->closed) {
        /* Nobody will read it, which TCP answers by a reset. */
        if (end->out.size > 0) {
            ring_clear(&end->out);
            send_reset(sim, other);
        } else {
            end->end_sent = true;
        }
        return;
    }
    if (end->out.size > 0 && gi_sim_chance(sim, sim->config.faults.reset)) {
        sim->stats.resets++;
        gi_sim_trace(sim, "network resets", end_name(end), end->out.size, other->in.size);
        reset_arrives(sim, &end->cut);
        reset_arrives(sim, &other->cut);
        return;
    }
    uint32_t size = gi_min_u32(end->out.size, ring_room(&other->in));
    bool cut = gi_sim_chance(sim, sim->config.faults.segment);
    if (size > 0) {
        size = cut || end->connection->slow ? (uint32_t)gi_sim_cut_size(sim, size) : size;
        ring_move(&end->out, &other->in, size);
        sim->stats.bytes += size;
        gi_sim_trace(sim, "bytes arrive", end_name(end), size, other->in.size);
    }
    if (end->out.size == 0 && end->shut && !cut) {
        end->end_sent = true;
        other->ended = true;
        gi_sim_trace(sim, "end arrives", end_name(end), other->in.size, 0);
    }
}

static void flow(struct gi_sim *sim, struct gi_sim_end *end);

static void pump(struct gi_sim *sim, struct gi_sim_event *event)
{
    struct gi_sim_end *end = gori_container_of(event, struct gi_sim_end, pump);
    if (can_flow(end)) {
        carry(sim, end);
    }
    flow(sim, end);
}

/* Lets the network work for `end`, now or a little later. */
static void flow(struct gi_sim *sim, struct gi_sim_end *end)
{
    while (end->pump.place == 0 && can_flow(end)) {
        gori_time delay = travel_time(sim, end->connection->slow);
        if (delay > 0) {
            gi_sim_schedule(sim, &end->pump, delay, pump);
        } else {
            carry(sim, end);
        }
    }
}

static void connection_free(struct gi_sim *sim, struct gi_sim_connection *connection)
{
    for (int i = 0; i < 2; i++) {
        struct gi_sim_end *end = &connection->ends[i];
        gi_sim_unschedule(sim, &end->pump);
        gi_sim_unschedule(sim, &end->cut);
        ring_fini(sim, &end->in);
        ring_fini(sim, &end->out);
    }
    gi_list_remove(&connection->link);
    sim->stats.connections_now--;
    gi_free(sim->allocator, connection, sizeof(*connection));
}

static void end_close(struct gi_sim *sim, struct gi_sim_end *end, bool reset)
{
    struct gi_sim_end *other = other_end(end);
    bool unread = end->in.size > 0;
    gi_sim_trace(sim, "end closes", end_name(end), end->in.size, reset);
    end->closed = true;
    end->socket = NULL;
    gi_sim_unschedule(sim, &end->cut);
    ring_clear(&end->in);
    if (other->closed) {
        connection_free(sim, end->connection);
        return;
    }
    if (!end->dead && (reset || unread)) {
        send_reset(sim, end);
    } else if (!end->dead) {
        end->shut = true;
        flow(sim, end);
    }
    flow(sim, other); /* what waited for room here is answered by a reset now */
}

/* Addresses -------------------------------------------------------------------------------- */

static bool same_addr(const struct gori_addr *a, const struct gori_addr *b)
{
    return a->size == b->size && memcmp(a->as.native, b->as.native, a->size) == 0;
}

static bool is_any(const struct gi_sim *sim, const struct gori_addr *addr)
{
    struct gori_addr host = *addr;
    gori_addr_set_port(&host, 0);
    return same_addr(&host, &sim->any_ipv4) || same_addr(&host, &sim->any_ipv6);
}

/* Whether this machine has the address; connects to all others are never answered. */
static bool is_local(const struct gi_sim *sim, const struct gori_addr *addr)
{
    char text[GORI_ADDR_TEXT_BYTES];
    gori_addr_format(addr, text, sizeof(text));
    return gori_addr_family(addr) == GORI_ADDR_UNIX || strncmp(text, "127.", 4) == 0 ||
           strncmp(text, "[::1]", 5) == 0 || is_any(sim, addr);
}

/* How well a listener fits a target: 0 not at all, more is better. */
static int fit(const struct gi_sim *sim, const struct gi_sim_socket *listener,
               const struct gori_addr *target)
{
    if (same_addr(&listener->addr, target)) {
        return 3;
    }
    if (gori_addr_family(target) == GORI_ADDR_UNIX ||
        gori_addr_port(&listener->addr) != gori_addr_port(target) ||
        !is_any(sim, &listener->addr)) {
        return 0;
    }
    if (listener->family == gori_addr_family(target)) {
        return 2;
    }
    return listener->family == GORI_ADDR_IPV6 && !listener->options.ipv6_only ? 1 : 0;
}

/* The listener that gets a connection; among equals, which share a port, the seed chooses. */
static struct gi_sim_socket *find_listener(struct gi_sim *sim, const struct gori_addr *target)
{
    struct gi_sim_socket *best = NULL;
    int best_fit = 0;
    uint64_t equals = 0;
    for (uint32_t i = 0; i < sim->socket_capacity; i++) {
        struct gi_sim_socket *socket = sim->sockets[i];
        int its_fit =
            socket != NULL && socket->kind == GI_SIM_LISTENER ? fit(sim, socket, target) : 0;
        if (its_fit == 0 || its_fit < best_fit) {
            continue;
        }
        equals = its_fit > best_fit ? 1 : equals + 1;
        if (equals == 1 || gi_random_below(&sim->random, equals) == 0) {
            best = socket;
        }
        best_fit = its_fit;
    }
    return best;
}

static bool is_taken(const struct gi_sim *sim, const struct gori_addr *addr,
                     const struct gi_listen_options *options)
{
    for (uint32_t i = 0; i < sim->socket_capacity; i++) {
        const struct gi_sim_socket *socket = sim->sockets[i];
        if (socket == NULL || socket->kind != GI_SIM_LISTENER ||
            (options->reuse_port && socket->options.reuse_port)) {
            continue;
        }
        /* Either of them would get what is meant for the other. */
        struct gi_sim_socket one = {
            .family = gori_addr_family(addr), .addr = *addr, .options = *options};
        if (fit(sim, socket, addr) > 0 || fit(sim, &one, &socket->addr) > 0) {
            return true;
        }
    }
    return false;
}

static uint16_t take_port(struct gi_sim *sim)
{
    uint16_t port = sim->next_port;
    sim->next_port = port < 60000 ? (uint16_t)(port + 1) : 20000;
    return port;
}

static bool was_bound(const struct gi_sim *sim, const struct gori_addr *addr)
{
    GI_LIST_FOREACH (link, &sim->paths) {
        if (same_addr(&gori_container_of(link, struct gi_sim_path, link)->addr, addr)) {
            return true;
        }
    }
    return false;
}

static void remember_path(struct gi_sim *sim, const struct gori_addr *addr)
{
    if (gori_addr_family(addr) != GORI_ADDR_UNIX || was_bound(sim, addr)) {
        return;
    }
    struct gi_sim_path *path = gi_alloc_zero(sim->allocator, sizeof(*path));
    GI_ASSERT(path != NULL);
    path->addr = *addr;
    gi_list_push_back(&sim->paths, &path->link);
}

/* Sockets ---------------------------------------------------------------------------------- */

static struct gi_sim_socket *socket_get(struct gi_sim *sim, gori_native native)
{
    uint64_t index = (uint64_t)native - GI_SIM_NATIVE_FROM;
    if (index >= sim->socket_capacity || sim->sockets[index] == NULL) {
        gi_sim_trace(sim, "bad descriptor", native, 0, 0);
        gi_sim_fail(sim, "a call on a socket that is not open");
    }
    return sim->sockets[index];
}

static uint32_t random_bytes(struct gi_sim *sim, uint32_t min, uint32_t max)
{
    return min == max ? min : (uint32_t)gi_random_range(&sim->random, min, max);
}

static uint32_t lowest_free(struct gi_sim *sim)
{
    for (uint32_t i = 0; i < sim->socket_capacity; i++) {
        if (sim->sockets[i] == NULL) {
            return i;
        }
    }
    uint32_t capacity = sim->socket_capacity > 0 ? 2 * sim->socket_capacity : 64;
    sim->sockets = gi_realloc(sim->allocator, sim->sockets,
                              sim->socket_capacity * sizeof(struct gi_sim_socket *),
                              capacity * sizeof(struct gi_sim_socket *));
    GI_ASSERT(sim->sockets != NULL);
    memset(sim->sockets + sim->socket_capacity, 0,
           (capacity - sim->socket_capacity) * sizeof(struct gi_sim_socket *));
    uint32_t index = sim->socket_capacity;
    sim->socket_capacity = capacity;
    return index;
}

static int random_shortage(struct gi_sim *sim)
{
    static const int errors[] = {GORI_EMFILE, GORI_ENFILE, GORI_ENOBUFS, GORI_ENOMEM};
    return errors[gi_random_below(&sim->random, GI_ARRAY_COUNT(errors))];
}

static int socket_new(struct gi_sim *sim, struct gi_engine *engine, enum gori_addr_family family,
                      struct gi_sim_socket **ret_socket)
{
    if (engine != NULL && sim->stats.descriptors_now >= sim->config.descriptors_max) {
        return GORI_EMFILE;
    }
    uint32_t index = lowest_free(sim);
    struct gi_sim_socket *socket = gi_alloc_zero(sim->allocator, sizeof(*socket));
    GI_ASSERT(socket != NULL);
    socket->native = GI_SIM_NATIVE_FROM + (gori_native)index;
    socket->sim = sim;
    socket->engine = engine;
    socket->family = family;
    const struct gi_sim_config *config = &sim->config;
    socket->send_bytes = random_bytes(sim, config->send_bytes_min, config->send_bytes_max);
    socket->recv_bytes = random_bytes(sim, config->recv_bytes_min, config->recv_bytes_max);
    gi_list_init(&socket->pending);
    sim->sockets[index] = socket;
    *(engine != NULL ? &sim->stats.descriptors_now : &sim->stats.peers_now) += 1;
    *ret_socket = socket;
    return 0;
}

int gi_sim_open(struct gi_sim *sim, struct gi_engine *engine, enum gori_addr_family family,
                gori_native *ret_native)
{
    if (engine != NULL && gi_sim_chance(sim, sim->config.faults.open_error)) {
        return random_shortage(sim);
    }
    struct gi_sim_socket *socket;
    int status = socket_new(sim, engine, family, &socket);
    if (status == 0) {
        gi_sim_trace(sim, "open", socket->native, 0, 0);
        *ret_native = socket->native;
    }
    return status;
}

int gi_sim_listen(struct gi_sim *sim, struct gi_engine *engine, const struct gori_addr *addr,
                  const struct gi_listen_options *options, gori_native *ret_native)
{
    struct gori_addr own = *addr;
    enum gori_addr_family family = gori_addr_family(addr);
    if (family == GORI_ADDR_NONE) {
        return GORI_EINVAL;
    }
    if (!is_local(sim, addr)) {
        return GORI_EADDRNOTAVAIL;
    }
    if (family != GORI_ADDR_UNIX && gori_addr_port(addr) == 0) {
        do {
            gori_addr_set_port(&own, take_port(sim));
        } while (is_taken(sim, &own, options));
    } else if (is_taken(sim, addr, options)) {
        return GORI_EADDRINUSE;
    }
    gori_native native;
    int status = gi_sim_open(sim, engine, family, &native);
    if (status < 0) {
        return status;
    }
    struct gi_sim_socket *socket = socket_get(sim, native);
    socket->kind = GI_SIM_LISTENER;
    socket->addr = own;
    socket->options = *options;
    remember_path(sim, &own);
    gi_sim_trace(sim, "listen", native, gori_addr_port(&own), 0);
    *ret_native = native;
    return 0;
}

int gi_sim_accept(struct gi_sim *sim, gori_native native, gori_native *ret_native)
{
    struct gi_sim_socket *listener = socket_get(sim, native);
    if (listener->kind != GI_SIM_LISTENER) {
        return GORI_EINVAL;
    }
    if (gi_list_is_empty(&listener->pending)) {
        return GORI_EAGAIN;
    }
    struct gi_sim_end *end =
        gori_container_of(gi_list_first(&listener->pending), struct gi_sim_end, pending);
    bool faulty = listener->engine != NULL;
    if (faulty && gi_sim_chance(sim, sim->config.faults.accept_error)) {
        return random_shortage(sim);
    }
    struct gi_sim_socket *socket;
    if (faulty && end->dead && gi_sim_chance(sim, sim->config.faults.abort)) {
        gi_list_remove(&end->pending);
        listener->pending_count--;
        end_close(sim, end, false);
        return GORI_ECONNABORTED;
    }
    int status = socket_new(sim, listener->engine, listener->family, &socket);
    if (status < 0) {
        return status;
    }
    gi_list_remove(&end->pending);
    listener->pending_count--;
    socket->kind = GI_SIM_STREAM;
    socket->end = end;
    end->socket = socket;
    gi_sim_trace(sim, "accept", socket->native, end_name(end), 0);
    *ret_native = socket->native;
    return 0;
}

/* Connect ---------------------------------------------------------------------------------- */

static void connect_fails(struct gi_sim *sim, struct gi_sim_socket *socket, int error)
{
    socket->kind = GI_SIM_REFUSED;
    socket->connect_error = error;
    gi_sim_trace(sim, "connect fails", socket->native, error, 0);
}

static void establish(struct gi_sim *sim, struct gi_sim_socket *socket,
                      struct gi_sim_socket *listener)
{
    struct gi_sim_connection *connection = gi_alloc_zero(sim->allocator, sizeof(*connection));
    GI_ASSERT(connection != NULL);
    connection->number = ++sim->next_connection;
    connection->slow = gi_sim_chance(sim, sim->config.faults.slow);
    gi_list_push_back(&sim->connections, &connection->link);
    sim->stats.connections++;
    sim->stats.connections_now++;
    struct gi_sim_end *ours = &connection->ends[0];
    struct gi_sim_end *theirs = &connection->ends[1];
    ours->connection = connection;
    theirs->connection = connection;
    ring_init(sim, &ours->out, socket->send_bytes);
    ring_init(sim, &ours->in, socket->recv_bytes);
    ring_init(sim, &theirs->out, listener->send_bytes);
    ring_init(sim, &theirs->in, listener->recv_bytes);
    ours->peer = socket->addr;
    theirs->local = socket->addr;
    if (gori_addr_family(&socket->addr) != GORI_ADDR_UNIX) {
        ours->local = socket->addr;
        gori_addr_set_port(&ours->local, take_port(sim));
    }
    theirs->peer = ours->local;
    ours->socket = socket;
    socket->end = ours;
    socket->kind = GI_SIM_STREAM;
    gi_list_push_back(&listener->pending, &theirs->pending);
    listener->pending_count++;
    gi_sim_trace(sim, "connected", socket->native, connection->number, connection->slow);
}

int gi_sim_pair(struct gi_sim *sim, struct gi_engine *engine, gori_native *ret_ours,
                gori_native *ret_theirs)
{
    gori_native ours;
    int status = gi_sim_open(sim, engine, GORI_ADDR_UNIX, &ours);
    if (status < 0) {
        return status;
    }
    struct gi_sim_socket *socket = socket_get(sim, ours);
    struct gi_sim_socket *other;
    status = socket_new(sim, NULL, GORI_ADDR_UNIX, &other);
    GI_ASSERT(status == 0);
    establish(sim, socket, other);
    struct gi_sim_end *end = other_end(socket->end);
    gi_list_remove(&end->pending);
    other->pending_count = 0;
    other->kind = GI_SIM_STREAM;
    other->end = end;
    end->socket = other;
    *ret_ours = ours;
    *ret_theirs = other->native;
    return 0;
}

static void attempt(struct gi_sim *sim, struct gi_sim_event *event)
{
    struct gi_sim_socket *socket = gori_container_of(event, struct gi_sim_socket, attempt);
    if (!is_local(sim, &socket->addr)) {
        return; /* nobody answers, not even by a refusal */
    }
    struct gi_sim_socket *listener = find_listener(sim, &socket->addr);
    bool is_unix = gori_addr_family(&socket->addr) == GORI_ADDR_UNIX;
    if (listener == NULL) {
        bool unknown = is_unix && !was_bound(sim, &socket->addr);
        connect_fails(sim, socket, unknown ? GORI_ENOTFOUND : GORI_ECONNREFUSED);
        return;
    }
    if (socket->engine != NULL && gi_sim_chance(sim, sim->config.faults.refuse)) {
        connect_fails(sim, socket, GORI_ECONNREFUSED);
        return;
    }
    if (listener->pending_count <= listener->options.backlog) {
        establish(sim, socket, listener);
    } else if (++socket->attempts < CONNECT_ATTEMPTS) {
        gi_sim_schedule(sim, &socket->attempt, GORI_SECONDS << socket->attempts, attempt);
    } else {
        connect_fails(sim, socket, GORI_ETIMEDOUT);
    }
}

int gi_sim_connect(struct gi_sim *sim, gori_native native, const struct gori_addr *addr)
{
    struct gi_sim_socket *socket = socket_get(sim, native);
    if (socket->kind == GI_SIM_FRESH) {
        if (gori_addr_family(addr) != socket->family) {
            return GORI_EINVAL;
        }
        socket->kind = GI_SIM_CONNECTING;
        socket->addr = *addr;
        gi_sim_trace(sim, "connect", native, gori_addr_port(addr), 0);
        gori_time delay = travel_time(sim, false);
        if (delay > 0) {
            gi_sim_schedule(sim, &socket->attempt, delay, attempt);
        } else {
            attempt(sim, &socket->attempt);
        }
    }
    switch (socket->kind) {
    case GI_SIM_STREAM:
        return 0;
    case GI_SIM_REFUSED:
        return socket->connect_error;
    case GI_SIM_CONNECTING:
        return GORI_EAGAIN;
    default:
        return GORI_EINVAL;
    }
}

/* Transfer and the rest -------------------------------------------------------------------- */

static int take_error(struct gi_sim_end *end, int otherwise)
{
    int error = end->error != 0 ? end->error : otherwise;
    end->error = 0;
    return error;
}

int64_t gi_sim_recv(struct gi_sim *sim, gori_native native, void *data, size_t size)
{
    struct gi_sim_end *end = socket_get(sim, native)->end;
    if (end == NULL) {
        return GORI_ECLOSED;
    }
    if (end->in.size > 0) {
        uint32_t taken = (uint32_t)gi_min_size(size, end->in.size);
        ring_pop(&end->in, data, taken);
        flow(sim, other_end(end));
        return taken;
    }
    if (end->ended) {
        return 0;
    }
    return end->dead ? take_error(end, 0) : GORI_EAGAIN;
}

int64_t gi_sim_send(struct gi_sim *sim, gori_native native, const void *data, size_t size)
{
    struct gi_sim_end *end = socket_get(sim, native)->end;
    if (end == NULL) {
        return GORI_ECLOSED;
    }
    if (end->dead) {
        return take_error(end, GORI_EPIPE);
    }
    if (end->shut) {
        return GORI_EPIPE;
    }
    uint32_t taken = (uint32_t)gi_min_size(size, ring_room(&end->out));
    if (taken == 0) {
        return size > 0 ? GORI_EAGAIN : 0;
    }
    ring_push(&end->out, data, taken);
    flow(sim, end);
    return taken;
}

int gi_sim_shutdown_send(struct gi_sim *sim, gori_native native)
{
    struct gi_sim_end *end = socket_get(sim, native)->end;
    if (end == NULL || end->dead) {
        return GORI_ECLOSED;
    }
    if (!end->shut) {
        gi_sim_trace(sim, "shutdown", native, end_name(end), end->out.size);
        end->shut = true;
        flow(sim, end);
    }
    return 0;
}

void gi_sim_set_reset_on_close(struct gi_sim *sim, gori_native native)
{
    socket_get(sim, native)->reset_on_close = true;
}

int gi_sim_set_buffers(struct gi_sim *sim, gori_native native, uint32_t send_bytes,
                       uint32_t recv_bytes)
{
    struct gi_sim_socket *socket = socket_get(sim, native);
    socket->send_bytes = gi_max_u32(send_bytes, 1);
    socket->recv_bytes = gi_max_u32(recv_bytes, 1);
    if (socket->end != NULL) {
        ring_resize(sim, &socket->end->out, send_bytes);
        ring_resize(sim, &socket->end->in, recv_bytes);
        flow(sim, other_end(socket->end));
    }
    return 0;
}

int gi_sim_addr(struct gi_sim *sim, gori_native native, enum gi_socket_end end,
                struct gori_addr *ret_addr)
{
    const struct gi_sim_socket *socket = socket_get(sim, native);
    if (socket->end != NULL) {
        *ret_addr = end == GI_SOCKET_LOCAL ? socket->end->local : socket->end->peer;
        return 0;
    }
    if (end == GI_SOCKET_PEER) {
        return GORI_ECLOSED;
    }
    if (socket->kind == GI_SIM_LISTENER) {
        *ret_addr = socket->addr;
    } else if (socket->family == GORI_ADDR_UNIX) {
        *ret_addr = (struct gori_addr){0};
    } else {
        *ret_addr = socket->family == GORI_ADDR_IPV4 ? sim->any_ipv4 : sim->any_ipv6;
    }
    return 0;
}

uint32_t gi_sim_ready(struct gi_sim *sim, gori_native native)
{
    const struct gi_sim_socket *socket = socket_get(sim, native);
    const struct gi_sim_end *end = socket->end;
    if (socket->kind == GI_SIM_SOURCE) {
        return (socket->source->is_ready ? GI_SIM_READABLE : 0U) |
               (socket->source->is_full ? 0U : GI_SIM_WRITABLE);
    }
    if (socket->kind == GI_SIM_LISTENER) {
        return gi_list_is_empty(&socket->pending) ? 0U : GI_SIM_READABLE;
    }
    if (end == NULL) {
        /* What is not connected answers at once, by an error; what connects does not answer. */
        return socket->kind == GI_SIM_CONNECTING ? 0U : GI_SIM_READABLE | GI_SIM_WRITABLE;
    }
    uint32_t ready = 0;
    if (end->in.size > 0 || end->ended || end->dead) {
        ready |= GI_SIM_READABLE;
    }
    if (end->dead || end->shut || ring_room(&end->out) > 0) {
        ready |= GI_SIM_WRITABLE;
    }
    return ready | (end->ended ? GI_SIM_ENDED : 0U) | (end->dead ? GI_SIM_RESET : 0U);
}

void gi_sim_close(struct gi_sim *sim, gori_native native)
{
    struct gi_sim_socket *socket = socket_get(sim, native);
    gi_sim_trace(sim, "close", native, socket->reset_on_close, 0);
    gi_sim_unschedule(sim, &socket->attempt);
    struct gori_link *link;
    while ((link = gi_list_pop_front(&socket->pending)) != NULL) {
        end_close(sim, gori_container_of(link, struct gi_sim_end, pending), true);
    }
    if (socket->end != NULL) {
        end_close(sim, socket->end, socket->reset_on_close);
    }
    if (socket->source != NULL && --socket->source->names == 0) {
        gi_free(sim->allocator, socket->source, sizeof(*socket->source));
    }
    sim->sockets[native - GI_SIM_NATIVE_FROM] = NULL;
    *(socket->engine != NULL ? &sim->stats.descriptors_now : &sim->stats.peers_now) -= 1;
    gi_free(sim->allocator, socket, sizeof(*socket));
}

/* Event sources ---------------------------------------------------------------------------- */

static int name_source(struct gi_sim *sim, struct gi_engine *engine, struct gi_sim_source *source,
                       gori_native *ret_source)
{
    gori_native native;
    int status = gi_sim_open(sim, engine, GORI_ADDR_NONE, &native);
    if (status < 0) {
        return status;
    }
    struct gi_sim_socket *socket = socket_get(sim, native);
    socket->kind = GI_SIM_SOURCE;
    socket->source = source;
    source->names++;
    *ret_source = native;
    return 0;
}

static struct gi_sim_source *source_get(struct gi_sim *sim, gori_native native)
{
    const struct gi_sim_socket *socket = socket_get(sim, native);
    if (socket->kind != GI_SIM_SOURCE) {
        gi_sim_fail(sim, "a socket where an event source is asked for");
    }
    return socket->source;
}

int gi_sim_source_open(struct gi_sim *sim, struct gi_engine *engine, gori_native *ret_source)
{
    struct gi_sim_source *source = gi_alloc_zero(sim->allocator, sizeof(*source));
    GI_ASSERT(source != NULL);
    int status = name_source(sim, engine, source, ret_source);
    if (status < 0) {
        gi_free(sim->allocator, source, sizeof(*source));
    }
    return status;
}

int gi_sim_source_duplicate(struct gi_sim *sim, struct gi_engine *engine, gori_native source,
                            gori_native *ret_source)
{
    return name_source(sim, engine, source_get(sim, source), ret_source);
}

void gi_sim_source_set(struct gi_sim *sim, gori_native source, bool is_ready)
{
    gi_sim_trace(sim, is_ready ? "ready" : "not ready", source, 0, 0);
    source_get(sim, source)->is_ready = is_ready;
}

void gi_sim_source_fill(struct gi_sim *sim, gori_native source, bool is_full)
{
    gi_sim_trace(sim, is_full ? "full" : "not full", source, 0, 0);
    source_get(sim, source)->is_full = is_full;
}

void gi_sim_network_dump(const struct gi_sim *sim)
{
    static const char *const kinds[] = {"fresh",  "connecting", "refused",
                                        "stream", "listener",   "source"};
    for (uint32_t i = 0; i < sim->socket_capacity; i++) {
        const struct gi_sim_socket *socket = sim->sockets[i];
        if (socket == NULL) {
            continue;
        }
        fprintf(stderr, "socket %" PRIdPTR " %s%s", socket->native, kinds[socket->kind],
                socket->engine == NULL ? " (peer)" : "");
        const struct gi_sim_end *end = socket->end;
        if (end != NULL) {
            fprintf(stderr, ", end %" PRId64 ": in %u/%u out %u/%u%s%s%s%s", end_name(end),
                    end->in.size, end->in.capacity, end->out.size, end->out.capacity,
                    end->shut ? " shut" : "", end->end_sent ? " end-sent" : "",
                    end->ended ? " ended" : "", end->dead ? " dead" : "");
        } else if (socket->kind == GI_SIM_LISTENER) {
            fprintf(stderr, ", port %u, %u waiting", gori_addr_port(&socket->addr),
                    socket->pending_count);
        }
        fprintf(stderr, "\n");
    }
}

void gi_sim_network_fini(struct gi_sim *sim)
{
    GI_ASSERT(gi_list_is_empty(&sim->connections));
    struct gori_link *link;
    while ((link = gi_list_pop_front(&sim->paths)) != NULL) {
        struct gi_sim_path *path = gori_container_of(link, struct gi_sim_path, link);
        gi_free(sim->allocator, path, sizeof(*path));
    }
    gi_free(sim->allocator, sim->sockets, sim->socket_capacity * sizeof(struct gi_sim_socket *));
}
