/* SPDX-License-Identifier: MIT */
/*
 * The scenario of the sweeps over signals and children.  Contract: event_scenario.h.
 */
#include "fault/event_scenario.h"

#include <errno.h>
#include <gori/error.h>
#include <gori/loop.h>
#include <gori/process.h>
#include <gori/session.h>
#include <gori/signal.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "engine/sim/sim.h"
#include "lib/system.h"
#include "lib/test.h"

#define STREAM_BYTES 3000
#define CALM_TURNS   20 /* of the failing part, before it is declared over */

struct play {
    struct gi_sim *sim;
    struct gori_loop *loop;
    struct gori_signal signal;
    bool has_heard;
    struct gori_process *process;
    struct gori_session *input;
    struct gori_session *output;
    uint32_t bytes;
    struct gori_exit exit;
    bool has_exited;
    int error; /* the first */
    /* of a simulated world: the child, and its ends */
    int64_t child;
    gori_native from;
    gori_native to;
};

static void note(struct play *play, int result)
{
    play->error = play->error < 0 || result >= 0 ? play->error : result;
}

/* The program `cat` of a simulated world. */
static int play_cat(struct gi_sim *sim, const struct gori_process_config *config, int64_t id,
                    const gori_native stdio[GORI_STDIO_COUNT])
{
    struct play *play = gi_sim_programs_user(sim);
    GT_EQUAL_STRING(config->program, "cat");
    play->child = id;
    play->from = stdio[GORI_STDIN];
    play->to = stdio[GORI_STDOUT];
    return 0;
}

static void copy(struct play *play)
{
    char bytes[512];
    while (play->child != 0) {
        int64_t got = gi_sim_recv(play->sim, play->from, bytes, sizeof(bytes));
        if (got == GORI_EAGAIN) {
            return;
        }
        if (got <= 0 || gi_sim_send(play->sim, play->to, bytes, (size_t)got) != got) {
            gi_sim_close(play->sim, play->from);
            gi_sim_close(play->sim, play->to);
            gi_sim_exit(play->sim, play->child, 0, got == 0 ? 0 : SIGPIPE);
            play->child = 0;
        }
    }
}

static void turn(struct play *play, gori_time wait)
{
    if (play->sim != NULL) {
        copy(play);
    }
    GT_CHECK(gori_loop_turn(play->loop, wait) >= 0);
}

static void heard(struct gori_signal *signal)
{
    struct play *play = signal->user;
    play->has_heard = true;
}

static void exited(struct gori_process *process, const struct gori_exit *exit)
{
    struct play *play = gori_process_user(process);
    GT_CHECK(!play->has_exited);
    GT_EQUAL(exit->error, 0);
    play->has_exited = true;
    play->exit = *exit;
}

static size_t received(struct gori_session *session, struct gori_slice bytes)
{
    struct play *play = gori_session_user(session);
    GT_CHECK(session == play->output);
    play->bytes += (uint32_t)bytes.size;
    return bytes.size;
}

static void closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    struct play *play = gori_session_user(session);
    (void)reason;
    note(play, error);
    *(session == play->input ? &play->input : &play->output) = NULL;
}

static struct gori_session *adopt(struct play *play, enum gori_stdio stream)
{
    static const struct gori_session_events events = {.on_recv = received, .on_close = closed};
    struct gori_session *session = NULL;
    gori_native native = gori_process_take_pipe(play->process, stream);
    int result = gori_session_adopt(play->loop, native, &events, NULL, play, &session);
    if (result < 0) {
        note(play, result);
        gori_native_close(play->loop, native);
    }
    return session;
}

