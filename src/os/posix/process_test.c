/* SPDX-License-Identifier: MIT */
/*
 * Children without a loop: what the conformance suite cannot see from outside, and both ways in
 * which the end of a child is told.  The program is a shell's.
 */
#include "lib/test.h"

#include <fcntl.h>
#include <gori/error.h>
#include <signal.h>
#include <sys/wait.h>

#include "os/event.h"
#include "os/os.h"
#include "os/process.h"

static struct gori_process_config config_of(const char *const *arguments)
{
    return (struct gori_process_config){.program = "sh", .arguments = arguments};
}

/* Runs a line of the shell and answers how it ended. */
static struct gori_exit run(const char *line, bool by_signal)
{
    const char *const arguments[] = {"sh", "-c", line, NULL};
    const struct gori_process_config config = config_of(arguments);
    struct gi_os_process process = {.by_signal = by_signal};
    gori_native pipes[GORI_STDIO_COUNT];
    struct gori_exit exit;
    int descriptors = dup(0);
    close(descriptors);
    GT_EQUAL(gi_os_process_spawn(&config, &process, pipes), 0);
    int result;
    while ((result = gi_os_process_take(&process, &exit)) == GORI_EAGAIN) {
        GT_EQUAL(gi_os_event_wait((int)process.source), 0);
    }
    GT_EQUAL(result, 0);
    GT_EQUAL(gi_os_process_kill(&process, SIGTERM), GORI_ECLOSED);
    gi_os_process_close(&process);
    gi_os_event_close((int)process.source);
    int after = dup(0);
    close(after);
    GT_EQUAL(after, descriptors); /* nothing is left open */
    GT_EQUAL(waitpid((pid_t)process.id, NULL, 0), -1);
    GT_EQUAL(errno, ECHILD); /* no zombie */
    return exit;
}

GT_TEST(os_process_ends)
{
    for (int by_signal = 0; by_signal < 2; by_signal++) {
        GT_EQUAL(run("exit 0", by_signal).status, 0);
        GT_EQUAL(run("exit 42", by_signal).status, 42);
        struct gori_exit exit = run("kill -TERM $$", by_signal);
        GT_EQUAL(exit.signal, SIGTERM);
        GT_EQUAL(exit.status, 0);
        GT_EQUAL(exit.error, 0);
    }
}

/* A stopped child has not ended. */
GT_TEST(os_process_that_stops_has_not_ended)
{
    const char *const arguments[] = {"sh", "-c", "kill -STOP $$; exit 5", NULL};
    const struct gori_process_config config = config_of(arguments);
    for (int by_signal = 0; by_signal < 2; by_signal++) {
        struct gi_os_process process = {.by_signal = by_signal == 1};
        gori_native pipes[GORI_STDIO_COUNT];
        struct gori_exit exit;
        siginfo_t info;
        GT_EQUAL(gi_os_process_spawn(&config, &process, pipes), 0);
        GT_EQUAL(waitid(P_PID, (id_t)process.id, &info, WSTOPPED | WNOWAIT), 0);
        GT_EQUAL(gi_os_process_take(&process, &exit), GORI_EAGAIN);
        GT_EQUAL(gi_os_process_kill(&process, SIGCONT), 0);
        while (gi_os_process_take(&process, &exit) == GORI_EAGAIN) {
            GT_EQUAL(gi_os_event_wait((int)process.source), 0);
        }
        GT_EQUAL(exit.status, 5);
        gi_os_process_close(&process);
        gi_os_event_close((int)process.source);
    }
}

/* By SIGCHLD every child is asked, and each tells its own end. */
GT_TEST(os_processes_by_signal_do_not_mix)
{
    enum { COUNT = 20 };
    struct gi_os_process processes[COUNT];
    char lines[COUNT][16];
    gori_native pipes[GORI_STDIO_COUNT];
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(lines[i], sizeof(lines[i]), "exit %d", i);
        const char *const arguments[] = {"sh", "-c", lines[i], NULL};
        const struct gori_process_config config = config_of(arguments);
        processes[i] = (struct gi_os_process){.by_signal = true};
        GT_EQUAL(gi_os_process_spawn(&config, &processes[i], pipes), 0);
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        struct gori_exit exit;
        while (gi_os_process_take(&processes[i], &exit) == GORI_EAGAIN) {
            GT_EQUAL(gi_os_event_wait((int)processes[i].source), 0);
        }
        GT_EQUAL(exit.status, i);
        gi_os_process_close(&processes[i]);
        gi_os_event_close((int)processes[i].source);
    }
    struct sigaction now;
    GT_EQUAL(sigaction(SIGCHLD, NULL, &now), 0);
    GT_CHECK(now.sa_handler == SIG_DFL);
}

/* Somebody else has waited for it: not known, and not for ever. */
GT_TEST(os_process_whose_exit_was_taken)
{
    GT_CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    for (int i = 0; i < 20; i++) {
        GT_EQUAL(run("exit 3", false).error, GORI_ENOTFOUND);
    }
}

/* What another library left open for children is closed, where the system has a way to do it. */
GT_TEST(os_process_has_no_foreign_descriptors)
{
    int foreign = fcntl(0, F_DUPFD, 100);
    GT_CHECK(foreign >= 100);
    struct gori_exit exit = run("test -e /proc/self/fd/100", false);
    close(foreign);
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
    GT_EQUAL(exit.status, 1);
#endif
#endif
    GT_EQUAL(exit.error, 0);
}

/* Streams of ours that are closed, or that cross, do not disturb those of the child. */
GT_TEST(os_process_streams_may_cross)
{
    const char *const arguments[] = {"sh", "-c", "read a; echo out $a; echo err >&2", NULL};
    struct gori_process_config config = config_of(arguments);
    struct gi_os_process process = {0};
    gori_native pipes[GORI_STDIO_COUNT];
    struct gori_exit exit;
    char text[64] = {0};
    char path[] = "/tmp/gori-test-XXXXXX";
    int input = mkstemp(path);
    GT_CHECK(input >= 0);
    unlink(path);
    GT_EQUAL(write(input, "word\n", 5), 5);
    GT_EQUAL(lseek(input, 0, SEEK_SET), 0);
    /* Our 2 is its input, our 0 its error stream. */
    GT_EQUAL(dup2(input, 2), 2);
    config.stdio[GORI_STDIN] = (struct gori_stdio_config){GORI_STDIO_NATIVE, 2};
    config.stdio[GORI_STDOUT].kind = GORI_STDIO_PIPE;
    config.stdio[GORI_STDERR] = (struct gori_stdio_config){GORI_STDIO_NATIVE, 0};
    close(1);
    GT_EQUAL(gi_os_process_spawn(&config, &process, pipes), 0);
    while (gi_os_process_take(&process, &exit) == GORI_EAGAIN) {
        GT_EQUAL(gi_os_event_wait((int)process.source), 0);
    }
    GT_EQUAL(read((int)pipes[GORI_STDOUT], text, sizeof(text) - 1), 9);
    GT_EQUAL_STRING(text, "out word\n");
    close((int)pipes[GORI_STDOUT]);
    gi_os_process_close(&process);
    gi_os_event_close((int)process.source);
    close(input);
}

GT_MAIN()
