/* SPDX-License-Identifier: MIT */
/*
 * The server: its configuration, its beginning and its end.
 *
 *  1. Everything is allocated here, but for files, and for requests that come in parts; a request
 *     for a known file allocates nothing.
 *  2. A server that is destroyed goes with its last connection: connections end when the loop says
 *     so, and count in the server until then.
 *
 * Thread: the loop's.
 */
#include "web/server.h"

#include <gori/error.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"

#define PENDINGS_PER_CHUNK 8u
#define BYTES_MAX          ((uint32_t)256 << 10)
#define FILES_MAX          ((uint32_t)1 << 20)

/* What may be shown beyond the end of a request that is not yet whole. */
#define RECV_SLACK_BYTES ((size_t)64 << 10)

/* Room in the scratch for a head without its location, and for a text that is a body. */
#define SCRATCH_HEAD_BYTES 2048u

static void set_default_u32(uint32_t *value, uint32_t otherwise)
{
    *value = *value == 0 ? otherwise : *value;
}

static void set_default_u64(uint64_t *value, uint64_t otherwise)
{
    *value = *value == 0 ? otherwise : *value;
}

static void set_defaults(struct gori_web_config *config)
{
    if (config->server_name == NULL) {
        config->server_name = "gori";
    }
    set_default_u64(&config->idle_timeout, 60 * GORI_SECONDS);
    set_default_u64(&config->header_timeout, 10 * GORI_SECONDS);
    set_default_u64(&config->revalidate, GORI_SECONDS);
    set_default_u32(&config->target_bytes_max, GI_HTTP1_TARGET_SIZE_DEFAULT);
    set_default_u32(&config->head_bytes_max, GI_HTTP1_HEAD_SIZE_DEFAULT);
    set_default_u32(&config->headers_max, GI_HTTP1_HEADER_COUNT_DEFAULT);
    set_default_u32(&config->body_bytes_max, (uint32_t)32 << 10);
    set_default_u64(&config->cache_bytes, (uint64_t)64 << 20);
    set_default_u32(&config->cache_files, 4096);
    set_default_u32(&config->cache_open_files, 256);
    set_default_u32(&config->cache_file_bytes, (uint32_t)16 << 10);
}

static bool is_valid(const struct gori_web_config *config)
{
    return config->root != NULL && config->head_bytes_max <= BYTES_MAX &&
           config->target_bytes_max <= config->head_bytes_max &&
           config->body_bytes_max <= BYTES_MAX &&
           config->headers_max <= GI_HTTP1_HEADER_COUNT_MAX && config->cache_files <= FILES_MAX &&
           config->cache_open_files <= FILES_MAX && config->cache_file_bytes <= (64u << 20);
}

/* The header line Server; a name that cannot stand in a header is refused. */
static int write_server_line(struct gori_web_server *server, const char *name)
{
    if (name[0] == '\0') {
        return 0;
    }
    struct gi_http1_writer writer;
    gi_http1_writer_init(&writer, (uint8_t *)server->server_line, sizeof(server->server_line) - 3);
    gi_http1_write_text(&writer, "Server", name);
    if (writer.reason < 0) {
        return GORI_EINVAL;
    }
    server->server_line[writer.size] = '\0';
    return 0;
}

static int open_cache(struct gori_web_server *server)
{
    const struct gori_web_config *config = &server->config;
    uint64_t share = config->cache_bytes / 4; /* of one file at most */
    const struct gi_web_cache_config cache = {
        .allocator = server->allocator,
        .root = config->root,
        .bytes_max = config->cache_bytes,
        .files_max = config->cache_files,
        .open_files_max = config->cache_open_files,
        .file_bytes_max =
            share < config->cache_file_bytes ? (uint32_t)share : config->cache_file_bytes,
        .name_bytes_max = config->target_bytes_max + 1,
        .revalidate = config->revalidate,
        .hidden_files = config->hidden_files,
    };
    return gi_web_cache_init(&server->cache, &cache);
}

