/* SPDX-License-Identifier: MIT */
/*
 * micro_jobs [THREADS]: what a job costs through a queue, in nanoseconds each, the clock and the
 * push included, with an empty job.
 *
 * "same worker": jobs that push the next one; the worker's own time. "own queue" to the queue that
 * they run in, "two queues" to another one and back. "from outside" is a thread that is no worker:
 * the time of its push while the worker is busy, and the time per job until all have run.
 * "balanced": each worker has its own few queues that feed themselves, the same work for each, with
 * stealing and without: stealing has nothing to gain there and must not lose.
 * "uneven": all queues begin at one worker.
 * "fairness": 16 queues feed themselves for a while; nanoseconds of worker time per job of the
 * queue that got the most and of the one that got the least.
 */
#include "cpus.h"
#include "micro.h"

#include <gori/error.h>
#include <gori/job_queue.h>
#include <gori/job_scheduler.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    SAMPLES = 15,
    CHAIN = 100000,
    BURST = 10000,
    QUEUES_EACH = 4, /* balanced: per worker */
    QUEUES_MAX = 256,
    FAIR_QUEUES = 16,
    FAIR_MS = 100,
};

struct chain {
    struct gori_job job;
    struct gori_job_queue *queues[2];
    uint32_t left;
    uint32_t work_ns; /* of each job, beside the queue */
    _Atomic bool *stop;
    uint64_t count;
    uint64_t cpu_ns; /* of the worker's thread: at the first job; once it has ended, since then */
    _Atomic uint32_t *ended;
    char padding[128]; /* two of them never share a line of the cache */
};

static uint64_t thread_cpu_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000U + (uint64_t)used.tv_nsec;
}

static void check(const char *what, int error)
{
    if (error < 0) {
        (void)fprintf(stderr, "%s: %s\n", what, gori_error_text(error));
        exit(1);
    }
}

static struct gori_job_scheduler *open_scheduler(uint32_t threads, bool no_stealing)
{
    const struct gori_job_scheduler_config config = {.threads = threads,
                                                     .no_stealing = no_stealing};
    struct gori_job_scheduler *scheduler;
    check("gori_job_scheduler_create", gori_job_scheduler_create(&config, &scheduler));
    return scheduler;
}

static struct gori_job_queue *open_queue(struct gori_job_scheduler *scheduler)
{
    struct gori_job_queue *queue;
    check("gori_job_queue_create", gori_job_queue_create(scheduler, NULL, &queue));
    return queue;
}

static void work_for(uint32_t ns)
{
    if (ns > 0) {
        uint64_t until_ns = micro_now_ns() + ns;
        while (micro_now_ns() < until_ns) {
        }
    }
}

static void push_next(struct gori_job *job)
{
    struct chain *chain = job->user;
    work_for(chain->work_ns);
    if (chain->count++ == 0) {
        chain->cpu_ns = thread_cpu_ns();
    }
    bool goes_on = chain->stop == NULL ? --chain->left > 0
                                       : !atomic_load_explicit(chain->stop, memory_order_relaxed);
    if (goes_on) {
        check("gori_job_queue_push",
              gori_job_queue_push(chain->queues[chain->left % 2], &chain->job));
    } else {
        chain->cpu_ns = thread_cpu_ns() - chain->cpu_ns;
        atomic_fetch_add_explicit(chain->ended, 1, memory_order_release);
    }
}

static void start_chain(struct chain *chain)
{
    chain->job = (struct gori_job){.run = push_next, .user = chain};
    check("gori_job_queue_push", gori_job_queue_push(chain->queues[0], &chain->job));
}

/* Asleep: the CPUs are the workers'. */
static void wait_for(_Atomic uint32_t *counter, uint32_t value)
{
    while (atomic_load_explicit(counter, memory_order_acquire) < value) {
        struct timespec delay = {.tv_nsec = 50 * 1000};
        (void)nanosleep(&delay, NULL);
    }
}

