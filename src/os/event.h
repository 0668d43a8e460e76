/* SPDX-License-Identifier: MIT */
/*
 * Event sources: what the system lets a thread wait for although it is no socket.  On POSIX any
 * descriptor that polls, on Windows any object that is signalled.  Sources are made by the noun
 * that they are about; here is what all of them have in common.
 * Thread: any.
 */
#ifndef GI_OS_EVENT_H
#define GI_OS_EVENT_H

/** Another name of the same source; not for children.  Errors: GORI_EMFILE, GORI_ENFILE, … */
int gi_os_event_duplicate(int source, int *ret_source);

void gi_os_event_close(int source);

/** Blocks the thread until a source is ready.  For threads that have no loop. */
int gi_os_event_wait(int source);

#endif
