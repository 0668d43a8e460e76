/* SPDX-License-Identifier: MIT */
/*
 * Processes of tests on Windows; a part of test.h, which alone includes it.  There is no fork: a
 * test's process is this program again, told by --child=N to run that one test.  N is the number of
 * the GT_DIES whose statement it is to run, 0 for none; the ones before it are passed over.
 * The bodies are in process_windows.c: the system's header would give tests too many names.
 */
#ifndef GT_PROCESS_WINDOWS_H
#define GT_PROCESS_WINDOWS_H

double gt_now_seconds(void);

/** For GT_DIES.  0: this is the process for it; < 0: it is not, and nothing is to be done. */
int gt_fork_silently(void);
void gt_died(const char *file, int line, const char *statement, int pid);

/**
 * Runs one test in a process of its own and says how it ended: its exit status, or
 * GT_STATUS_FAILED with `ret_reason` filled.
 */
int gt_run_apart(const struct gt_test *test, unsigned timeout_seconds, char *ret_reason,
                 size_t reason_size);

/* Of POSIX, what tests use and mingw-w64 lacks. */
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
char *mkdtemp(char *path);
void *memmem(const void *data, size_t size, const void *wanted, size_t wanted_size);

#endif
