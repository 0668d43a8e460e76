/* SPDX-License-Identifier: MIT */
/*
 * Conformance of children: the rules of <gori/process.h>, with the program child.c; in a simulated
 * world with one that is played here.
 */
#include <gori/process.h>
#include <signal.h>

#include "conformance/fixture.h"
#include "engine/sim/sim.h"
#include "lib/system.h"

#define CHILDREN  40
#define CAT_BYTES (1u << 20)

/* A child, and what its stream said. */
struct child {
    struct fixture *fixture;
    struct gori_process *process;
    struct gori_process_config config;
    const char *arguments[8];
    struct gori_exit exit;
    unsigned exits;
    bool kill_at_exit;
    int kill_result;
    /* its output, when that is a pipe */
    struct gori_handle output;
    struct gori_op read;
    char text[4096];
    size_t size;
    bool ended;
    unsigned closed;
};

/* Programs of a simulated world ------------------------------------------------------------- */

struct played {
    int64_t id;
    gori_native input;
    gori_native output;
};

static struct played cats[4];

static void play_close(struct gi_sim *sim, const gori_native stdio[GORI_STDIO_COUNT])
{
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        if (stdio[i] != GORI_NATIVE_NONE) {
            gi_sim_close(sim, stdio[i]);
        }
    }
}

static int play(struct gi_sim *sim, const struct gori_process_config *config, int64_t id,
                const gori_native stdio[GORI_STDIO_COUNT])
{
    const char *verb = config->arguments[1];
    const char *object = config->arguments[2];
    if (strcmp(config->program, gt_child_program()) != 0) {
        return GORI_ENOTFOUND;
    }
    if (strcmp(verb, "cat") == 0) {
        for (size_t i = 0; i < sizeof(cats) / sizeof(cats[0]); i++) {
            if (cats[i].id == 0) {
                cats[i] = (struct played){id, stdio[0], stdio[1]};
                return 0;
            }
        }
        return GORI_EAGAIN;
    }
    if (strcmp(verb, "hang") == 0 || strcmp(verb, "say") == 0) {
        const char *text = verb[0] == 'h' ? "here" : object;
        GT_EQUAL(gi_sim_send(sim, stdio[1], text, strlen(text)), strlen(text));
    }
    play_close(sim, stdio);
    if (strcmp(verb, "exit") == 0 || strcmp(verb, "say") == 0) {
        gi_sim_exit(sim, id, verb[0] == 'e' ? (int)strtol(object, NULL, 10) : 0, 0);
    } else if (strcmp(verb, "signal") == 0) {
        gi_sim_exit(sim, id, 0, (int)strtol(object, NULL, 10));
    }
    return 0;
}

/* Each cat that is played copies what it can. */
static void play_cats(struct gi_sim *sim)
{
    char bytes[4096];
    for (size_t i = 0; i < sizeof(cats) / sizeof(cats[0]); i++) {
        struct played *cat = &cats[i];
        while (cat->id != 0 && (gi_sim_ready(sim, cat->output) & GI_SIM_WRITABLE)) {
            int64_t got = gi_sim_recv(sim, cat->input, bytes, 1024);
            if (got == GORI_EAGAIN) {
                break;
            }
            if (got > 0) {
                for (int64_t done = 0; done < got;) {
                    int64_t sent =
                        gi_sim_send(sim, cat->output, bytes + done, (size_t)(got - done));
                    GT_CHECK(sent > 0); /* buffers are of multiples of what is read */
                    done += sent;
                }
                continue;
            }
            gi_sim_close(sim, cat->input);
            gi_sim_close(sim, cat->output);
            gi_sim_exit(sim, cat->id, 0, 0);
            *cat = (struct played){0};
        }
    }
}

static void turn(struct fixture *fixture)
{
    if (fixture->sim != NULL) {
        play_cats(fixture->sim);
    }
    fixture_turn(fixture);
}

#define CHILD_UNTIL(fixture, condition)                                                            \
    do {                                                                                           \
        while (!(condition)) {                                                                     \
            turn(fixture);                                                                         \
        }                                                                                          \
    } while (0)

