/* SPDX-License-Identifier: MIT */
/*
 * The memory of requests; see requests.h.
 * Thread: the loop's.
 */
#include "engine/iocp/requests.h"

#include "base/alloc.h"

#define CHUNK_REQUESTS 64u
#define CHUNKS_FIRST   16u

struct gi_iocp_chunk {
    struct gi_iocp_request requests[CHUNK_REQUESTS];
};

void gi_iocp_requests_init(struct gi_iocp_requests *requests,
                           const struct gori_allocator *allocator)
{
    *requests =
        (struct gi_iocp_requests){.allocator = allocator, .first_free = GI_IOCP_REQUEST_NONE};
}

void gi_iocp_requests_fini(struct gi_iocp_requests *requests)
{
    GI_ASSERT(requests->used == 0);
    for (uint32_t i = 0; i < requests->chunk_count; i++) {
        gi_free(requests->allocator, requests->chunks[i], sizeof(struct gi_iocp_chunk));
    }
    gi_free(requests->allocator, requests->chunks,
            requests->chunk_capacity * sizeof(*requests->chunks));
    *requests = (struct gi_iocp_requests){.first_free = GI_IOCP_REQUEST_NONE};
}

static bool grow_table(struct gi_iocp_requests *requests)
{
    if (requests->chunk_count < requests->chunk_capacity) {
        return true;
    }
    uint32_t capacity = requests->chunk_capacity == 0 ? CHUNKS_FIRST : 2 * requests->chunk_capacity;
    struct gi_iocp_chunk **grown =
        gi_realloc(requests->allocator, requests->chunks, requests->chunk_capacity * sizeof(*grown),
                   capacity * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    requests->chunks = grown;
    requests->chunk_capacity = capacity;
    return true;
}

static bool add_chunk(struct gi_iocp_requests *requests)
{
    if (!grow_table(requests)) {
        return false;
    }
    struct gi_iocp_chunk *chunk = gi_alloc_zero(requests->allocator, sizeof(*chunk));
    if (chunk == NULL) {
        return false;
    }
    uint32_t first = requests->chunk_count * CHUNK_REQUESTS;
    requests->chunks[requests->chunk_count++] = chunk;
    for (uint32_t i = 0; i < CHUNK_REQUESTS; i++) {
        chunk->requests[i].index = first + i;
        chunk->requests[i].next = i + 1 < CHUNK_REQUESTS ? first + i + 1 : requests->first_free;
    }
    requests->first_free = first;
    return true;
}

struct gi_iocp_request *gi_iocp_requests_at(struct gi_iocp_requests *requests, uint32_t index)
{
    GI_DASSERT(index / CHUNK_REQUESTS < requests->chunk_count);
    return &requests->chunks[index / CHUNK_REQUESTS]->requests[index % CHUNK_REQUESTS];
}

struct gi_iocp_request *gi_iocp_requests_take(struct gi_iocp_requests *requests, struct gori_op *op,
                                              uint32_t key)
{
    if (requests->first_free == GI_IOCP_REQUEST_NONE && !add_chunk(requests)) {
        return NULL;
    }
    struct gi_iocp_request *request = gi_iocp_requests_at(requests, requests->first_free);
    requests->first_free = request->next;
    requests->used++;
    request->op = op;
    request->key = key;
    request->accepted = INVALID_SOCKET;
    request->next = GI_IOCP_REQUEST_NONE;
    request->tries = 0;
    return request;
}

void gi_iocp_requests_release(struct gi_iocp_requests *requests, struct gi_iocp_request *request)
{
    GI_ASSERT(request->op != NULL);
    GI_ASSERT(!request->in_kernel);
    request->op = NULL;
    request->next = requests->first_free;
    requests->first_free = request->index;
    requests->used--;
}
