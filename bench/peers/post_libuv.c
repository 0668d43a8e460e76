/* SPDX-License-Identifier: MIT */
/*
 * What a message to the loop of another thread costs with libuv, measured as micro/post.c does.
 * uv_async_send carries nothing and merges calls, so there is a queue under a mutex beside it, as
 * libuv's guide has it; the sender calls uv_async_send for each message, because it cannot know
 * whether the loop has seen the last one.
 */
#include "micro/cpus.h"
#include "micro/micro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <uv.h>

enum { BURST = 10000, BURSTS = 50, WAKES = 1000 };

struct message {
    struct message *next;
    void (*run)(void);
};

static struct {
    struct micro_cpus cpus;
    uv_loop_t loop;
    uv_async_t async;
    uv_idle_t busy;
    uv_mutex_t lock;
    struct message *first;
    struct message **end;
    _Atomic bool is_ready;
    _Atomic bool keep_busy;
    _Atomic bool stop;
    _Atomic uint32_t run_count;
    _Atomic uint64_t woken_ns;
    struct message messages[BURST];
} bench;

static void be_busy(uv_idle_t *idle)
{
    if (!atomic_load_explicit(&bench.keep_busy, memory_order_relaxed)) {
        (void)uv_idle_stop(idle);
    }
}

static void count_run(void)
{
    atomic_fetch_add_explicit(&bench.run_count, 1, memory_order_release);
}

static void note_wake(void)
{
    atomic_store_explicit(&bench.woken_ns, micro_now_ns(), memory_order_release);
}

static void start_busy(void)
{
    (void)uv_idle_start(&bench.busy, be_busy);
}

static void take_messages(uv_async_t *async)
{
    uv_mutex_lock(&bench.lock);
    struct message *message = bench.first;
    bench.first = NULL;
    bench.end = &bench.first;
    uv_mutex_unlock(&bench.lock);
    while (message != NULL) {
        struct message *next = message->next;
        message->run();
        message = next;
    }
    if (atomic_load(&bench.stop)) {
        uv_stop(async->loop);
    }
}

static void post(struct message *message, void (*run)(void))
{
    message->run = run;
    message->next = NULL;
    uv_mutex_lock(&bench.lock);
    *bench.end = message;
    bench.end = &message->next;
    uv_mutex_unlock(&bench.lock);
    (void)uv_async_send(&bench.async);
}

static void run_loop(void *argument)
{
    (void)argument;
    micro_take_cpu(bench.cpus.first);
    (void)uv_loop_init(&bench.loop);
    (void)uv_async_init(&bench.loop, &bench.async, take_messages);
    (void)uv_idle_init(&bench.loop, &bench.busy);
    atomic_store(&bench.is_ready, true);
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
}

static void measure_busy(void)
{
    static uint64_t post_ns[BURSTS];
    static uint64_t run_ns[BURSTS];
    static struct message begin;
    atomic_store(&bench.keep_busy, true);
    post(&begin, start_busy);
    for (unsigned burst = 0; burst < BURSTS; burst++) {
        atomic_store(&bench.run_count, 0);
        uint64_t from_ns = micro_now_ns();
        for (unsigned i = 0; i < BURST; i++) {
            post(&bench.messages[i], count_run);
        }
        post_ns[burst] = micro_now_ns() - from_ns;
        while (atomic_load_explicit(&bench.run_count, memory_order_acquire) < BURST) {
        }
        run_ns[burst] = micro_now_ns() - from_ns;
    }
    atomic_store(&bench.keep_busy, false);
    printf("{\"libuv, busy loop: post\": %.2f", micro_median(post_ns, BURSTS) / BURST);
    printf(", \"libuv, busy loop: post and run\": %.2f", micro_median(run_ns, BURSTS) / BURST);
}

static void measure_sleeping(void)
{
    static uint64_t call_ns[WAKES];
    static uint64_t arrival_ns[WAKES];
    struct message message;
    for (unsigned i = 0; i < WAKES; i++) {
        struct timespec delay = {.tv_nsec = 200 * 1000};
        (void)nanosleep(&delay, NULL);
        atomic_store(&bench.woken_ns, 0);
        uint64_t from_ns = micro_now_ns();
        post(&message, note_wake);
        call_ns[i] = micro_now_ns() - from_ns;
        uint64_t arrived_ns;
        while ((arrived_ns = atomic_load_explicit(&bench.woken_ns, memory_order_acquire)) == 0) {
        }
        arrival_ns[i] = arrived_ns - from_ns;
    }
    printf(", \"libuv, sleeping loop: post\": %.1f", micro_median(call_ns, WAKES));
    printf(", \"libuv, sleeping loop: until it runs\": %.1f}\n", micro_median(arrival_ns, WAKES));
}

int main(void)
{
    uv_thread_t thread;
    bench.cpus = micro_find_cpus();
    bench.end = &bench.first;
    (void)uv_mutex_init(&bench.lock);
    if (uv_thread_create(&thread, run_loop, NULL) != 0) {
        return 1;
    }
    micro_take_cpu(bench.cpus.last);
    while (!atomic_load(&bench.is_ready)) {
        (void)sched_yield();
    }
    measure_busy();
    measure_sleeping();
    atomic_store(&bench.stop, true);
    (void)uv_async_send(&bench.async);
    (void)uv_thread_join(&thread);
    return 0;
}
