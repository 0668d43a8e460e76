/* SPDX-License-Identifier: MIT */
/*
 * The inside of files, for the files of src/rt.  `loop`, `ops` and `closing` are of its loop's
 * thread only; the rest does not change while there are references.
 */
#ifndef GI_RT_FILE_H
#define GI_RT_FILE_H

#include <gori/file.h>
#include <gori/file_op.h>

#include "base/atomic.h"
#include "engine/engine.h"

struct gori_file {
    const struct gori_allocator *allocator;
    struct gi_atomic_u32 references;
    int descriptor;
    struct gori_file_info info;
    const struct gi_file_calls *calls; /* of the system that the descriptor is of */
    void *place;
    struct gori_loop *loop;       /* NULL: it takes no ops */
    struct gori_link ops;         /* in flight, by of_file */
    struct gori_file_op *closing; /* waits for `ops` */
    bool is_closed;               /* a close was accepted: no further ops */
    bool can_read;
    bool can_write;
    bool appends;
};

/** A file with one reference and nothing open yet; NULL without memory. */
struct gori_file *gi_file_create(const struct gori_allocator *allocator);

/** Frees a file whose descriptor is not open, or not ours. */
void gi_file_forget(struct gori_file *file);

/** Whether nobody but the caller holds it. */
bool gi_file_is_sole(const struct gori_file *file);

int gi_root_descriptor(const struct gori_root *root);

#endif
