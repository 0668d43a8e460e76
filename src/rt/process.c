/* SPDX-License-Identifier: MIT */
/*
 * Children of a loop: the memory of each, its event source as a handle, and the one callback.
 *
 *      spawn ──> watched ──source is ready, taken──> known ──handle is closed──> on_exit, freed
 *                   └──────detach, end of the loop───────────────────┘
 *
 *  1. `exit` says GORI_ECANCELED until the child was waited for; closing the handle leads to
 *     on_exit in any case, with what it says then.
 *  2. What can fail after the child exists ends the child: nobody was told of it.
 *  3. A wait that could not be submitted again, for want of memory, is submitted by time.
 * Thread: the loop's.
 */
#include <gori/error.h>
#include <gori/process.h>

#include "base/alloc.h"
#include "os/process.h"
#include "rt/loop.h"

#define RETRY_TIME (5 * GORI_MILLISECONDS)

struct gori_process {
    struct gori_loop *loop;
    gori_process_fn *on_exit;
    void *user;
    struct gi_os_process child;
    struct gori_handle handle;
    struct gori_op wait;
    struct gori_timer retry;
    struct gori_exit exit;
    gori_native pipes[GORI_STDIO_COUNT];
};

static const struct gi_event_calls *calls_of(const struct gori_loop *loop)
{
    return loop->engine->impl->events;
}

static void close_pipes(struct gori_process *process)
{
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        gori_native native = gori_process_take_pipe(process, (enum gori_stdio)i);
        if (native != GORI_NATIVE_NONE) {
            gori_native_close(process->loop, native);
        }
    }
}

/* The end of everything but the source. */
static void free_process(struct gori_process *process)
{
    struct gori_loop *loop = process->loop;
    close_pipes(process);
    calls_of(loop)->process_close(loop->engine, &process->child);
    gi_free(loop->allocator, process, sizeof(*process));
}

static void on_close(struct gori_handle *handle)
{
    struct gori_process *process = handle->user;
    const struct gori_exit exit = process->exit;
    gori_timer_stop(&process->retry);
    process->on_exit(process, &exit);
    free_process(process);
}

static void submit_again(struct gori_process *process)
{
    if (gori_op_wait(&process->wait, &process->handle) < 0) {
        gori_timer_start(process->loop, &process->retry, RETRY_TIME);
    }
}

static void on_retry(struct gori_timer *timer)
{
    submit_again(timer->user);
}

static void on_ready(struct gori_op *op, const struct gori_completion *completion)
{
    (void)completion; /* an error may be of this wait only: the next one shows */
    struct gori_process *process = op->user;
    struct gori_loop *loop = process->loop;
    if (process->handle.state != GI_HANDLE_OPEN) {
        return;
    }
    if (calls_of(loop)->process_take(loop->engine, &process->child, &process->exit) < 0) {
        submit_again(process);
    } else {
        gori_handle_close(&process->handle);
    }
}

static int spawn(struct gori_process *process, const struct gori_process_config *config)
{
    struct gori_loop *loop = process->loop;
    const struct gi_event_calls *calls = calls_of(loop);
    int result = calls->process_spawn(loop->engine, config, &process->child, process->pipes);
    if (result < 0) {
        return result;
    }
    result = gi_handle_adopt_source(loop, process->child.source, &process->handle);
    if (result < 0) {
        calls->process_end(loop->engine, &process->child);
        calls->close(loop->engine, process->child.source);
        close_pipes(process);
        calls->process_close(loop->engine, &process->child);
        return result;
    }
    submit_again(process);
    return 0;
}

int gori_process_spawn(struct gori_loop *loop, const struct gori_process_config *config,
                       struct gori_process **ret_process)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (config->program == NULL || config->on_exit == NULL) {
        return GORI_EINVAL;
    }
    if (loop->ops_active >= loop->config.ops_max) {
        return GORI_ELIMIT;
    }
    struct gori_process *process = gi_alloc_zero(loop->allocator, sizeof(*process));
    if (process == NULL) {
        return GORI_ENOMEM;
    }
    process->loop = loop;
    process->on_exit = config->on_exit;
    process->user = config->user;
    process->exit.error = GORI_ECANCELED;
    process->handle.on_close = on_close;
    process->handle.user = process;
    process->wait.on_complete = on_ready;
    process->wait.user = process;
    process->retry.on_expire = on_retry;
    process->retry.user = process;
    int result = spawn(process, config);
    if (result < 0) {
        gi_free(loop->allocator, process, sizeof(*process));
        return result;
    }
    *ret_process = process;
    return 0;
}

gori_native gori_process_take_pipe(struct gori_process *process, enum gori_stdio stream)
{
    uint32_t index = (uint32_t)stream;
    if (index >= GORI_STDIO_COUNT) {
        return GORI_NATIVE_NONE;
    }
    gori_native native = process->pipes[index];
    process->pipes[index] = GORI_NATIVE_NONE;
    return native;
}

int gori_process_kill(struct gori_process *process, int signal)
{
    struct gori_loop *loop = process->loop;
    return calls_of(loop)->process_kill(loop->engine, &process->child, signal);
}

void gori_process_detach(struct gori_process *process)
{
    gori_handle_close(&process->handle);
}

int64_t gori_process_id(const struct gori_process *process)
{
    return process->child.id;
}

void *gori_process_user(const struct gori_process *process)
{
    return process->user;
}
