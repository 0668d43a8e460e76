/* SPDX-License-Identifier: MIT */
/*
 * The send queue.
 *
 * Pieces stand in arrays that are handed to the engine as they are: nothing is gathered a second
 * time.  The first few stand in the queue itself, the common case; a queue with more moves them to
 * pages of a pool.  Copies fill chunks; several pieces may lie in one chunk, so that a small copy
 * between two blocks costs its bytes and not a chunk.
 *
 *   the head:  inline pieces if there are any, else the first page
 *   the tail:  the last page if there is one, else the inline pieces
 *
 *  Q1  The order of the pieces is the order of the calls, and that of the stream.
 *  Q2  `bytes` is the sum of all pieces, a file being
 *      GI_SEND_FILE_COST; so the queue is empty when it is 0.
 *  Q3  A piece that is in flight is neither moved nor changed: its array belongs to the engine.
 *  Q4  A piece of a block reaches to the end of its block, save while it is the last one in flight,
 *      where it may be shorter (GI_SEND_BATCH_BYTES).  So nobody has to remember the rest.
 *  Q5  A chunk lives as long as pieces refer to it.  The queue's `chunk` is one of those, or NULL.
 *  Q6  A batch is part of one array, and is not mixed with files.
 *  Q7  What fails changes nothing.
 *
 * A chunk with its header is 2112 bytes, no power of two: with 4096 the headers of all sessions
 * would fight for the same few lines of the first-level cache.
 */
#include "rt/send_queue.h"

#include <assert.h>
#include <gori/error.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"

struct gi_send_chunk {
    uint32_t used;   /* bytes filled */
    uint32_t pieces; /* that refer to it */
    uint64_t reserved;
    uint8_t bytes[GI_SEND_CHUNK_BYTES];
};

struct gi_send_page {
    struct gi_send_page *next;
    struct gi_send_page *last; /* of the list; kept in its first page only */
    uint8_t first;
    uint8_t count;
    struct gori_slice slices[GORI_SEND_PIECES_MAX];
    uintptr_t owners[GORI_SEND_PIECES_MAX];
};

struct gi_send_file {
    struct gori_file *file;
    uint64_t offset;
    uint64_t size;
};

/* The low bits of an owner. */
enum owner_kind {
    OWNER_CHUNK = 0,
    OWNER_BLOCK = 1,
    OWNER_BUFFER = 2,
    OWNER_FILE = 3,
    OWNER_MASK = 3
};

/* One array of pieces: the inline ones or a page. */
struct run {
    struct gori_slice *slices;
    uintptr_t *owners;
    uint8_t *first;
    uint8_t *count;
    uint32_t capacity;
};

static_assert(sizeof(struct gi_send_chunk) == 2112, "no power of two, a multiple of 64");
static_assert(sizeof(struct gi_send_queue) <= 80, "a session holds one of these");

int gi_send_pools_init(struct gi_send_pools *pools, const struct gori_allocator *allocator)
{
    int result = gi_pool_init(&pools->chunks, allocator, sizeof(struct gi_send_chunk), 16, 0);
    if (result >= 0) {
        result = gi_pool_init(&pools->pages, allocator, sizeof(struct gi_send_page), 8, 0);
    }
    if (result >= 0) {
        result = gi_pool_init(&pools->files, allocator, sizeof(struct gi_send_file), 64, 0);
    }
    return result;
}

void gi_send_pools_fini(struct gi_send_pools *pools)
{
    gi_pool_fini(&pools->files);
    gi_pool_fini(&pools->pages);
    gi_pool_fini(&pools->chunks);
}

static void *owner_pointer(uintptr_t owner)
{
    return (void *)(owner & ~(uintptr_t)OWNER_MASK);
}

static GI_ALWAYS_INLINE struct run inline_run(struct gi_send_queue *queue)
{
    return (struct run){queue->slices, queue->owners, &queue->first, &queue->count,
                        GI_SEND_INLINE_PIECES};
}

static GI_ALWAYS_INLINE struct run page_run(struct gi_send_page *page)
{
    return (struct run){page->slices, page->owners, &page->first, &page->count,
                        GORI_SEND_PIECES_MAX};
}

static GI_ALWAYS_INLINE struct run head_run(struct gi_send_queue *queue)
{
    return queue->count > 0 || queue->first_page == NULL ? inline_run(queue)
                                                         : page_run(queue->first_page);
}

