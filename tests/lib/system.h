/* SPDX-License-Identifier: MIT */
/*
 * What tests ask of the operating system beside peers: files, and how many descriptors are open.
 * One file for each system: system_posix.c, system_windows.c.
 * Thread: any.
 */
#ifndef GT_SYSTEM_H
#define GT_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Descriptors (handles, sockets) that this process has open. */
int gt_open_descriptors(void);

/** Whether what claims to be Windows is Wine. */
bool gt_is_wine(void);

/** Something that can be waited for: ready from one call until another. */
struct gt_event {
    intptr_t native; /* what is waited for */
    intptr_t other;  /* of a pair */
};

void gt_event_open(struct gt_event *event);
void gt_event_set(const struct gt_event *event, bool is_ready);
void gt_event_close(const struct gt_event *event);

/** Has it take nothing, or something again; false where there is no such thing. */
bool gt_event_fill(const struct gt_event *event, bool is_full);

/** Sends this process a signal; false where that cannot be done without hitting others. */
bool gt_raise(int number);

/** The program child.c of the conformance suite. */
const char *gt_child_program(void);

/** Waits until a child has ended, and leaves it to be waited for; and waits for it. */
void gt_wait_for_child(int64_t id);
void gt_reap_child(int64_t id);

/** Blocks and ignores some signals, as a program may that starts others; what it has open so far
 * is not for children. */
void gt_spoil_process(void);

/** Whether two paths name one folder. */
bool gt_is_same_folder(const char *one, const char *other);

/** Leaves room for so many more descriptors; less than 0 for as many as before.  False where that
 * cannot be done. */
bool gt_limit_descriptors(int room);

/** Bytes of a file from its beginning. */
int gt_read_file(int file, void *data, size_t size);

/** An open file with that content and no name that stays, for struct gori_file_range. */
int gt_make_file(const void *data, size_t size);
void gt_close_file(int file);

#define GT_FOLDER_BYTES 128

/** Makes a new folder and tells its path. */
void gt_make_folder(char path[GT_FOLDER_BYTES]);

/** Writes a file into a folder; without `data` one of zeros that takes no room. */
void gt_write_file(const char *folder, const char *name, const void *data, size_t size);

/* Changes as another program makes them; all succeed, or the test fails. */
void gt_append_file(const char *path, const void *data, size_t size); /* makes it if need be */
void gt_touch_file(const char *path);                                 /* its attributes */
void gt_make_directory(const char *path);
void gt_make_directory_if_missing(const char *path);
void gt_rename(const char *from, const char *to); /* in place of what is there */
void gt_remove(const char *path);                 /* a file, or a directory without entries */
/** Makes a pipe with a name; false where there is no such thing. */
bool gt_make_fifo(const char *folder, const char *name);

/** From here on no file of this process grows beyond that; false where it cannot be had. */
bool gt_limit_file_size(size_t size);

/** Says when a file was changed, in seconds since 1970. */
void gt_set_modified(const char *path, int64_t seconds);

/** Removes a folder and everything in it. */
void gt_remove_tree(const char *path);

/** The path of this program. */
#define GT_PROGRAM_BYTES 512
void gt_program_path(char path[GT_PROGRAM_BYTES]);

/** Lets others run for a moment. */
void gt_pause(void);

/** Removes a file and its folder, of which it is the only one, now or when the test ends: not every
 * system removes what is open. */
void gt_remove_folder(const char *folder, const char *name);

#endif
