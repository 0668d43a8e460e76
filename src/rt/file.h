/* SPDX-License-Identifier: MIT */
/*
 * The inside of <gori/file.h>, for the files of src/rt that send files.
 */
#ifndef GI_RT_FILE_H
#define GI_RT_FILE_H

#include <gori/file.h>

/** The descriptor of an open file, good for as long as the caller's reference. */
int gi_file_descriptor(const struct gori_file *file);

#endif
