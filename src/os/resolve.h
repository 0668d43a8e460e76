/* SPDX-License-Identifier: MIT */
/*
 * Two ways from a path beneath a root to a descriptor, with the same answers: the kernel's and our
 * own.  A header of its own so that the tests can run both; everybody else asks gi_os_open_beneath.
 *
 *  R1  No result is outside the root: not by "..", not by an absolute path (GORI_EXDEV), not
 *      through a symbolic link, not while somebody renames.  Links that stay inside are followed,
 *      40 at most.
 *  R2  `open_flags` are those of open(2) or GI_OS_O_LOOK; O_CLOEXEC is added.  `mode` is of a file
 *      that is made.
 * Thread: any.
 */
#ifndef GI_OS_RESOLVE_H
#define GI_OS_RESOLVE_H

#include <fcntl.h>
#include <sys/types.h>

#include "os/os.h"

/** To look, not to open; where a system has no such thing, to open without waiting. */
#ifdef O_PATH
#define GI_OS_O_LOOK O_PATH
#else
#define GI_OS_O_LOOK (O_RDONLY | O_NONBLOCK | O_NOCTTY)
#endif

typedef int gi_os_resolve_fn(int root_fd, const char *path, int open_flags, mode_t mode,
                             int *ret_fd);

/** By openat2; GORI_ENOSYS or GORI_EPERM where there is none or a filter refuses it. */
int gi_os_resolve_by_kernel(int root_fd, const char *path, int open_flags, mode_t mode,
                            int *ret_fd);

/** Component by component, never following a link that it has not read itself. */
int gi_os_resolve_by_walk(int root_fd, const char *path, int open_flags, mode_t mode, int *ret_fd);

/** What the system says of a file, in our words; GORI_EACCESS for special files. */
struct stat;
int gi_os_describe(const struct stat *status, struct gori_file_info *ret_info);

/** What a descriptor names; as gi_os_describe. */
int gi_os_look(int fd, struct gori_file_info *ret_info);

/** As gi_os_open_beneath and gi_os_stat_beneath, by one of the two. */
int gi_os_open_by(gi_os_resolve_fn *resolve, int root_fd, const char *path, int *ret_fd,
                  struct gori_file_info *ret_info);
int gi_os_stat_by(gi_os_resolve_fn *resolve, int root_fd, const char *path,
                  struct gori_file_info *ret_info);

#endif