static void open_fixture(struct fixture *fixture)
{
    fixture_open(fixture);
    if (fixture->sim != NULL) {
        gi_sim_set_programs(fixture->sim, play, NULL);
    } else if (gt_child_program()[0] == '\0') {
        GT_SKIP("an emulator of a processor starts only programs of the machine");
    }
}

/* For what only real programs do. */
static void need_real(const struct fixture *fixture)
{
    if (fixture->sim != NULL) {
        GT_SKIP("the programs of a simulated world are played");
    }
}

/* Children ----------------------------------------------------------------------------------- */

static void exited(struct gori_process *process, const struct gori_exit *exit)
{
    struct child *child = gori_process_user(process);
    GT_CHECK(!child->fixture->in_call);
    GT_CHECK(process == child->process);
    child->exits++;
    child->exit = *exit;
    if (exit->error == 0) {
        GT_EQUAL(gori_process_kill(process, SIGTERM), GORI_ECLOSED);
    }
    if (child->kill_at_exit) {
        child->kill_result = gori_process_kill(process, SIGTERM);
    }
    child->process = NULL;
}

static void child_init(struct fixture *fixture, struct child *child, const char *verb,
                       const char *object)
{
    *child = (struct child){.fixture = fixture};
    child->arguments[0] = "child";
    child->arguments[1] = verb;
    child->arguments[2] = object;
    child->config = (struct gori_process_config){.program = gt_child_program(),
                                                 .arguments = child->arguments,
                                                 .on_exit = exited,
                                                 .user = child};
}

static int child_try(struct child *child)
{
    child->fixture->in_call = true;
    int result = gori_process_spawn(child->fixture->loop, &child->config, &child->process);
    child->fixture->in_call = false;
    return result;
}

static void output_closed(struct gori_handle *handle)
{
    struct child *child = handle->user;
    child->closed++;
}

static void output_read(struct gori_op *op, const struct gori_completion *completion)
{
    struct child *child = op->user;
    if (completion->result <= 0) {
        child->ended = true;
        return;
    }
    child->size += (size_t)completion->result;
    GT_EQUAL(gori_op_recv(op, &child->output, child->text + child->size,
                          sizeof(child->text) - child->size - 1),
             0);
}

/* Spawns with the output as a pipe, of which everything is read. */
static void child_spawn_reading(struct child *child, enum gori_stdio stream)
{
    child->config.stdio[stream].kind = GORI_STDIO_PIPE;
    GT_EQUAL(child_try(child), 0);
    gori_native native = gori_process_take_pipe(child->process, stream);
    GT_CHECK(native != GORI_NATIVE_NONE);
    GT_EQUAL(gori_process_take_pipe(child->process, stream), GORI_NATIVE_NONE);
    child->output.on_close = output_closed;
    child->output.user = child;
    GT_EQUAL(gori_handle_adopt(child->fixture->loop, native, &child->output), 0);
    child->read.on_complete = output_read;
    child->read.user = child;
    GT_EQUAL(gori_op_recv(&child->read, &child->output, child->text, sizeof(child->text) - 1), 0);
}

static void child_close_output(struct child *child)
{
    gori_handle_close(&child->output);
    FIXTURE_UNTIL(child->fixture, child->closed == 1);
}

/* Waits for the end of the output and of the child, in whichever order they come. */
static void child_finish(struct child *child)
{
    CHILD_UNTIL(child->fixture, child->ended && child->exits == 1);
    child_close_output(child);
}

static void expect_output(struct fixture *fixture, const char *verb, const char *object,
                          const char *text)
{
    struct child child;
    child_init(fixture, &child, verb, object);
    child_spawn_reading(&child, GORI_STDOUT);
    child_finish(&child);
    GT_EQUAL(child.exit.error, 0);
    GT_EQUAL(child.exit.status, 0);
    GT_EQUAL_STRING(child.text, text);
}

