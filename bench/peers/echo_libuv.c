/* SPDX-License-Identifier: MIT */
/*
 * Echo on libuv as its documentation and its good users write it: one read buffer per loop, answers
 * through uv_write, which takes a request and the bytes along in one block.  Built twice: with
 * TRY_WRITE_FIRST it writes at once what the socket takes and queues only the rest, as those do who
 * know that uv_try_write is faster.  Reading: docs.libuv.org, tcp and stream.
 */
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { BUFFER_BYTES = 65536, BACKLOG = 4096 };

struct pending_write {
    uv_write_t request;
    char data[];
};

static _Thread_local char shared_buffer[BUFFER_BYTES];

static void check(const char *what, int status)
{
    if (status < 0) {
        bench_die(what, -status);
    }
}

static void on_close(uv_handle_t *handle)
{
    free(handle);
}

static void on_allocate(uv_handle_t *handle, size_t suggested_size, uv_buf_t *ret_buffer)
{
    (void)handle;
    (void)suggested_size;
    *ret_buffer = uv_buf_init(shared_buffer, BUFFER_BYTES);
}

/* A failed write needs no answer of its own: the read side of the same socket reports it and
 * closes. */
static void on_written(uv_write_t *request, int status)
{
    (void)status;
    free(request);
}

static void queue_write(uv_stream_t *stream, const char *data, size_t size)
{
    struct pending_write *pending = malloc(sizeof *pending + size);
    if (pending == NULL) {
        bench_die("malloc", ENOMEM);
    }
    memcpy(pending->data, data, size);
    uv_buf_t rest = uv_buf_init(pending->data, (unsigned)size);
    if (uv_write(&pending->request, stream, &rest, 1, on_written) < 0) {
        free(pending);
        uv_close((uv_handle_t *)stream, on_close);
    }
}

static void on_read(uv_stream_t *stream, ssize_t received, const uv_buf_t *buffer)
{
    if (received == 0) {
        return;
    }
    if (received < 0) {
        uv_close((uv_handle_t *)stream, on_close);
        return;
    }
    size_t done = 0;
#ifdef TRY_WRITE_FIRST
    uv_buf_t echo = uv_buf_init(buffer->base, (unsigned)received);
    int written = uv_try_write(stream, &echo, 1);
    if (written == received) {
        return;
    }
    done = written < 0 ? 0 : (size_t)written; /* a failure is reported again by the queued write */
#endif
    queue_write(stream, buffer->base + done, (size_t)received - done);
}

static void on_connection(uv_stream_t *listener, int status)
{
    check("accept", status);
    uv_tcp_t *connection = malloc(sizeof *connection);
    if (connection == NULL) {
        bench_die("malloc", ENOMEM);
    }
    check("uv_tcp_init", uv_tcp_init(listener->loop, connection));
    check("uv_accept", uv_accept(listener, (uv_stream_t *)connection));
    check("uv_read_start", uv_read_start((uv_stream_t *)connection, on_allocate, on_read));
}

static void serve(int descriptor)
{
    uv_loop_t loop;
    uv_tcp_t listener;
    check("uv_loop_init", uv_loop_init(&loop));
    check("uv_tcp_init", uv_tcp_init(&loop, &listener));
    check("uv_tcp_open", uv_tcp_open(&listener, descriptor));
    check("uv_listen", uv_listen((uv_stream_t *)&listener, BACKLOG, on_connection));
    check("uv_run", uv_run(&loop, UV_RUN_DEFAULT));
}

int main(int argc, char **argv)
{
    return bench_server_main(argc, argv, serve);
}