static GI_ALWAYS_INLINE struct run tail_run(struct gi_send_queue *queue)
{
    return queue->first_page == NULL ? inline_run(queue) : page_run(queue->first_page->last);
}

/* Appends an empty page.  Pieces that wait in the queue itself go into the first one, so that they
 * leave together with what comes now; not when they are in flight (Q3). */
static bool add_page(struct gi_send_queue *queue, struct gi_send_pools *pools)
{
    struct gi_send_page *page = gi_pool_acquire(&pools->pages);
    if (page == NULL) {
        return false;
    }
    page->next = NULL;
    page->first = 0;
    page->count = 0;
    if (queue->first_page == NULL) {
        queue->first_page = page;
    } else {
        queue->first_page->last->next = page;
    }
    queue->first_page->last = page;
    if (queue->count > 0 && queue->in_flight == 0) {
        GI_ASSERT(queue->first_page == page);
        memcpy(page->slices, queue->slices + queue->first, queue->count * sizeof(page->slices[0]));
        memcpy(page->owners, queue->owners + queue->first, queue->count * sizeof(page->owners[0]));
        page->count = queue->count;
        queue->count = 0;
    }
    return true;
}

/* Adds a piece at the tail.  The owner's reference is the caller's to take. */
static bool push_piece(struct gi_send_queue *queue, struct gi_send_pools *pools,
                       struct gori_slice slice, uintptr_t owner)
{
    struct run tail = tail_run(queue);
    if (*tail.count == 0) {
        *tail.first = 0;
    }
    if (GI_UNLIKELY(*tail.first + *tail.count == (int)tail.capacity)) {
        if (!add_page(queue, pools)) {
            return false;
        }
        tail = tail_run(queue);
    }
    uint32_t index = (uint32_t)*tail.first + *tail.count;
    tail.slices[index] = slice;
    tail.owners[index] = owner;
    ++*tail.count;
    return true;
}

/* The last piece when it may grow: it ends where its chunk does, and is not in flight. */
static struct gori_slice *growing_piece(struct gi_send_queue *queue)
{
    struct gi_send_chunk *chunk = queue->chunk;
    if (chunk == NULL) {
        return NULL;
    }
    struct run tail = tail_run(queue);
    bool is_head = queue->count > 0 ? queue->first_page == NULL
                                    : queue->first_page == NULL || queue->first_page->next == NULL;
    if (*tail.count == 0 || (is_head && *tail.count == queue->in_flight)) {
        return NULL;
    }
    uint32_t index = (uint32_t)*tail.first + *tail.count - 1;
    struct gori_slice *slice = &tail.slices[index];
    if (tail.owners[index] != (uintptr_t)chunk ||
        slice->data + slice->size != chunk->bytes + chunk->used) {
        return NULL;
    }
    return slice;
}

static GI_ALWAYS_INLINE void release_chunk(struct gi_send_queue *queue, struct gi_send_pools *pools,
                                           struct gi_send_chunk *chunk)
{
    GI_ASSERT(chunk->pieces > 0);
    if (--chunk->pieces == 0) {
        if (queue->chunk == chunk) {
            queue->chunk = NULL;
        }
        gi_pool_release(&pools->chunks, chunk);
    }
}

static void release_owner(struct gi_send_queue *queue, struct gi_send_pools *pools, uintptr_t owner)
{
    switch (owner & OWNER_MASK) {
    case OWNER_CHUNK:
        release_chunk(queue, pools, owner_pointer(owner));
        break;
    case OWNER_BLOCK:
        gori_block_unref(owner_pointer(owner));
        break;
    case OWNER_BUFFER:
        gori_buffer_release(owner_pointer(owner));
        break;
    default: {
        struct gi_send_file *file = owner_pointer(owner);
        gori_file_unref(file->file);
        gi_pool_release(&pools->files, file);
        break;
    }
    }
}

/* Takes the page that has become empty out of the list. */
static void remove_page(struct gi_send_queue *queue, struct gi_send_pools *pools,
                        struct gi_send_page *page)
{
    struct gi_send_page *before = NULL;
    for (struct gi_send_page *walk = queue->first_page; walk != page; walk = walk->next) {
        before = walk;
    }
    struct gi_send_page *last = queue->first_page->last;
    if (before == NULL) {
        queue->first_page = page->next;
    } else {
        before->next = page->next;
    }
    if (queue->first_page != NULL) {
        queue->first_page->last = last == page ? before : last;
    }
    gi_pool_release(&pools->pages, page);
}

