/* SPDX-License-Identifier: MIT */
/*
 * Workers: finding a queue, giving it a slice, and lying down when there is none.
 *
 *  W1  A worker with something in its run queue is not parked.
 *  W2  It looks into its own run queue first, because what is there is warm; into the shared queue
 *      when SHARED_AFTER has passed, and every SHARED_EVERY-th time in any case, so that nobody
 *      outside waits behind what comes back to it again and again.
 *  W3  A queue gets one batch at a time: what was there when its slice began, and no more of it
 *      than fits into the slice.  Then it goes to the tail, so that a queue that feeds itself lets
 *      the others come.
 *  W4  The clock is looked at after each job while jobs are long, and after STRIDE_MAX of them when
 *      they are short: reading it costs more than a short job.
 *  W5  A searcher takes half of a run queue in which two or more wait.  One that waits alone is
 *      left to its worker, unless that has made no progress since the sentinel looked last.
 *  W6  One parked worker at most is the sentinel: it looks every GI_JOB_PATIENCE as long as any
 *      worker is not parked.  When it finds work or is woken, it gives the post up, and wakes
 *      another if anything waits anywhere.
 *  W7  Queues that feed themselves never leave a worker idle, so stealing does not spread them.
 *      When it looks into the shared queue, a worker that has more than its part of all that waits
 *      puts the excess there, for those that have less.
 *
 * A thread waits in its sleeper's monitor; a loop in its engine, with a timer when it is the
 * sentinel.  Thread: the worker's.
 */
#include <gori/error.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "rt/job.h"
#include "rt/loop.h"

enum {
    SHARED_EVERY = 61,
    SHARED_TAKE_MAX = 32, /* queues taken at once */
    STRIDE_MAX = 8,
    DONE_EVERY = 64, /* jobs after which room is made for as many */
};

#define SHARED_AFTER GORI_MILLISECONDS

/* Jobs this far apart are long enough to look at the clock after each. */
#define LONG_STRIDE  (100 * GORI_MICROSECONDS)
#define SHORT_STRIDE (10 * GORI_MICROSECONDS)

static _Thread_local struct gi_job_worker *tl_worker;

struct gi_job_worker *gi_job_worker_self(void)
{
    return tl_worker;
}

void gi_job_worker_set_self(struct gi_job_worker *worker)
{
    tl_worker = worker;
}

static void look_at_clock(struct gi_job_worker *worker)
{
    worker->now =
        worker->loop != NULL ? worker->loop->engine->impl->now(worker->loop->engine) : gi_os_now();
}

static void count_up(struct gi_atomic_u64 *figure, uint64_t by)
{
    gi_atomic_u64_store(figure, gi_atomic_u64_load(figure, GI_RELAXED) + by, GI_RELAXED);
}

/* Finding ---------------------------------------------------------------------------------- */

/* A fair share of the shared queue: the first is the answer, the others go to the run queue. */
static struct gori_job_queue *take_shared(struct gi_job_worker *worker)
{
    struct gori_job_scheduler *scheduler = worker->scheduler;
    if (gi_atomic_u32_load(&scheduler->shared_count, GI_SEQ_CST) == 0) {
        return NULL;
    }
    struct gori_job_queue *first = NULL;
    uint32_t taken = 0;
    gi_os_monitor_lock(&scheduler->lock);
    uint32_t workers = gi_atomic_u32_load(&scheduler->workers_in_use, GI_RELAXED);
    uint32_t share = gi_atomic_u32_load(&scheduler->shared_count, GI_RELAXED) / workers + 1;
    share = gi_min_u32(share, SHARED_TAKE_MAX);
    for (struct gori_link *link;
         taken < share && (link = gi_list_pop_front(&scheduler->shared)) != NULL; taken++) {
        struct gori_job_queue *queue = gori_container_of(link, struct gori_job_queue, place);
        if (first == NULL) {
            first = queue;
        } else if (!gi_run_queue_push(&worker->queue, queue)) {
            gi_list_push_front(&scheduler->shared, link);
            break;
        }
    }
    (void)gi_atomic_u32_sub(&scheduler->shared_count, taken, GI_SEQ_CST);
    gi_os_monitor_unlock(&scheduler->lock);
    count_up(&worker->shared.figures.injected, taken);
    return first;
}