static void free_memory(struct gori_web_server *server)
{
    gi_free(server->allocator, server->scratch, server->scratch_bytes);
    gi_free(server->allocator, server->headers,
            server->config.headers_max * sizeof(struct gi_http1_header));
    gi_free(server->allocator, server, sizeof(*server));
}

/* Fills a zeroed server whose config is set. */
static int init(struct gori_web_server *server)
{
    const struct gori_web_config *config = &server->config;
    gi_list_init(&server->connections);
    gi_web_clock_init(&server->clock, config->wall_clock, config->user);
    int result = write_server_line(server, config->server_name);
    if (result < 0) {
        return result;
    }
    server->name_bytes = (size_t)config->target_bytes_max + 1;
    server->scratch_bytes = 5 * server->name_bytes + SCRATCH_HEAD_BYTES;
    server->scratch = gi_alloc(server->allocator, server->scratch_bytes);
    server->headers =
        gi_alloc_array(server->allocator, config->headers_max, sizeof(struct gi_http1_header));
    if (server->scratch == NULL || server->headers == NULL) {
        return GORI_ENOMEM;
    }
    const struct gi_http1_limits limits = {
        .target_size = config->target_bytes_max,
        .head_size = config->head_bytes_max,
        .header_count = config->headers_max,
    };
    gi_http1_parser_init(&server->parser, &limits, server->headers);
    result = gi_pool_init(&server->pendings, server->allocator, gi_web_pending_bytes(server),
                          PENDINGS_PER_CHUNK, 0);
    return result < 0 ? result : open_cache(server);
}

int gori_web_server_create(struct gori_loop *loop, const struct gori_web_config *config,
                           struct gori_web_server **ret_server)
{
    struct gori_web_config whole = *config;
    set_defaults(&whole);
    if (!is_valid(&whole)) {
        return GORI_EINVAL;
    }
    struct gori_web_server *server = gi_alloc_zero(whole.allocator, sizeof(*server));
    if (server == NULL) {
        return GORI_ENOMEM;
    }
    server->loop = loop;
    server->allocator = whole.allocator;
    server->config = whole;
    int result = init(server);
    if (result < 0) {
        free_memory(server);
        return result;
    }
    /* The caller's texts are copied by now, and are not looked at again. */
    server->config.root = NULL;
    server->config.server_name = NULL;
    *ret_server = server;
    return 0;
}

void gori_web_server_listen_config(struct gori_web_server *server,
                                   struct gori_listener_config *config)
{
    config->events = &gi_web_events;
    config->user = server;
    config->options.idle_timeout = server->config.idle_timeout;
    config->options.recv_max = (uint32_t)(gi_web_message_bytes(server) + RECV_SLACK_BYTES);
    config->options.context_bytes = (uint32_t)gi_web_connection_bytes();
}

void gori_web_server_stop(struct gori_web_server *server)
{
    if (!server->stopping) {
        server->stopping = true;
        gi_web_stop_connections(server);
    }
}

void gi_web_server_release(struct gori_web_server *server)
{
    if (server->destroyed && gi_list_is_empty(&server->connections)) {
        gi_web_cache_fini(&server->cache);
        gi_pool_fini(&server->pendings);
        free_memory(server);
    }
}

void gori_web_server_destroy(struct gori_web_server *server)
{
    if (server == NULL) {
        return;
    }
    GI_ASSERT(!server->destroyed);
    server->destroyed = true;
    gi_web_close_connections(server);
    gi_web_server_release(server);
}

void gori_web_server_stats(const struct gori_web_server *server, struct gori_web_stats *ret_stats)
{
    *ret_stats = server->stats;
    ret_stats->cache_hits = server->cache.hits;
    ret_stats->cache_misses = server->cache.misses;
    ret_stats->cache_bytes_now = server->cache.bytes;
    ret_stats->cache_files_now = server->cache.small.count + server->cache.large.count;
}