static void start_child(struct play *play)
{
    const struct gori_process_config config = {.program = "cat",
                                               .stdio[GORI_STDIN].kind = GORI_STDIO_PIPE,
                                               .stdio[GORI_STDOUT].kind = GORI_STDIO_PIPE,
                                               .stdio[GORI_STDERR].kind = GORI_STDIO_INHERIT,
                                               .on_exit = exited,
                                               .user = play};
    static const uint8_t stream[STREAM_BYTES];
    play->process = NULL;
    int result = gori_process_spawn(play->loop, &config, &play->process);
    if (result < 0) {
        note(play, result);
        return;
    }
    play->input = adopt(play, GORI_STDIN);
    play->output = adopt(play, GORI_STDOUT);
    if (play->input != NULL) {
        result = gori_session_send(play->input, stream, sizeof(stream));
        note(play, result == GORI_ECLOSED ? 0 : result); /* its close says why */
        if (result < 0) {
            gori_session_close(play->input);
        } else {
            gori_session_shutdown(play->input);
        }
    }
}

static void raise_signal(struct play *play)
{
    if (play->sim != NULL) {
        GT_CHECK(gi_sim_raise(play->sim, SIGUSR1));
    } else {
        GT_CHECK(gt_raise(SIGUSR1));
    }
}

/* While failures may happen. */
static void play_events(struct play *play)
{
    play->signal.on_signal = heard;
    play->signal.user = play;
    int result = gori_signal_start(play->loop, &play->signal, SIGUSR1);
    note(play, result);
    if (result == 0) {
        raise_signal(play);
    }
    start_child(play);
    for (int i = 0; i < CALM_TURNS; i++) {
        turn(play, i % 4 == 3 ? GORI_MILLISECONDS : 0);
    }
}

/* Until the child is gone, and both sessions with it. */
static void wait_for_end(struct play *play)
{
    while ((play->process != NULL && !play->has_exited) || play->input != NULL ||
           play->output != NULL) {
        turn(play, GORI_SECONDS);
    }
}

/* After all failures: everything works as if nothing had been. */
static void play_afterwards(struct play *play)
{
    play->has_heard = false;
    play->has_exited = false;
    play->bytes = 0;
    play->error = 0;
    if (!gori_signal_is_active(&play->signal)) {
        GT_EQUAL(gori_signal_start(play->loop, &play->signal, SIGUSR1), 0);
    }
    raise_signal(play);
    start_child(play);
    GT_EQUAL(play->error, 0);
    while (!play->has_heard) {
        turn(play, GORI_SECONDS);
    }
    wait_for_end(play);
    GT_EQUAL(play->bytes, STREAM_BYTES);
    GT_EQUAL(play->exit.status, 0);
    GT_EQUAL(play->exit.signal, 0);
    GT_EQUAL(play->error, 0);
}

static bool has_no_children(void)
{
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

struct event_result event_scenario_play(const char *engine, struct gi_fault_alloc *memory,
                                        event_calm_fn *calm, void *user)
{
    struct play play = {0};
    struct event_result result = {0};
    int descriptors = gt_open_descriptors();
    if (strcmp(engine, "sim") == 0) {
        struct gi_sim_config config = {0};
        GT_EQUAL(gi_sim_create(gori_allocator_default(), &config, &play.sim), 0);
        gi_sim_set_programs(play.sim, play_cat, &play);
    }
    struct gori_loop_config config = {
        .allocator = &memory->allocator, .engine = engine, .simulation = play.sim};
    play.error = gori_loop_create(&config, &play.loop);
    if (play.error < 0) {
        result.error = play.error;
        calm(user);
    } else {
        play_events(&play);
        calm(user);
        bool was_started = play.process != NULL;
        wait_for_end(&play);
        result.error = play.error;
        result.has_heard = play.has_heard;
        result.is_whole = was_started && play.bytes == STREAM_BYTES && play.exit.status == 0 &&
                          play.exit.signal == 0;
        play_afterwards(&play);
    }
    gori_loop_destroy(play.loop);
    gi_sim_destroy(play.sim);
    GT_CHECK(has_no_children());
    GT_EQUAL(gi_fault_alloc_live_blocks(memory), 0);
    GT_EQUAL(gt_open_descriptors(), descriptors);
    return result;
}
