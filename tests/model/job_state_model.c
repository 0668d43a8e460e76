/* SPDX-License-Identifier: MIT */
/*
 * The state of a job queue under the model checker, together with its inbox: no job is left behind,
 * the queue is in one place at most, it ends once, and nobody touches it after it was freed.  Push,
 * slice and end are those of job_queue.c and job_worker.c without what does not matter here; a
 * slice is one job long.
 */
#include "base/mailbox.c"
#include "rt/job_state.h"

#include "model/model.h"

enum { JOBS = 3 };

struct job {
    struct gori_mailbox_node node;
    unsigned fate; /* times it was run or dropped */
};

static struct queue {
    struct gi_job_state state;
    struct gi_mailbox inbox;
    struct gori_mailbox_node *batch;
    unsigned owned; /* plain: only an owner touches it */
} queue;

static struct job jobs[JOBS];
static bool accepted[JOBS];
static unsigned freed;
static unsigned ended;

/* The one place where a queue can wait for a worker. */
#define PLACE_EMPTY 0U
#define PLACE_QUEUE 1U
#define PLACE_OVER  2U /* nothing will come any more */

static struct gi_atomic_u32 place;

static void set_up(void)
{
    gi_job_state_init(&queue.state);
    gi_mailbox_init(&queue.inbox, JOBS);
    queue.batch = NULL;
    gi_atomic_u32_init(&place, PLACE_EMPTY);
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i].fate = 0;
        accepted[i] = false;
    }
    freed = 0;
    ended = 0;
}

/* A pusher that holds a reference of its own. */
static void set_up_shared(void)
{
    set_up();
    gi_job_state_ref(&queue.state);
}

static void unref(void)
{
    if (gi_job_state_unref(&queue.state)) {
        MODEL_CHECK(++freed == 1);
        model_forget(&queue, sizeof(queue));
    }
}

static void put(void)
{
    MODEL_CHECK(gi_atomic_u32_exchange(&place, PLACE_QUEUE, GI_ACQ_REL) == PLACE_EMPTY);
}

static void push(unsigned index)
{
    bool was_empty = false;
    if (gi_job_state_is_closing(&queue.state) ||
        gi_mailbox_push(&queue.inbox, &jobs[index].node, &was_empty) < 0) {
        return;
    }
    accepted[index] = true;
    if ((was_empty || !gi_job_state_is_placed(&queue.state)) && gi_job_state_notify(&queue.state)) {
        put();
    }
}

/* Two jobs wait already: the first slice takes both and runs one. */
static void set_up_loaded(void)
{
    set_up();
    push(0);
    push(1);
}

static unsigned meet_fate(struct gori_mailbox_node *node)
{
    struct job *job = gori_container_of(node, struct job, node);
    MODEL_CHECK(job->fate == 0);
    job->fate = 1;
    return 1;
}

static void end(void)
{
    MODEL_CHECK(++ended == 1);
    gi_mailbox_close(&queue.inbox);
    unsigned count = 0;
    for (; queue.batch != NULL; queue.batch = queue.batch->next) {
        count += meet_fate(queue.batch);
    }
    for (struct gori_mailbox_node *node = gi_mailbox_take(&queue.inbox); node != NULL;
         node = node->next) {
        count += meet_fate(node);
    }
    gi_mailbox_done(&queue.inbox, count);
    unref();
    MODEL_CHECK(gi_atomic_u32_exchange(&place, PLACE_OVER, GI_ACQ_REL) == PLACE_EMPTY);
}

static void slice(void)
{
    model_write(&queue.owned);
    bool has_batch = queue.batch != NULL;
    if (has_batch ? gi_job_state_is_closing(&queue.state) : !gi_job_state_begin(&queue.state)) {
        end();
        return;
    }
    if (!has_batch) {
        queue.batch = gi_mailbox_take(&queue.inbox);
    }
    if (queue.batch != NULL) {
        struct gori_mailbox_node *node = queue.batch;
        queue.batch = node->next;
        (void)meet_fate(node);
        gi_mailbox_done(&queue.inbox, 1);
    }
    if (queue.batch == NULL && gi_job_state_rest(&queue.state)) {
        return;
    }
    put();
}

static void work(void)
{
    while (model_await(&place.value, PLACE_EMPTY) == PLACE_QUEUE) {
        slice();
    }
    gi_atomic_u32_store(&place, PLACE_OVER, GI_RELEASE); /* for the other workers */
}

static void destroy(void)
{
    if (gi_job_state_close(&queue.state)) {
        put();
    }
    unref();
}

static void push_two_and_destroy(void)
{
    push(0);
    push(1);
    destroy();
}

static void push_one_and_destroy(void)
{
    push(0);
    destroy();
}

static void push_shared(void)
{
    push(2);
    unref();
}

/* Runs until so many jobs were there: if one is left behind, it waits for ever. */
static void work_for(unsigned count)
{
    while (jobs[0].fate + jobs[1].fate + jobs[2].fate < count) {
        (void)model_await(&place.value, PLACE_EMPTY);
        slice();
    }
}

static void work_for_two(void)
{
    work_for(2);
}

static void work_for_three(void)
{
    work_for(3);
}

static void push_first(void)
{
    push(0);
}

static void push_third(void)
{
    push(2);
}

static void check(void)
{
    MODEL_CHECK(ended == 1);
    MODEL_CHECK(freed == 1);
    for (unsigned i = 0; i < JOBS; i++) {
        MODEL_CHECK(jobs[i].fate == accepted[i]);
    }
}

static void check_none_left(void)
{
    MODEL_CHECK(jobs[0].fate == 1);
    MODEL_CHECK(jobs[2].fate == 1);
}

int main(int argc, char **argv)
{
    static const struct model_scenario scenarios[] = {
        {"two pushers, one worker",
         set_up,
         {push_first, push_third, work_for_two},
         check_none_left,
         1,
         0},
        {"a batch that is left over",
         set_up_loaded,
         {push_third, work_for_three},
         check_none_left,
         2,
         0},
        {"push and destroy", set_up, {push_two_and_destroy, work}, check, 2, 0},
        {"two workers", set_up, {push_one_and_destroy, work, work}, check, 1, 0},
        {"destroyed while another pushes",
         set_up_shared,
         {push_one_and_destroy, push_shared, work},
         check,
         0,
         0},
        {.name = NULL},
    };
    return model_main(argc, argv, scenarios);
}
