/* SPDX-License-Identifier: MIT */
/*
 * Drives the connections of the load generator. Closed loop: a connection sends its next batch
 * when the last one is answered. Fixed rate: batches fall due on a timetable, wait for a free
 * connection when all are busy, and are measured from when they fell due, so that a server that
 * stalls cannot hide the requests it kept from being sent (coordinated omission).
 *
 * Each turn reads all answers first and sends all batches then.  Were each batch sent as soon as
 * the answer before it is read, a server that is faster than this generator would be put to sleep
 * and woken for every single request, one that is slower would not, and the comparison of the two
 * would be one of wake-ups.
 *
 * A connection has at most one batch in flight. A failed one is counted, closed and opened again;
 * the run ends early when failures become the rule.
 */
#include "load.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, BUFFER_BYTES = 1 << 18, ERRORS_MAX = 100 };

static const uint64_t scan_interval_ns = 50 * 1000 * 1000;

struct connection {
    int fd;
    bool is_idle;         /* stands in the ring of free connections */
    unsigned outstanding; /* answers of the batch in flight still to come */
    size_t sent;          /* bytes of the batch */
    uint64_t start_ns;    /* when the batch was sent, or should have been */
    struct load_answer answer;
};

struct engine {
    const struct load_options *options;
    const struct load_protocol *protocol;
    struct load_report *report;
    int poller;
    bool counting;
    bool stopped;
    uint64_t count_from_ns;
    uint64_t count_until_ns;
    uint64_t scan_ns;
    uint64_t error_total;
    uint64_t run_at_start_ns;
    double interval_ns; /* fixed rate: from one batch to the next; 0: closed loop */
    uint64_t origin_ns; /* of the timetable */
    uint64_t next_batch;
    unsigned idle_head;
    unsigned idle_count;
    unsigned idle[LOAD_CONNECTIONS_MAX]; /* ring of free connections, longest free first */
    struct connection connections[LOAD_CONNECTIONS_MAX];
    size_t batch_size;
    char batch[LOAD_BATCH_BYTES_MAX];
    char buffer[BUFFER_BYTES];
};

uint64_t load_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t due_ns(const struct engine *engine)
{
    return engine->origin_ns + (uint64_t)((double)engine->next_batch * engine->interval_ns);
}

static void watch(struct engine *engine, struct connection *connection, int operation,
                  uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = connection};
    (void)epoll_ctl(engine->poller, operation, connection->fd, &event);
}

static int open_connection(struct engine *engine, struct connection *connection)
{
    const struct load_options *options = engine->options;
    struct timeval limit = {.tv_sec = (time_t)(options->timeout_ns / 1000000000U),
                            .tv_usec = (suseconds_t)(options->timeout_ns % 1000000000U / 1000)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (const struct sockaddr *)&options->target, sizeof options->target) < 0) {
        int error = errno;
        (void)close(fd);
        return -error;
    }
    connection->fd = fd;
    connection->outstanding = 0;
    connection->answer.in_body = false;
    connection->answer.head_size = 0;
    watch(engine, connection, EPOLL_CTL_ADD, EPOLLIN);
    return 0;
}

static void add_idle(struct engine *engine, struct connection *connection)
{
    if (connection->is_idle) {
        return;
    }
    connection->is_idle = true;
    unsigned slot = (engine->idle_head + engine->idle_count) % LOAD_CONNECTIONS_MAX;
    engine->idle[slot] = (unsigned)(connection - engine->connections);
    engine->idle_count++;
}

static void count_error(struct engine *engine, enum load_error error, unsigned requests)
{
    engine->report->errors[error] += requests;
    engine->error_total += requests;
    engine->stopped |= engine->error_total >= ERRORS_MAX;
}

/* Opens the connection again so that the load stays what was asked for. */
static void fail(struct engine *engine, struct connection *connection, enum load_error error)
{
    count_error(engine, error, connection->outstanding > 0 ? connection->outstanding : 1);
    (void)close(connection->fd);
    if (open_connection(engine, connection) < 0) {
        connection->fd = -1;
        connection->outstanding = 0;
        count_error(engine, LOAD_ERROR_CONNECT, 1);
        engine->stopped = true;
    } else {
        add_idle(engine, connection);
    }
}

