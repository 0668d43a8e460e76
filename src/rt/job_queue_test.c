/* SPDX-License-Identifier: MIT */
/*
 * Job queues on threads: serial, in order, bounded; destroyed in every state; run although their
 * worker is busy; their timers.  Waiting is always for a condition; what never comes ends in the
 * time limit.
 */
#include <gori/error.h>
#include <gori/job_queue.h>
#include <gori/job_scheduler.h>
#include <gori/loop.h>
#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/fault_alloc.h"
#include "lib/test.h"
#include "os/os.h"

/* A place to wait for counts that other threads change. */
struct counter {
    struct gi_os_monitor monitor;
    uint64_t value;
};

static void counter_init(struct counter *counter)
{
    GT_EQUAL(gi_os_monitor_init(&counter->monitor), 0);
    counter->value = 0;
}

static void counter_add(struct counter *counter, uint64_t by)
{
    gi_os_monitor_lock(&counter->monitor);
    counter->value += by;
    gi_os_monitor_notify(&counter->monitor);
    gi_os_monitor_unlock(&counter->monitor);
}

static void counter_wait(struct counter *counter, uint64_t value)
{
    gi_os_monitor_lock(&counter->monitor);
    while (counter->value < value) {
        gi_os_monitor_wait(&counter->monitor);
    }
    gi_os_monitor_unlock(&counter->monitor);
}

static uint64_t counter_read(struct counter *counter)
{
    gi_os_monitor_lock(&counter->monitor);
    uint64_t value = counter->value;
    gi_os_monitor_unlock(&counter->monitor);
    return value;
}

static struct gori_job_scheduler *open_scheduler(struct gi_fault_alloc *memory, uint32_t threads)
{
    gi_fault_alloc_init(memory, NULL);
    const struct gori_job_scheduler_config config = {
        .allocator = &memory->allocator,
        .threads = threads,
    };
    struct gori_job_scheduler *scheduler;
    GT_EQUAL(gori_job_scheduler_create(&config, &scheduler), 0);
    return scheduler;
}

static void close_scheduler(struct gi_fault_alloc *memory, struct gori_job_scheduler *scheduler)
{
    gori_job_scheduler_destroy(scheduler);
    gi_fault_alloc_fini(memory);
}

/* A job that stops its worker until it is let go. */
struct gate {
    struct gori_job job;
    struct counter entered;
    struct counter open;
};

static void pass_gate(struct gori_job *job)
{
    struct gate *gate = job->user;
    counter_add(&gate->entered, 1);
    counter_wait(&gate->open, 1);
}

static void gate_init(struct gate *gate)
{
    *gate = (struct gate){.job = {.run = pass_gate, .user = gate}};
    counter_init(&gate->entered);
    counter_init(&gate->open);
}

/* Queue q gets messages of sender s in the order 0, 1, 2, ...; no two of its jobs meet. */
enum { QUEUES = 6, SENDERS = 3, MESSAGES = 400 };

struct inbox {
    struct gori_job_queue *queue;
    bool is_running;
    uint32_t next[SENDERS];
};

struct message {
    struct gori_job job;
    struct inbox *inbox;
    uint32_t sender;
    uint32_t number;
};

struct traffic {
    struct counter done;
    struct inbox inboxes[QUEUES];
    struct message messages[SENDERS][QUEUES][MESSAGES];
    struct gi_atomic_u32 next_sender;
};

static void receive(struct gori_job *job)
{
    struct message *message = gori_container_of(job, struct message, job);
    struct traffic *traffic = job->user;
    struct inbox *inbox = message->inbox;
    GT_CHECK(!inbox->is_running);
    inbox->is_running = true;
    GT_EQUAL(inbox->next[message->sender], message->number);
    inbox->next[message->sender]++;
    inbox->is_running = false;
    counter_add(&traffic->done, 1);
}