/* Undoes the last push. */
static void pop_piece(struct gi_send_queue *queue, struct gi_send_pools *pools)
{
    struct run tail = tail_run(queue);
    --*tail.count;
    release_owner(queue, pools, tail.owners[*tail.first + *tail.count]);
    if (*tail.count == 0 && queue->first_page != NULL) {
        remove_page(queue, pools, queue->first_page->last);
    }
}

/* A chunk with room, as queue->chunk. */
static bool provide_chunk(struct gi_send_queue *queue, struct gi_send_pools *pools)
{
    if (queue->chunk != NULL && queue->chunk->used < GI_SEND_CHUNK_BYTES) {
        return true;
    }
    struct gi_send_chunk *chunk = gi_pool_acquire(&pools->chunks);
    if (chunk == NULL) {
        return false;
    }
    chunk->used = 0;
    chunk->pieces = 0;
    queue->chunk = chunk;
    return true;
}

/* Copies what fits into one new piece.  Result: bytes, 0 when there is no memory. */
static size_t copy_into_new_piece(struct gi_send_queue *queue, struct gi_send_pools *pools,
                                  const uint8_t *data, size_t size)
{
    if (!provide_chunk(queue, pools)) {
        return 0;
    }
    struct gi_send_chunk *chunk = queue->chunk;
    size_t part = gi_min_size(size, GI_SEND_CHUNK_BYTES - chunk->used);
    const struct gori_slice slice = {chunk->bytes + chunk->used, part};
    chunk->pieces++;
    if (!push_piece(queue, pools, slice, (uintptr_t)chunk | OWNER_CHUNK)) {
        release_chunk(queue, pools, chunk);
        return 0;
    }
    memcpy(chunk->bytes + chunk->used, data, part);
    chunk->used += (uint32_t)part;
    return part;
}

/* The part of a copy that needs new pieces. */
static int copy_rest(struct gi_send_queue *queue, struct gi_send_pools *pools, const uint8_t *data,
                     size_t size)
{
    struct gi_send_chunk *chunk_before = queue->chunk;
    uint32_t used_before = chunk_before != NULL ? chunk_before->used : 0;
    uint32_t pushed = 0;
    while (size > 0) {
        size_t part = copy_into_new_piece(queue, pools, data, size);
        if (part == 0) {
            break;
        }
        pushed++;
        data += part;
        size -= part;
    }
    if (GI_LIKELY(size == 0)) {
        return 0;
    }
    for (; pushed > 0; pushed--) {
        pop_piece(queue, pools);
    }
    queue->chunk = chunk_before;
    if (chunk_before != NULL) {
        chunk_before->used = used_before;
    }
    return GORI_ENOMEM;
}

static GI_NOINLINE int copy_more(struct gi_send_queue *queue, struct gi_send_pools *pools,
                                 const void *data, size_t size)
{
    struct gori_slice *slice = growing_piece(queue);
    size_t grown = 0;
    if (slice != NULL) {
        struct gi_send_chunk *chunk = queue->chunk;
        grown = gi_min_size(size, GI_SEND_CHUNK_BYTES - chunk->used);
        memcpy(chunk->bytes + chunk->used, data, grown);
        chunk->used += (uint32_t)grown;
        slice->size += grown;
    }
    if (grown < size) {
        /* The grown piece may move to a page below, but stays the one before the new ones. */
        struct gi_send_chunk *chunk = queue->chunk;
        int result = copy_rest(queue, pools, (const uint8_t *)data + grown, size - grown);
        if (GI_UNLIKELY(result < 0)) {
            if (grown > 0) {
                chunk->used -= (uint32_t)grown;
                struct run tail = tail_run(queue);
                tail.slices[*tail.first + *tail.count - 1].size -= grown;
            }
            return result;
        }
    }
    queue->bytes += size;
    return 0;
}

