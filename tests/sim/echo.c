/* SPDX-License-Identifier: MIT */
/*
 * The scenario "echo": clients send counter streams to an echo server and check what comes back,
 * while both do everything that an application may do to a session, over any network.
 *
 * What must hold, whatever happens: what a client is shown is its own stream from the beginning,
 * without a gap; a callback never comes before on_open or after on_close; on_close comes once. When
 * nothing was cut (struct echo.is_gentle), a client that ended its stream gets all of it back, then
 * the end; one whose server closed after its flush gets the end too, and never a reset.  Messages
 * between loops arrive in the order in which they were posted.
 */
#include <gori/block.h>
#include <gori/error.h>
#include <gori/listener.h>
#include <gori/timer.h>
#include <string.h>

#include "base/compiler.h"
#include "sim/run.h"

#define CLIENTS_MAX  20
#define MESSAGES_MAX 32
#define CHUNK_BYTES  6000
#define SESSION_MARK 0x5e5510e5U

/* What a client does with its connection. */
enum behaviour {
    COMPLETE, /* sends everything, ends its direction, waits for all of it and the end */
    SLOW,     /* the same, and reads a little at a time */
    CLOSE,    /* closes somewhere on the way */
    RESET,    /* resets somewhere on the way */
    FLUSH,    /* closes after flush somewhere on the way */
    SILENT,   /* sends nothing; the server's idle limit, or its own deadline, ends it */
    BEHAVIOURS
};

struct client {
    struct echo *echo;
    struct sim_loop *on;
    struct gori_session *session;
    struct gori_timer timer; /* connects, sends more, resumes */
    enum behaviour behaviour;
    uint32_t number;
    uint64_t size;   /* of the whole stream */
    uint64_t cut_at; /* bytes sent, when `behaviour` is to happen */
    uint64_t sent;
    uint64_t shown; /* the end of what was shown */
    uint64_t consumed;
    bool is_over_limit;
    bool is_opened;
    bool is_ended;   /* on_eof was shown */
    bool is_done;    /* on_close was, or there was nothing to close */
    bool is_stopped; /* we ended it ourselves before it was complete */
};

/* The server's part of a connection, in the memory that comes with a session. */
struct served {
    uint32_t mark;
    bool waits_for_drain;
    bool waits_for_timer;
    bool is_over_limit; /* a send answered GORI_ELIMIT: the session closes for that reason */
    struct gori_timer timer;
    struct gori_session *session;
};

struct message {
    struct gori_task task;
    struct echo *echo;
    uint32_t from;
    uint32_t to;
    uint32_t number;
    bool is_used;
};

struct echo {
    struct sim_run run;
    struct gori_listener *listener;
    struct gori_addr addr;
    struct gori_session_options options; /* of the clients */
    bool is_gentle;                      /* no fault and no limit that cuts connections */
    bool is_cruel;                       /* the server closes and resets as it likes */
    bool is_polite;                      /* it closes after flush while the client still sends */
    bool retains;                        /* the server may send on the buffers that it received */
    bool listener_closed;
    uint32_t client_count;
    uint32_t done_count;
    uint32_t served_count; /* server sessions that are open */
    struct client clients[CLIENTS_MAX];
    struct message messages[MESSAGES_MAX];
    uint32_t posted[SIM_LOOPS_MAX][SIM_LOOPS_MAX];
    uint32_t received[SIM_LOOPS_MAX][SIM_LOOPS_MAX];
};

static struct echo echo_run;

static gori_time random_delay(struct sim_run *run)
{
    static const gori_time most[] = {1, 100 * GORI_MICROSECONDS, 3 * GORI_MILLISECONDS,
                                     80 * GORI_MILLISECONDS};
    return gi_random_below(&run->random, most[sim_below(run, GI_ARRAY_COUNT(most))]);
}

/* Messages between loops ------------------------------------------------------------------- */

static void on_message(struct gori_task *task)
{
    struct message *message = gori_container_of(task, struct message, task);
    struct echo *echo = message->echo;
    SIM_CHECK(&echo->run, message->is_used);
    SIM_CHECK(&echo->run, message->number == echo->received[message->from][message->to]);
    echo->received[message->from][message->to]++;
    message->is_used = false;
}