static void *send_all(void *argument)
{
    struct traffic *traffic = argument;
    uint32_t sender = gi_atomic_u32_add(&traffic->next_sender, 1, GI_RELAXED);
    for (uint32_t number = 0; number < MESSAGES; number++) {
        for (uint32_t q = 0; q < QUEUES; q++) {
            struct message *message = &traffic->messages[sender][q][number];
            *message = (struct message){.job = {.run = receive, .user = traffic},
                                        .inbox = &traffic->inboxes[q],
                                        .sender = sender,
                                        .number = number};
            GT_EQUAL(gori_job_queue_push(traffic->inboxes[q].queue, &message->job), 0);
        }
    }
    return NULL;
}

static void check_traffic(uint32_t threads)
{
    static struct traffic traffic;
    struct gi_fault_alloc memory;
    pthread_t senders[SENDERS];
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, threads);
    counter_init(&traffic.done);
    for (int q = 0; q < QUEUES; q++) {
        GT_EQUAL(gori_job_queue_create(scheduler, NULL, &traffic.inboxes[q].queue), 0);
    }
    for (int s = 0; s < SENDERS; s++) {
        GT_EQUAL(pthread_create(&senders[s], NULL, send_all, &traffic), 0);
    }
    for (int s = 0; s < SENDERS; s++) {
        GT_EQUAL(pthread_join(senders[s], NULL), 0);
    }
    counter_wait(&traffic.done, (uint64_t)SENDERS * QUEUES * MESSAGES);
    for (int q = 0; q < QUEUES; q++) {
        gori_job_queue_destroy(traffic.inboxes[q].queue);
    }
    close_scheduler(&memory, scheduler);
}

GT_TEST(jobs_are_serial_and_in_order_on_one_worker)
{
    check_traffic(1);
}

GT_TEST(jobs_are_serial_and_in_order_on_four_workers)
{
    check_traffic(4);
}

/* Jobs that count how they ended. */
struct fate {
    struct counter run;
    struct counter dropped;
};

static void fate_run(struct gori_job *job)
{
    counter_add(&((struct fate *)job->user)->run, 1);
}

static void fate_drop(struct gori_job *job)
{
    counter_add(&((struct fate *)job->user)->dropped, 1);
}

static void fate_init(struct fate *fate)
{
    counter_init(&fate->run);
    counter_init(&fate->dropped);
}

static struct gori_job fate_job(struct fate *fate)
{
    return (struct gori_job){.run = fate_run, .on_drop = fate_drop, .user = fate};
}

GT_TEST(job_queue_answers_at_its_limit)
{
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 1);
    struct gori_job_queue *queue;
    struct gate gate;
    struct fate fate;
    gate_init(&gate);
    fate_init(&fate);
    struct gori_job jobs[3] = {fate_job(&fate), fate_job(&fate), fate_job(&fate)};
    const struct gori_job_queue_config config = {.jobs_max = 3, .user = &fate};
    GT_EQUAL(gori_job_queue_create(scheduler, &config, &queue), 0);
    GT_CHECK(gori_job_queue_user(queue) == &fate);
    GT_CHECK(gori_job_queue_scheduler(queue) == scheduler);
    GT_EQUAL(gori_job_queue_push(queue, &gate.job), 0);
    counter_wait(&gate.entered, 1);
    GT_EQUAL(gori_job_queue_push(queue, &jobs[0]), 0);
    GT_EQUAL(gori_job_queue_push(queue, &jobs[1]), 0);
    GT_EQUAL(gori_job_queue_count(queue), 3);
    GT_EQUAL(gori_job_queue_push(queue, &jobs[2]), GORI_ELIMIT);
    counter_add(&gate.open, 1);
    counter_wait(&fate.run, 2);
    gori_job_queue_destroy(queue);
    close_scheduler(&memory, scheduler);
    GT_EQUAL(counter_read(&fate.dropped), 0);
}