/* The first piece of an empty queue, when it fits a chunk: what an echo or a small answer is. */
static GI_ALWAYS_INLINE int copy_first(struct gi_send_queue *queue, struct gi_send_pools *pools,
                                       const void *data, size_t size)
{
    struct gi_send_chunk *chunk = gi_pool_acquire(&pools->chunks);
    if (GI_UNLIKELY(chunk == NULL)) {
        return GORI_ENOMEM;
    }
    memcpy(chunk->bytes, data, size);
    chunk->used = (uint32_t)size;
    chunk->pieces = 1;
    queue->chunk = chunk;
    queue->slices[0] = (struct gori_slice){chunk->bytes, size};
    queue->owners[0] = (uintptr_t)chunk | OWNER_CHUNK;
    queue->first = 0;
    queue->count = 1;
    queue->bytes = size;
    return 0;
}

int gi_send_queue_copy(struct gi_send_queue *queue, struct gi_send_pools *pools, const void *data,
                       size_t size)
{
    if (GI_LIKELY(queue->bytes == 0 && size <= GI_SEND_CHUNK_BYTES)) {
        return copy_first(queue, pools, data, size);
    }
    return copy_more(queue, pools, data, size);
}

int gi_send_queue_push_block(struct gi_send_queue *queue, struct gi_send_pools *pools,
                             struct gori_block *block)
{
    struct gori_slice bytes = gori_block_view(block);
    GI_ASSERT(bytes.size > 0);
    if (!push_piece(queue, pools, bytes, (uintptr_t)block | OWNER_BLOCK)) {
        return GORI_ENOMEM;
    }
    (void)gori_block_ref(block); /* the result is the block */
    queue->bytes += bytes.size;
    return 0;
}

int gi_send_queue_push_buffer(struct gi_send_queue *queue, struct gi_send_pools *pools,
                              struct gori_buffer *buffer, struct gori_slice bytes)
{
    GI_ASSERT(bytes.size > 0);
    if (!push_piece(queue, pools, bytes, (uintptr_t)buffer | OWNER_BUFFER)) {
        return GORI_ENOMEM;
    }
    gori_buffer_retain(buffer);
    queue->bytes += bytes.size;
    return 0;
}

int gi_send_queue_push_file(struct gi_send_queue *queue, struct gi_send_pools *pools,
                            struct gori_file *file, uint64_t offset, uint64_t size)
{
    GI_ASSERT(size > 0);
    struct gi_send_file *range = gi_pool_acquire(&pools->files);
    if (range == NULL) {
        return GORI_ENOMEM;
    }
    const struct gori_slice slice = {NULL, GI_SEND_FILE_COST};
    if (!push_piece(queue, pools, slice, (uintptr_t)range | OWNER_FILE)) {
        gi_pool_release(&pools->files, range);
        return GORI_ENOMEM;
    }
    gori_file_ref(file);
    *range = (struct gi_send_file){file, offset, size};
    queue->bytes += GI_SEND_FILE_COST;
    return 0;
}

/* Fills a batch from pieces; the last one, if it is of a block, may be cut for now (Q4). */
static uint32_t gather(const struct run *head, size_t *ret_bytes)
{
    size_t total = 0;
    uint32_t count = 0;
    while (count < *head->count && total < GI_SEND_BATCH_BYTES) {
        uint32_t index = *head->first + count;
        uintptr_t kind = head->owners[index] & OWNER_MASK;
        if (kind == OWNER_FILE) {
            break;
        }
        struct gori_slice *slice = &head->slices[index];
        if (kind == OWNER_BLOCK) {
            slice->size = gi_min_size(slice->size, GI_SEND_BATCH_BYTES - total);
        }
        total += slice->size;
        count++;
    }
    *ret_bytes = total;
    return count;
}

static GI_NOINLINE void next_of_many(struct gi_send_queue *queue, struct gi_send_batch *ret_batch)
{
    struct run head = head_run(queue);
    uint32_t first = *head.first;
    uint32_t count = 1;
    *ret_batch = (struct gi_send_batch){.pieces = head.slices + first};
    if (GI_UNLIKELY((head.owners[first] & OWNER_MASK) == OWNER_FILE)) {
        const struct gi_send_file *range = owner_pointer(head.owners[first]);
        ret_batch->file.file = gori_file_descriptor(range->file);
        ret_batch->file.offset = range->offset;
        ret_batch->file.size = gi_min_u64(range->size, GI_SEND_FILE_BYTES);
    } else {
        size_t bytes;
        count = gather(&head, &bytes);
        ret_batch->count = count;
        ret_batch->more = bytes < queue->bytes;
    }
    GI_ASSERT(count > 0);
    queue->in_flight = (uint8_t)count;
}

