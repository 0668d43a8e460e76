/* SPDX-License-Identifier: MIT */
/*
 * micro_post [ENGINE]: what a message to the loop of another thread costs, in nanoseconds.
 *
 * Busy loop: it is kept turning by a task that posts itself again. "post" is the sender's time
 * for one gori_loop_post; "post and run" is the time per message until all of a burst have run.
 * Sleeping loop: it gets one message at a time, long after it fell asleep. Beside it stands the
 * least that the kernel offers, an eventfd written here and waited for with epoll there. "until
 * it runs" includes the waking of a thread on another CPU and is far more noisy than the call.
 */
#include "cpus.h"
#include "micro.h"

#include <errno.h>
#include <gori/error.h>
#include <gori/loop.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { BURST = 10000, BURSTS = 50, WAKES = 1000 };

struct bench {
    const char *engine;
    struct micro_cpus cpus;           /* the sender takes the last one */
    _Atomic(struct gori_loop *) loop; /* set once it is there */
    _Atomic bool keep_busy;
    _Atomic uint32_t run_count;
    _Atomic uint64_t woken_ns; /* when the message to the sleeper ran; 0 while it has not */
    struct gori_task busy;
    struct gori_task messages[BURST];
};

struct sleeper {
    size_t cpu;
    int event;
    int poller;
    _Atomic uint64_t woken_ns;
};

struct wake_figures {
    double call_ns;
    double arrival_ns;
};

static void check(const char *what, int error)
{
    if (error < 0) {
        (void)fprintf(stderr, "%s: %s\n", what, gori_error_text(error));
        exit(1);
    }
}

static void *run_loop(void *argument)
{
    struct bench *bench = argument;
    struct gori_loop *loop;
    micro_take_cpu(bench->cpus.first);
    struct gori_loop_config config = {.engine = bench->engine};
    check("gori_loop_create", gori_loop_create(&config, &loop));
    atomic_store(&bench->loop, loop);
    check("gori_loop_run", gori_loop_run(loop));
    gori_loop_destroy(loop);
    return NULL;
}

static void stay_busy(struct gori_task *task)
{
    struct bench *bench = task->user;
    if (atomic_load_explicit(&bench->keep_busy, memory_order_relaxed)) {
        check("gori_loop_post", gori_loop_post(bench->loop, task));
    }
}

static void count_run(struct gori_task *task)
{
    struct bench *bench = task->user;
    atomic_fetch_add_explicit(&bench->run_count, 1, memory_order_release);
}

static void note_wake(struct gori_task *task)
{
    struct bench *bench = task->user;
    atomic_store_explicit(&bench->woken_ns, micro_now_ns(), memory_order_release);
}

static void post_burst(struct bench *bench, uint64_t *ret_post_ns, uint64_t *ret_run_ns)
{
    struct gori_loop *loop = bench->loop;
    atomic_store(&bench->run_count, 0);
    uint64_t from_ns = micro_now_ns();
    for (unsigned i = 0; i < BURST; i++) {
        bench->messages[i].run = count_run;
        bench->messages[i].user = bench;
        check("gori_loop_post", gori_loop_post(loop, &bench->messages[i]));
    }
    *ret_post_ns = micro_now_ns() - from_ns;
    while (atomic_load_explicit(&bench->run_count, memory_order_acquire) < BURST) {
    }
    *ret_run_ns = micro_now_ns() - from_ns;
}

static void measure_busy(struct bench *bench)
{
    static uint64_t post_ns[BURSTS];
    static uint64_t run_ns[BURSTS];
    atomic_store(&bench->keep_busy, true);
    bench->busy = (struct gori_task){.run = stay_busy, .user = bench};
    check("gori_loop_post", gori_loop_post(bench->loop, &bench->busy));
    for (unsigned i = 0; i < BURSTS; i++) {
        post_burst(bench, &post_ns[i], &run_ns[i]);
    }
    atomic_store(&bench->keep_busy, false);
    printf("{\"busy loop: post\": %.2f", micro_median(post_ns, BURSTS) / BURST);
    printf(", \"busy loop: post and run\": %.2f", micro_median(run_ns, BURSTS) / BURST);
}

