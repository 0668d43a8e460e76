/* SPDX-License-Identifier: MIT */
/*
 * Threads and monitors over POSIX threads; what is the system's own in them (names, clocks,
 * CPUs) is in native.c and cpu.c of its folder.
 * Thread: any.  Reading: pthreads(7).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base/assert.h"
#include "os/posix/native.h"

_Static_assert(sizeof(pthread_t) == sizeof(uintptr_t), "a thread's name does not fit");

/* What a new thread is told; it lives on its parent's stack until `taken`. */
struct start {
    gi_os_thread_fn *run;
    void *argument;
    struct gi_os_monitor monitor;
    bool taken;
};

static void *thread_main(void *argument)
{
    struct start *start = argument;
    gi_os_thread_fn *run = start->run;
    void *run_argument = start->argument;
    gi_os_monitor_lock(&start->monitor);
    start->taken = true;
    gi_os_monitor_notify(&start->monitor);
    gi_os_monitor_unlock(&start->monitor);
    run(run_argument);
    return NULL;
}

int gi_os_thread_start(struct gi_os_thread *thread, gi_os_thread_fn *run, void *argument)
{
    struct start start = {.run = run, .argument = argument};
    int error = gi_os_monitor_init(&start.monitor);
    if (error < 0) {
        return error;
    }
    pthread_t native;
    int failed = pthread_create(&native, NULL, thread_main, &start);
    if (failed == 0) {
        gi_os_monitor_lock(&start.monitor);
        while (!start.taken) {
            gi_os_monitor_wait(&start.monitor);
        }
        gi_os_monitor_unlock(&start.monitor);
        thread->native = (uintptr_t)native;
    }
    gi_os_monitor_fini(&start.monitor);
    return gi_os_error(failed);
}

void gi_os_thread_join(struct gi_os_thread *thread)
{
    int failed = pthread_join((pthread_t)thread->native, NULL);
    GI_ASSERT(failed == 0);
    thread->native = 0;
}

uintptr_t gi_os_thread_self(void)
{
    return (uintptr_t)pthread_self();
}

void gi_os_thread_yield(void)
{
    (void)sched_yield();
}

struct monitor {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

_Static_assert(sizeof(struct monitor) <= sizeof(struct gi_os_monitor), "a monitor does not fit");

static struct monitor *native_of(struct gi_os_monitor *monitor)
{
    return (struct monitor *)(void *)monitor->native;
}

int gi_os_monitor_init(struct gi_os_monitor *monitor)
{
    struct monitor *native = native_of(monitor);
    int failed = pthread_mutex_init(&native->mutex, NULL);
    if (failed != 0) {
        return gi_os_error(failed);
    }
    failed = gi_os_native_condition_init(&native->changed);
    if (failed != 0) {
        (void)pthread_mutex_destroy(&native->mutex);
    }
    return gi_os_error(failed);
}

void gi_os_monitor_fini(struct gi_os_monitor *monitor)
{
    struct monitor *native = native_of(monitor);
    (void)pthread_cond_destroy(&native->changed);
    (void)pthread_mutex_destroy(&native->mutex);
}

void gi_os_monitor_lock(struct gi_os_monitor *monitor)
{
    int failed = pthread_mutex_lock(&native_of(monitor)->mutex);
    GI_ASSERT(failed == 0);
}

void gi_os_monitor_unlock(struct gi_os_monitor *monitor)
{
    int failed = pthread_mutex_unlock(&native_of(monitor)->mutex);
    GI_ASSERT(failed == 0);
}

void gi_os_monitor_wait(struct gi_os_monitor *monitor)
{
    struct monitor *native = native_of(monitor);
    int failed = pthread_cond_wait(&native->changed, &native->mutex);
    GI_ASSERT(failed == 0);
}

bool gi_os_monitor_wait_until(struct gi_os_monitor *monitor, gori_time deadline)
{
    if (deadline == GORI_NEVER) {
        gi_os_monitor_wait(monitor);
        return true;
    }
    struct monitor *native = native_of(monitor);
    int failed = gi_os_native_condition_wait(&native->changed, &native->mutex, deadline);
    GI_ASSERT(failed == 0 || failed == ETIMEDOUT);
    return failed == 0;
}

void gi_os_monitor_notify(struct gi_os_monitor *monitor)
{
    (void)pthread_cond_broadcast(&native_of(monitor)->changed);
}