/* Whether all there is is one piece of copied bytes, in the queue itself. */
static GI_ALWAYS_INLINE bool is_single_copy(const struct gi_send_queue *queue)
{
    return queue->count == 1 && queue->first_page == NULL &&
           (queue->owners[queue->first] & OWNER_MASK) == OWNER_CHUNK;
}

void gi_send_queue_next(struct gi_send_queue *queue, struct gi_send_batch *ret_batch)
{
    GI_ASSERT(queue->bytes > 0);
    GI_ASSERT(queue->in_flight == 0);
    if (GI_UNLIKELY(!is_single_copy(queue))) {
        next_of_many(queue, ret_batch);
        return;
    }
    ret_batch->pieces = queue->slices + queue->first;
    ret_batch->count = 1;
    ret_batch->more = false;
    queue->in_flight = 1;
}

/* Gives the last piece in flight back what `gather` cut off. */
static void restore_cut(const struct run *head, uint32_t in_flight)
{
    uint32_t index = *head->first + in_flight - 1;
    if ((head->owners[index] & OWNER_MASK) == OWNER_BLOCK) {
        struct gori_slice whole = gori_block_view(owner_pointer(head->owners[index]));
        struct gori_slice *slice = &head->slices[index];
        slice->size = (size_t)(whole.data + whole.size - slice->data);
    }
}

/* Takes up to `bytes` off the first piece.  Result: whether it is through. */
static bool consume_piece(struct gori_slice *slice, uintptr_t owner, uint64_t *bytes)
{
    if (GI_UNLIKELY((owner & OWNER_MASK) == OWNER_FILE)) {
        struct gi_send_file *range = owner_pointer(owner);
        uint64_t part = gi_min_u64(range->size, *bytes);
        range->offset += part;
        range->size -= part;
        *bytes -= part;
        return range->size == 0;
    }
    size_t part = gi_min_size(slice->size, *bytes);
    slice->data += part;
    slice->size -= part;
    *bytes -= part;
    return slice->size == 0;
}

static GI_NOINLINE size_t advance_many(struct gi_send_queue *queue, struct gi_send_pools *pools,
                                       uint64_t bytes)
{
    size_t bytes_before = queue->bytes;
    struct run head = head_run(queue);
    restore_cut(&head, queue->in_flight);
    bool is_page = head.slices != queue->slices;
    for (; queue->in_flight > 0 && bytes > 0; queue->in_flight--) {
        struct gori_slice *slice = &head.slices[*head.first];
        uintptr_t owner = head.owners[*head.first];
        size_t size = slice->size; /* of a file it stays until the range is through */
        if (!consume_piece(slice, owner, &bytes)) {
            queue->bytes -= size - slice->size;
            break;
        }
        queue->bytes -= size;
        ++*head.first;
        --*head.count;
        release_owner(queue, pools, owner);
    }
    GI_ASSERT(bytes == 0);
    queue->in_flight = 0;
    if (is_page && *head.count == 0) {
        remove_page(queue, pools, queue->first_page);
    }
    return bytes_before - queue->bytes;
}

size_t gi_send_queue_advance(struct gi_send_queue *queue, struct gi_send_pools *pools,
                             uint64_t bytes)
{
    GI_ASSERT(queue->in_flight > 0);
    if (GI_UNLIKELY(bytes != queue->bytes || !is_single_copy(queue))) {
        return advance_many(queue, pools, bytes);
    }
    queue->bytes = 0;
    queue->count = 0;
    queue->in_flight = 0;
    release_chunk(queue, pools, owner_pointer(queue->owners[queue->first]));
    return bytes;
}

void gi_send_queue_clear(struct gi_send_queue *queue, struct gi_send_pools *pools)
{
    while (queue->count > 0 || queue->first_page != NULL) {
        struct run head = head_run(queue);
        while (*head.count > 0) {
            release_owner(queue, pools, head.owners[*head.first]);
            ++*head.first;
            --*head.count;
        }
        if (head.slices != queue->slices) {
            remove_page(queue, pools, queue->first_page);
        }
    }
    GI_ASSERT(queue->chunk == NULL);
    queue->first = 0;
    queue->in_flight = 0;
    queue->bytes = 0;
}