/* How many must wait at `victim` so that this worker takes some: W5. */
static uint32_t least_to_steal(const struct gi_job_worker *worker,
                               const struct gi_job_worker *victim)
{
    /* Only the sentinel is ever impatient, and what was seen is the sentinel's. */
    bool is_stuck =
        worker->is_impatient && gi_atomic_u64_load(&victim->shared.figures.slices, GI_RELAXED) ==
                                    worker->scheduler->seen_slices[victim->index];
    return is_stuck ? 1 : 2;
}

static struct gori_job_queue *steal(struct gi_job_worker *worker)
{
    struct gori_job_scheduler *scheduler = worker->scheduler;
    uint32_t workers = gi_atomic_u32_load(&scheduler->worker_count, GI_ACQUIRE);
    struct gori_job_queue *queue = NULL;
    for (uint32_t i = 0; i < workers && queue == NULL; i++) {
        struct gi_job_worker *victim = gi_job_worker_at(scheduler, (worker->victim + i) % workers);
        if (victim != worker) {
            uint32_t count = 0;
            queue = gi_run_queue_steal(&victim->queue, &worker->queue,
                                       least_to_steal(worker, victim), &count);
            count_up(&worker->shared.figures.stolen, count);
        }
    }
    worker->victim++;
    return queue;
}

static struct gori_job_queue *search(struct gi_job_worker *worker)
{
    struct gori_job_scheduler *scheduler = worker->scheduler;
    if (!worker->is_searching) {
        uint32_t workers = gi_atomic_u32_load(&scheduler->workers_in_use, GI_RELAXED);
        worker->is_searching = gi_job_idle_begin_search(
            &scheduler->idle, worker->has_seen_backlog ? UINT32_MAX : workers);
        worker->has_seen_backlog = false;
    }
    if (!worker->is_searching || scheduler->config.no_stealing) {
        return NULL;
    }
    return steal(worker);
}

/* How many more wait here than a worker has on average. */
static uint32_t excess_of(struct gi_job_worker *worker)
{
    struct gori_job_scheduler *scheduler = worker->scheduler;
    uint32_t workers = gi_atomic_u32_load(&scheduler->worker_count, GI_ACQUIRE);
    uint32_t in_use = gi_atomic_u32_load(&scheduler->workers_in_use, GI_RELAXED);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < workers; i++) {
        sum += gi_run_queue_count(&gi_job_worker_at(scheduler, i)->queue);
    }
    uint32_t own = gi_run_queue_count(&worker->queue);
    uint32_t fair = sum / in_use + 1;
    return own > fair ? own - fair : 0;
}

/* W7.  False: there is nothing to give. */
static bool give_excess(struct gi_job_worker *worker)
{
    struct gori_job_scheduler *scheduler = worker->scheduler;
    if (scheduler->config.no_stealing) {
        return false;
    }
    uint32_t excess = gi_min_u32(excess_of(worker), SHARED_TAKE_MAX);
    uint32_t given = 0;
    for (struct gori_job_queue *queue;
         given < excess && (queue = gi_run_queue_pop(&worker->queue)) != NULL; given++) {
        gi_job_share(queue);
    }
    return given > 0;
}

static struct gori_job_queue *look_outside(struct gi_job_worker *worker)
{
    worker->shared_seen = worker->now;
    return give_excess(worker) ? NULL : take_shared(worker);
}

static struct gori_job_queue *find(struct gi_job_worker *worker)
{
    struct gori_job_queue *queue = NULL;
    uint64_t slices = gi_atomic_u64_load(&worker->shared.figures.slices, GI_RELAXED);
    if (slices % SHARED_EVERY == 0 || worker->now - worker->shared_seen >= SHARED_AFTER) {
        queue = look_outside(worker);
    }
    if (queue == NULL) {
        queue = gi_run_queue_pop(&worker->queue);
    }
    if (queue == NULL) {
        queue = take_shared(worker);
    }
    if (queue == NULL) {
        queue = search(worker);
    }
    return queue;
}

bool gi_job_has_backlog(struct gori_job_scheduler *scheduler)
{
    if (gi_atomic_u32_load(&scheduler->shared_count, GI_SEQ_CST) != 0) {
        return true;
    }
    if (scheduler->config.no_stealing) {
        return false;
    }
    uint32_t least = gi_atomic_bool_load(&scheduler->sentinel, GI_SEQ_CST) ? 2 : 1;
    uint32_t workers = gi_atomic_u32_load(&scheduler->worker_count, GI_ACQUIRE);
    for (uint32_t i = 0; i < workers; i++) {
        if (gi_run_queue_count(&gi_job_worker_at(scheduler, i)->queue) >= least) {
            return true;
        }
    }
    return false;
}

