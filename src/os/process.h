/* SPDX-License-Identifier: MIT */
/*
 * Children of this process, each an event source that is ready when it may have ended.  What the
 * runtime promises of them is in <gori/process.h>.
 * Thread: any; one at a time for each child.
 */
#ifndef GI_OS_PROCESS_H
#define GI_OS_PROCESS_H

#include <gori/process.h>

#include "os/signal.h"

/** Zero it before spawn. */
struct gi_os_process {
    int64_t id;
    intptr_t source;
    bool is_over;                    /* and waited for */
    bool by_signal;                  /* set before spawn: do without a source of its own */
    intptr_t own;                    /* of Windows: the process, for us */
    struct gi_os_signal_watch watch; /* of SIGCHLD, where there is no other source */
};

/** Starts a child.  Outputs: `process`, and our end of each pipe or GORI_NATIVE_NONE. */
int gi_os_process_spawn(const struct gori_process_config *config, struct gi_os_process *process,
                        gori_native ret_pipes[GORI_STDIO_COUNT]);

/** Waits for a child that has ended.  GORI_EAGAIN when it has not: its source was not right. */
int gi_os_process_take(struct gi_os_process *process, struct gori_exit *ret_exit);

/** See gori_process_kill. */
int gi_os_process_kill(struct gi_os_process *process, int number);

/** Ends a child at once, and waits for it: one that nobody was told of. */
void gi_os_process_end(struct gi_os_process *process);

/** Forgets a child; its source stays, for gi_os_event_close. */
void gi_os_process_close(struct gi_os_process *process);

#endif
