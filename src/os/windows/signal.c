/* SPDX-License-Identifier: MIT */
/*
 * What stands for signals on Windows: Ctrl+C (SIGINT) and Ctrl+Break (SIGBREAK), the console that
 * is closed (1, SIGHUP elsewhere), the user who logs off and the machine that is shut down
 * (SIGTERM).  The system tells it on a thread of its own.  Contract: signal.h.
 *
 * For the first two the handler returns at once.  For the others the process ends when it returns,
 * so it stays: the program ends by itself, or by the system's patience (5 s or more).
 * Thread: any.  Reading: HandlerRoutine (Microsoft Learn).
 */
#include "os/windows/system.h"

#include "os/signal.h"

#include <gori/error.h>
#include <signal.h>

#include "base/list.h"
#include "os/os.h"

#define HANG_UP 1

/* All under the lock. */
static struct {
    SRWLOCK lock;
    struct gori_link watches;
    bool is_installed; /* our handler: for as long as there are watches */
} g_signals = {.lock = SRWLOCK_INIT,
               .watches = {.next = &g_signals.watches, .prev = &g_signals.watches}};

static int number_of(DWORD event)
{
    switch (event) {
    case CTRL_C_EVENT:
        return SIGINT;
    case CTRL_BREAK_EVENT:
        return SIGBREAK;
    case CTRL_CLOSE_EVENT:
        return HANG_UP;
    default:
        return SIGTERM;
    }
}

void gi_os_signal_watch_poke(struct gi_os_signal_watch *watch)
{
    (void)SetEvent((HANDLE)watch->signal_end);
}

static void tell(struct gi_os_signal_watch *watch, int number)
{
    uint64_t before = gi_atomic_u64_load(&watch->pending, GI_RELAXED);
    /* Pairs with the exchange in take, which comes after the source was cleared. */
    while (!gi_atomic_u64_compare_exchange(&watch->pending, &before,
                                           before | GI_OS_SIGNAL_BIT(number), GI_RELEASE)) {
    }
    gi_os_signal_watch_poke(watch);
}

static BOOL WINAPI on_control(DWORD event)
{
    int number = number_of(event);
    bool told = false;
    AcquireSRWLockExclusive(&g_signals.lock);
    GI_LIST_FOREACH (link, &g_signals.watches) {
        struct gi_os_signal_watch *watch = gori_container_of(link, struct gi_os_signal_watch, link);
        if (watch->wanted & GI_OS_SIGNAL_BIT(number)) {
            tell(watch, number);
            told = true;
        }
    }
    ReleaseSRWLockExclusive(&g_signals.lock);
    if (told && event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) {
        Sleep(INFINITE);
    }
    return told;
}

bool gi_os_signal_is_catchable(int number)
{
    return number == SIGINT || number == SIGBREAK || number == SIGTERM || number == HANG_UP;
}

int gi_os_signal_watch_open(struct gi_os_signal_watch *watch)
{
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (event == NULL) {
        return gi_os_error((int)GetLastError());
    }
    watch->source = (intptr_t)event;
    watch->signal_end = watch->source;
    watch->wanted = 0;
    gi_atomic_u64_init(&watch->pending, 0);
    AcquireSRWLockExclusive(&g_signals.lock);
    bool has_handler = g_signals.is_installed || SetConsoleCtrlHandler(on_control, TRUE);
    int error = has_handler ? 0 : gi_os_error((int)GetLastError());
    if (has_handler) {
        g_signals.is_installed = true;
        gi_list_push_back(&g_signals.watches, &watch->link);
    }
    ReleaseSRWLockExclusive(&g_signals.lock);
    if (error < 0) {
        (void)CloseHandle(event);
    }
    return error;
}

static void change(struct gi_os_signal_watch *watch, uint64_t wanted)
{
    AcquireSRWLockExclusive(&g_signals.lock);
    watch->wanted = wanted;
    ReleaseSRWLockExclusive(&g_signals.lock);
}

int gi_os_signal_watch_add(struct gi_os_signal_watch *watch, int number)
{
    if (!gi_os_signal_is_catchable(number)) {
        return GORI_EINVAL;
    }
    change(watch, watch->wanted | GI_OS_SIGNAL_BIT(number));
    return 0;
}

void gi_os_signal_watch_remove(struct gi_os_signal_watch *watch, int number)
{
    change(watch, watch->wanted & ~GI_OS_SIGNAL_BIT(number));
}

void gi_os_signal_watch_close(struct gi_os_signal_watch *watch)
{
    AcquireSRWLockExclusive(&g_signals.lock);
    gi_list_remove(&watch->link);
    bool is_last = gi_list_is_empty(&g_signals.watches);
    if (is_last) {
        g_signals.is_installed = false;
        (void)SetConsoleCtrlHandler(on_control, FALSE);
    }
    ReleaseSRWLockExclusive(&g_signals.lock);
}

uint64_t gi_os_signal_watch_take(struct gi_os_signal_watch *watch)
{
    (void)ResetEvent((HANDLE)watch->source); /* first, or one that comes in between would be lost */
    return gi_atomic_u64_exchange(&watch->pending, 0, GI_ACQUIRE) & watch->wanted;
}

uint64_t gi_os_signal_stop_set(void)
{
    return GI_OS_SIGNAL_BIT(SIGINT) | GI_OS_SIGNAL_BIT(SIGBREAK) | GI_OS_SIGNAL_BIT(SIGTERM) |
           GI_OS_SIGNAL_BIT(HANG_UP);
}

void gi_os_signal_ignore_pipe(void)
{
    /* There is no such signal here. */
}
