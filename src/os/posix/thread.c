/* SPDX-License-Identifier: MIT */
/*
 * Threads and monitors over POSIX threads; which CPUs there are is linux/cpu.c.
 * Thread: any.  Reading: pthreads(7).
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "os/os.h"

_Static_assert(sizeof(pthread_t) == sizeof(uintptr_t), "a thread's name does not fit");

/* What a new thread is told; it lives on its parent's stack until `taken`. */
struct start {
    gi_os_thread_fn *run;
    void *argument;
    sem_t taken;
};

static void *thread_main(void *argument)
{
    struct start *start = argument;
    gi_os_thread_fn *run = start->run;
    void *run_argument = start->argument;
    (void)sem_post(&start->taken);
    run(run_argument);
    return NULL;
}

int gi_os_thread_start(struct gi_os_thread *thread, gi_os_thread_fn *run, void *argument)
{
    struct start start = {.run = run, .argument = argument};
    if (sem_init(&start.taken, 0, 0) != 0) {
        return gi_os_error(errno);
    }
    pthread_t native;
    int failed = pthread_create(&native, NULL, thread_main, &start);
    if (failed == 0) {
        while (sem_wait(&start.taken) != 0) {
            GI_ASSERT(errno == EINTR);
        }
        thread->native = (uintptr_t)native;
    }
    (void)sem_destroy(&start.taken);
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

void gi_os_thread_set_name(const char *name)
{
    char cut[16]; /* what Linux allows, terminator included */
    size_t size = strnlen(name, sizeof(cut) - 1);
    memcpy(cut, name, size);
    cut[size] = '\0';
    (void)pthread_setname_np(pthread_self(), cut);
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

/* A condition whose deadlines are of the monotonic clock. */
static int init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    if (failed != 0) {
        return failed;
    }
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (failed == 0) {
        failed = pthread_cond_init(condition, &attributes);
    }
    (void)pthread_condattr_destroy(&attributes);
    return failed;
}

int gi_os_monitor_init(struct gi_os_monitor *monitor)
{
    struct monitor *native = native_of(monitor);
    int failed = pthread_mutex_init(&native->mutex, NULL);
    if (failed != 0) {
        return gi_os_error(failed);
    }
    failed = init_condition(&native->changed);
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
    struct timespec until = {.tv_sec = (time_t)(deadline / GORI_SECONDS),
                             .tv_nsec = (long)(deadline % GORI_SECONDS)};
    int failed = pthread_cond_timedwait(&native->changed, &native->mutex, &until);
    GI_ASSERT(failed == 0 || failed == ETIMEDOUT);
    return failed == 0;
}

void gi_os_monitor_notify(struct gi_os_monitor *monitor)
{
    (void)pthread_cond_broadcast(&native_of(monitor)->changed);
}