static void leave_post(struct gi_job_worker *worker)
{
    worker->is_impatient = false;
    if (worker->is_sentinel) {
        worker->is_sentinel = false;
        (void)gi_atomic_bool_exchange(&worker->scheduler->sentinel, false, GI_SEQ_CST);
        if (worker->loop != NULL) {
            gori_timer_stop(&worker->patience);
        }
    }
}

/* It has found work, or is going to park: those who saw it search have woken nobody (I3). */
static void end_search(struct gi_job_worker *worker, bool found)
{
    struct gi_job_idle *idle = &worker->scheduler->idle;
    bool was_sentinel = worker->is_sentinel;
    if (found) {
        leave_post(worker);
    }
    if (!worker->is_searching && !(found && was_sentinel)) {
        return;
    }
    if (worker->is_searching) {
        worker->is_searching = false;
        gi_job_idle_end_search(idle);
    }
    if (found && gi_atomic_u32_load(&idle->parked, GI_SEQ_CST) != 0 &&
        gi_job_has_backlog(worker->scheduler)) {
        (void)gi_job_idle_wake_one(idle);
    }
}

/* Running ---------------------------------------------------------------------------------- */

static void report_overload(struct gi_job_worker *worker, struct gori_job_queue *queue)
{
    struct gori_job_scheduler *scheduler = worker->scheduler;
    uint32_t count = gori_job_queue_count(queue);
    if (GI_LIKELY(count < queue->owner_only.report_at)) {
        if (count < queue->config.overload_jobs / 2) {
            queue->owner_only.report_at = queue->config.overload_jobs;
        }
        return;
    }
    while (queue->owner_only.report_at <= count) {
        bool fits = queue->owner_only.report_at <= UINT32_MAX / 2;
        queue->owner_only.report_at = fits ? 2 * queue->owner_only.report_at : UINT32_MAX;
    }
    if (scheduler->config.on_report != NULL) {
        const struct gori_job_report report = {
            .kind = GORI_JOB_OVERLOAD,
            .worker = worker->index,
            .queue_user = queue->config.user,
            .jobs = count,
        };
        scheduler->config.on_report(scheduler, &report);
    }
}

/* Looks at the clock, if it is time to, and chooses how many jobs may pass until next time: W4. */
static void pace(struct gi_job_worker *worker)
{
    if (++worker->unpaced < worker->stride) {
        return;
    }
    gori_time before = worker->now;
    worker->unpaced = 0;
    look_at_clock(worker);
    gori_time passed = worker->now - before;
    if (passed > LONG_STRIDE) {
        worker->stride = 1;
    } else if (passed < SHORT_STRIDE && worker->stride < STRIDE_MAX) {
        worker->stride *= 2;
    }
}

/* Runs jobs of the batch until it is empty, the time is over, or the queue closes. */
static void run_batch(struct gi_job_worker *worker, struct gori_job_queue *queue,
                      gori_time deadline)
{
    uint64_t jobs = gi_atomic_u64_load(&worker->shared.figures.jobs, GI_RELAXED);
    uint32_t left = worker->scheduler->config.slice_jobs;
    uint32_t undone = 0;
    while (queue->owner_only.batch != NULL && left-- > 0) {
        struct gori_job *job = gori_container_of(queue->owner_only.batch, struct gori_job, node);
        queue->owner_only.batch = job->node.next;
        job->run(job);
        gi_atomic_u64_store(&worker->shared.figures.jobs, ++jobs, GI_RELAXED);
        if (++undone == DONE_EVERY) {
            gi_mailbox_done(&queue->inbox, undone);
            undone = 0;
        }
        pace(worker);
        if (worker->now >= deadline || gi_job_state_is_closing(&queue->state)) {
            break;
        }
    }
    gi_mailbox_done(&queue->inbox, undone);
}

