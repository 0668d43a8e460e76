/* SPDX-License-Identifier: MIT */
/*
 * Children: other programs, started by a loop, which hears when they end.
 *
 *  1. A spawn that succeeds is followed by exactly one `on_exit`, the last callback for that child.
 *     One that fails has left no child: a program that is not there, may not be run, or a folder
 *     that cannot be entered are errors of the spawn itself.
 *  2. An exit is never missed, however early; with it the child is waited for: no zombie stays.
 *  3. A child has the three standard streams that it was given and no other descriptor of ours:
 *     everything that gori opens is close-on-exec, and what others forgot is closed where the
 *     system can (glibc from 2.34 on, macOS, Windows).  Its signals are as new: none blocked or
 *     ignored.
 *  4. A detach, or the end of the loop, ends the watching, not the child: `on_exit` comes with
 *     GORI_ECANCELED, the child goes on, and waiting for it (waitpid) is the application's.
 *  5. A pipe is, on POSIX, a pair of connected UNIX sockets, since sessions and operations work on
 *     sockets alike on every engine; on Windows a pair of TCP sockets within the machine.  Our end
 *     reads and writes; a shutdown of it ends the child's input.  The child notices when it asks
 *     what its stream is, or opens it by name (/dev/stdout).
 *  6. An application that ignores SIGCHLD, or waits for any child (waitpid of -1), takes exits
 *     away: `on_exit` then says GORI_ENOTFOUND.
 *
 * Stability: unstable until 1.0.
 */
#ifndef GORI_PROCESS_H
#define GORI_PROCESS_H

#include <gori/base.h>
#include <gori/op.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_loop;
struct gori_process;

/** Where a standard stream of a child leads. */
enum gori_stdio_kind {
    GORI_STDIO_NULL = 0,    /* nowhere: input is at its end, output is swallowed */
    GORI_STDIO_INHERIT = 1, /* where ours does */
    GORI_STDIO_NATIVE = 2,  /* to a descriptor (Windows: a handle), which stays the caller's */
    GORI_STDIO_PIPE = 3     /* to us: gori_process_take_pipe */
};

/** The streams by number. */
enum gori_stdio { GORI_STDIN = 0, GORI_STDOUT = 1, GORI_STDERR = 2, GORI_STDIO_COUNT = 3 };

/** A standard stream of a child. */
struct gori_stdio_config {
    enum gori_stdio_kind kind;
    gori_native native; /* of GORI_STDIO_NATIVE */
};

/** How a child ended. */
struct gori_exit {
    int error;  /* 0; GORI_ECANCELED or GORI_ENOTFOUND: how it ends or ended is not known */
    int status; /* what it returned; 0 when a signal ended it */
    int signal; /* the signal that ended it, or 0 */
};

typedef void gori_process_fn(struct gori_process *process, const struct gori_exit *exit);

/** What is run, and how.  Zero means the default for every field but `program` and `on_exit`. */
struct gori_process_config {
    const char *program;            /* a path; without a slash it is looked for in PATH */
    const char *const *arguments;   /* the first is its name; ends with NULL; default: `program` */
    const char *const *environment; /* NAME=VALUE; ends with NULL; default: ours */
    const char *directory;          /* it starts in; default: ours.  A `program` with a slash that
                                       does not begin with one is looked for from there */
    struct gori_stdio_config stdio[GORI_STDIO_COUNT];
    gori_process_fn *on_exit;
    void *user;
};

/**
 * Starts a program.
 * Thread: the loop's.  Memory: `config` and what it points to are needed during the call only;
 * the process is the library's, and is freed when `on_exit` returns.
 * Errors: GORI_EINVAL; GORI_ENOTFOUND, GORI_EACCESS, GORI_ENOTDIR and the like, of the program or
 * the folder; GORI_EMFILE, GORI_ENFILE, GORI_ENOMEM, GORI_EAGAIN (too many processes), GORI_ELIMIT.
 * Callback: `on_exit`, never inside this call.
 */
GORI_API GORI_MUST_USE int gori_process_spawn(struct gori_loop *loop,
                                              const struct gori_process_config *config,
                                              struct gori_process **ret_process);

/**
 * Our end of a pipe to a stream of the child, once; GORI_NATIVE_NONE when there is none.  It is
 * then the caller's: for gori_session_adopt or gori_handle_adopt.  Ends that nobody took are closed
 * after `on_exit`; what the child wrote before its end can be read after it.
 * Thread: the loop's.
 */
GORI_API gori_native gori_process_take_pipe(struct gori_process *process, enum gori_stdio stream);

/**
 * Sends a child a signal of <signal.h>.  On Windows any of SIGTERM, SIGINT and 9 (SIGKILL) ends it
 * at once, and 0 asks whether it is there.
 * Thread: the loop's.  Errors: GORI_ECLOSED when it has ended; GORI_EINVAL, GORI_EPERM.
 */
GORI_API GORI_MUST_USE int gori_process_kill(struct gori_process *process, int signal);

/** Ends the watching, see 4.  `on_exit` comes from the loop.  Thread: the loop's. */
GORI_API void gori_process_detach(struct gori_process *process);

/** The system's number of the child. */
GORI_API int64_t gori_process_id(const struct gori_process *process);

/** The pointer given in the config. */
GORI_API void *gori_process_user(const struct gori_process *process);

#ifdef __cplusplus
}
#endif

#endif