static void post_message(struct echo *echo, uint32_t from)
{
    uint32_t to = sim_below(&echo->run, echo->run.loop_count);
    struct message *message = &echo->messages[sim_below(&echo->run, MESSAGES_MAX)];
    if (message->is_used || echo->run.loops[to].loop == NULL) {
        return;
    }
    *message = (struct message){.task = {.run = on_message},
                                .echo = echo,
                                .from = from,
                                .to = to,
                                .number = echo->posted[from][to],
                                .is_used = true};
    int status = gori_loop_post(echo->run.loops[to].loop, &message->task);
    if (status < 0) {
        SIM_CHECK(&echo->run, status == GORI_ELIMIT || status == GORI_ECLOSED);
        message->is_used = false;
        return;
    }
    echo->posted[from][to]++;
}

/* The server ------------------------------------------------------------------------------- */

static struct served *served_of(struct gori_session *session)
{
    struct served *served = gori_session_context(session);
    SIM_CHECK(&echo_run.run, served->mark == SESSION_MARK);
    return served;
}

static void served_resume(struct served *served)
{
    if (!served->waits_for_drain && !served->waits_for_timer) {
        gori_session_resume(served->session);
    }
}

static void served_timer(struct gori_timer *timer)
{
    struct served *served = gori_container_of(timer, struct served, timer);
    served->waits_for_timer = false;
    served_resume(served);
}

static void served_pause(struct served *served)
{
    served->waits_for_timer = true;
    gori_session_pause(served->session);
    gori_timer_start(gori_session_loop(served->session), &served->timer,
                     random_delay(&echo_run.run));
}

static void on_served_open(struct gori_session *session)
{
    struct served *served = gori_session_context(session);
    SIM_CHECK(&echo_run.run, served->mark == 0);
    served->mark = SESSION_MARK;
    served->session = session;
    served->timer.on_expire = served_timer;
    echo_run.served_count++;
}

static int send_as_block(struct echo *echo, struct gori_session *session, const void *data,
                         size_t size)
{
    struct gori_block *block;
    int status = gori_block_create(&echo->run.memory.allocator, data, size, &block);
    if (status < 0) {
        return status;
    }
    status = gori_session_send_block(session, block);
    gori_block_unref(block);
    return status;
}

/* Sends bytes that on_recv shows in one of the ways that there are. */
static int send_shown(struct echo *echo, struct gori_session *session, struct gori_slice bytes)
{
    struct gori_buffer *buffer = NULL;
    switch (sim_below(&echo->run, 3)) {
    case 0:
        return send_as_block(echo, session, bytes.data, bytes.size);
    case 1:
        buffer = echo->retains ? gori_session_retain(session) : NULL;
        break;
    default:
        break;
    }
    if (buffer == NULL) {
        return gori_session_send(session, bytes.data, bytes.size);
    }
    int status = gori_session_send_buffer(session, buffer, bytes);
    gori_buffer_release(buffer);
    return status;
}

static void be_cruel(struct sim_run *run, struct gori_session *session)
{
    switch (sim_below(run, 4)) {
    case 0:
        gori_session_close(session);
        break;
    case 1:
        gori_session_reset(session);
        break;
    case 2:
        gori_session_close_after_flush(session);
        break;
    default:
        gori_session_shutdown(session);
        break;
    }
}

static size_t on_served_recv(struct gori_session *session, struct gori_slice bytes)
{
    struct echo *echo = &echo_run;
    struct served *served = served_of(session);
    SIM_CHECK(&echo->run, bytes.size > 0);
    SIM_CHECK(&echo->run, !served->waits_for_drain && !served->waits_for_timer);
    if (sim_once_in(&echo->run, 10)) {
        post_message(echo, 0);
    }
    if (echo->is_cruel && sim_once_in(&echo->run, 20)) {
        be_cruel(&echo->run, session);
        return 0;
    }
    struct gori_slice part = bytes;
    if (sim_once_in(&echo->run, 3)) {
        part.size = sim_below(&echo->run, (uint32_t)bytes.size + 1);
        served_pause(served);
    }
    if (part.size == 0) {
        return 0;
    }
    int status = send_shown(echo, session, part);
    if (echo->is_polite && sim_once_in(&echo->run, 10)) {
        gori_session_close_after_flush(session);
    } else if (status == GORI_SEND_HIGH) {
        served->waits_for_drain = true;
        gori_session_pause(session);
    } else if (status == GORI_ENOMEM) {
        gori_session_close(session);
    }
    served->is_over_limit |= status == GORI_ELIMIT;
    return part.size;
}

static void on_served_drain(struct gori_session *session)
{
    struct served *served = served_of(session);
    SIM_CHECK(&echo_run.run, served->waits_for_drain);
    served->waits_for_drain = false;
    served_resume(served);
}