static double measure_chain(bool two_queues)
{
    static uint64_t samples[SAMPLES];
    struct gori_job_scheduler *scheduler = open_scheduler(1, false);
    struct gori_job_queue *queues[2] = {open_queue(scheduler), open_queue(scheduler)};
    for (int i = 0; i < SAMPLES; i++) {
        _Atomic uint32_t ended = 0;
        struct chain chain = {
            .queues = {queues[0], queues[two_queues ? 1 : 0]}, .left = CHAIN, .ended = &ended};
        start_chain(&chain);
        wait_for(&ended, 1);
        samples[i] = chain.cpu_ns;
    }
    gori_job_queue_destroy(queues[0]);
    gori_job_queue_destroy(queues[1]);
    gori_job_scheduler_destroy(scheduler);
    return micro_median(samples, SAMPLES) / CHAIN;
}

static void count_job(struct gori_job *job)
{
    atomic_fetch_add_explicit((_Atomic uint32_t *)job->user, 1, memory_order_release);
}

static void measure_outside(double *ret_push_ns, double *ret_run_ns)
{
    static uint64_t push_ns[SAMPLES];
    static uint64_t run_ns[SAMPLES];
    static struct gori_job jobs[BURST];
    struct gori_job_scheduler *scheduler = open_scheduler(1, false);
    struct gori_job_queue *queue = open_queue(scheduler);
    for (int sample = 0; sample < SAMPLES; sample++) {
        _Atomic uint32_t count = 0;
        uint64_t from_ns = micro_now_ns();
        for (int i = 0; i < BURST; i++) {
            jobs[i] = (struct gori_job){.run = count_job, .user = &count};
            check("gori_job_queue_push", gori_job_queue_push(queue, &jobs[i]));
        }
        push_ns[sample] = micro_now_ns() - from_ns;
        while (atomic_load_explicit(&count, memory_order_acquire) < BURST) {
            (void)sched_yield();
        }
        run_ns[sample] = micro_now_ns() - from_ns;
    }
    gori_job_queue_destroy(queue);
    gori_job_scheduler_destroy(scheduler);
    *ret_push_ns = micro_median(push_ns, SAMPLES) / BURST;
    *ret_run_ns = micro_median(run_ns, SAMPLES) / BURST;
}

/* Starts all chains from inside the scheduler, so that they begin where they are started.  It keeps
 * its worker until all starters have one. */
struct starter {
    struct gori_job job;
    struct gori_job_queue *queue;
    struct chain *chains;
    uint32_t count;
    uint32_t places;
    _Atomic uint32_t *placed;
};

static void start_chains(struct gori_job *job)
{
    struct starter *starter = job->user;
    atomic_fetch_add_explicit(starter->placed, 1, memory_order_release);
    wait_for(starter->placed, starter->places);
    for (uint32_t i = 0; i < starter->count; i++) {
        start_chain(&starter->chains[i]);
    }
}

/* Nanoseconds from start to end of so many chains, started in so many places. */
static uint64_t run_chains(struct gori_job_scheduler *scheduler, uint32_t places, uint32_t each,
                           uint32_t work_ns)
{
    static struct chain chains[QUEUES_MAX];
    static struct starter starters[QUEUES_MAX];
    _Atomic uint32_t ended = 0;
    _Atomic uint32_t placed = 0;
    uint64_t from_ns = 0;
    for (uint32_t i = 0; i < places * each; i++) {
        struct gori_job_queue *queue = open_queue(scheduler);
        chains[i] = (struct chain){
            .queues = {queue, queue}, .left = CHAIN / 10, .work_ns = work_ns, .ended = &ended};
    }
    for (uint32_t i = 0; i < places; i++) {
        starters[i] = (struct starter){.queue = open_queue(scheduler),
                                       .chains = &chains[(size_t)i * each],
                                       .count = each,
                                       .places = places,
                                       .placed = &placed};
        starters[i].job = (struct gori_job){.run = start_chains, .user = &starters[i]};
        wait_for(&placed, i);
        from_ns = micro_now_ns(); /* with the last of them it begins */
        check("gori_job_queue_push", gori_job_queue_push(starters[i].queue, &starters[i].job));
    }
    wait_for(&ended, places * each);
    uint64_t taken_ns = micro_now_ns() - from_ns;
    for (uint32_t i = 0; i < places * each; i++) {
        gori_job_queue_destroy(chains[i].queues[0]);
    }
    for (uint32_t i = 0; i < places; i++) {
        gori_job_queue_destroy(starters[i].queue);
    }
    return taken_ns;
}

