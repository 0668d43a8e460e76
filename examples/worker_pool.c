/* SPDX-License-Identifier: MIT */
/*
 * worker_pool: work that takes its time is done on threads of a pool, and answered on the loop that
 * asked; meanwhile the loop serves everybody else.  Each line is a number; the answer is its
 * smallest factor, found the slow way.
 *
 *     worker_pool_example [ADDR:PORT]        echo 1000000016000000063 | nc 127.0.0.1 7012
 */
#include <gori/error.h>
#include <gori/pool.h>
#include <gori/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES_MAX 32
#define LOOK_EVERY     1000000 /* divisions between two looks whether anybody still wants it */

struct question {
    struct gori_work work;
    struct gori_loop *loop;
    uint64_t from; /* the session may be gone when the answer is there */
    uint64_t number;
    uint64_t factor;
};

/* On a thread of the pool. */
static void find_factor(struct gori_work *work)
{
    struct question *question = work->user;
    uint64_t number = question->number;
    question->factor = number;
    for (uint64_t factor = 2; factor <= number / factor; factor++) {
        if (number % factor == 0) {
            question->factor = factor;
            return;
        }
        if (factor % LOOK_EVERY == 0 && gori_work_is_canceled(work)) {
            return;
        }
    }
}

/* On the loop again. */
static void answer(struct gori_work *work, int result)
{
    struct question *question = work->user;
    struct gori_session *session = gori_loop_session(question->loop, question->from);
    if (session != NULL && result == 0) {
        char text[64];
        int size = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)question->factor);
        if (gori_session_send(session, text, (size_t)size) < 0) {
            gori_session_close(session);
        }
    }
    free(question);
}

/* The loop of a runtime that stops does not wait for a thread that computes: it is left alone. */
static void forget(struct gori_work *work)
{
    free(work->user);
}

static int ask(struct gori_session *session, uint64_t number)
{
    struct gori_pool *pool = gori_session_user(session);
    struct question *question = calloc(1, sizeof(*question));
    if (question == NULL) {
        return GORI_ENOMEM;
    }
    question->work = (struct gori_work){
        .run = find_factor, .on_done = answer, .on_orphan = forget, .user = question};
    question->loop = gori_session_loop(session);
    question->from = gori_session_id(session);
    question->number = number;
    int result = gori_pool_submit(pool, question->loop, &question->work);
    if (result < 0) {
        free(question);
    }
    return result;
}

static void take_line(struct gori_session *session, const uint8_t *line, size_t size)
{
    static const char busy[] = "busy\n";
    uint64_t number = 0;
    for (size_t i = 0; i < size && line[i] >= '0' && line[i] <= '9'; i++) {
        number = 10 * number + (uint64_t)(line[i] - '0');
    }
    if (ask(session, number) < 0 && gori_session_send(session, busy, strlen(busy)) < 0) {
        gori_session_close(session);
    }
}

static size_t receive(struct gori_session *session, struct gori_slice bytes)
{
    size_t start = 0;
    const uint8_t *end;
    while ((end = memchr(bytes.data + start, '\n', bytes.size - start)) != NULL) {
        size_t size = (size_t)(end + 1 - (bytes.data + start));
        take_line(session, bytes.data + start, size);
        start += size;
    }
    if (bytes.size - start > LINE_BYTES_MAX) {
        gori_session_close(session);
    }
    return start;
}

static int serve(struct gori_runtime *runtime, struct gori_pool *pool, const char *text)
{
    static const struct gori_session_events events = {.on_recv = receive};
    struct gori_listener_config listener = {.events = &events, .user = pool};
    struct gori_addr bound;
    int result = gori_addr_parse(text, &listener.addr);
    if (result >= 0) {
        result = gori_runtime_listen(runtime, &listener, &bound);
    }
    if (result < 0) {
        return result;
    }
    char name[GORI_ADDR_TEXT_BYTES];
    gori_addr_format(&bound, name, sizeof(name));
    printf("listening on %s\n", name);
    fflush(stdout);
    return gori_runtime_run(runtime);
}

int main(int argc, char **argv)
{
    const struct gori_runtime_config config = {.workers = 1, .handle_signals = true};
    const struct gori_pool_config pool_config = {.threads_max = 2, .works_max = 16};
    struct gori_runtime *runtime = NULL;
    struct gori_pool *pool = NULL;
    int result = gori_pool_create(&pool_config, &pool);
    if (result >= 0) {
        result = gori_runtime_create(&config, &runtime);
    }
    if (result >= 0) {
        result = serve(runtime, pool, argc > 1 ? argv[1] : "127.0.0.1:7012");
    }
    gori_runtime_destroy(runtime);
    gori_pool_destroy(pool);
    if (result < 0) {
        fprintf(stderr, "worker_pool: %s\n", gori_error_text(result));
    }
    return result < 0;
}
