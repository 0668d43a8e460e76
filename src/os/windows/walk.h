/* SPDX-License-Identifier: MIT */
/*
 * Paths beneath a root, component by component, as posix/walk.c goes them, with the same answers.
 *
 *  W1  Every component is opened by its name beneath the handle of its folder, as a reparse point
 *      if it is one: the system never follows anything on the way, so nobody can put a link there.
 *      Symbolic links that are relative are read and put before the rest of the path, 40 at most;
 *      absolute ones, junctions and volume mounts leave the root: GORI_EXDEV.
 *  W2  A name that Windows would understand in another way than as the name of one file is not the
 *      name of any: GORI_ENOTFOUND.  See gi_os_name_is_plain.
 * Thread: any.  Reading: NtCreateFile, "Naming Files, Paths, and Namespaces" (Microsoft Learn).
 */
#ifndef GI_OS_WINDOWS_WALK_H
#define GI_OS_WINDOWS_WALK_H

#include "os/os.h"
#include "os/windows/system.h"

#include <winioctl.h>

/**
 * Whether a component (UTF-8, `size` bytes) means one file of that name and nothing else: no
 * backslash, no stream ("name::$DATA"), no wildcard, no control character, no dot or blank at the
 * end (Windows drops them), no device (NUL, COM1.txt).
 */
bool gi_os_name_is_plain(const char *name, size_t size);

/** How the end of the way is opened. */
struct gi_os_walk_how {
    ACCESS_MASK access;
    ULONG disposition; /* as of NtCreateFile; links are followed before, not overwritten */
    bool overlapped;
};

/** To look at its attributes, and to read it, if it is a file. */
extern const struct gi_os_walk_how gi_os_walk_look;
extern const struct gi_os_walk_how gi_os_walk_read;

/** Goes `path` from `root` on; errors as gori_root_open_file. */
int gi_os_walk(HANDLE root, const char *path, const struct gi_os_walk_how *how, HANDLE *ret_file);

#endif