/* One sample: the wake itself, and when the other side noted its arrival. */
static void take_wake(_Atomic uint64_t *woken_ns, uint64_t from_ns, uint64_t *ret_call_ns,
                      uint64_t *ret_arrival_ns)
{
    *ret_call_ns = micro_now_ns() - from_ns;
    uint64_t arrived_ns;
    while ((arrived_ns = atomic_load_explicit(woken_ns, memory_order_acquire)) == 0) {
    }
    *ret_arrival_ns = arrived_ns - from_ns;
}

static void let_fall_asleep(_Atomic uint64_t *woken_ns)
{
    struct timespec delay = {.tv_nsec = 200 * 1000};
    (void)nanosleep(&delay, NULL);
    atomic_store(woken_ns, 0);
}

static struct wake_figures measure_sleeping_loop(struct bench *bench)
{
    static uint64_t call_ns[WAKES];
    static uint64_t arrival_ns[WAKES];
    struct gori_task message = {.run = note_wake, .user = bench};
    for (unsigned i = 0; i < WAKES; i++) {
        let_fall_asleep(&bench->woken_ns);
        uint64_t from_ns = micro_now_ns();
        check("gori_loop_post", gori_loop_post(bench->loop, &message));
        take_wake(&bench->woken_ns, from_ns, &call_ns[i], &arrival_ns[i]);
    }
    return (struct wake_figures){micro_median(call_ns, WAKES), micro_median(arrival_ns, WAKES)};
}

static void *run_sleeper(void *argument)
{
    struct sleeper *sleeper = argument;
    struct epoll_event event;
    micro_take_cpu(sleeper->cpu);
    while (epoll_wait(sleeper->poller, &event, 1, -1) == 1) {
        atomic_store_explicit(&sleeper->woken_ns, micro_now_ns(), memory_order_release);
    }
    return NULL;
}

static struct wake_figures measure_kernel_wake(const struct bench *bench)
{
    static uint64_t call_ns[WAKES];
    static uint64_t arrival_ns[WAKES];
    static struct sleeper sleeper;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    pthread_t thread;
    sleeper.cpu = bench->cpus.first;
    sleeper.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sleeper.poller = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ctl(sleeper.poller, EPOLL_CTL_ADD, sleeper.event, &event) < 0 ||
        pthread_create(&thread, NULL, run_sleeper, &sleeper) != 0) {
        (void)fprintf(stderr, "no sleeping thread: %s\n", strerror(errno));
        exit(1);
    }
    for (unsigned i = 0; i < WAKES; i++) {
        uint64_t one = 1;
        let_fall_asleep(&sleeper.woken_ns);
        uint64_t from_ns = micro_now_ns();
        if (write(sleeper.event, &one, sizeof one) != sizeof one) {
            exit(1);
        }
        take_wake(&sleeper.woken_ns, from_ns, &call_ns[i], &arrival_ns[i]);
    }
    return (struct wake_figures){micro_median(call_ns, WAKES), micro_median(arrival_ns, WAKES)};
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench.engine = argc > 1 ? argv[1] : "auto";
    pthread_t thread;
    bench.cpus = micro_find_cpus();
    if (pthread_create(&thread, NULL, run_loop, &bench) != 0) {
        return 1;
    }
    micro_take_cpu(bench.cpus.last);
    while (atomic_load(&bench.loop) == NULL) {
        (void)sched_yield();
    }
    measure_busy(&bench);
    struct wake_figures loop = measure_sleeping_loop(&bench);
    struct wake_figures kernel = measure_kernel_wake(&bench);
    gori_loop_stop(bench.loop);
    (void)pthread_join(thread, NULL);
    printf(", \"sleeping loop: post\": %.1f, \"eventfd: write\": %.1f", loop.call_ns,
           kernel.call_ns);
    printf(", \"sleeping loop: until it runs\": %.1f, \"eventfd: until it runs\": %.1f}\n",
           loop.arrival_ns, kernel.arrival_ns);
    return 0;
}