/* While a job runs: it ends, the others are dropped, later pushes are refused. */
GT_TEST(job_queue_destroyed_while_running)
{
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 2);
    struct gori_job_queue *queue;
    struct gate gate;
    struct fate fate;
    gate_init(&gate);
    fate_init(&fate);
    struct gori_job jobs[2] = {fate_job(&fate), fate_job(&fate)};
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queue), 0);
    GT_EQUAL(gori_job_queue_push(queue, &gate.job), 0);
    counter_wait(&gate.entered, 1);
    GT_EQUAL(gori_job_queue_push(queue, &jobs[0]), 0);
    (void)gori_job_queue_ref(queue);
    gori_job_queue_destroy(queue);
    GT_EQUAL(gori_job_queue_push(queue, &jobs[1]), GORI_ECLOSED);
    counter_add(&gate.open, 1);
    counter_wait(&fate.dropped, 1);
    gori_job_queue_unref(queue);
    close_scheduler(&memory, scheduler);
    GT_EQUAL(counter_read(&fate.run), 0);
    GT_EQUAL(counter_read(&fate.dropped), 1);
}

/* While it waits in a run queue or in the shared one: the only worker is busy elsewhere. */
GT_TEST(job_queue_destroyed_while_queued)
{
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 1);
    struct gori_job_queue *busy;
    struct gori_job_queue *queue;
    struct gate gate;
    struct fate fate;
    gate_init(&gate);
    fate_init(&fate);
    struct gori_job job = fate_job(&fate);
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &busy), 0);
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queue), 0);
    GT_EQUAL(gori_job_queue_push(busy, &gate.job), 0);
    counter_wait(&gate.entered, 1);
    GT_EQUAL(gori_job_queue_push(queue, &job), 0);
    gori_job_queue_destroy(queue);
    counter_add(&gate.open, 1);
    counter_wait(&fate.dropped, 1);
    gori_job_queue_destroy(busy);
    close_scheduler(&memory, scheduler);
    GT_EQUAL(counter_read(&fate.run), 0);
}

static void destroy_own_queue(struct gori_job *job)
{
    gori_job_queue_destroy(job->user);
}

GT_TEST(job_queue_destroyed_by_its_own_job)
{
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 1);
    struct gori_job_queue *queue;
    struct gate gate;
    struct fate fate;
    gate_init(&gate);
    fate_init(&fate);
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queue), 0);
    struct gori_job end = {.run = destroy_own_queue, .user = queue};
    struct gori_job after = fate_job(&fate);
    GT_EQUAL(gori_job_queue_push(queue, &gate.job), 0);
    GT_EQUAL(gori_job_queue_push(queue, &end), 0);
    GT_EQUAL(gori_job_queue_push(queue, &after), 0);
    counter_add(&gate.open, 1);
    counter_wait(&fate.dropped, 1);
    close_scheduler(&memory, scheduler);
    GT_EQUAL(counter_read(&fate.run), 0);
}

/* The scheduler ends first: what waits is dropped, a queue that is still held refuses. */
GT_TEST(job_scheduler_destroyed_before_its_queues)
{
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 2);
    struct gori_job_queue *queues[3];
    struct fate fate;
    fate_init(&fate);
    struct gori_job jobs[3] = {fate_job(&fate), fate_job(&fate), fate_job(&fate)};
    struct gori_job late = fate_job(&fate);
    for (int i = 0; i < 3; i++) {
        GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queues[i]), 0);
        GT_EQUAL(gori_job_queue_push(queues[i], &jobs[i]), 0);
    }
    gori_job_scheduler_destroy(scheduler);
    GT_EQUAL(counter_read(&fate.run) + counter_read(&fate.dropped), 3);
    for (int i = 0; i < 3; i++) {
        GT_EQUAL(gori_job_queue_push(queues[i], &late), GORI_ECLOSED);
        gori_job_queue_destroy(queues[i]);
    }
    gi_fault_alloc_fini(&memory);
}

/* A queue that knows how its jobs must have ended when it does. */
struct last_words {
    struct fate fate;
    struct counter ended;
    uint64_t run;
    uint64_t dropped;
};

static void note_end(struct gori_job_queue *queue)
{
    struct last_words *words = gori_job_queue_user(queue);
    GT_EQUAL(counter_read(&words->fate.run), words->run);
    GT_EQUAL(counter_read(&words->fate.dropped), words->dropped);
    GT_EQUAL(gori_job_queue_count(queue), 0);
    counter_add(&words->ended, 1);
}

