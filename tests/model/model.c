/* SPDX-License-Identifier: MIT */
/*
 * The model checker.  What it proves is said in model.h.
 *
 *  1. Depth first, by playing again: an execution is the list of choices that were made in it.
 *     After it the last choice that has an untried alternative is changed, and everything is played
 *     anew.
 *  2. A thread runs to just before its next step and says which one it will be; then somebody is
 *     chosen.  So it is known beforehand what a step will touch.
 *  3. Sleep sets (Godefroid): a thread that was tried here sleeps in the later alternatives, until
 *     somebody else takes a step that depends on its own.  If all who could run sleep, the
 *     execution is the mirror image of one that was played.
 *  4. Memory is the usual view machine: histories of messages, a view (how much of each history it
 *     has seen) for each thread, a view in each released message.  Vector clocks for plain accesses
 *     go the same ways.
 *  5. Sequential consistency: a store (or update) of that order first sees every such store that
 *     was played before it, and carries along what it then knows of them; a load of that order that
 *     takes it learns as much.  A load alone may still be early, as a processor's is that stands
 *     before an ordinary store: two threads that both store and then look need both stores
 *     sequentially consistent, or an update of one variable.
 */
#include "model/model.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/fiber.h"
#include "os/os.h"

enum {
    LOCATIONS_MAX = 192,
    MESSAGES_MAX = 48, /* of one location */
    PLACES = 1024,     /* of the table from addresses to locations: a power of two */
    CHOICES_MAX = 4096,
    TRACE_MAX = 4096,
    PRINTED_MAX = 100,
    CELLS_MAX = 64,
    FORGOTTEN_MAX = 16,
    SETUP = MODEL_THREADS_MAX, /* the thread of setup and check */
};

struct clocks {
    uint16_t of[MODEL_THREADS_MAX + 1];
};

struct view {
    uint8_t of[LOCATIONS_MAX];
};

struct message {
    uint64_t value;
    bool is_released;
    bool is_sequential;
    struct clocks clocks;
    struct view view;
    struct view sequential; /* 5 */
};

struct location {
    const void *address;
    unsigned count;
    struct message messages[MESSAGES_MAX];
};

/* What a thread is about to do. */
struct step {
    const void *address; /* NULL: it has ended */
    bool is_write;
    bool is_sequential; /* a write that reads and changes model.sequential (5) */
};

/* A monitor, in the memory of a gi_os_monitor.  What a lock hands on is the first message of the
   location at its address. */
struct model_monitor {
    bool is_locked;
    unsigned waiting; /* threads, by bits */
};

enum wait_state { WAIT_NOT, WAIT_ASLEEP, WAIT_NOTIFIED };

struct thread {
    struct fiber fiber;
    struct step next;
    struct view view;
    struct clocks clocks;
    enum wait_state wait;
    const struct model_monitor *wants; /* to lock it is its next step; NULL: nothing */
    const uint32_t *awaits;            /* its next step needs this to be more than 0 */
    gori_time deadline;                /* of its wait */
    bool is_late;                      /* the deadline has ended it */
};

struct choice {
    unsigned count;    /* of a value: alternatives; 0 for a choice of thread */
    unsigned index;    /* taken */
    unsigned awake;    /* threads that could run here and are not asleep, untried */
    unsigned sleeping; /* threads that were asleep here, or were tried since */
};

struct event {
    const char *what;
    unsigned thread;
    const void *address;
    uint64_t value;
    memory_order order;
};

struct cell {
    const void *address;
    unsigned writer;
    struct clocks written;
};

struct model {
    const struct model_scenario *scenario;
    struct location locations[LOCATIONS_MAX];
    unsigned location_count;
    uint16_t places[PLACES]; /* 1 + index of a location */
    struct view sequential;  /* all sequentially consistent stores so far */
    struct thread threads[MODEL_THREADS_MAX + 1];
    unsigned thread_count;
    unsigned running;
    struct choice choices[CHOICES_MAX];
    unsigned choice_count;
    unsigned depth; /* choices made in this execution */
    unsigned stale;
    unsigned preemptions;
    gori_time now;
    struct event trace[TRACE_MAX];
    unsigned event_count;
    struct cell cells[CELLS_MAX];
    unsigned cell_count;
    struct {
        uintptr_t begin;
        uintptr_t end;
    } forgotten[FORGOTTEN_MAX];
    unsigned forgotten_count;
    bool has_failed;
    bool is_quiet; /* a failure is what is wanted */
    uint64_t executions;
    uint64_t steps;
    struct fiber scheduler;
    jmp_buf failed;
};