/* Without stealing and with it in turns, so that both see the same machine. */
static void measure_stealing(const char *name, uint32_t threads, uint32_t places, uint32_t each)
{
    static uint64_t samples[2][SAMPLES];
    static uint64_t ratios[SAMPLES];
    double jobs = (double)places * each * (CHAIN / 10.0) / threads;
    for (int i = 0; i < SAMPLES; i++) {
        for (int stealing = 0; stealing < 2; stealing++) {
            struct gori_job_scheduler *scheduler = open_scheduler(threads, stealing == 0);
            samples[stealing][i] = run_chains(scheduler, places, each, 200);
            gori_job_scheduler_destroy(scheduler);
        }
        ratios[i] = samples[1][i] * 1000 / samples[0][i];
    }
    printf(", \"%s, without stealing\": %.2f", name, micro_median(samples[0], SAMPLES) / jobs);
    printf(", \"%s, with stealing\": %.2f", name, micro_median(samples[1], SAMPLES) / jobs);
    printf(", \"%s, with per thousand of without\": %.0f", name, micro_median(ratios, SAMPLES));
}

static void measure_fairness(uint32_t threads)
{
    static struct chain chains[FAIR_QUEUES];
    struct gori_job_scheduler *scheduler = open_scheduler(threads, false);
    _Atomic uint32_t ended = 0;
    _Atomic bool stop = false;
    for (int i = 0; i < FAIR_QUEUES; i++) {
        struct gori_job_queue *queue = open_queue(scheduler);
        chains[i] = (struct chain){
            .queues = {queue, queue}, .work_ns = 1000, .stop = &stop, .ended = &ended};
        start_chain(&chains[i]);
    }
    struct timespec delay = {.tv_nsec = FAIR_MS * 1000000L};
    uint64_t from_ns = micro_now_ns();
    (void)nanosleep(&delay, NULL);
    atomic_store(&stop, true);
    wait_for(&ended, FAIR_QUEUES);
    double worker_ns = (double)(micro_now_ns() - from_ns) * threads / FAIR_QUEUES;
    uint64_t most = 0;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < FAIR_QUEUES; i++) {
        most = chains[i].count > most ? chains[i].count : most;
        least = chains[i].count < least ? chains[i].count : least;
        gori_job_queue_destroy(chains[i].queues[0]);
    }
    gori_job_scheduler_destroy(scheduler);
    printf(", \"fairness, the queue with the most jobs\": %.0f", worker_ns / (double)most);
    printf(", \"fairness, the queue with the fewest\": %.0f", worker_ns / (double)least);
}

int main(int argc, char **argv)
{
    uint32_t threads = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2;
    double push_ns;
    double run_ns;
    printf("{\"same worker, own queue\": %.2f", measure_chain(false));
    printf(", \"same worker, two queues\": %.2f", measure_chain(true));
    measure_outside(&push_ns, &run_ns);
    printf(", \"from outside: push\": %.2f, \"from outside: push and run\": %.2f", push_ns, run_ns);
    measure_stealing("balanced", threads, threads, QUEUES_EACH);
    measure_stealing("uneven", threads, 1, QUEUES_EACH);
    measure_fairness(threads);
    printf("}\n");
    return 0;
}
