/* SPDX-License-Identifier: MIT */
/*
 * What asks a program of Windows to stop: Ctrl+C and Ctrl+Break, the console that is closed, the
 * user who logs off, the machine that is shut down.  The system tells it on a thread of its own,
 * which counts it in a semaphore that somebody waits for.
 *
 *  1. For the first two the handler returns at once.  For the others the process ends when it
 *     returns, so it stays: the program ends by itself, or by the system's patience (5 s or more).
 *  2. There is one waiter in a process; a second open answers GORI_EBUSY.
 *  3. The semaphore is made once and never closed: a handler may be on its way at any time.
 * Thread: one opens and waits; any may interrupt.  Reading: HandlerRoutine (Microsoft Learn).
 */
#include <gori/error.h>

#include "base/atomic.h"
#include "os/os.h"
#include "os/windows/system.h"

#define SIGNALS_MAX 1024 /* that may come before they are waited for */

static struct gi_atomic_pointer g_semaphore; /* 3 */
static struct gi_atomic_bool g_waited_for;   /* 2 */

static BOOL WINAPI console_control(DWORD event)
{
    /* Pairs with the exchange and the store in gi_os_signals_open. */
    if (!gi_atomic_bool_load(&g_waited_for, GI_ACQUIRE)) {
        return FALSE;
    }
    (void)ReleaseSemaphore(gi_atomic_pointer_load(&g_semaphore, GI_ACQUIRE), 1, NULL);
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) {
        Sleep(INFINITE);
    }
    return TRUE;
}

/* The semaphore, with nothing in it.  The caller holds g_waited_for, so that there is one maker. */
static int empty_semaphore(HANDLE *ret_semaphore)
{
    HANDLE semaphore = gi_atomic_pointer_load(&g_semaphore, GI_ACQUIRE);
    if (semaphore == NULL) {
        semaphore = CreateSemaphoreW(NULL, 0, SIGNALS_MAX, NULL);
        if (semaphore == NULL) {
            return gi_os_error((int)GetLastError());
        }
        gi_atomic_pointer_store(&g_semaphore, semaphore, GI_RELEASE);
    }
    while (WaitForSingleObject(semaphore, 0) == WAIT_OBJECT_0) {
    }
    *ret_semaphore = semaphore;
    return 0;
}

int gi_os_signals_open(struct gi_os_signals *signals)
{
    if (gi_atomic_bool_exchange(&g_waited_for, true, GI_ACQ_REL)) {
        return GORI_EBUSY;
    }
    HANDLE semaphore = NULL;
    int error = empty_semaphore(&semaphore);
    if (error < 0) {
        goto err_waited_for;
    }
    HANDLE interrupt = CreateEventW(NULL, FALSE, FALSE, NULL);
    if (interrupt == NULL) {
        error = gi_os_error((int)GetLastError());
        goto err_waited_for;
    }
    if (!SetConsoleCtrlHandler(console_control, TRUE)) {
        error = gi_os_error((int)GetLastError());
        goto err_interrupt;
    }
    signals->signal_fd = gi_os_descriptor(semaphore);
    signals->interrupt_fd = gi_os_descriptor(interrupt);
    return 0;

err_interrupt:
    (void)CloseHandle(interrupt);
err_waited_for:
    gi_atomic_bool_store(&g_waited_for, false, GI_RELEASE);
    return error;
}

void gi_os_signals_close(struct gi_os_signals *signals)
{
    (void)SetConsoleCtrlHandler(console_control, FALSE);
    (void)CloseHandle(gi_os_handle(signals->interrupt_fd));
    signals->signal_fd = -1;
    signals->interrupt_fd = -1;
    gi_atomic_bool_store(&g_waited_for, false, GI_RELEASE);
}

int gi_os_signals_wait(struct gi_os_signals *signals)
{
    const HANDLE events[] = {gi_os_handle(signals->signal_fd), gi_os_handle(signals->interrupt_fd)};
    switch (WaitForMultipleObjects(2, events, FALSE, INFINITE)) {
    case WAIT_OBJECT_0:
        return 1;
    case WAIT_OBJECT_0 + 1:
        return 0;
    default:
        return gi_os_error((int)GetLastError());
    }
}

void gi_os_signals_interrupt(struct gi_os_signals *signals)
{
    (void)SetEvent(gi_os_handle(signals->interrupt_fd));
}