static struct model model;
static uint8_t stacks[MODEL_THREADS_MAX][FIBER_STACK_BYTES] __attribute__((aligned(64)));

unsigned model_self(void)
{
    return model.running;
}

static struct thread *self(void)
{
    return &model.threads[model.running];
}

/* Failing ---------------------------------------------------------------------------------- */

static void note(const char *what, const void *address, uint64_t value, memory_order order)
{
    if (model.event_count < TRACE_MAX) {
        model.trace[model.event_count++] = (struct event){
            .what = what,
            .thread = model.running,
            .address = address,
            .value = value,
            .order = order,
        };
    }
}

void model_note(const char *what, uint64_t number)
{
    note(what, NULL, number, memory_order_relaxed);
}

static void print_trace(void)
{
    static const char *const orders[] = {"relaxed", "consume", "acquire",
                                         "release", "acq_rel", "seq_cst"};
    unsigned first = model.event_count > PRINTED_MAX ? model.event_count - PRINTED_MAX : 0;
    for (unsigned i = first; i < model.event_count; i++) {
        const struct event *event = &model.trace[i];
        if (event->address == NULL) {
            fprintf(stderr, "  thread %u: %s %llu\n", event->thread, event->what,
                    (unsigned long long)event->value);
        } else {
            fprintf(stderr, "  thread %u: %s %p, 0x%llx, %s\n", event->thread, event->what,
                    event->address, (unsigned long long)event->value, orders[event->order]);
        }
    }
}

/* Ends the execution, from whichever fiber. */
void model_fail(const char *file, int line, const char *what)
{
    model.has_failed = true;
    if (!model.is_quiet) {
        fprintf(stderr, "%s: execution %llu fails: %s:%d: %s\n", model.scenario->name,
                (unsigned long long)model.executions + 1, file, line, what);
        print_trace();
    }
    if (model.running == SETUP) {
        longjmp(model.failed, 1);
    }
    fiber_switch(&self()->fiber, &model.scheduler);
}

#define FAIL(what) model_fail(__FILE__, __LINE__, what)

/* Choices ---------------------------------------------------------------------------------- */

static struct choice *reach_choice(bool *ret_is_new)
{
    *ret_is_new = model.depth == model.choice_count;
    if (*ret_is_new) {
        if (model.choice_count == CHOICES_MAX) {
            FAIL("more choices than the checker has room for: does somebody spin?");
        }
        model.choices[model.choice_count++] = (struct choice){0};
    }
    return &model.choices[model.depth++];
}

unsigned model_choose(unsigned count)
{
    if (count <= 1 || model.running == SETUP) {
        return 0;
    }
    bool is_new;
    struct choice *choice = reach_choice(&is_new);
    if (is_new) {
        choice->count = count;
    }
    return choice->index;
}

static void take_awake(struct choice *choice)
{
    choice->index = (unsigned)__builtin_ctz(choice->awake);
    choice->awake &= ~(1U << choice->index);
}

/* Prepares the next execution.  False: all have been played. */
static bool change_last_choice(void)
{
    while (model.choice_count > 0) {
        struct choice *choice = &model.choices[model.choice_count - 1];
        if (choice->count > 0 && choice->index + 1 < choice->count) {
            choice->index++;
            return true;
        }
        if (choice->count == 0 && choice->awake != 0) {
            choice->sleeping |= 1U << choice->index;
            take_awake(choice);
            return true;
        }
        model.choice_count--;
    }
    return false;
}

/* Memory ----------------------------------------------------------------------------------- */

static void check_not_forgotten(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    for (unsigned i = 0; i < model.forgotten_count; i++) {
        if (at >= model.forgotten[i].begin && at < model.forgotten[i].end) {
            FAIL("a step on memory that was given up");
        }
    }
}

void model_forget(const void *address, size_t size)
{
    if (model.forgotten_count == FORGOTTEN_MAX) {
        FAIL("more objects were given up than the checker has room for");
    }
    model.forgotten[model.forgotten_count].begin = (uintptr_t)address;
    model.forgotten[model.forgotten_count++].end = (uintptr_t)address + size;
}