/* Gives the queue its slice; afterwards it is somewhere else, and perhaps gone. */
static void run_slice(struct gi_job_worker *worker, struct gori_job_queue *queue,
                      gori_time deadline)
{
    /* It may begin only when it looks into the inbox: with a batch left over it does not. */
    bool has_batch = queue->owner_only.batch != NULL;
    bool goes_on =
        has_batch ? !gi_job_state_is_closing(&queue->state) : gi_job_state_begin(&queue->state);
    if (!goes_on) {
        gi_job_queue_end(queue);
        return;
    }
    if (!has_batch) {
        queue->owner_only.batch = gi_mailbox_take(&queue->inbox);
    }
    report_overload(worker, queue);
    struct gi_job_figures *figures = &worker->shared.figures;
    gori_time begin = worker->now;
    gi_atomic_pointer_store(&worker->shared.user, queue->config.user, GI_RELAXED);
    gi_atomic_bool_store(&worker->shared.is_running, true, GI_RELEASE);
    run_batch(worker, queue, deadline);
    gi_atomic_bool_store(&worker->shared.is_running, false, GI_RELAXED);
    count_up(&figures->slices, 1);
    if (worker->now - begin > gi_atomic_u64_load(&figures->longest_slice, GI_RELAXED)) {
        gi_atomic_u64_store(&figures->longest_slice, worker->now - begin, GI_RELAXED);
    }
    if (queue->owner_only.batch == NULL && gi_job_state_rest(&queue->state)) {
        return;
    }
    gi_job_place(queue);
}

/* Lying down ------------------------------------------------------------------------------- */

static bool has_ended(struct gori_job_scheduler *scheduler)
{
    return gi_atomic_bool_load(&scheduler->is_ending, GI_ACQUIRE) &&
           gi_atomic_u32_load(&scheduler->queues_alive, GI_ACQUIRE) == 0;
}

/* Parked already: keeps, takes or gives up the post of the sentinel (W6). */
static void settle_post(struct gi_job_worker *worker)
{
    struct gori_job_scheduler *scheduler = worker->scheduler;
    bool anybody_up = gi_atomic_u32_load(&scheduler->idle.parked, GI_SEQ_CST) <
                      gi_atomic_u32_load(&scheduler->workers_in_use, GI_SEQ_CST);
    if (!anybody_up || scheduler->config.no_stealing) {
        leave_post(worker);
        return;
    }
    if (!worker->is_sentinel) {
        worker->is_sentinel = !gi_atomic_bool_exchange(&scheduler->sentinel, true, GI_SEQ_CST);
    }
    if (!worker->is_sentinel) {
        return;
    }
    uint32_t workers = gi_atomic_u32_load(&scheduler->worker_count, GI_ACQUIRE);
    for (uint32_t i = 0; i < workers; i++) {
        struct gi_job_figures *figures = &gi_job_worker_at(scheduler, i)->shared.figures;
        scheduler->seen_slices[i] = gi_atomic_u64_load(&figures->slices, GI_RELAXED);
    }
}

static void note_wake(struct gi_job_worker *worker)
{
    worker->is_searching = true;
    count_up(&worker->shared.figures.wakes, 1);
    gi_job_clock_watch(worker->scheduler);
}

/* Lies down, unless work turned up at the last moment.  True: it lies, or was woken again. */
static bool lie_down(struct gi_job_worker *worker)
{
    struct gori_job_scheduler *scheduler = worker->scheduler;
    worker->is_impatient = false;
    end_search(worker, false);
    gi_job_idle_park(&scheduler->idle, &worker->sleeper);
    settle_post(worker);
    worker->has_seen_backlog = gi_job_has_backlog(scheduler);
    if (worker->has_seen_backlog || has_ended(scheduler)) {
        return !gi_job_idle_unpark(&scheduler->idle, &worker->sleeper);
    }
    count_up(&worker->shared.figures.parks, 1);
    return true;
}

static void wait_thread(struct gi_job_worker *worker)
{
    struct gori_job_scheduler *scheduler = worker->scheduler;
    if (!lie_down(worker)) {
        return;
    }
    gori_time deadline = GORI_NEVER;
    if (worker->is_sentinel) {
        deadline = gi_add_saturated_u64(gi_os_now(), GI_JOB_PATIENCE);
    }
    bool woken = gi_job_idle_wait(&worker->sleeper, deadline);
    if (!woken && !gi_job_idle_unpark(&scheduler->idle, &worker->sleeper)) {
        woken = gi_job_idle_wait(&worker->sleeper, GORI_NEVER); /* it is on its way */
    }
    look_at_clock(worker);
    if (woken) {
        note_wake(worker);
    } else {
        worker->is_impatient = true;
    }
}