GT_TEST(a_child_tells_its_status_once)
{
    const int statuses[] = {0, 1, 7, 255};
    struct fixture fixture = {0};
    struct child child;
    open_fixture(&fixture);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        char text[8];
        (void)snprintf(text, sizeof(text), "%d", statuses[i]);
        child_init(&fixture, &child, "exit", text);
        GT_EQUAL(child_try(&child), 0);
        GT_EQUAL(child.exits, 0);
        GT_CHECK(gori_process_id(child.process) > 0);
        GT_EQUAL(gori_process_take_pipe(child.process, GORI_STDIN), GORI_NATIVE_NONE);
        CHILD_UNTIL(&fixture, child.exits == 1);
        GT_EQUAL(child.exit.error, 0);
        GT_EQUAL(child.exit.status, statuses[i]);
        GT_EQUAL(child.exit.signal, 0);
    }
    fixture_settle(&fixture);
    GT_EQUAL(child.exits, 1);
    fixture_close(&fixture);
}

/* Rule 2: also when it was over before the loop looked for the first time. */
GT_TEST(an_exit_before_the_first_turn_is_not_missed)
{
    struct fixture fixture = {0};
    struct child child;
    open_fixture(&fixture);
    child_init(&fixture, &child, "exit", "3");
    GT_EQUAL(child_try(&child), 0);
    if (fixture.sim == NULL) {
        gt_wait_for_child(gori_process_id(child.process));
    }
    CHILD_UNTIL(&fixture, child.exits == 1);
    GT_EQUAL(child.exit.status, 3);
    fixture_close(&fixture);
}

GT_TEST(a_child_that_a_signal_ends_tells_the_signal)
{
    struct fixture fixture = {0};
    struct child child;
    open_fixture(&fixture);
    child_init(&fixture, &child, "hang", NULL);
    child_spawn_reading(&child, GORI_STDOUT);
    CHILD_UNTIL(&fixture, child.size == 4);
    fixture_settle(&fixture);
    GT_EQUAL(child.exits, 0);
    GT_EQUAL(gori_process_kill(child.process, 0), 0);
    GT_EQUAL(gori_process_kill(child.process, SIGTERM), 0);
    child_finish(&child);
    GT_EQUAL(child.exit.error, 0);
    GT_EQUAL(child.exit.status, 0);
    GT_EQUAL(child.exit.signal, SIGTERM);
    fixture_close(&fixture);
}

GT_TEST(many_children_end_each_for_itself)
{
    static struct child children[CHILDREN];
    static char texts[CHILDREN][8];
    struct fixture fixture = {0};
    open_fixture(&fixture);
    for (int i = 0; i < CHILDREN; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%d", i);
        child_init(&fixture, &children[i], "exit", texts[i]);
        GT_EQUAL(child_try(&children[i]), 0);
    }
    for (int i = 0; i < CHILDREN; i++) {
        CHILD_UNTIL(&fixture, children[i].exits == 1);
        GT_EQUAL(children[i].exit.error, 0);
        GT_EQUAL(children[i].exit.status, i);
    }
    fixture_settle(&fixture);
    for (int i = 0; i < CHILDREN; i++) {
        GT_EQUAL(children[i].exits, 1);
    }
    fixture_close(&fixture);
}

/* Rule 5: sessions on the pipes, more bytes than any buffer holds, both ways at once. */
struct cat_stage {
    struct child child;
    struct gori_session *input;
    struct gori_session *output;
    uint64_t bytes;
    unsigned opened;
    unsigned ended;
    unsigned closed;
};

static size_t cat_received(struct gori_session *session, struct gori_slice bytes)
{
    struct cat_stage *stage = gori_session_user(session);
    GT_CHECK(session == stage->output);
    fixture_check(bytes.data, bytes.size, 6, stage->bytes);
    stage->bytes += bytes.size;
    return bytes.size;
}

static void cat_ended(struct gori_session *session)
{
    struct cat_stage *stage = gori_session_user(session);
    stage->ended++;
    gori_session_close(session);
}

