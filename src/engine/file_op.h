/* SPDX-License-Identifier: MIT */
/*
 * File ops as those see them who carry them out: the engines that have files of their own, and the
 * threads of the pool.  Where one is in its pieces, and how it goes on.
 * Thread: whoever holds the op.
 */
#ifndef GI_ENGINE_FILE_OP_H
#define GI_ENGINE_FILE_OP_H

#include <gori/file_op.h>

/** Whether a kind is of a file; such an op has no handle. */
static inline bool gi_is_file_kind(uint8_t kind)
{
    return kind >= GORI_OP_FILE_OPEN && kind <= GORI_OP_FILE_CLOSE;
}

/** The bit of a kind in gi_engine.native_kinds. */
#define GI_KIND_BIT(kind) (1u << (kind))

static inline struct gori_file_op *gi_file_op_of(const struct gori_op *op)
{
    return gori_container_of((uintptr_t)op, struct gori_file_op, op);
}

/** The pieces that are not moved whole. */
static inline const struct gori_slice *gi_file_op_pieces(const struct gori_file_op *op)
{
    return &op->pieces[op->index];
}

/** Where in the file the next byte is. */
static inline uint64_t gi_file_op_place(const struct gori_file_op *op)
{
    return op->offset + op->progress;
}

/** Moves the cursor over `bytes` and over empty pieces; whether all is moved now. */
static inline bool gi_file_op_advance(struct gori_file_op *op, size_t bytes)
{
    op->progress += bytes;
    while (op->index < op->count) {
        size_t left = op->pieces[op->index].size - op->piece_offset;
        if (bytes < left) {
            op->piece_offset += bytes;
            return false;
        }
        bytes -= left;
        op->index++;
        op->piece_offset = 0;
    }
    return true;
}

#endif