static void on_served_eof(struct gori_session *session)
{
    struct served *served = served_of(session);
    SIM_CHECK(&echo_run.run, !served->waits_for_drain && !served->waits_for_timer);
    if (sim_once_in(&echo_run.run, 2)) {
        gori_session_shutdown(session);
    } else {
        gori_session_close_after_flush(session);
    }
}

/* Decides now and then, and else lets the time pass. */
static void on_timeout(struct gori_session *session, enum gori_timeout which)
{
    SIM_CHECK(&echo_run.run, !echo_run.is_gentle || which == GORI_TIMEOUT_DEADLINE);
    SIM_CHECK(&echo_run.run, which != GORI_TIMEOUT_CONNECT);
    if (sim_once_in(&echo_run.run, 2)) {
        gori_session_close(session);
    } else if (which != GORI_TIMEOUT_IDLE) {
        gori_session_set_deadline(session, 10 * GORI_MILLISECONDS);
    }
}

/* What is known of why a session ended. */
static void check_reason(bool is_over_limit, enum gori_close_reason reason, int error)
{
    struct sim_run *run = &echo_run.run;
    SIM_CHECK(run, reason >= GORI_CLOSE_LOCAL && reason <= GORI_CLOSE_SHUTDOWN && error <= 0);
    SIM_CHECK(run, (reason == GORI_CLOSE_SLOW) == is_over_limit);
    SIM_CHECK(run, reason != GORI_CLOSE_ERROR || error < 0);
    SIM_CHECK(run, reason != GORI_CLOSE_LOCAL || error == 0);
}

static void on_served_close(struct gori_session *session, enum gori_close_reason reason, int error)
{
    struct served *served = served_of(session);
    check_reason(served->is_over_limit, reason, error);
    gori_timer_stop(&served->timer);
    served->mark = ~SESSION_MARK;
    echo_run.served_count--;
}

static const struct gori_session_events served_events = {
    .on_open = on_served_open,
    .on_recv = on_served_recv,
    .on_eof = on_served_eof,
    .on_drain = on_served_drain,
    .on_timeout = on_timeout,
    .on_close = on_served_close,
};

static void on_listener_close(struct gori_listener *listener)
{
    (void)listener;
    SIM_CHECK(&echo_run.run, !echo_run.listener_closed);
    echo_run.listener_closed = true;
}

/* The clients ------------------------------------------------------------------------------ */

static struct client *client_of(struct gori_session *session)
{
    struct client *client = gori_session_user(session);
    SIM_CHECK(&client->echo->run, client->session == session && !client->is_done);
    return client;
}

static void client_again(struct client *client)
{
    gori_timer_start(client->on->loop, &client->timer, random_delay(&client->echo->run));
}

static void client_done(struct client *client)
{
    SIM_CHECK(&client->echo->run, !client->is_done);
    client->is_done = true;
    client->echo->done_count++;
    gori_timer_stop(&client->timer);
}

/* Everything is sent, or as much as it wanted to. */
static void client_cut(struct client *client)
{
    switch (client->behaviour) {
    case CLOSE:
        gori_session_close(client->session);
        break;
    case RESET:
        gori_session_reset(client->session);
        break;
    case FLUSH:
        gori_session_close_after_flush(client->session);
        break;
    case SILENT:
        gori_session_set_deadline(client->session, 20 * GORI_SECONDS);
        break;
    default:
        gori_session_shutdown(client->session);
        return;
    }
    client->is_stopped = true;
}

static void client_send(struct client *client)
{
    struct sim_run *run = &client->echo->run;
    uint8_t chunk[CHUNK_BYTES];
    if (client->is_stopped || client->sent == client->size) {
        return;
    }
    uint64_t most = gi_min_u64(client->cut_at - client->sent, CHUNK_BYTES);
    size_t size = most == 0 ? 0 : 1 + sim_below(run, (uint32_t)most);
    int status = 0;
    if (size > 0) {
        sim_stream_fill(client->number, client->sent, chunk, size);
        status = sim_once_in(run, 4) ? send_as_block(client->echo, client->session, chunk, size)
                                     : gori_session_send(client->session, chunk, size);
    }
    if (status < 0) {
        client->is_stopped = true; /* it has failed, and will close */
        client->is_over_limit = status == GORI_ELIMIT;
        if (status == GORI_ENOMEM) {
            gori_session_close(client->session);
        }
        return;
    }
    client->sent += size;
    if (client->sent == client->cut_at) {
        client_cut(client);
    } else if (status != GORI_SEND_HIGH) {
        client_again(client);
    }
}

