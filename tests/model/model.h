/* SPDX-License-Identifier: MIT */
/*
 * A small exhaustive interleaving checker.  A scenario is a few threads over a unit that is
 * compiled against model/atomic.h; every atomic operation is a step, and all orders of steps are
 * played.
 *
 * What it proves, for the threads and operations of a scenario and no others:
 *  M1  Every interleaving of steps is covered, up to those that differ in the order of independent
 *      steps only (sleep sets).  A step is an atomic operation, or one on a monitor, with the plain
 *      code behind it.
 *  M2  Loads see more than the newest value.  Each atomic has a history; a load may take any value
 *      that is not older than what its thread has seen, by itself or through acquire of a release.
 *      So store buffering, late stores and missing acquire or release show.  What sequentially
 *      consistent order adds is said in model.c, 5.
 *  M3  All threads stuck is a failure (a lost wake), and so is a plain access, told to the model
 *      with model_read and model_write, that no release and acquire orders after the last write,
 *      and any step on memory that was given up with model_forget.
 *
 *  M4  A scenario that is too large for all interleavings says how many preemptions it is played
 *      with: switches away from a thread that could go on (Musuvathi and Qadeer).  Switches where
 *      the thread waits or ends are free.
 *  M5  Time passes only when nobody can go on: then a wait with a deadline ends by it.
 *
 * What it does not: stores enter a history in the order in which they are played, so two relaxed
 * stores to one atomic are never seen the other way round than by time; a load never sees a store
 * that is played later (no load buffering); in one execution at most `stale_max` loads see an old
 * value; a weak compare and exchange fails only when the value differs; plain accesses of the unit
 * itself are not watched.
 *
 * Thread: one; the threads of a scenario are fibers.
 */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_THREADS_MAX 4

enum model_update_kind { MODEL_EXCHANGE, MODEL_ADD };

typedef void model_fn(void);

struct model_scenario {
    const char *name;
    model_fn *setup;                      /* one thread, before the others */
    model_fn *threads[MODEL_THREADS_MAX]; /* up to the first NULL */
    model_fn *check;                      /* one thread, after the others; may be NULL */
    unsigned stale_max;                   /* loads of an old value in one execution */
    unsigned preemptions_max;             /* 0: all interleavings; else see M4 */
};

/** Must hold here, in every execution. */
#define MODEL_CHECK(condition) ((condition) ? (void)0 : model_fail(__FILE__, __LINE__, #condition))

/**
 * Plays all scenarios up to the one without a name.  Result: the exit status of the program: 0 when
 * all held; with the argument --broken, 0 when one did not, as it must for a broken twin.
 */
int model_main(int argc, char **argv, const struct model_scenario *scenarios);

void model_fail(const char *file, int line, const char *what);

/** Something happened, for the trace of a failure; `what` is static text. */
void model_note(const char *what, uint64_t number);

/** Plain accesses to something that is handed from thread to thread: M3. */
void model_read(const void *address);
void model_write(const void *address);

/** The memory of an object is given up: M3. */
void model_forget(const void *address, size_t size);

/** A choice of the world: 0 to count - 1, all of them played. */
unsigned model_choose(unsigned count);

/**
 * One step that can only be taken when `address` holds more than 0: exchanges it for `value`, with
 * acquire and release, and answers what it was.  What a scenario waits with, at the price of one
 * step where a monitor takes five.
 */
uint32_t model_await(uint32_t *address, uint32_t value);

/** Which of the scenario's threads runs. */
unsigned model_self(void);

/* What model/atomic.h is made of. */
void model_init(const void *address);
uint64_t model_load(const void *address, size_t size, memory_order order);
void model_store(void *address, size_t size, uint64_t value, memory_order order);
uint64_t model_update(void *address, size_t size, enum model_update_kind kind, uint64_t value,
                      memory_order order);
bool model_compare_exchange(void *address, size_t size, uint64_t *expected, uint64_t value,
                            memory_order order);

#endif