static uint64_t read_value(const void *address, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, address, size < sizeof(value) ? size : sizeof(value));
    return value;
}

static uint16_t *place_of(const void *address)
{
    size_t place = ((uintptr_t)address >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 54;
    while (model.places[place] != 0 &&
           model.locations[model.places[place] - 1].address != address) {
        place = (place + 1) % PLACES;
    }
    return &model.places[place];
}

/* The location of an atomic; what it held before its first step is its first message. */
static struct location *find_location(const void *address, size_t size)
{
    uint16_t *place = place_of(address);
    if (*place == 0) {
        if (model.location_count == LOCATIONS_MAX) {
            FAIL("more atomics than the checker has room for");
        }
        struct location *location = &model.locations[model.location_count++];
        location->address = address;
        location->count = 1;
        memset(&location->messages[0], 0, sizeof(location->messages[0]));
        location->messages[0].value = read_value(address, size);
        *place = (uint16_t)model.location_count;
    }
    return &model.locations[*place - 1];
}

void model_init(const void *address)
{
    uint16_t *place = place_of(address);
    if (*place != 0) {
        /* Memory that is used again: a new location, so that nobody sees the old one in it. */
        model.locations[*place - 1].address = &model.locations[*place - 1];
        memset(model.places, 0, sizeof(model.places));
        for (unsigned i = 0; i < model.location_count; i++) {
            *place_of(model.locations[i].address) = (uint16_t)(i + 1);
        }
    }
}

static void join_clocks(struct clocks *into, const struct clocks *from)
{
    for (unsigned i = 0; i <= MODEL_THREADS_MAX; i++) {
        into->of[i] = into->of[i] < from->of[i] ? from->of[i] : into->of[i];
    }
}

static void join_views(struct view *into, const struct view *from)
{
    for (unsigned i = 0; i < model.location_count; i++) {
        into->of[i] = into->of[i] < from->of[i] ? from->of[i] : into->of[i];
    }
}

static bool is_acquire(memory_order order)
{
    return order == memory_order_acquire || order == memory_order_acq_rel ||
           order == memory_order_seq_cst;
}

static bool is_release(memory_order order)
{
    return order == memory_order_release || order == memory_order_acq_rel ||
           order == memory_order_seq_cst;
}

/* Gives way before a step, until the scheduler says that it is this thread's. */
static void before_step(const void *address, bool is_write, memory_order order)
{
    if (model.running != SETUP) {
        struct thread *thread = self();
        thread->next = (struct step){
            .address = address,
            .is_write = is_write,
            .is_sequential = is_write && order == memory_order_seq_cst,
        };
        fiber_switch(&thread->fiber, &model.scheduler);
        model.steps++;
    }
    check_not_forgotten(address);
    self()->clocks.of[model.running]++;
}

static unsigned index_of(const struct location *location)
{
    return (unsigned)(location - model.locations);
}

static void see(const struct location *location, unsigned message, memory_order order)
{
    struct thread *thread = self();
    thread->view.of[index_of(location)] = (uint8_t)message;
    if (is_acquire(order) && location->messages[message].is_released) {
        join_views(&thread->view, &location->messages[message].view);
        join_clocks(&thread->clocks, &location->messages[message].clocks);
    }
    if (order == memory_order_seq_cst && location->messages[message].is_sequential) {
        join_views(&thread->view, &location->messages[message].sequential);
    }
}

/* Adds a message at the end; `follows`: a read-modify-write, which continues a release. */
static void append(struct location *location, uint64_t value, memory_order order, bool follows)
{
    struct thread *thread = self();
    if (location->count == MESSAGES_MAX) {
        FAIL("more stores to one atomic than the checker has room for");
    }
    const struct message *before = &location->messages[location->count - 1];
    struct message *message = &location->messages[location->count];
    memset(message, 0, sizeof(*message));
    message->value = value;
    thread->view.of[index_of(location)] = (uint8_t)location->count;
    if (order == memory_order_seq_cst) {
        join_views(&thread->view, &model.sequential);
        model.sequential.of[index_of(location)] = (uint8_t)location->count;
        message->is_sequential = true;
        message->sequential = model.sequential;
    }
    if (is_release(order)) {
        message->is_released = true;
        message->view = thread->view;
        message->clocks = thread->clocks;
    }
    if (follows && before->is_released) {
        message->is_released = true;
        join_views(&message->view, &before->view);
        join_clocks(&message->clocks, &before->clocks);
    }
    location->count++;
}

/* Which message a load takes: the newest, or (a choice) an older one that it may still see. */
static unsigned choose_message(const struct location *location)
{
    unsigned newest = location->count - 1;
    unsigned oldest = self()->view.of[index_of(location)];
    if (model.stale >= model.scenario->stale_max) {
        return newest;
    }
    unsigned back = model_choose(newest - oldest + 1);
    model.stale += back > 0;
    return newest - back;
}

uint64_t model_load(const void *address, size_t size, memory_order order)
{
    before_step(address, false, order);
    struct location *location = find_location(address, size);
    unsigned message = choose_message(location);
    see(location, message, order);
    note("load", address, location->messages[message].value, order);
    return location->messages[message].value;
}

void model_store(void *address, size_t size, uint64_t value, memory_order order)
{
    before_step(address, true, order);
    struct location *location = find_location(address, size);
    append(location, value, order, false);
    memcpy(address, &value, size);
    note("store", address, value, order);
}

static uint64_t cut(uint64_t value, size_t size)
{
    return size == sizeof(value) ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

uint64_t model_update(void *address, size_t size, enum model_update_kind kind, uint64_t value,
                      memory_order order)
{
    before_step(address, true, order);
    struct location *location = find_location(address, size);
    unsigned newest = location->count - 1;
    uint64_t before = location->messages[newest].value;
    uint64_t after = kind == MODEL_ADD ? cut(before + value, size) : value;
    see(location, newest, order);
    append(location, after, order, true);
    memcpy(address, &after, size);
    note(kind == MODEL_ADD ? "add to" : "exchange", address, after, order);
    return before;
}

uint32_t model_await(uint32_t *address, uint32_t value)
{
    self()->awaits = address;
    before_step(address, true, memory_order_acq_rel);
    self()->awaits = NULL;
    struct location *location = find_location(address, sizeof(*address));
    uint32_t before = (uint32_t)location->messages[location->count - 1].value;
    see(location, location->count - 1, memory_order_acq_rel);
    append(location, value, memory_order_acq_rel, true);
    *address = value;
    note("await and exchange", address, value, memory_order_acq_rel);
    return before;
}

bool model_compare_exchange(void *address, size_t size, uint64_t *expected, uint64_t value,
                            memory_order order)
{
    before_step(address, true, order);
    struct location *location = find_location(address, size);
    unsigned newest = location->count - 1;
    if (location->messages[newest].value != *expected) {
        see(location, newest, memory_order_relaxed);
        *expected = location->messages[newest].value;
        note("fail to exchange", address, *expected, order);
        return false;
    }
    see(location, newest, order);
    append(location, value, order, true);
    memcpy(address, &value, size);
    note("compare and exchange", address, value, order);
    return true;
}

/* Plain accesses --------------------------------------------------------------------------- */

static struct cell *find_cell(const void *address)
{
    for (unsigned i = 0; i < model.cell_count; i++) {
        if (model.cells[i].address == address) {
            return &model.cells[i];
        }
    }
    if (model.cell_count == CELLS_MAX) {
        FAIL("more plain objects than the checker has room for");
    }
    struct cell *cell = &model.cells[model.cell_count++];
    *cell = (struct cell){.address = address, .writer = SETUP};
    return cell;
}

void model_read(const void *address)
{
    const struct cell *cell = find_cell(address);
    if (self()->clocks.of[cell->writer] < cell->written.of[cell->writer]) {
        FAIL("a plain read that is not ordered after the last write");
    }
}

void model_write(const void *address)
{
    model_read(address);
    struct cell *cell = find_cell(address);
    cell->writer = model.running;
    self()->clocks.of[model.running]++;
    cell->written = self()->clocks;
}

/* Monitors: in place of src/os/posix/thread.c ----------------------------------------------- */

static struct model_monitor *monitor_of(struct gi_os_monitor *monitor)
{
    return (struct model_monitor *)(void *)monitor->native;
}

int gi_os_monitor_init(struct gi_os_monitor *monitor)
{
    memset(monitor, 0, sizeof(*monitor));
    return 0;
}

void gi_os_monitor_fini(struct gi_os_monitor *monitor)
{
    (void)monitor;
}

static void take_monitor(struct model_monitor *monitor)
{
    struct thread *thread = self();
    thread->wants = monitor;
    before_step(monitor, true, memory_order_acq_rel);
    thread->wants = NULL;
    monitor->is_locked = true;
    const struct message *given = &find_location(monitor, sizeof(*monitor))->messages[0];
    join_views(&thread->view, &given->view);
    join_clocks(&thread->clocks, &given->clocks);
    note("lock", monitor, 0, memory_order_acquire);
}

void gi_os_monitor_lock(struct gi_os_monitor *monitor)
{
    take_monitor(monitor_of(monitor));
}

static void give_monitor(struct model_monitor *monitor)
{
    if (!monitor->is_locked) {
        FAIL("a monitor is unlocked that is not locked");
    }
    monitor->is_locked = false;
    struct message *given = &find_location(monitor, sizeof(*monitor))->messages[0];
    given->view = self()->view;
    given->clocks = self()->clocks;
    note("unlock", monitor, 0, memory_order_release);
}

void gi_os_monitor_unlock(struct gi_os_monitor *monitor)
{
    before_step(monitor, true, memory_order_acq_rel);
    give_monitor(monitor_of(monitor));
}

void gi_os_monitor_wait(struct gi_os_monitor *monitor)
{
    struct thread *thread = self();
    before_step(monitor, true, memory_order_acq_rel);
    thread->wait = WAIT_ASLEEP;
    monitor_of(monitor)->waiting |= 1U << model.running;
    give_monitor(monitor_of(monitor));
    take_monitor(monitor_of(monitor));
    thread->wait = WAIT_NOT;
}

bool gi_os_monitor_wait_until(struct gi_os_monitor *monitor, gori_time deadline)
{
    struct thread *thread = self();
    thread->deadline = deadline;
    thread->is_late = false;
    gi_os_monitor_wait(monitor);
    thread->deadline = GORI_NEVER;
    monitor_of(monitor)->waiting &= ~(1U << model.running);
    return !thread->is_late;
}

gori_time gi_os_now(void)
{
    return model.now;
}

void gi_os_monitor_notify(struct gi_os_monitor *monitor)
{
    struct model_monitor *native = monitor_of(monitor);
    before_step(monitor, true, memory_order_acq_rel);
    for (unsigned i = 0; i < model.thread_count; i++) {
        if ((native->waiting & 1U << i) != 0) {
            model.threads[i].wait = WAIT_NOTIFIED;
        }
    }
    native->waiting = 0;
}

/* Playing ---------------------------------------------------------------------------------- */

static void thread_main(void)
{
    model.scenario->threads[model.running]();
    self()->next = (struct step){.address = NULL};
    fiber_switch(&self()->fiber, &model.scheduler);
}

static void run_thread(unsigned index)
{
    model.running = index;
    fiber_switch(&model.scheduler, &model.threads[index].fiber);
    model.running = SETUP;
}

static bool can_run(const struct thread *thread)
{
    return thread->next.address != NULL && thread->wait != WAIT_ASLEEP &&
           (thread->wants == NULL || !thread->wants->is_locked) &&
           (thread->awaits == NULL || *thread->awaits != 0);
}

static unsigned who_can_run(void)
{
    unsigned set = 0;
    for (unsigned i = 0; i < model.thread_count; i++) {
        if (can_run(&model.threads[i])) {
            set |= 1U << i;
        }
    }
    return set;
}

static bool all_have_ended(void)
{
    for (unsigned i = 0; i < model.thread_count; i++) {
        if (model.threads[i].next.address != NULL) {
            return false;
        }
    }
    return true;
}

/* Those of `sleeping` whose step does not touch what `taken` touches. */
static unsigned sleep_on(unsigned sleeping, const struct step *taken)
{
    for (unsigned i = 0; i < model.thread_count; i++) {
        const struct step *step = &model.threads[i].next;
        bool same = step->address == taken->address && (step->is_write || taken->is_write);
        if (same || (step->is_sequential && taken->is_sequential)) {
            sleeping &= ~(1U << i);
        }
    }
    return sleeping;
}

static void begin_execution(void)
{
    memset(model.places, 0, sizeof(model.places));
    memset(model.threads, 0, sizeof(model.threads));
    memset(&model.sequential, 0, sizeof(model.sequential));
    model.location_count = 0;
    model.cell_count = 0;
    model.forgotten_count = 0;
    model.event_count = 0;
    model.stale = 0;
    model.preemptions = 0;
    model.now = 1;
    model.depth = 0;
    model.running = SETUP;
    model.scenario->setup();
    while (model.thread_count < MODEL_THREADS_MAX &&
           model.scenario->threads[model.thread_count] != NULL) {
        model.thread_count++;
    }
    for (unsigned i = 0; i < model.thread_count; i++) {
        struct thread *thread = &model.threads[i];
        thread->view = model.threads[SETUP].view;
        thread->clocks = model.threads[SETUP].clocks;
        thread->deadline = GORI_NEVER;
        fiber_init(&thread->fiber, stacks[i], thread_main);
        run_thread(i);
    }
}

static void end_execution(void)
{
    for (unsigned i = 0; i < model.thread_count; i++) {
        join_views(&model.threads[SETUP].view, &model.threads[i].view);
        join_clocks(&model.threads[SETUP].clocks, &model.threads[i].clocks);
    }
    if (!all_have_ended()) {
        FAIL("everybody waits, for ever");
    }
    if (model.scenario->check != NULL) {
        model.scenario->check();
    }
}

/* Nobody can go on: time passes until the first deadline.  False: there is none. */
static bool let_time_pass(void)
{
    struct thread *first = NULL;
    for (unsigned i = 0; i < model.thread_count; i++) {
        struct thread *thread = &model.threads[i];
        bool waits = thread->wait == WAIT_ASLEEP && thread->deadline != GORI_NEVER;
        if (waits && (first == NULL || thread->deadline < first->deadline)) {
            first = thread;
        }
    }
    if (first == NULL) {
        return false;
    }
    model.now = first->deadline > model.now ? first->deadline : model.now;
    first->is_late = true;
    first->wait = WAIT_NOTIFIED;
    return true;
}

/* Threads to choose from: of those that can run, without the last one when it may not be left. */
static unsigned candidates(unsigned last)
{
    unsigned set = who_can_run();
    if (set == 0 && let_time_pass()) {
        set = who_can_run();
    }
    bool is_bounded = model.scenario->preemptions_max > 0;
    bool must_go_on = is_bounded && model.preemptions >= model.scenario->preemptions_max;
    return must_go_on && (set & last) != 0 ? set & last : set;
}

/* Plays one execution to its end, or to where it turns out to be one that was played (3). */
static void play(void)
{
    begin_execution();
    unsigned sleeping = 0;
    unsigned last = 0;
    for (unsigned set; !model.has_failed && (set = candidates(last)) != 0;) {
        bool is_new;
        struct choice *choice = reach_choice(&is_new);
        if (is_new) {
            choice->sleeping = sleeping;
            choice->awake = set & ~sleeping;
            if (choice->awake == 0) {
                model.choice_count--;
                return;
            }
            take_awake(choice);
        }
        unsigned index = choice->index;
        if (model.scenario->preemptions_max > 0) {
            model.preemptions += (who_can_run() & last & ~(1U << index)) != 0;
            last = 1U << index;
        } else {
            sleeping = sleep_on(choice->sleeping, &model.threads[index].next);
        }
        run_thread(index);
    }
    if (!model.has_failed) {
        end_execution();
    }
}

static void play_scenario(const struct model_scenario *scenario)
{
    static struct model_scenario current;
    current = *scenario;
    model.scenario = &current;
    model.thread_count = 0;
    model.choice_count = 0;
    model.executions = 0;
    model.steps = 0;
    model.has_failed = false;
    do {
        if (setjmp(model.failed) == 0) {
            play();
        }
        model.executions++;
    } while (!model.has_failed && change_last_choice());
    (void)fflush(NULL);
    printf("%s %s: %llu executions, %llu steps\n", model.has_failed ? "FAIL" : "PASS",
           scenario->name, (unsigned long long)model.executions, (unsigned long long)model.steps);
}

int model_main(int argc, char **argv, const struct model_scenario *scenarios)
{
    model.is_quiet = argc > 1 && strcmp(argv[1], "--broken") == 0;
    unsigned failed_count = 0;
    for (; scenarios->name != NULL && !(model.is_quiet && failed_count > 0); scenarios++) {
        play_scenario(scenarios);
        failed_count += model.has_failed;
    }
    return (failed_count > 0) == model.is_quiet ? 0 : 1;
}