static void send_rest(struct engine *engine, struct connection *connection)
{
    bool was_blocked = connection->sent > 0;
    ssize_t sent = send(connection->fd, engine->batch + connection->sent,
                        engine->batch_size - connection->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) {
        fail(engine, connection, LOAD_ERROR_IO);
        return;
    }
    connection->sent += sent > 0 ? (size_t)sent : 0;
    if (connection->sent < engine->batch_size) {
        watch(engine, connection, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    } else if (was_blocked) {
        watch(engine, connection, EPOLL_CTL_MOD, EPOLLIN);
    }
}

static void start_batch(struct engine *engine, struct connection *connection, uint64_t start_ns)
{
    connection->start_ns = start_ns;
    connection->outstanding = engine->options->depth;
    connection->sent = 0;
    send_rest(engine, connection);
}

static struct connection *take_idle(struct engine *engine)
{
    struct connection *connection = &engine->connections[engine->idle[engine->idle_head]];
    engine->idle_head = (engine->idle_head + 1) % LOAD_CONNECTIONS_MAX;
    engine->idle_count--;
    connection->is_idle = false;
    return connection;
}

/* Sends on every free connection, as far as the timetable has something for it. */
static void start_batches(struct engine *engine)
{
    unsigned limit = engine->idle_count; /* one that fails and is opened again comes later */
    while (limit-- > 0 && !engine->stopped) {
        uint64_t now_ns = load_now_ns();
        if (engine->interval_ns > 0) {
            if (due_ns(engine) > now_ns) {
                break;
            }
            now_ns = due_ns(engine);
            engine->next_batch++;
        }
        start_batch(engine, take_idle(engine), now_ns);
    }
}

static void count_answers(struct engine *engine, const struct connection *connection,
                          unsigned answers, uint64_t now_ns)
{
    if (!engine->counting) {
        return;
    }
    for (unsigned i = 0; i < answers; i++) {
        histogram_add(&engine->report->latency, now_ns - connection->start_ns);
    }
    engine->report->requests += answers;
    uint64_t limit = engine->options->request_count;
    engine->stopped |= limit > 0 && engine->report->requests >= limit;
}

static void on_readable(struct engine *engine, struct connection *connection)
{
    ssize_t size = recv(connection->fd, engine->buffer, BUFFER_BYTES, MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) {
        return;
    }
    if (size <= 0) {
        fail(engine, connection, size == 0 ? LOAD_ERROR_CLOSED : LOAD_ERROR_IO);
        return;
    }
    uint64_t now_ns = load_now_ns();
    int answers =
        engine->protocol->take(engine->options, &connection->answer, engine->buffer, (size_t)size);
    if (answers < 0) {
        fail(engine, connection, (enum load_error)(-1 - answers));
        return;
    }
    if (connection->outstanding == 0 || (unsigned)answers > connection->outstanding) {
        fail(engine, connection, LOAD_ERROR_FRAMING);
        return;
    }
    connection->outstanding -= (unsigned)answers;
    count_answers(engine, connection, (unsigned)answers, now_ns);
    if (connection->outstanding == 0) {
        add_idle(engine, connection);
    }
}

static void fail_overdue(struct engine *engine, uint64_t now_ns)
{
    for (unsigned i = 0; i < engine->options->connections; i++) {
        struct connection *connection = &engine->connections[i];
        if (connection->outstanding > 0 &&
            now_ns > connection->start_ns + engine->options->timeout_ns) {
            fail(engine, connection, LOAD_ERROR_TIMEOUT);
        }
    }
    engine->scan_ns = now_ns + scan_interval_ns;
}

/* Time a request already waited when the run ended counts as if it had been answered just
 * then; that is a lower bound, and better than silence. */
static void count_waiting(struct engine *engine, uint64_t now_ns)
{
    struct load_report *report = engine->report;
    for (unsigned i = 0; i < engine->options->connections; i++) {
        const struct connection *connection = &engine->connections[i];
        for (unsigned k = 0; k < connection->outstanding; k++) {
            histogram_add(&report->latency, now_ns - connection->start_ns);
        }
    }
    for (; due_ns(engine) < now_ns; engine->next_batch++) {
        for (unsigned k = 0; k < engine->options->depth; k++) {
            histogram_add(&report->latency, now_ns - due_ns(engine));
            report->unsent++;
        }
    }
}

static void start_counting(struct engine *engine)
{
    engine->counting = true;
    engine->run_at_start_ns = load_sample_run_ns(engine->options);
    engine->count_from_ns = load_now_ns();
    engine->count_until_ns = engine->count_from_ns + engine->options->duration_ns;
}

static void stop_counting(struct engine *engine)
{
    struct load_report *report = engine->report;
    uint64_t now_ns = load_now_ns();
    report->server_run_ns = load_sample_run_ns(engine->options) - engine->run_at_start_ns;
    report->elapsed_ns = now_ns - engine->count_from_ns;
    if (engine->interval_ns > 0) {
        count_waiting(engine, now_ns);
    }
}

static void wait_and_handle(struct engine *engine, uint64_t now_ns)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t until_ns = engine->scan_ns;
    uint64_t phase_ns = engine->counting ? engine->count_until_ns : engine->count_from_ns;
    until_ns = phase_ns < until_ns ? phase_ns : until_ns;
    if (engine->interval_ns > 0 && engine->idle_count > 0 && due_ns(engine) < until_ns) {
        until_ns = due_ns(engine);
    }
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left_ns / 1000000000U),
                               .tv_nsec = (long)(left_ns % 1000000000U)};
    int count = epoll_pwait2(engine->poller, events, EVENTS_MAX, &timeout, NULL);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) {
            send_rest(engine, connection);
        }
        if (events[i].events & ~(uint32_t)EPOLLOUT && connection->fd >= 0) {
            on_readable(engine, connection);
        }
    }
}

