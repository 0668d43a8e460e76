/* SPDX-License-Identifier: MIT */
/*
 * The session store.
 *
 *  1. A class has its own pool, since `context_bytes` differ: accepting and connecting take no
 *     memory from the allocator once as many sessions have been there at the same time.
 *  2. A class of a listener goes with the listener and its last session.  One of connects is found
 *     again by what it is made of; of those without a session only a few are kept, the ones used
 *     last, so that no pattern of options grows the store.
 *  3. Options are read once, here: after it no field is "the default".
 */
#include "rt/session_store.h"

#include <gori/error.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"

enum {
    SESSION_CHUNK_BYTES = 16 << 10,
    CONTEXT_BYTES_MAX = 16 << 20,
    IDLE_CLASSES_MAX = 16,
    DRAIN_BYTES = 1 << 20,
    SEND_HIGH = 256 << 10,
    SEND_MAX = 16 << 20,
    RECV_MAX = 1 << 20,
};

#define CONNECT_TIMEOUT (10 * GORI_SECONDS)
#define DRAIN_TIMEOUT   (2 * GORI_SECONDS)

int gi_session_store_init(struct gi_session_store *store, const struct gori_allocator *allocator)
{
    *store = (struct gi_session_store){.allocator = allocator};
    gi_list_init(&store->reap);
    gi_list_init(&store->reap_listeners);
    gi_list_init(&store->classes);
    gi_assembly_cache_init(&store->assemblies, allocator);
    int result = gi_send_pools_init(&store->send, allocator);
    if (result >= 0) {
        result =
            gi_pool_init(&store->receive_queues, allocator, sizeof(struct gi_receive_queue), 16, 0);
    }
    if (result >= 0) {
        result = gi_pool_init(&store->addresses, allocator, sizeof(struct gori_addr), 16, 0);
    }
    return result;
}

static void destroy_class(struct gi_session_store *store, struct gi_session_class *class)
{
    GI_ASSERT(class->references == 0);
    GI_ASSERT(class->sessions == 0);
    if (gi_link_is_linked(&class->link)) {
        gi_list_remove(&class->link);
    }
    gi_pool_fini(&class->pool);
    gi_free(store->allocator, class, sizeof(*class));
}

void gi_session_store_fini(struct gi_session_store *store)
{
    GI_ASSERT(gi_list_is_empty(&store->reap));
    GI_ASSERT(gi_list_is_empty(&store->reap_listeners));
    GI_LIST_FOREACH_SAFE (link, &store->classes) {
        destroy_class(store, gori_container_of(link, struct gi_session_class, link));
    }
    gi_assembly_cache_fini(&store->assemblies);
    gi_pool_fini(&store->addresses);
    gi_pool_fini(&store->receive_queues);
    gi_send_pools_fini(&store->send);
}

static uint32_t u32_or(uint32_t value, uint32_t fallback)
{
    return value != 0 ? value : fallback;
}

static gori_time time_or(gori_time value, gori_time fallback)
{
    return value != 0 ? value : fallback;
}

/* Field by field, so that options can be compared as bytes: what lies between them is zero. */
static int read_options(const struct gori_session_options *given,
                        struct gori_session_options *ret_options)
{
    const struct gori_session_options none = {0};
    const struct gori_session_options *from = given != NULL ? given : &none;
    memset(ret_options, 0, sizeof(*ret_options));
    ret_options->idle_timeout = time_or(from->idle_timeout, GORI_NEVER);
    ret_options->connect_timeout = time_or(from->connect_timeout, CONNECT_TIMEOUT);
    ret_options->total_timeout = time_or(from->total_timeout, GORI_NEVER);
    ret_options->drain_timeout = time_or(from->drain_timeout, DRAIN_TIMEOUT);
    ret_options->drain_bytes = u32_or(from->drain_bytes, DRAIN_BYTES);
    ret_options->send_max = u32_or(from->send_max, SEND_MAX);
    ret_options->send_high = u32_or(from->send_high, gi_min_u32(SEND_HIGH, ret_options->send_max));
    ret_options->send_low = u32_or(from->send_low, ret_options->send_high / 4);
    ret_options->recv_max = u32_or(from->recv_max, RECV_MAX);
    ret_options->context_bytes = from->context_bytes;
    ret_options->delay = from->delay;
    bool is_sound = ret_options->send_low <= ret_options->send_high &&
                    ret_options->send_high <= ret_options->send_max &&
                    ret_options->context_bytes <= CONTEXT_BYTES_MAX;
    return is_sound ? 0 : GORI_EINVAL;
}

static int create_class(struct gi_session_store *store,
                        const struct gi_session_class_config *config,
                        const struct gori_session_options *options,
                        struct gi_session_class **ret_class)
{
    struct gi_session_class *class = gi_alloc_zero(store->allocator, sizeof(*class));
    if (class == NULL) {
        return GORI_ENOMEM;
    }
    size_t bytes = config->session_bytes + options->context_bytes;
    uint32_t per_chunk = (uint32_t)gi_max_size(1, SESSION_CHUNK_BYTES / bytes);
    int result = gi_pool_init(&class->pool, store->allocator, bytes, per_chunk, 0);
    if (result < 0) {
        gi_free(store->allocator, class, sizeof(*class));
        return result;
    }
    class->events = config->events;
    class->loop = config->loop;
    class->options = *options;
    class->references = 1;
    *ret_class = class;
    return 0;
}

int gi_session_class_create(struct gi_session_store *store,
                            const struct gi_session_class_config *config,
                            struct gi_session_class **ret_class)
{
    struct gori_session_options options;
    if (config->events == NULL) {
        return GORI_EINVAL;
    }
    int result = read_options(config->options, &options);
    return result < 0 ? result : create_class(store, config, &options, ret_class);
}

int gi_session_class_find(struct gi_session_store *store,
                          const struct gi_session_class_config *config,
                          struct gi_session_class **ret_class)
{
    struct gori_session_options options;
    if (config->events == NULL) {
        return GORI_EINVAL;
    }
    int result = read_options(config->options, &options);
    if (result < 0) {
        return result;
    }
    struct gi_session_class *class = NULL;
    GI_LIST_FOREACH (link, &store->classes) {
        struct gi_session_class *known = gori_container_of(link, struct gi_session_class, link);
        if (known->events == config->events &&
            memcmp(&known->options, &options, sizeof(options)) == 0) {
            class = known;
            break;
        }
    }
    if (class != NULL) {
        store->idle_classes -= class->references == 0;
        gi_session_class_ref(class);
        gi_list_remove(&class->link);
    } else {
        result = create_class(store, config, &options, &class);
        if (result < 0) {
            return result;
        }
    }
    gi_list_push_front(&store->classes, &class->link);
    *ret_class = class;
    return 0;
}

/* Frees the class without a session that was used longest ago. */
static void drop_oldest_idle(struct gi_session_store *store)
{
    for (struct gori_link *link = store->classes.prev; link != &store->classes; link = link->prev) {
        struct gi_session_class *class = gori_container_of(link, struct gi_session_class, link);
        if (class->references == 0) {
            destroy_class(store, class);
            store->idle_classes--;
            return;
        }
    }
}

void gi_session_class_unref(struct gi_session_store *store, struct gi_session_class *class)
{
    GI_ASSERT(class->references > 0);
    if (--class->references > 0) {
        return;
    }
    if (!gi_link_is_linked(&class->link)) {
        destroy_class(store, class);
        return;
    }
    store->idle_classes++;
    if (store->idle_classes > IDLE_CLASSES_MAX) {
        drop_oldest_idle(store);
    }
}