void gi_job_worker_main(void *argument)
{
    struct gi_job_worker *worker = argument;
    struct gori_job_scheduler *scheduler = worker->scheduler;
    gi_job_worker_set_self(worker);
    look_at_clock(worker);
    gi_job_clock_watch(scheduler);
    while (!has_ended(scheduler)) {
        struct gori_job_queue *queue = find(worker);
        if (queue == NULL) {
            wait_thread(worker);
            continue;
        }
        end_search(worker, true);
        run_slice(worker, queue, gi_add_saturated_u64(worker->now, scheduler->config.slice));
    }
    leave_post(worker);
    end_search(worker, false);
    gi_job_worker_set_self(NULL);
}

/* A loop as a worker ----------------------------------------------------------------------- */

static void lose_patience(struct gori_timer *timer)
{
    struct gi_job_worker *worker = gori_container_of(timer, struct gi_job_worker, patience);
    if (worker->is_parked && gi_job_idle_unpark(&worker->scheduler->idle, &worker->sleeper)) {
        worker->is_parked = false;
        worker->is_impatient = true;
    }
}

static void park_loop(struct gi_job_worker *worker)
{
    worker->is_parked = lie_down(worker);
    if (worker->is_parked && worker->is_sentinel) {
        worker->patience.on_expire = lose_patience;
        gori_timer_start(worker->loop, &worker->patience, GI_JOB_PATIENCE);
    }
}

void gi_job_worker_get_up(struct gi_job_worker *worker)
{
    if (gi_job_idle_unpark(&worker->scheduler->idle, &worker->sleeper)) {
        worker->is_parked = false;
        gi_job_clock_watch(worker->scheduler);
        gi_loop_wake(worker->loop);
    }
}

bool gi_job_worker_has_news(const struct gi_job_worker *worker)
{
    return !worker->is_parked || gi_atomic_bool_load(&worker->sleeper.woken, GI_SEQ_CST) ||
           gi_atomic_bool_load(&worker->shared.clock_news, GI_SEQ_CST);
}

static uint32_t run_for_a_turn(struct gi_job_worker *worker)
{
    const struct gori_job_scheduler_config *config = &worker->scheduler->config;
    uint64_t before = gi_atomic_u64_load(&worker->shared.figures.jobs, GI_RELAXED);
    look_at_clock(worker);
    gori_time end = gi_add_saturated_u64(worker->now, config->loop_slice);
    do {
        struct gori_job_queue *queue = find(worker);
        if (queue == NULL) {
            park_loop(worker);
            break;
        }
        end_search(worker, true);
        run_slice(worker, queue, gi_min_u64(end, gi_add_saturated_u64(worker->now, config->slice)));
    } while (worker->now < end);
    return (uint32_t)(gi_atomic_u64_load(&worker->shared.figures.jobs, GI_RELAXED) - before);
}

uint32_t gi_job_worker_turn(struct gi_job_worker *worker)
{
    if (gi_atomic_bool_load(&worker->shared.clock_news, GI_RELAXED) &&
        gi_atomic_bool_exchange(&worker->shared.clock_news, false, GI_ACQ_REL)) {
        gi_job_clock_turn(worker);
    }
    if (worker->is_parked && gi_job_idle_take_wake(&worker->sleeper)) {
        worker->is_parked = false;
        note_wake(worker);
    }
    if (worker->is_parked) {
        return 0;
    }
    struct gi_job_worker *outer = gi_job_worker_self();
    gi_job_worker_set_self(worker);
    uint32_t count = run_for_a_turn(worker);
    gi_job_worker_set_self(outer);
    return count;
}

void gi_job_worker_retire(struct gi_job_worker *worker)
{
    struct gi_job_idle *idle = &worker->scheduler->idle;
    bool was_woken = worker->is_parked && !gi_job_idle_unpark(idle, &worker->sleeper);
    gi_os_monitor_lock(&worker->sleeper.monitor);
    worker->sleeper.loop = NULL; /* I5 */
    gi_os_monitor_unlock(&worker->sleeper.monitor);
    if (was_woken) {
        /* Just now: the wake ends here, and its search is handed on below. */
        worker->is_searching = gi_job_idle_wait(&worker->sleeper, GORI_NEVER);
    }
    worker->is_parked = false;
    for (struct gori_job_queue *queue; (queue = gi_run_queue_pop(&worker->queue)) != NULL;) {
        gi_job_place(queue); /* the thread is no worker any more: into the shared queue */
    }
    end_search(worker, true); /* hands on the wake that it may have got */
}
