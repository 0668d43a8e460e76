/* SPDX-License-Identifier: MIT */
/*
 * supervisor: runs a program, starts it again when it ends, and shows what it writes to everybody
 * who connects.  SIGTERM or Ctrl+C is passed on to the program; with its end this one ends, too.
 * A child, signals, a timer and connections are events of one loop.
 *
 *     supervisor_example ADDR:PORT PROGRAM [ARGUMENT...]
 */
#include <gori/block.h>
#include <gori/error.h>
#include <gori/listener.h>
#include <gori/loop.h>
#include <gori/process.h>
#include <gori/session.h>
#include <gori/signal.h>
#include <gori/timer.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

/* Comes with each connection: a link of the ring of those who look on. */
struct viewer {
    struct viewer *next;
    struct viewer *previous;
    struct gori_session *session;
};

struct supervisor {
    struct gori_loop *loop;
    const char *const *command;
    struct gori_process *process; /* NULL between two of them */
    struct viewer viewers;        /* is nobody itself */
    struct gori_timer again;
    struct gori_signal stop[2];
    unsigned stops;
};

/* Viewers: who connects is shown what comes from then on. */

static void view(struct gori_session *session)
{
    struct supervisor *supervisor = gori_session_user(session);
    struct viewer *viewer = gori_session_context(session);
    viewer->session = session;
    viewer->next = &supervisor->viewers;
    viewer->previous = supervisor->viewers.previous;
    viewer->previous->next = viewer;
    viewer->next->previous = viewer;
}

static void leave(struct gori_session *session, enum gori_close_reason reason, int error)
{
    (void)reason;
    (void)error;
    struct viewer *viewer = gori_session_context(session);
    viewer->previous->next = viewer->next;
    viewer->next->previous = viewer->previous;
}

/* The output of the program is a session like any other. */
static size_t show(struct gori_session *output, struct gori_slice bytes)
{
    struct supervisor *supervisor = gori_session_user(output);
    struct gori_block *block;
    if (gori_block_create(NULL, bytes.data, bytes.size, &block) < 0) {
        return bytes.size; /* no memory to show this */
    }
    struct viewer *viewer = supervisor->viewers.next;
    for (; viewer != &supervisor->viewers; viewer = viewer->next) {
        int ignored = gori_session_send_block(viewer->session, block); /* who is slow is closed */
        (void)ignored;
    }
    gori_block_unref(block);
    return bytes.size;
}

/* The program. */

static void ended(struct gori_process *process, const struct gori_exit *exit)
{
    struct supervisor *supervisor = gori_process_user(process);
    supervisor->process = NULL;
    if (exit->error < 0) {
        return; /* the loop ends before the program does */
    }
    if (exit->signal != 0) {
        printf("ended by signal %d\n", exit->signal);
    } else {
        printf("ended with %d\n", exit->status);
    }
    fflush(stdout);
    if (supervisor->stops > 0) {
        gori_loop_stop(supervisor->loop);
    } else {
        gori_timer_start(supervisor->loop, &supervisor->again, GORI_SECONDS);
    }
}

static int start(struct supervisor *supervisor)
{
    static const struct gori_session_events events = {.on_recv = show};
    const struct gori_process_config config = {
        .program = supervisor->command[0],
        .arguments = supervisor->command,
        .stdio[GORI_STDOUT].kind = GORI_STDIO_PIPE,
        .stdio[GORI_STDERR].kind = GORI_STDIO_INHERIT,
        .on_exit = ended,
        .user = supervisor,
    };
    int result = gori_process_spawn(supervisor->loop, &config, &supervisor->process);
    if (result < 0) {
        return result;
    }
    struct gori_session *output;
    gori_native pipe = gori_process_take_pipe(supervisor->process, GORI_STDOUT);
    result = gori_session_adopt(supervisor->loop, pipe, &events, NULL, supervisor, &output);
    if (result < 0) {
        gori_native_close(supervisor->loop, pipe); /* it runs unseen */
    }
    return 0;
}

static void start_again(struct gori_timer *timer)
{
    struct supervisor *supervisor = timer->user;
    if (start(supervisor) < 0) {
        gori_timer_start(supervisor->loop, timer, GORI_SECONDS);
    }
}

/* The first signal asks the program to end, the next one does not ask. */
static void stop(struct gori_signal *watcher)
{
    struct supervisor *supervisor = watcher->user;
    supervisor->stops++;
    if (supervisor->process == NULL) {
        gori_loop_stop(supervisor->loop);
        return;
    }
    int ignored = gori_process_kill(supervisor->process, supervisor->stops == 1 ? SIGTERM : 9);
    (void)ignored; /* it has just ended, and will be told */
}

static int serve(struct supervisor *supervisor, const char *text)
{
    static const struct gori_session_events events = {.on_open = view, .on_close = leave};
    struct gori_listener_config config = {
        .events = &events,
        .user = supervisor,
        .options = {.context_bytes = sizeof(struct viewer), .send_max = 1 << 20},
    };
    struct gori_listener *listener;
    int result = gori_addr_parse(text, &config.addr);
    if (result >= 0) {
        result = gori_listener_open(supervisor->loop, &config, &listener);
    }
    for (int i = 0; i < 2 && result >= 0; i++) {
        supervisor->stop[i].on_signal = stop;
        supervisor->stop[i].user = supervisor;
        result = gori_signal_start(supervisor->loop, &supervisor->stop[i], i ? SIGINT : SIGTERM);
    }
    if (result >= 0) {
        result = start(supervisor);
    }
    if (result < 0) {
        return result;
    }
    struct gori_addr bound;
    char name[GORI_ADDR_TEXT_BYTES];
    gori_listener_addr(listener, &bound);
    gori_addr_format(&bound, name, sizeof(name));
    printf("listening on %s\n", name);
    fflush(stdout);
    return gori_loop_run(supervisor->loop);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: supervisor_example ADDR:PORT PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    struct supervisor supervisor = {.command = (const char *const *)argv + 2};
    supervisor.viewers.next = supervisor.viewers.previous = &supervisor.viewers;
    supervisor.again.on_expire = start_again;
    supervisor.again.user = &supervisor;
    int result = gori_loop_create(NULL, &supervisor.loop);
    if (result >= 0) {
        result = serve(&supervisor, argv[1]);
        gori_loop_destroy(supervisor.loop);
    }
    if (result < 0) {
        fprintf(stderr, "supervisor: %s\n", gori_error_text(result));
    }
    return result < 0;
}
