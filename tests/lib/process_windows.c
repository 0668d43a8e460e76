/* SPDX-License-Identifier: MIT */
/*
 * Processes of tests on Windows; see process_windows.h.  Every test program has this file.
 */
#include <windows.h>

#include "lib/test.h"

#define GT_EXIT_ABORTED 3u /* what abort() of the C library leaves with */

double gt_now_seconds(void)
{
    return (double)GetTickCount64() / 1e3;
}

/* Starts this program for the running test.  NULL when that is not possible. */
static HANDLE gt_start_child(unsigned dies)
{
    char program[MAX_PATH];
    char line[2 * MAX_PATH];
    if (GetModuleFileNameA(NULL, program, sizeof(program)) >= sizeof(program) ||
        snprintf(line, sizeof(line), "\"%s\" --child=%u %s", program, dies, gt_state.running) < 0) {
        return NULL;
    }
    fflush(NULL);
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION process;
    /* Of some thousand processes that Wine 8 starts one ends before it has begun, and this is its
       answer; nothing of ours has run then. */
    BOOL started;
    int tries = 0;
    do {
        started = CreateProcessA(program, line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL,
                                 &startup, &process);
    } while (!started && GetLastError() == ERROR_INTERNAL_ERROR && ++tries < 5);
    if (!started) {
        return NULL;
    }
    /* What it starts ends with it, and it with us: the last handle of the job is ours. */
    HANDLE job = CreateJobObjectA(NULL, NULL);
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {
        .BasicLimitInformation = {.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE}};
    (void)SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof(limits));
    (void)AssignProcessToJobObject(job, process.hProcess);
    (void)ResumeThread(process.hThread);
    (void)CloseHandle(process.hThread);
    return process.hProcess;
}

/* For GT_DIES.  0: this is the process for it.  -1: it is not, and nothing is to be done. */
int gt_fork_silently(void)
{
    gt_state.dies_count++;
    if (gt_state.dies_wanted == 0) {
        return 1; /* gt_died starts it */
    }
    if (gt_state.dies_wanted != gt_state.dies_count) {
        return -1;
    }
    if (freopen("NUL", "w", stderr) == NULL) {
        _exit(GT_STATUS_FAILED);
    }
    return 0;
}

void gt_died(const char *file, int line, const char *statement, int pid)
{
    if (pid < 0) {
        return;
    }
    HANDLE child = gt_start_child(gt_state.dies_count);
    DWORD status = 0;
    if (child == NULL || WaitForSingleObject(child, INFINITE) != WAIT_OBJECT_0 ||
        !GetExitCodeProcess(child, &status)) {
        gt_fail(file, line, "cannot run a process");
    }
    (void)CloseHandle(child);
    if (status != GT_EXIT_ABORTED) {
        fprintf(stderr, "%s:%d: did not abort\n", file, line);
        gt_fail(file, line, statement);
    }
}

/*
 * Runs one test in a process of its own and says how it ended: its exit status, or
 * GT_STATUS_FAILED with `ret_reason` filled.
 */
int gt_run_apart(const struct gt_test *test, unsigned timeout_seconds, char *ret_reason,
                 size_t reason_size)
{
    (void)test; /* it is gt_state.running */
    HANDLE child = gt_start_child(0);
    if (child == NULL) {
        snprintf(ret_reason, reason_size, "cannot start a process: %lu", GetLastError());
        return GT_STATUS_FAILED;
    }
    DWORD status = 0;
    bool ended = WaitForSingleObject(child, timeout_seconds * 1000) == WAIT_OBJECT_0;
    if (!ended) {
        (void)TerminateProcess(child, GT_STATUS_FAILED);
        snprintf(ret_reason, reason_size, "no end after %u s", timeout_seconds);
    } else {
        (void)GetExitCodeProcess(child, &status);
    }
    (void)CloseHandle(child);
    if (!ended) {
        return GT_STATUS_FAILED;
    }
    if (status > GT_STATUS_FAILED && status != GT_STATUS_SKIPPED) {
        snprintf(ret_reason, reason_size, "exit status 0x%lx", status);
        return GT_STATUS_FAILED;
    }
    return (int)status;
}

int setenv(const char *name, const char *value, int overwrite)
{
    return !overwrite && getenv(name) != NULL ? 0 : _putenv_s(name, value);
}

int unsetenv(const char *name)
{
    return _putenv_s(name, "");
}

char *mkdtemp(char *path)
{
    return mktemp(path) != NULL && CreateDirectoryA(path, NULL) ? path : NULL;
}

void *memmem(const void *data, size_t size, const void *wanted, size_t wanted_size)
{
    const char *bytes = data;
    for (size_t i = 0; size >= wanted_size && i <= size - wanted_size; i++) {
        if (memcmp(&bytes[i], wanted, wanted_size) == 0) {
            return (void *)(uintptr_t)&bytes[i];
        }
    }
    return NULL;
}