static struct gori_job_queue *open_with_last_words(struct gori_job_scheduler *scheduler,
                                                   struct last_words *words)
{
    const struct gori_job_queue_config config = {.on_end = note_end, .user = words};
    struct gori_job_queue *queue;
    fate_init(&words->fate);
    counter_init(&words->ended);
    GT_EQUAL(gori_job_queue_create(scheduler, &config, &queue), 0);
    return queue;
}

GT_TEST(job_queue_tells_its_end_after_the_last_of_its_jobs)
{
    static struct last_words idle = {.run = 0};
    static struct last_words busy = {.run = 1, .dropped = 2};
    static struct last_words left = {.run = 1};
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 2);
    struct gate gate;
    gate_init(&gate);
    gori_job_queue_destroy(open_with_last_words(scheduler, &idle));
    counter_wait(&idle.ended, 1);
    struct gori_job_queue *queue = open_with_last_words(scheduler, &busy);
    struct gori_job jobs[] = {fate_job(&busy.fate), fate_job(&busy.fate), fate_job(&busy.fate)};
    GT_EQUAL(gori_job_queue_push(queue, &jobs[0]), 0);
    GT_EQUAL(gori_job_queue_push(queue, &gate.job), 0);
    GT_EQUAL(gori_job_queue_push(queue, &jobs[1]), 0);
    counter_wait(&gate.entered, 1);
    GT_EQUAL(gori_job_queue_push(queue, &jobs[2]), 0);
    gori_job_queue_destroy(queue);
    GT_EQUAL(counter_read(&busy.ended), 0);
    counter_add(&gate.open, 1);
    counter_wait(&busy.ended, 1);
    queue = open_with_last_words(scheduler, &left);
    struct gori_job job = fate_job(&left.fate);
    GT_EQUAL(gori_job_queue_push(queue, &job), 0);
    counter_wait(&left.fate.run, 1);
    gori_job_scheduler_destroy(scheduler);
    GT_EQUAL(counter_read(&left.ended), 1); /* it was waited for */
    gori_job_queue_destroy(queue);
    GT_EQUAL(counter_read(&left.ended), 1);
    GT_EQUAL(counter_read(&idle.ended) + counter_read(&busy.ended), 2);
    gi_fault_alloc_fini(&memory);
}

/* A queue that feeds itself leaves the worker to others. */
struct eater {
    struct gori_job job;
    struct gori_job_queue *queue;
    struct gi_atomic_bool stop;
};

static void eat(struct gori_job *job)
{
    struct eater *eater = job->user;
    if (!gi_atomic_bool_load(&eater->stop, GI_ACQUIRE)) {
        GT_EQUAL(gori_job_queue_push(eater->queue, job), 0);
    }
}

GT_TEST(job_queue_that_never_ends_lets_others_run)
{
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 1);
    static struct eater eater;
    struct gori_job_queue *queue;
    struct fate fate;
    fate_init(&fate);
    struct gori_job job = fate_job(&fate);
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &eater.queue), 0);
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queue), 0);
    eater.job = (struct gori_job){.run = eat, .user = &eater};
    GT_EQUAL(gori_job_queue_push(eater.queue, &eater.job), 0);
    GT_EQUAL(gori_job_queue_push(queue, &job), 0);
    counter_wait(&fate.run, 1);
    gi_atomic_bool_store(&eater.stop, true, GI_RELEASE);
    gori_job_queue_destroy(eater.queue);
    gori_job_queue_destroy(queue);
    close_scheduler(&memory, scheduler);
}

/* A batch of long jobs is cut by the time budget, and goes on in order behind the others. */
static void sleep_a_little(struct gori_job *job)
{
    gori_time until = gi_os_now() + 2 * GORI_MILLISECONDS;
    while (gi_os_now() < until) {
    }
    counter_add(job->user, 1);
}

struct between {
    struct gori_job job;
    struct counter *long_jobs;
    uint64_t seen;
    struct counter ran;
};

static void look_between(struct gori_job *job)
{
    struct between *between = job->user;
    between->seen = counter_read(between->long_jobs);
    counter_add(&between->ran, 1);
}