static void cat_closed(struct gori_session *session, enum gori_close_reason reason, int error)
{
    struct cat_stage *stage = gori_session_user(session);
    (void)reason;
    (void)error;
    stage->closed++;
}

static void cat_opened(struct gori_session *session)
{
    struct cat_stage *stage = gori_session_user(session);
    stage->opened++;
}

GT_TEST(a_cat_gives_back_a_mebibyte)
{
    static const struct gori_session_events events = {.on_open = cat_opened,
                                                      .on_recv = cat_received,
                                                      .on_eof = cat_ended,
                                                      .on_close = cat_closed};
    static uint8_t data[CAT_BYTES];
    struct fixture fixture = {0};
    struct cat_stage stage = {0};
    open_fixture(&fixture);
    child_init(&fixture, &stage.child, "cat", NULL);
    stage.child.config.stdio[GORI_STDIN].kind = GORI_STDIO_PIPE;
    stage.child.config.stdio[GORI_STDOUT].kind = GORI_STDIO_PIPE;
    GT_EQUAL(child_try(&stage.child), 0);
    struct gori_process *process = stage.child.process;
    GT_EQUAL(gori_session_adopt(fixture.loop, gori_process_take_pipe(process, GORI_STDIN), &events,
                                NULL, &stage, &stage.input),
             0);
    GT_EQUAL(gori_session_adopt(fixture.loop, gori_process_take_pipe(process, GORI_STDOUT), &events,
                                NULL, &stage, &stage.output),
             0);
    fixture_fill(data, sizeof(data), 6, 0);
    GT_CHECK(gori_session_send(stage.input, data, sizeof(data)) >= 0);
    gori_session_shutdown(stage.input);
    CHILD_UNTIL(&fixture, stage.child.exits == 1 && stage.closed == 2);
    GT_EQUAL(stage.opened, 0); /* they were adopted */
    GT_EQUAL(stage.bytes, sizeof(data));
    GT_EQUAL(stage.child.exit.status, 0);
    GT_EQUAL(stage.child.exit.error, 0);
    fixture_close(&fixture);
}

/* What a child wrote can be read when it is gone. */
GT_TEST(the_last_words_of_a_child_are_kept)
{
    struct fixture fixture = {0};
    open_fixture(&fixture);
    expect_output(&fixture, "say", "farewell", "farewell");
    fixture_close(&fixture);
}

/* Pipes that nobody takes are closed with the child. */
GT_TEST(pipes_that_nobody_takes_are_closed)
{
    struct fixture fixture = {0};
    struct child child;
    open_fixture(&fixture);
    child_init(&fixture, &child, "exit", "0");
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        child.config.stdio[i].kind = GORI_STDIO_PIPE;
    }
    GT_EQUAL(child_try(&child), 0);
    CHILD_UNTIL(&fixture, child.exits == 1);
    fixture_close(&fixture);
}

GT_TEST(a_program_that_is_not_there_is_an_error_of_the_spawn)
{
    struct fixture fixture = {0};
    struct child child;
    open_fixture(&fixture);
    child_init(&fixture, &child, "exit", "0");
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        child.config.stdio[i].kind = GORI_STDIO_PIPE;
    }
    child.config.program = "/no/such/program";
    GT_EQUAL(child_try(&child), GORI_ENOTFOUND);
    child.config.program = "no-such-program-anywhere";
    GT_EQUAL(child_try(&child), GORI_ENOTFOUND);
    child.config.program = NULL;
    GT_EQUAL(child_try(&child), GORI_EINVAL);
    child.config.program = gt_child_program();
    child.config.on_exit = NULL;
    GT_EQUAL(child_try(&child), GORI_EINVAL);
    fixture_settle(&fixture);
    GT_EQUAL(child.exits, 0);
    fixture_close(&fixture);
}