static void on_client_open(struct gori_session *session)
{
    struct client *client = client_of(session);
    SIM_CHECK(&client->echo->run, !client->is_opened);
    client->is_opened = true;
    client_send(client);
}

static size_t on_client_recv(struct gori_session *session, struct gori_slice bytes)
{
    struct client *client = client_of(session);
    struct sim_run *run = &client->echo->run;
    SIM_CHECK(run, client->is_opened && !client->is_ended);
    SIM_CHECK(run, bytes.size > 0 && client->consumed + bytes.size <= client->sent);
    SIM_CHECK(run, sim_stream_matches(client->number, client->consumed, bytes.data, bytes.size));
    client->shown = gi_max_u64(client->shown, client->consumed + bytes.size);
    size_t taken = bytes.size;
    if (client->behaviour == SLOW && sim_once_in(run, 2)) {
        taken = sim_below(run, (uint32_t)bytes.size + 1);
        if (sim_once_in(run, 2)) {
            gori_session_pause(session);
            client_again(client);
        }
    }
    client->consumed += taken;
    return taken;
}

static void on_client_eof(struct gori_session *session)
{
    struct client *client = client_of(session);
    struct sim_run *run = &client->echo->run;
    SIM_CHECK(run, client->is_opened && !client->is_ended);
    client->is_ended = true;
    if (client->echo->is_gentle && !client->echo->is_polite && !client->is_stopped) {
        SIM_CHECK(run, client->sent == client->size && client->shown == client->size);
    }
    gori_session_close(session);
}

static void on_client_drain(struct gori_session *session)
{
    client_again(client_of(session));
}

static void on_client_close(struct gori_session *session, enum gori_close_reason reason, int error)
{
    struct client *client = client_of(session);
    struct echo *echo = client->echo;
    check_reason(client->is_over_limit, reason, error);
    bool completes = client->behaviour == COMPLETE || client->behaviour == SLOW;
    if (echo->is_gentle && completes && client->is_opened && reason != GORI_CLOSE_SHUTDOWN) {
        SIM_CHECK(&echo->run, client->is_ended && reason == GORI_CLOSE_LOCAL);
    }
    client_done(client);
}

static const struct gori_session_events client_events = {
    .on_open = on_client_open,
    .on_recv = on_client_recv,
    .on_eof = on_client_eof,
    .on_drain = on_client_drain,
    .on_timeout = on_timeout,
    .on_close = on_client_close,
};

static void client_connect(struct client *client)
{
    struct echo *echo = client->echo;
    int status = gori_session_connect(client->on->loop, &echo->addr, &client_events, &echo->options,
                                      client, &client->session);
    if (status < 0) {
        client_done(client);
    }
}

static void on_client_timer(struct gori_timer *timer)
{
    struct client *client = gori_container_of(timer, struct client, timer);
    if (sim_once_in(&client->echo->run, 4)) {
        post_message(client->echo, client->on->index);
    }
    if (client->session == NULL) {
        client_connect(client);
        return;
    }
    gori_session_resume(client->session);
    if (client->is_opened) {
        client_send(client);
    }
}

static void client_init(struct echo *echo, uint32_t number)
{
    static const uint32_t sizes[] = {1, 100, 3000, 30000};
    struct sim_run *run = &echo->run;
    struct client *client = &echo->clients[number];
    uint32_t loop = run->loop_count == 1 ? 0 : 1 + sim_below(run, run->loop_count - 1);
    *client = (struct client){.echo = echo,
                              .on = &run->loops[loop],
                              .number = number,
                              .timer = {.on_expire = on_client_timer}};
    client->behaviour = sim_once_in(run, 2) ? sim_below(run, BEHAVIOURS) : COMPLETE;
    client->size = 1 + sim_below(run, sizes[sim_below(run, GI_ARRAY_COUNT(sizes))]);
    client->cut_at = client->size;
    if (client->behaviour == SILENT) {
        client->cut_at = 0;
    } else if (client->behaviour != COMPLETE && client->behaviour != SLOW) {
        client->cut_at = sim_below(run, (uint32_t)client->size);
    }
    client_again(client);
}

/* The run ---------------------------------------------------------------------------------- */

