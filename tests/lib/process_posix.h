/* SPDX-License-Identifier: MIT */
/*
 * Processes of tests on POSIX systems; a part of test.h, which alone includes it.
 */
#ifndef GT_PROCESS_POSIX_H
#define GT_PROCESS_POSIX_H

/* For GT_DIES: the child's complaint is what we want, so nobody needs to see it, or its core. */
static inline int gt_fork_silently(void)
{
    fflush(NULL);
    int pid = (int)fork();
    if (pid == 0) {
        struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(GT_STATUS_FAILED);
        }
    }
    return pid;
}

static inline void gt_died(const char *file, int line, const char *statement, int pid)
{
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        gt_fail(file, line, "cannot run a process");
    }
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
        fprintf(stderr, "%s:%d: did not abort\n", file, line);
        gt_fail(file, line, statement);
    }
}

static inline double gt_now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Waits for the child until the deadline; false when it is still there.  SIGCHLD is blocked. */
static inline bool gt_wait_until(pid_t pid, const sigset_t *signals, double deadline, int *status)
{
    while (waitpid(pid, status, WNOHANG) != pid) {
        double left = deadline - gt_now_seconds();
        if (left <= 0) {
            return false;
        }
        struct timespec timeout = {.tv_sec = (time_t)left,
                                   .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        (void)sigtimedwait(signals, NULL, &timeout);
    }
    return true;
}

/* The first line of a file, or nothing. */
static inline void gt_first_line(const char *path, char *ret_line, int size)
{
    FILE *file = fopen(path, "r");
    ret_line[0] = '\0';
    if (file != NULL) {
        if (fgets(ret_line, size, file) != NULL) {
            ret_line[strcspn(ret_line, "\n")] = '\0';
        }
        (void)fclose(file);
    }
}

/* What each thread of a test that does not end waits for, where the system tells. */
static inline void gt_print_threads(pid_t pid)
{
    char path[80];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        char name[32];
        char sleeps_in[64];
        char call[160];
        if (task->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/comm", (int)pid, task->d_name);
        gt_first_line(path, name, sizeof(name));
        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/wchan", (int)pid, task->d_name);
        gt_first_line(path, sleeps_in, sizeof(sleeps_in));
        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/syscall", (int)pid, task->d_name);
        gt_first_line(path, call, sizeof(call));
        printf("  thread %s %s: in %s, system call %s\n", task->d_name, name, sleeps_in, call);
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
}

/*
 * Runs one test in a process of its own and says how it ended: its exit status, or
 * GT_STATUS_FAILED with `ret_reason` filled.  The only function that knows about processes.
 */
static inline int gt_run_apart(const struct gt_test *test, unsigned timeout_seconds,
                               char *ret_reason, size_t reason_size)
{
    sigset_t signals;
    sigset_t before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &before);
    fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        /* A group of its own, so that whatever it starts ends with it; and it ends with us. */
        (void)setpgid(0, 0);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (getppid() != parent) {
            _exit(GT_STATUS_FAILED);
        }
        test->run();
        exit(0);
    }
    if (pid > 0) {
        (void)setpgid(pid, pid); /* here too: whoever comes first */
    }
    int status = 0;
    bool ended =
        pid > 0 && gt_wait_until(pid, &signals, gt_now_seconds() + timeout_seconds, &status);
    if (pid > 0 && !ended) {
        gt_print_threads(pid);
    }
    if (pid > 0) {
        (void)kill(-pid, SIGKILL);
    }
    if (pid > 0 && !ended) {
        (void)waitpid(pid, &status, 0);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        snprintf(ret_reason, reason_size, "cannot fork: %s", strerror(errno));
        return GT_STATUS_FAILED;
    }
    if (!ended) {
        snprintf(ret_reason, reason_size, "no end after %u s", timeout_seconds);
        return GT_STATUS_FAILED;
    }
    if (WIFSIGNALED(status)) {
        snprintf(ret_reason, reason_size, "killed by signal %d, %s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
        return GT_STATUS_FAILED;
    }
    if (WEXITSTATUS(status) > GT_STATUS_FAILED) {
        snprintf(ret_reason, reason_size, "exit status %d", WEXITSTATUS(status));
    }
    return WEXITSTATUS(status);
}

#endif