GT_TEST(what_may_not_be_run_or_entered_is_an_error_of_the_spawn)
{
    char folder[GT_FOLDER_BYTES];
    char path[2 * GT_FOLDER_BYTES];
    struct fixture fixture = {0};
    struct child child;
    open_fixture(&fixture);
    need_real(&fixture);
    gt_make_folder(folder);
    gt_write_file(folder, "plain", "text", 4);
    (void)snprintf(path, sizeof(path), "%s/plain", folder);
    child_init(&fixture, &child, "exit", "0");
    child.config.program = path;
    int refused = child_try(&child);
    GT_CHECK(refused == GORI_EACCESS || refused == GORI_ENOTSUP);
    child.config.program = folder;
    GT_CHECK(child_try(&child) < 0);
    child.config.program = gt_child_program();
    child.config.directory = "/no/such/folder";
    GT_CHECK(child_try(&child) == GORI_ENOTFOUND || child_try(&child) == GORI_ENOTDIR);
    child.config.directory = path;
    GT_CHECK(child_try(&child) < 0);
    child.config.directory = NULL;
    child.config.stdio[0] = (struct gori_stdio_config){GORI_STDIO_NATIVE, 12345678};
    GT_EQUAL(child_try(&child), GORI_EINVAL);
    gt_remove_folder(folder, "plain");
    fixture_settle(&fixture);
    GT_EQUAL(child.exits, 0);
    fixture_close(&fixture);
}

GT_TEST(arguments_environment_and_folder_reach_the_child)
{
    const char *const environment[] = {"GORI_WORD=hello there", "OTHER=", NULL};
    char folder[GT_FOLDER_BYTES];
    struct fixture fixture = {0};
    struct child child;
    open_fixture(&fixture);
    need_real(&fixture);
    child_init(&fixture, &child, "arguments", "plain");
    child.arguments[3] = "with space";
    child.arguments[4] = "";
    child.arguments[5] = "\"quoted\\\" and \\\\";
    child.arguments[6] = "tail\\";
    child_spawn_reading(&child, GORI_STDOUT);
    child_finish(&child);
    GT_EQUAL_STRING(child.text, "plain\nwith space\n\n\"quoted\\\" and \\\\\ntail\\\n");
    child_init(&fixture, &child, "env", "GORI_WORD");
    child.config.environment = environment;
    child_spawn_reading(&child, GORI_STDOUT);
    child_finish(&child);
    GT_EQUAL_STRING(child.text, "hello there");
    gt_make_folder(folder);
    gt_write_file(folder, "x", "", 0);
    child_init(&fixture, &child, "cwd", NULL);
    child.config.directory = folder;
    child_spawn_reading(&child, GORI_STDERR);
    child.config.stdio[GORI_STDERR].kind = GORI_STDIO_NULL;
    child_finish(&child);
    GT_EQUAL(child.exit.status, 0);
    child_init(&fixture, &child, "cwd", NULL);
    child.config.directory = folder;
    child_spawn_reading(&child, GORI_STDOUT);
    child_finish(&child);
    GT_CHECK(gt_is_same_folder(child.text, folder));
    gt_remove_folder(folder, "x");
    fixture_close(&fixture);
}

GT_TEST(streams_go_where_they_are_led)
{
    struct fixture fixture = {0};
    struct child child;
    char text[16] = {0};
    open_fixture(&fixture);
    need_real(&fixture);
    expect_output(&fixture, "say", "output", "output");
    child_init(&fixture, &child, "complain", "trouble");
    child_spawn_reading(&child, GORI_STDERR);
    child_finish(&child);
    GT_EQUAL_STRING(child.text, "trouble");
    expect_output(&fixture, "cat", NULL, ""); /* input is at its end */
    int file = gt_make_file("", 0);
    child_init(&fixture, &child, "say", "to a file");
    child.config.stdio[GORI_STDOUT] = (struct gori_stdio_config){GORI_STDIO_NATIVE, file};
    GT_EQUAL(child_try(&child), 0);
    CHILD_UNTIL(&fixture, child.exits == 1);
    GT_EQUAL(gt_read_file(file, text, sizeof(text) - 1), 9);
    GT_EQUAL_STRING(text, "to a file");
    gt_close_file(file);
    child_init(&fixture, &child, "exit", "0");
    for (int i = 0; i < GORI_STDIO_COUNT; i++) {
        child.config.stdio[i].kind = GORI_STDIO_INHERIT;
    }
    GT_EQUAL(child_try(&child), 0);
    CHILD_UNTIL(&fixture, child.exits == 1);
    GT_EQUAL(child.exit.status, 0);
    fixture_close(&fixture);
}

