/* SPDX-License-Identifier: MIT */
/*
 * Threads and monitors of Windows; a monitor is a slim lock and a condition variable, which need
 * no memory of the system and cannot fail.
 * Thread: any.  Reading: "Slim Reader/Writer (SRW) Locks" (Microsoft Learn).
 */
#include <process.h>

#include <gori/error.h>

#include "base/compiler.h"
#include "os/os.h"
#include "os/windows/system.h"

#define NAME_CHARS 64

/* What a new thread is told; it lives on its parent's stack until `taken` is set. */
struct start {
    gi_os_thread_fn *run;
    void *argument;
    HANDLE taken;
};

static unsigned __stdcall thread_main(void *argument)
{
    struct start *start = argument;
    gi_os_thread_fn *run = start->run;
    void *run_argument = start->argument;
    (void)SetEvent(start->taken);
    run(run_argument);
    return 0;
}

int gi_os_thread_start(struct gi_os_thread *thread, gi_os_thread_fn *run, void *argument)
{
    struct start start = {.run = run, .argument = argument};
    start.taken = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (start.taken == NULL) {
        return gi_os_error((int)GetLastError());
    }
    /* Not CreateThread: the C library keeps something for each thread. */
    uintptr_t native = _beginthreadex(NULL, 0, thread_main, &start, 0, NULL);
    int error = 0;
    if (native != 0) {
        DWORD waited = WaitForSingleObject(start.taken, INFINITE);
        GI_ASSERT(waited == WAIT_OBJECT_0);
        thread->native = native;
    } else {
        error = GORI_EAGAIN; /* out of threads or of memory for one */
    }
    (void)CloseHandle(start.taken);
    return error;
}

void gi_os_thread_join(struct gi_os_thread *thread)
{
    DWORD waited = WaitForSingleObject((HANDLE)thread->native, INFINITE);
    GI_ASSERT(waited == WAIT_OBJECT_0);
    (void)CloseHandle((HANDLE)thread->native);
    thread->native = 0;
}

uintptr_t gi_os_thread_self(void)
{
    return GetCurrentThreadId(); /* never 0 */
}

void gi_os_thread_yield(void)
{
    (void)SwitchToThread();
}

typedef HRESULT(WINAPI set_description_fn)(HANDLE thread, PCWSTR description);

void gi_os_thread_set_name(const char *name)
{
    wchar_t wide[NAME_CHARS];
    if (MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, NAME_CHARS) == 0) {
        return;
    }
    /* Of Windows 10 1607 and later. */
    FARPROC found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "SetThreadDescription");
    set_description_fn *set_description = (set_description_fn *)(void (*)(void))found;
    if (set_description != NULL) {
        (void)set_description(GetCurrentThread(), wide);
    }
}

struct monitor {
    SRWLOCK lock;
    CONDITION_VARIABLE changed;
};

_Static_assert(sizeof(struct monitor) <= sizeof(struct gi_os_monitor), "a monitor does not fit");

static struct monitor *native_of(struct gi_os_monitor *monitor)
{
    return (struct monitor *)(void *)monitor->native;
}

int gi_os_monitor_init(struct gi_os_monitor *monitor)
{
    InitializeSRWLock(&native_of(monitor)->lock);
    InitializeConditionVariable(&native_of(monitor)->changed);
    return 0;
}

void gi_os_monitor_fini(struct gi_os_monitor *monitor)
{
    (void)monitor; /* nothing of the system's is in it */
}

void gi_os_monitor_lock(struct gi_os_monitor *monitor)
{
    AcquireSRWLockExclusive(&native_of(monitor)->lock);
}

void gi_os_monitor_unlock(struct gi_os_monitor *monitor)
{
    ReleaseSRWLockExclusive(&native_of(monitor)->lock);
}

void gi_os_monitor_wait(struct gi_os_monitor *monitor)
{
    struct monitor *native = native_of(monitor);
    BOOL woken = SleepConditionVariableSRW(&native->changed, &native->lock, INFINITE, 0);
    GI_ASSERT(woken);
}

bool gi_os_monitor_wait_until(struct gi_os_monitor *monitor, gori_time deadline)
{
    if (deadline == GORI_NEVER) {
        gi_os_monitor_wait(monitor);
        return true;
    }
    gori_time now = gi_os_now();
    gori_time left = deadline > now ? (deadline - now - 1) / GORI_MILLISECONDS + 1 : 0;
    struct monitor *native = native_of(monitor);
    BOOL woken = SleepConditionVariableSRW(&native->changed, &native->lock,
                                           (DWORD)gi_min_u64(left, INFINITE - 1), 0);
    GI_ASSERT(woken || GetLastError() == ERROR_TIMEOUT);
    return woken;
}

void gi_os_monitor_notify(struct gi_os_monitor *monitor)
{
    WakeAllConditionVariable(&native_of(monitor)->changed);
}
