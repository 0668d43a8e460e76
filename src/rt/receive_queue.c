/* SPDX-License-Identifier: MIT */
/*
 * The receive queue.
 *
 *   front                                                back
 *   [assembly, if any] [piece first] [piece] ... [piece]
 *
 *  R1  The order is that of the stream; `bytes` is the sum.
 *  R2  A tail is not copied until something follows it: then it and what follows are joined in an
 *      assembly.  A piece is copied into it at most once, and moved inside it at an amortised cost
 *      of once: it is compacted when at least half of it was consumed, and else doubled.
 *  R3  When the front is consumed whole, the next piece is shown where it lies: no copy any more.
 *  R4  What follows in the same buffer, right behind the last piece, makes that piece longer.
 *  R5  When the pieces are full they are joined.  The caller limits `bytes`.
 *  R6  What fails changes nothing that is seen: joining is not.
 *
 * Assemblies go back to a cache by size.  The three smallest sizes, which ordinary split messages
 * need, are kept without a limit like any pool; of the larger ones a few.
 */
#include "rt/receive_queue.h"

#include <gori/error.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"

enum {
    CLASS_BITS_MIN = 12,         /* the smallest assembly with its header: 4 KiB */
    CLASSES_WITHOUT_LIMIT = 3,   /* 4, 8 and 16 KiB */
    CLASS_KEPT_BYTES = 1 << 20,  /* of each larger class */
    ASSEMBLY_BYTES_MAX = 1 << 30 /* far above what a session may hold */
};

static uint32_t class_of(size_t bytes)
{
    uint32_t class = 0;
    while (bytes > (size_t)1 << (CLASS_BITS_MIN + class)) {
        class ++;
    }
    return class;
}

static size_t class_bytes(uint32_t class)
{
    return (size_t)1 << (CLASS_BITS_MIN + class);
}

static size_t assembly_bytes(const struct gi_assembly *assembly)
{
    return sizeof(*assembly) + assembly->capacity;
}

void gi_assembly_cache_init(struct gi_assembly_cache *cache, const struct gori_allocator *allocator)
{
    *cache = (struct gi_assembly_cache){.allocator = allocator};
}

void gi_assembly_cache_fini(struct gi_assembly_cache *cache)
{
    for (uint32_t class = 0; class < GI_ASSEMBLY_CLASSES; class ++) {
        struct gi_assembly *assembly = cache->free[class];
        while (assembly != NULL) {
            struct gi_assembly *next = assembly->next_free;
            gi_free(cache->allocator, assembly, assembly_bytes(assembly));
            assembly = next;
        }
        cache->free[class] = NULL;
        cache->count[class] = 0;
    }
}

/* An empty assembly for at least `size` bytes, or NULL. */
static struct gi_assembly *acquire_assembly(struct gi_assembly_cache *cache, size_t size)
{
    if (size > ASSEMBLY_BYTES_MAX) {
        return NULL;
    }
    uint32_t class = class_of(sizeof(struct gi_assembly) + size);
    struct gi_assembly *assembly = class < GI_ASSEMBLY_CLASSES ? cache->free[class] : NULL;
    if (assembly != NULL) {
        cache->free[class] = assembly->next_free;
        cache->count[class]--;
    } else {
        assembly = gi_alloc(cache->allocator, class_bytes(class));
        if (assembly == NULL) {
            return NULL;
        }
        assembly->capacity = (uint32_t)(class_bytes(class) - sizeof(*assembly));
    }
    assembly->start = 0;
    assembly->end = 0;
    return assembly;
}

static void release_assembly(struct gi_assembly_cache *cache, struct gi_assembly *assembly)
{
    uint32_t class = class_of(assembly_bytes(assembly));
    bool is_kept = class < CLASSES_WITHOUT_LIMIT ||
                   (class < GI_ASSEMBLY_CLASSES &&
                    cache->count[class] < CLASS_KEPT_BYTES / class_bytes(class));
    if (!is_kept) {
        gi_free(cache->allocator, assembly, assembly_bytes(assembly));
        return;
    }
    assembly->next_free = cache->free[class];
    cache->free[class] = assembly;
    cache->count[class]++;
}

void gi_receive_queue_init(struct gi_receive_queue *queue)
{
    queue->assembly = NULL;
    queue->bytes = 0;
    queue->seen = 0;
    queue->first = 0;
    queue->count = 0;
}

static struct gi_receive_piece *first_piece(struct gi_receive_queue *queue)
{
    GI_ASSERT(queue->count > 0);
    return &queue->pieces[queue->first];
}

static void drop_first_piece(struct gi_receive_queue *queue)
{
    gori_buffer_release(first_piece(queue)->buffer);
    queue->first = queue->count == 1 ? 0 : queue->first + 1;
    queue->count--;
}

static size_t front_size(const struct gi_receive_queue *queue)
{
    if (queue->assembly != NULL) {
        return queue->assembly->end - queue->assembly->start;
    }
    return queue->count > 0 ? queue->pieces[queue->first].bytes.size : 0;
}

static void append(struct gi_assembly *assembly, struct gori_slice bytes)
{
    GI_ASSERT(bytes.size <= assembly->capacity - assembly->end);
    memcpy(assembly->bytes + assembly->end, bytes.data, bytes.size);
    assembly->end += (uint32_t)bytes.size;
}