/* Rule 3: three streams, no other descriptor, and signals as new. */
GT_TEST(a_child_inherits_nothing_else)
{
    struct fixture fixture = {0};
    struct pair pair;
    gt_spoil_process();
    open_fixture(&fixture);
    need_real(&fixture);
    pair_open(&fixture, &pair);
    expect_output(&fixture, "count", NULL, "3 0");
    pair_close(&pair);
    fixture_close(&fixture);
}

/* Rule 4. */
GT_TEST(a_child_that_is_detached_goes_on)
{
    struct fixture fixture = {0};
    struct child child;
    open_fixture(&fixture);
    child_init(&fixture, &child, "hang", NULL);
    child_spawn_reading(&child, GORI_STDOUT);
    CHILD_UNTIL(&fixture, child.size == 4);
    int64_t id = gori_process_id(child.process);
    child.kill_at_exit = true;
    gori_process_detach(child.process);
    gori_process_detach(child.process);
    GT_EQUAL(child.exits, 0);
    FIXTURE_UNTIL(&fixture, child.exits == 1);
    GT_EQUAL(child.exit.error, GORI_ECANCELED);
    GT_EQUAL(child.kill_result, 0); /* it was there */
    if (fixture.sim == NULL) {
        gt_reap_child(id);
    }
    child_close_output(&child);
    fixture_settle(&fixture);
    GT_EQUAL(child.exits, 1);
    fixture_close(&fixture);
}

GT_TEST(the_end_of_a_loop_detaches_its_children)
{
    struct fixture fixture = {0};
    struct child child;
    open_fixture(&fixture);
    child_init(&fixture, &child, "hang", NULL);
    child.config.stdio[GORI_STDOUT].kind = GORI_STDIO_PIPE;
    child.kill_at_exit = true;
    GT_EQUAL(child_try(&child), 0);
    int64_t id = gori_process_id(child.process);
    gori_loop_destroy(fixture.loop);
    GT_EQUAL(child.exits, 1);
    GT_EQUAL(child.exit.error, GORI_ECANCELED);
    GT_EQUAL(child.kill_result, 0);
    if (fixture.sim == NULL) {
        gt_reap_child(id);
    }
    GT_EQUAL(gori_loop_create(&fixture.config, &fixture.loop), 0);
    fixture_close(&fixture);
}

GT_TEST(a_spawn_without_room_or_descriptors_fails_whole)
{
    struct fixture fixture = {.config.ops_max = 1};
    struct child child;
    struct child second;
    open_fixture(&fixture);
    child_init(&fixture, &child, "exit", "0");
    child_init(&fixture, &second, "exit", "0");
    GT_EQUAL(child_try(&child), 0);
    GT_EQUAL(child_try(&second), GORI_ELIMIT);
    CHILD_UNTIL(&fixture, child.exits == 1);
    if (fixture.sim == NULL) {
        for (int i = 0; i < GORI_STDIO_COUNT; i++) {
            second.config.stdio[i].kind = GORI_STDIO_PIPE;
        }
        for (int room = 0; room < 6 && gt_limit_descriptors(room); room++) {
            GT_EQUAL(child_try(&second), GORI_EMFILE);
        }
        gt_limit_descriptors(-1);
        second.config.stdio[0].kind = GORI_STDIO_NULL;
    }
    GT_EQUAL(child_try(&second), 0);
    CHILD_UNTIL(&fixture, second.exits == 1);
    GT_EQUAL(second.exit.status, 0);
    fixture_close(&fixture);
}
