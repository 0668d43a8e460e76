/* SPDX-License-Identifier: MIT */
/*
 * upload: a folder that anybody may put a file into.  A client sends a name on a line of its own,
 * then bytes, then ends its direction; when it gets "ok" its bytes are on the disk.  The loop never
 * waits for the disk, a client is read no faster than the disk writes, and no name leads out of the
 * folder.
 *
 *     upload_example FOLDER [ADDR:PORT]     (echo notes.txt; cat notes.txt) | nc -N 127.0.0.1 7013
 */
#include <gori/error.h>
#include <gori/file_op.h>
#include <gori/runtime.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 64
#define ROOM_BYTES 65536

/* The context of a session: one op at a time.  While it is in flight the session is paused, and
   held, because the op and the bytes it writes are in here. */
struct upload {
    struct gori_file_op op;
    struct gori_session *session;
    struct gori_file *file;
    uint64_t size; /* written */
    bool is_closed;
    char name[NAME_BYTES];
    uint8_t room[ROOM_BYTES];
};

static struct upload *upload_of(struct gori_session *session)
{
    struct upload *upload = gori_session_context(session);
    upload->session = session;
    return upload;
}

static void say(struct upload *upload, const char *text)
{
    char line[128];
    int size = snprintf(line, sizeof(line), "%s\n", text);
    if (gori_session_send(upload->session, line, (size_t)size) < 0) {
        gori_session_close(upload->session);
    }
    gori_session_close_after_flush(upload->session);
}

static void file_closed(struct gori_file_op *op, int64_t result)
{
    struct upload *upload = op->user;
    (void)result; /* the client was told when the bytes were safe */
    gori_session_unref(upload->session);
}

/* The session is over and no op is in flight: the file goes, away from the loop. */
static void end(struct upload *upload)
{
    if (upload->file == NULL) {
        return;
    }
    gori_session_ref(upload->session);
    upload->op.on_complete = file_closed;
    if (gori_file_op_close(&upload->op, upload->file) < 0) {
        gori_file_unref(upload->file);
        gori_session_unref(upload->session);
    }
    upload->file = NULL;
}

static void begin_op(struct upload *upload, gori_file_op_fn *on_complete)
{
    upload->op.on_complete = on_complete;
    upload->op.user = upload;
    gori_session_pause(upload->session);
    gori_session_ref(upload->session);
}

static void end_op(struct upload *upload, int64_t result)
{
    if (upload->is_closed) {
        end(upload);
    } else if (result < 0) {
        say(upload, gori_error_text((int)result));
    }
    gori_session_resume(upload->session);
    gori_session_unref(upload->session);
}

/* What was asked for completes later, or was refused. */
static void check(struct upload *upload, int result)
{
    if (result < 0) {
        end_op(upload, result);
    }
}

/* Opened, or written. */
static void stepped(struct gori_file_op *op, int64_t result)
{
    struct upload *upload = op->user;
    upload->file = op->file; /* for a write it is the same again */
    upload->size += result > 0 ? (uint64_t)result : 0;
    end_op(upload, result);
}

static void synced(struct gori_file_op *op, int64_t result)
{
    struct upload *upload = op->user;
    if (result >= 0 && !upload->is_closed) {
        say(upload, "ok");
    }
    end_op(upload, result);
}

static size_t take_name(struct upload *upload, struct gori_slice bytes)
{
    const uint8_t *end_of_line = memchr(bytes.data, '\n', bytes.size);
    size_t size = end_of_line != NULL ? (size_t)(end_of_line - bytes.data) : bytes.size;
    if (size >= NAME_BYTES) {
        say(upload, "the name is too long");
        return bytes.size;
    }
    if (end_of_line == NULL) {
        return 0;
    }
    memcpy(upload->name, bytes.data, size);
    struct gori_file_open_options options = {.write = true, .create = true, .truncate = true};
    options.root = gori_session_user(upload->session);
    struct gori_loop *loop = gori_session_loop(upload->session);
    begin_op(upload, stepped);
    check(upload, gori_file_op_open(&upload->op, loop, upload->name, &options));
    return size + 1;
}

static size_t receive(struct gori_session *session, struct gori_slice bytes)
{
    struct upload *upload = upload_of(session);
    if (upload->file == NULL) {
        return take_name(upload, bytes);
    }
    size_t size = bytes.size < ROOM_BYTES ? bytes.size : ROOM_BYTES;
    memcpy(upload->room, bytes.data, size);
    begin_op(upload, stepped);
    check(upload, gori_file_op_write(&upload->op, upload->file, upload->size, upload->room, size));
    return size;
}

static void all_received(struct gori_session *session)
{
    struct upload *upload = upload_of(session);
    begin_op(upload, synced);
    check(upload, upload->file == NULL ? GORI_EEOF : gori_file_op_sync(&upload->op, upload->file));
}

static void close_session(struct gori_session *session, enum gori_close_reason reason, int error)
{
    struct upload *upload = upload_of(session);
    (void)reason, (void)error;
    upload->is_closed = true;
    if (!gori_file_op_is_active(&upload->op)) {
        end(upload);
    }
}

static int serve(struct gori_runtime *runtime, struct gori_root *root, const char *text)
{
    static const struct gori_session_events events = {
        .on_recv = receive, .on_eof = all_received, .on_close = close_session};
    struct gori_listener_config listener = {.events = &events, .user = root};
    struct gori_addr bound;
    char name[GORI_ADDR_TEXT_BYTES];
    listener.options.context_bytes = sizeof(struct upload);
    int result = gori_addr_parse(text, &listener.addr);
    result = result < 0 ? result : gori_runtime_listen(runtime, &listener, &bound);
    if (result < 0) {
        return result;
    }
    gori_addr_format(&bound, name, sizeof(name));
    printf("listening on %s\n", name);
    fflush(stdout);
    return gori_runtime_run(runtime);
}

int main(int argc, char **argv)
{
    const struct gori_runtime_config config = {
        .loop = {.buffer_bytes = ROOM_BYTES}, .workers = 1, .handle_signals = true};
    struct gori_runtime *runtime = NULL;
    struct gori_root *root = NULL;
    int result = gori_root_open(NULL, argc > 1 ? argv[1] : ".", &root);
    result = result < 0 ? result : gori_runtime_create(&config, &runtime);
    result = result < 0 ? result : serve(runtime, root, argc > 2 ? argv[2] : "127.0.0.1:7013");
    gori_runtime_destroy(runtime);
    gori_root_close(root);
    if (result < 0) {
        fprintf(stderr, "upload: %s\n", gori_error_text(result));
    }
    return result < 0;
}
