/* SPDX-License-Identifier: MIT */
/*
 * Threads start with their argument, end when joined, and meet at a monitor.
 */
#include "lib/test.h"

#include <sys/prctl.h>

#include "os/os.h"

#define THREADS 4

struct meeting {
    struct gi_os_monitor monitor;
    unsigned arrived;
    bool go;
    unsigned left;
};

static void attend(void *argument)
{
    struct meeting *meeting = argument;
    gi_os_monitor_lock(&meeting->monitor);
    meeting->arrived++;
    gi_os_monitor_notify(&meeting->monitor);
    while (!meeting->go) {
        gi_os_monitor_wait(&meeting->monitor);
    }
    meeting->left++;
    gi_os_monitor_unlock(&meeting->monitor);
}

GT_TEST(os_threads_meet_at_a_monitor)
{
    struct meeting meeting = {0};
    struct gi_os_thread threads[THREADS];
    GT_EQUAL(gi_os_monitor_init(&meeting.monitor), 0);
    for (int i = 0; i < THREADS; i++) {
        GT_EQUAL(gi_os_thread_start(&threads[i], attend, &meeting), 0);
    }
    gi_os_monitor_lock(&meeting.monitor);
    while (meeting.arrived < THREADS) {
        gi_os_monitor_wait(&meeting.monitor);
    }
    GT_EQUAL(meeting.left, 0);
    meeting.go = true;
    gi_os_monitor_notify(&meeting.monitor);
    gi_os_monitor_unlock(&meeting.monitor);
    for (int i = 0; i < THREADS; i++) {
        gi_os_thread_join(&threads[i]);
    }
    GT_EQUAL(meeting.left, THREADS);
    gi_os_monitor_fini(&meeting.monitor);
}

/* A wait ends when its time has come, not before, and holds the monitor again. */
GT_TEST(os_monitor_waits_until_a_deadline)
{
    struct gi_os_monitor monitor;
    GT_EQUAL(gi_os_monitor_init(&monitor), 0);
    gi_os_monitor_lock(&monitor);
    GT_CHECK(!gi_os_monitor_wait_until(&monitor, 1));
    gori_time deadline = gi_os_now() + 2 * GORI_MILLISECONDS;
    while (gi_os_monitor_wait_until(&monitor, deadline)) {
    }
    GT_CHECK(gi_os_now() >= deadline);
    gi_os_monitor_unlock(&monitor);
    gi_os_monitor_fini(&monitor);
}

static void store_self(void *argument)
{
    *(uintptr_t *)argument = gi_os_thread_self();
}

GT_TEST(os_thread_knows_itself)
{
    uintptr_t other = 0;
    struct gi_os_thread thread;
    GT_EQUAL(gi_os_thread_start(&thread, store_self, &other), 0);
    gi_os_thread_join(&thread);
    GT_CHECK(other != 0);
    GT_CHECK(other != gi_os_thread_self());
    GT_EQUAL(gi_os_thread_self(), gi_os_thread_self());
}

GT_TEST(os_thread_name_is_cut)
{
    char name[16];
    gi_os_thread_set_name("a-name-that-is-too-long");
    GT_EQUAL(prctl(PR_GET_NAME, name), 0);
    GT_EQUAL_STRING(name, "a-name-that-is-");
    gi_os_thread_set_name("short");
    GT_EQUAL(prctl(PR_GET_NAME, name), 0);
    GT_EQUAL_STRING(name, "short");
}

GT_MAIN()