static void random_limits(struct echo *echo, struct gori_session_options *options)
{
    struct sim_run *run = &echo->run;
    static const uint32_t marks[] = {1, 100, 4000, 0};
    options->send_high = marks[sim_below(run, GI_ARRAY_COUNT(marks))];
    options->send_low = options->send_high / (1 + sim_below(run, 4));
    options->delay = sim_once_in(run, 2);
    options->drain_timeout = 10000 * GORI_SECONDS;
    if (!echo->is_gentle) {
        options->drain_timeout = sim_once_in(run, 2) ? GORI_SECONDS : GORI_MILLISECONDS;
        options->idle_timeout = sim_once_in(run, 2) ? 30 * GORI_SECONDS : 5 * GORI_SECONDS;
        options->connect_timeout = sim_once_in(run, 2) ? GORI_SECONDS : 100 * GORI_MILLISECONDS;
        options->total_timeout = sim_once_in(run, 4) ? GORI_SECONDS : 0;
        options->send_max = sim_once_in(run, 4) ? options->send_high + sim_below(run, 9000) : 0;
        options->recv_max = sim_once_in(run, 4) ? 1 + sim_below(run, 3000) : 0;
    }
}

static void add_loops(struct echo *echo)
{
    struct sim_run *run = &echo->run;
    uint32_t count = 1 + sim_below(run, SIM_LOOPS_MAX);
    /* One loop for both sides needs buffers for both: a reader that waits must not be the one that
       the other waits for. */
    echo->retains = count > 1;
    for (uint32_t i = 0; i < count; i++) {
        struct gori_loop_config config = {
            .buffer_bytes = 512U << sim_below(run, 4),
            .buffers_max = count == 1 ? 400 : 1 + sim_below(run, 40),
            .completions_max = 1 + sim_below(run, 64),
            .tasks_max = 1 + sim_below(run, 8),
        };
        struct sim_loop *loop;
        int status = sim_run_add_loop(run, &config, &loop);
        SIM_CHECK(run, status == 0);
    }
}

static bool open_listener(struct echo *echo)
{
    static const char *const addrs[] = {"127.0.0.1:7", "[::1]:7", "unix:/run/echo.sock"};
    struct sim_run *run = &echo->run;
    struct gori_listener_config config = {
        .events = &served_events, .on_close = on_listener_close, .backlog = 1 + sim_below(run, 20)};
    int status = gori_addr_parse(addrs[sim_below(run, GI_ARRAY_COUNT(addrs))], &echo->addr);
    SIM_CHECK(run, status == 0);
    config.addr = echo->addr;
    random_limits(echo, &config.options);
    config.options.context_bytes = sizeof(struct served);
    config.sessions_max = sim_once_in(run, 4) ? 1 + sim_below(run, 5) : 0;
    return gori_listener_open(run->loops[0].loop, &config, &echo->listener) == 0;
}

static bool clients_are_done(void *user)
{
    struct echo *echo = user;
    return echo->done_count == echo->client_count;
}

static bool server_is_done(void *user)
{
    struct echo *echo = user;
    return echo->listener_closed && echo->served_count == 0;
}

static bool enough_steps(void *user)
{
    struct echo *echo = user;
    return clients_are_done(echo) || sim_once_in(&echo->run, 300);
}

static uint64_t play_echo(uint64_t seed)
{
    struct echo *echo = &echo_run;
    struct sim_run *run = &echo->run;
    memset(echo, 0, sizeof(*echo));
    sim_run_begin(run, seed);
    const struct gi_sim_faults *faults = &run->config.faults;
    echo->is_cruel = sim_once_in(run, 3);
    echo->is_polite = !echo->is_cruel && sim_once_in(run, 3);
    echo->client_count = 1 + sim_below(run, CLIENTS_MAX);
    bool is_short_of_descriptors = sim_once_in(run, 8);
    if (is_short_of_descriptors) {
        run->config.descriptors_max = 2 + echo->client_count;
    }
    add_loops(echo);
    echo->is_gentle = !sim_run_arm(run) && !echo->is_cruel && !is_short_of_descriptors &&
                      faults->reset == 0 && faults->submit_error == 0;
    random_limits(echo, &echo->options);
    if (!open_listener(echo)) {
        return sim_run_end(run); /* no descriptor for it: a fault */
    }
    for (uint32_t i = 0; i < echo->client_count; i++) {
        client_init(echo, i);
    }
    if (sim_once_in(run, 5)) {
        sim_run_until(run, enough_steps, echo);
    } else {
        sim_run_until(run, clients_are_done, echo);
        gori_listener_close(echo->listener);
        sim_run_until(run, server_is_done, echo);
    }
    uint64_t hash = sim_run_end(run);
    return hash;
}

const struct sim_scenario sim_echo = {.name = "echo", .seeds = 700, .play = play_echo};