GT_TEST(job_queue_gives_way_after_its_slice)
{
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 1);
    struct gori_job_queue *busy;
    struct gori_job_queue *queue;
    struct gori_job jobs[40];
    struct counter long_jobs;
    static struct between between;
    struct gate gate;
    gate_init(&gate);
    counter_init(&long_jobs);
    counter_init(&between.ran);
    between.long_jobs = &long_jobs;
    between.job = (struct gori_job){.run = look_between, .user = &between};
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &busy), 0);
    GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queue), 0);
    GT_EQUAL(gori_job_queue_push(busy, &gate.job), 0);
    for (int i = 0; i < 40; i++) {
        jobs[i] = (struct gori_job){.run = sleep_a_little, .user = &long_jobs};
        GT_EQUAL(gori_job_queue_push(busy, &jobs[i]), 0);
    }
    GT_EQUAL(gori_job_queue_push(queue, &between.job), 0);
    counter_add(&gate.open, 1);
    counter_wait(&long_jobs, 40);
    counter_wait(&between.ran, 1);
    GT_CHECK(between.seen < 40);
    struct gori_job_worker_stats stats;
    gori_job_scheduler_read_stats(scheduler, 0, &stats);
    GT_CHECK(stats.longest_slice > 0);
    GT_CHECK(stats.slices >= 3);
    gori_job_queue_destroy(busy);
    gori_job_queue_destroy(queue);
    close_scheduler(&memory, scheduler);
}

/* A job pushes to another queue and waits for it: only another worker can run that one. */
struct dependent {
    struct gori_job job;
    struct gori_job_queue *other;
    struct fate *fate;
    struct gori_job *inner;
};

static void wait_for_other(struct gori_job *job)
{
    struct dependent *dependent = job->user;
    GT_EQUAL(gori_job_queue_push(dependent->other, dependent->inner), 0);
    counter_wait(&dependent->fate->run, 1);
}

enum { STUCK = 20 };

GT_TEST(job_queue_behind_a_stuck_worker_is_taken_by_another)
{
    static struct fate fates[STUCK];
    static struct gori_job inner[STUCK];
    static struct dependent dependents[STUCK];
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 2);
    for (int i = 0; i < STUCK; i++) {
        struct gori_job_queue *queue;
        struct gori_job_queue *other;
        fate_init(&fates[i]);
        inner[i] = fate_job(&fates[i]);
        GT_EQUAL(gori_job_queue_create(scheduler, NULL, &queue), 0);
        GT_EQUAL(gori_job_queue_create(scheduler, NULL, &other), 0);
        dependents[i] = (struct dependent){.job = {.run = wait_for_other, .user = &dependents[i]},
                                           .other = other,
                                           .fate = &fates[i],
                                           .inner = &inner[i]};
        GT_EQUAL(gori_job_queue_push(queue, &dependents[i].job), 0);
        counter_wait(&fates[i].run, 1);
        gori_job_queue_destroy(queue);
        gori_job_queue_destroy(other);
    }
    close_scheduler(&memory, scheduler);
}

/* Timers on threads ------------------------------------------------------------------------ */

/* A timer whose queue is held up by a gate and full. */
struct metronome {
    struct gate gate;
    struct gori_job_queue *queue;
    struct gori_job_timer *timer;
    gori_time started;
    gori_time period;
    struct counter calls;
    uint64_t ticks;
};

static void note_ticks(struct gori_job_timer *timer, uint64_t ticks)
{
    struct metronome *metronome = gori_job_timer_user(timer);
    metronome->ticks += ticks;
    GT_CHECK(ticks > 0);
    GT_CHECK(gi_os_now() - metronome->started >= metronome->ticks * metronome->period);
    counter_add(&metronome->calls, 1);
}