/* Makes room for `size` more bytes at the end of the assembly (R2). */
static int make_room(struct gi_receive_queue *queue, struct gi_assembly_cache *cache, size_t size)
{
    struct gi_assembly *old = queue->assembly;
    size_t used = old->end - old->start;
    if (size <= old->capacity - old->end) {
        return 0;
    }
    if (old->start >= used && used + size <= old->capacity) {
        memcpy(old->bytes, old->bytes + old->start, used);
        old->start = 0;
        old->end = (uint32_t)used;
        return 0;
    }
    struct gi_assembly *grown = acquire_assembly(cache, gi_max_size(2 * used, used + size));
    if (grown == NULL) {
        return GORI_ENOMEM;
    }
    append(grown, (struct gori_slice){old->bytes + old->start, used});
    release_assembly(cache, old);
    queue->assembly = grown;
    return 0;
}

/* Joins the next piece to the front. */
static int join_next(struct gi_receive_queue *queue, struct gi_assembly_cache *cache)
{
    if (queue->assembly == NULL) {
        GI_ASSERT(queue->count >= 2);
        struct gori_slice front = first_piece(queue)->bytes;
        size_t next_size = queue->pieces[queue->first + 1].bytes.size;
        struct gi_assembly *assembly = acquire_assembly(cache, front.size + next_size);
        if (assembly == NULL) {
            return GORI_ENOMEM;
        }
        append(assembly, front);
        drop_first_piece(queue);
        queue->assembly = assembly;
    } else {
        int result = make_room(queue, cache, first_piece(queue)->bytes.size);
        if (result < 0) {
            return result;
        }
    }
    append(queue->assembly, first_piece(queue)->bytes);
    drop_first_piece(queue);
    return 0;
}

/* Makes place for one more piece (R5). */
static int make_place(struct gi_receive_queue *queue, struct gi_assembly_cache *cache)
{
    if (queue->first + queue->count < GI_RECEIVE_PIECES_MAX) {
        return 0;
    }
    bool is_full = queue->first == 0;
    while (is_full && queue->count > 1) {
        int result = join_next(queue, cache);
        if (result < 0) {
            return result;
        }
    }
    memmove(queue->pieces, queue->pieces + queue->first, queue->count * sizeof(queue->pieces[0]));
    queue->first = 0;
    return 0;
}

int gi_receive_queue_push(struct gi_receive_queue *queue, struct gi_assembly_cache *cache,
                          struct gi_receive_piece piece)
{
    GI_ASSERT(piece.bytes.size > 0);
    if (queue->count > 0) {
        struct gi_receive_piece *last = &queue->pieces[queue->first + queue->count - 1];
        if (last->buffer == piece.buffer &&
            last->bytes.data + last->bytes.size == piece.bytes.data) {
            last->bytes.size += piece.bytes.size;
            queue->bytes += piece.bytes.size;
            gori_buffer_release(piece.buffer); /* one hold is enough */
            return 0;
        }
    }
    int result = make_place(queue, cache);
    if (result < 0) {
        return result;
    }
    queue->pieces[queue->first + queue->count] = piece;
    queue->count++;
    queue->bytes += piece.bytes.size;
    return 0;
}

int gi_receive_queue_show(struct gi_receive_queue *queue, struct gi_assembly_cache *cache,
                          bool again, struct gi_receive_piece *ret_view)
{
    if (queue->bytes == 0) {
        return 0;
    }
    if (!again && queue->seen == front_size(queue)) {
        if (queue->count == (queue->assembly == NULL ? 1 : 0)) {
            return 0;
        }
        int result = join_next(queue, cache);
        if (result < 0) {
            return result;
        }
    }
    struct gi_assembly *assembly = queue->assembly;
    if (assembly != NULL) {
        ret_view->buffer = NULL;
        ret_view->bytes = (struct gori_slice){assembly->bytes + assembly->start, front_size(queue)};
    } else {
        *ret_view = *first_piece(queue);
    }
    return 1;
}

void gi_receive_queue_consume(struct gi_receive_queue *queue, struct gi_assembly_cache *cache,
                              size_t size)
{
    size_t front = front_size(queue);
    GI_ASSERT(size <= front);
    queue->bytes -= size;
    queue->seen = front - size;
    if (queue->assembly != NULL) {
        queue->assembly->start += (uint32_t)size;
        if (size == front) {
            release_assembly(cache, queue->assembly);
            queue->assembly = NULL;
        }
        return;
    }
    struct gi_receive_piece *piece = first_piece(queue);
    piece->bytes.data += size;
    piece->bytes.size -= size;
    if (size == front) {
        drop_first_piece(queue);
    }
}

void gi_receive_queue_leave_buffers(struct gi_receive_queue *queue, struct gi_assembly_cache *cache)
{
    if (queue->assembly == NULL && queue->count > 0) {
        struct gi_assembly *assembly = acquire_assembly(cache, queue->bytes);
        if (assembly == NULL) {
            return;
        }
        append(assembly, first_piece(queue)->bytes);
        drop_first_piece(queue);
        queue->assembly = assembly;
    }
    while (queue->count > 0 && join_next(queue, cache) == 0) {
    }
}

void gi_receive_queue_clear(struct gi_receive_queue *queue, struct gi_assembly_cache *cache)
{
    while (queue->count > 0) {
        drop_first_piece(queue);
    }
    if (queue->assembly != NULL) {
        release_assembly(cache, queue->assembly);
    }
    gi_receive_queue_init(queue);
}