static int open_all(struct engine *engine)
{
    for (unsigned i = 0; i < engine->options->connections; i++) {
        int error = open_connection(engine, &engine->connections[i]);
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

static void start_all(struct engine *engine)
{
    engine->origin_ns = load_now_ns();
    engine->count_from_ns = engine->origin_ns + engine->options->warmup_ns;
    engine->scan_ns = engine->origin_ns + scan_interval_ns;
    if (engine->options->warmup_ns == 0) {
        start_counting(engine);
    }
    for (unsigned i = 0; i < engine->options->connections; i++) {
        add_idle(engine, &engine->connections[i]);
    }
}

int load_run(const struct load_options *options, const struct load_protocol *protocol,
             struct load_report *ret_report)
{
    static struct engine engine;
    engine.options = options;
    engine.protocol = protocol;
    engine.report = ret_report;
    engine.interval_ns = options->rate > 0 ? 1e9 * options->depth / options->rate : 0;
    engine.batch_size = protocol->fill(options, engine.batch);
    if (engine.batch_size == 0) {
        return -EMSGSIZE;
    }
    engine.poller = epoll_create1(EPOLL_CLOEXEC);
    int error = engine.poller < 0 ? -errno : open_all(&engine);
    if (error < 0) {
        return error;
    }
    start_all(&engine);
    while (!engine.stopped) {
        uint64_t now_ns = load_now_ns();
        if (engine.counting ? now_ns >= engine.count_until_ns : now_ns >= engine.count_from_ns) {
            if (engine.counting) {
                break;
            }
            start_counting(&engine);
        }
        if (now_ns >= engine.scan_ns) {
            fail_overdue(&engine, now_ns);
        }
        start_batches(&engine);
        wait_and_handle(&engine, now_ns);
    }
    if (engine.counting) {
        stop_counting(&engine);
    }
    return 0;
}