static void metronome_open(struct metronome *metronome, struct gori_job_scheduler *scheduler)
{
    struct gori_job_queue_config config = {.jobs_max = 1};
    gate_init(&metronome->gate);
    counter_init(&metronome->calls);
    metronome->ticks = 0;
    metronome->period = GORI_MILLISECONDS;
    GT_EQUAL(gori_job_queue_create(scheduler, &config, &metronome->queue), 0);
    GT_EQUAL(gori_job_timer_create(metronome->queue, note_ticks, metronome, &metronome->timer), 0);
    GT_EQUAL(gori_job_queue_push(metronome->queue, &metronome->gate.job), 0);
    counter_wait(&metronome->gate.entered, 1);
}

/* Its job waits behind the gate, beyond the limit of the queue. */
static void wait_until_due(struct metronome *metronome)
{
    while (gori_job_queue_count(metronome->queue) < 2) {
        (void)sched_yield();
    }
}

GT_TEST(job_timer_of_threads_is_late_on_a_full_queue_and_not_lost)
{
    static struct metronome metronome;
    struct gi_fault_alloc memory;
    struct fate fate;
    fate_init(&fate);
    struct gori_job refused = fate_job(&fate);
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 1);
    metronome_open(&metronome, scheduler);
    metronome.started = gi_os_now();
    gori_job_timer_start_periodic(metronome.timer, metronome.period);
    wait_until_due(&metronome);
    while (gi_os_now() - metronome.started < 5 * metronome.period) {
        (void)sched_yield();
    }
    GT_EQUAL(gori_job_queue_count(metronome.queue), 2); /* one call, however many ticks */
    GT_EQUAL(gori_job_queue_push(metronome.queue, &refused), GORI_ELIMIT);
    counter_add(&metronome.gate.open, 1);
    counter_wait(&metronome.calls, 3);
    gori_job_timer_destroy(metronome.timer);
    gori_job_queue_destroy(metronome.queue);
    close_scheduler(&memory, scheduler);
}

/* Stopped when its job is on its way already: that finds no tick.  Started again, it fires once. */
GT_TEST(job_timer_of_threads_forgets_what_was_due_when_it_is_stopped)
{
    static struct metronome metronome;
    struct gi_fault_alloc memory;
    struct gori_job_scheduler *scheduler = open_scheduler(&memory, 1);
    metronome_open(&metronome, scheduler);
    metronome.started = gi_os_now();
    gori_job_timer_start_periodic(metronome.timer, metronome.period);
    wait_until_due(&metronome);
    gori_job_timer_stop(metronome.timer);
    counter_add(&metronome.gate.open, 1);
    while (gori_job_queue_count(metronome.queue) > 0) {
        (void)sched_yield();
    }
    GT_EQUAL(counter_read(&metronome.calls), 0);
    metronome.started = gi_os_now();
    gori_job_timer_start(metronome.timer, metronome.period);
    counter_wait(&metronome.calls, 1);
    GT_EQUAL(metronome.ticks, 1);
    gori_job_queue_destroy(metronome.queue);
    gori_job_scheduler_destroy(scheduler);
    gori_job_timer_start(metronome.timer, 0); /* nobody is there: it never fires */
    gori_job_timer_destroy(metronome.timer);
    gi_fault_alloc_fini(&memory);
    GT_EQUAL(metronome.ticks, 1);
}

/* Reports ---------------------------------------------------------------------------------- */

struct reports {
    struct counter stalls;
    struct counter overloads;
    struct gate *gate;
    void *user;
    gori_time running_for;
    uint32_t jobs;
};

static void note_report(struct gori_job_scheduler *scheduler, const struct gori_job_report *report)
{
    struct reports *reports = gori_job_scheduler_user(scheduler);
    reports->user = report->queue_user;
    if (report->kind == GORI_JOB_STALL) {
        GT_CHECK(report->running_for > reports->running_for);
        reports->running_for = report->running_for;
        counter_add(&reports->stalls, 1);
    } else {
        reports->jobs = report->jobs;
        counter_add(&reports->overloads, 1);
    }
}

static struct gori_job_scheduler *open_reporting(struct reports *reports)
{
    const struct gori_job_scheduler_config config = {
        .threads = 1,
        .stall_threshold = 4 * GORI_MILLISECONDS,
        .on_report = note_report,
        .user = reports,
    };
    struct gori_job_scheduler *scheduler;
    counter_init(&reports->stalls);
    counter_init(&reports->overloads);
    GT_EQUAL(gori_job_scheduler_create(&config, &scheduler), 0);
    return scheduler;
}

