/* SPDX-License-Identifier: MIT */
/*
 * Drives the connections of the load generator. Closed loop: a connection sends its next batch
 * when the last one is answered. Fixed rate: batches fall due on a timetable, wait for a free
 * connection when all are busy, and are measured from when they fell due, so that a server that
 * stalls cannot hide the requests it kept from being sent (coordinated omission).
 *
 * Each turn reads all answers first and sends all batches then; in step, it sends once all are
 * answered. Were each batch sent as soon as the answer before it is read, a server that is faster
 * than this generator would be put to sleep and woken for every single request, one that is
 * slower would not, and the comparison of the two would be one of wake-ups.
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

/* By then the server has gone to sleep, and its run time is accounted to the last nanosecond. */
static const struct timespec settling = {.tv_nsec = 300 * 1000};

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
    struct load_report *report; /* of this slice */
    int poller;
    bool stopped;     /* failures are the rule */
    bool is_draining; /* nothing is sent any more */
    uint64_t scan_ns;
    uint64_t error_total;
    uint64_t errors[LOAD_ERROR_COUNT]; /* since the start, the warm-up included */
    double interval_ns;                /* fixed rate: from one batch to the next; 0: closed loop */
    uint64_t origin_ns;                /* of the timetable */
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
    engine->errors[error] += requests;
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
    if (engine->options->in_step && limit < engine->options->connections) {
        return;
    }
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
    struct load_report *report = engine->report;
    for (unsigned i = 0; i < answers; i++) {
        histogram_add(&report->latency, now_ns - connection->start_ns);
    }
    report->requests += answers;
    uint64_t limit = engine->options->request_count;
    engine->is_draining |= limit > 0 && report->requests >= limit;
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

/*
 * Batches that fell due and found no free connection until the end count with the time that they
 * had waited by then; that is a lower bound, and better than silence.
 */
static void count_unsent(struct engine *engine, uint64_t until_ns)
{
    struct load_report *report = engine->report;
    for (; engine->interval_ns > 0 && due_ns(engine) < until_ns; engine->next_batch++) {
        for (unsigned k = 0; k < engine->options->depth; k++) {
            histogram_add(&report->latency, until_ns - due_ns(engine));
            report->unsent++;
        }
    }
}

static void wait_and_handle(struct engine *engine, uint64_t now_ns, uint64_t until_ns)
{
    struct epoll_event events[EVENTS_MAX];
    if (engine->is_draining || engine->scan_ns < until_ns) {
        until_ns = engine->scan_ns;
    }
    if (!engine->is_draining && engine->interval_ns > 0 && engine->idle_count > 0 &&
        due_ns(engine) < until_ns) {
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
        add_idle(engine, &engine->connections[i]);
    }
    return 0;
}

/* Load for `duration_ns`, then whatever it takes until every answer is there. */
static void run_for(struct engine *engine, uint64_t duration_ns)
{
    uint64_t now_ns = load_now_ns();
    uint64_t until_ns = now_ns + duration_ns;
    engine->is_draining = false;
    engine->scan_ns = now_ns + scan_interval_ns;
    engine->origin_ns = now_ns;
    engine->next_batch = 0;
    for (; !engine->stopped; now_ns = load_now_ns()) {
        if (now_ns >= until_ns && !engine->is_draining) {
            engine->is_draining = true;
            count_unsent(engine, now_ns);
        }
        if (now_ns >= engine->scan_ns) {
            fail_overdue(engine, now_ns);
        }
        if (!engine->is_draining) {
            start_batches(engine);
        } else if (engine->idle_count == engine->options->connections) {
            break;
        }
        wait_and_handle(engine, now_ns, until_ns);
    }
}

static struct engine engine_memory;

int load_start(const struct load_options *options, const struct load_protocol *protocol)
{
    static struct load_report warmup;
    struct engine *engine = &engine_memory;
    engine->options = options;
    engine->protocol = protocol;
    engine->report = &warmup;
    engine->interval_ns = options->rate > 0 ? 1e9 * options->depth / options->rate : 0;
    engine->batch_size = protocol->fill(options, engine->batch);
    if (engine->batch_size == 0) {
        return -EMSGSIZE;
    }
    engine->poller = epoll_create1(EPOLL_CLOEXEC);
    int error = engine->poller < 0 ? -errno : open_all(engine);
    if (error == 0 && options->warmup_ns > 0) {
        run_for(engine, options->warmup_ns);
    }
    return error;
}

bool load_run_slice(struct load_report *report)
{
    struct engine *engine = &engine_memory;
    engine->report = report;
    uint64_t run_from_ns = load_sample_run_ns(engine->options);
    uint64_t from_ns = load_now_ns();
    run_for(engine, engine->options->duration_ns);
    report->elapsed_ns += load_now_ns() - from_ns;
    (void)nanosleep(&settling, NULL);
    memcpy(report->errors, engine->errors, sizeof report->errors);
    report->server_run_ns += load_sample_run_ns(engine->options) - run_from_ns;
    return !engine->stopped;
}