GT_TEST(job_that_does_not_end_is_reported_at_each_doubling)
{
    static struct reports reports;
    struct gori_job_scheduler *scheduler = open_reporting(&reports);
    struct gori_job_queue *queue;
    struct gate gate;
    gate_init(&gate);
    const struct gori_job_queue_config config = {.user = &gate};
    GT_EQUAL(gori_job_queue_create(scheduler, &config, &queue), 0);
    GT_EQUAL(gori_job_queue_push(queue, &gate.job), 0);
    counter_wait(&reports.stalls, 3);
    GT_CHECK(reports.user == &gate);
    GT_CHECK(reports.running_for >= 16 * GORI_MILLISECONDS);
    counter_add(&gate.open, 1);
    gori_job_queue_destroy(queue);
    gori_job_scheduler_destroy(scheduler);
}

GT_TEST(job_queue_that_falls_behind_is_reported)
{
    static struct reports reports;
    struct gori_job_scheduler *scheduler = open_reporting(&reports);
    struct gori_job_queue *queue;
    struct gate gate;
    struct fate fate;
    static struct gori_job jobs[40];
    gate_init(&gate);
    fate_init(&fate);
    const struct gori_job_queue_config config = {.overload_jobs = 16, .user = &fate};
    GT_EQUAL(gori_job_queue_create(scheduler, &config, &queue), 0);
    GT_EQUAL(gori_job_queue_push(queue, &gate.job), 0);
    counter_wait(&gate.entered, 1);
    for (int i = 0; i < 40; i++) {
        jobs[i] = fate_job(&fate);
        GT_EQUAL(gori_job_queue_push(queue, &jobs[i]), 0);
    }
    counter_add(&gate.open, 1);
    counter_wait(&fate.run, 40);
    gori_job_queue_destroy(queue);
    gori_job_scheduler_destroy(scheduler);
    GT_EQUAL(counter_read(&reports.overloads), 1);
    GT_EQUAL(reports.jobs, 40);
    GT_CHECK(reports.user == &fate);
}

/* Memory ----------------------------------------------------------------------------------- */

static void tick(struct gori_job_timer *timer, uint64_t ticks)
{
    (void)timer;
    (void)ticks;
}

static int use_everything(const struct gori_allocator *allocator, struct gori_loop *loop)
{
    const struct gori_job_scheduler_config config = {.allocator = allocator, .threads = 2};
    struct gori_job_scheduler *scheduler = NULL;
    struct gori_job_queue *queue = NULL;
    struct gori_job_timer *timer = NULL;
    int result = gori_job_scheduler_create(&config, &scheduler);
    if (result >= 0) {
        result = gori_job_queue_create(scheduler, NULL, &queue);
    }
    if (result >= 0) {
        result = gori_job_timer_create(queue, tick, NULL, &timer);
    }
    if (result >= 0) {
        result = gori_job_scheduler_attach(scheduler, loop);
    }
    if (result >= 0) {
        gori_job_scheduler_detach(scheduler, loop);
    }
    gori_job_timer_destroy(timer);
    gori_job_queue_destroy(queue);
    gori_job_scheduler_destroy(scheduler);
    return result;
}

GT_TEST(jobs_survive_every_failed_allocation)
{
    struct gori_loop *loop;
    GT_EQUAL(gori_loop_create(NULL, &loop), 0);
    for (uint64_t n = 1;; n++) {
        struct gi_fault_alloc memory;
        gi_fault_alloc_init(&memory, NULL);
        gi_fault_alloc_fail_once(&memory, n);
        int result = use_everything(&memory.allocator, loop);
        gi_fault_alloc_fini(&memory);
        if (result == 0) {
            GT_CHECK(n > 5);
            gori_loop_destroy(loop);
            return;
        }
        GT_EQUAL(result, GORI_ENOMEM);
    }
}

GT_MAIN()
