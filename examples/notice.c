/* SPDX-License-Identifier: MIT */
/*
 * notice: says to everybody who connects what stands in a file.  The file is read when the server
 * starts and whenever it has changed, however it was written: in place, in pieces, or as another
 * file that took its name.  This is how a configuration is reloaded, too.
 *
 *     notice_example FILE [ADDR:PORT]         nc 127.0.0.1 7013
 */
#include <gori/block.h>
#include <gori/error.h>
#include <gori/runtime.h>
#include <gori/timer.h>
#include <gori/watch.h>
#include <stdio.h>

#define NOTICE_BYTES_MAX 16384
#define QUIET            (50 * GORI_MILLISECONDS)

struct notice {
    const char *path;
    struct gori_block *text; /* the latest that could be read; sessions hold their own references */
    struct gori_watch watch;
    struct gori_timer quiet;
    struct gori_loop *loop;
};

/* Whoever cannot read the new text keeps the old one: a file may be away for a moment. */
static void read_text(struct notice *notice)
{
    char bytes[NOTICE_BYTES_MAX];
    FILE *file = fopen(notice->path, "rb");
    if (file == NULL) {
        return;
    }
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    struct gori_block *text;
    if (!ferror(file) && gori_block_create(NULL, bytes, size, &text) >= 0) {
        gori_block_unref(notice->text);
        notice->text = text;
    }
    fclose(file);
}

static void changed(struct gori_watch *watch, const struct gori_change *change)
{
    struct notice *notice = watch->user;
    if (change->kind == GORI_CHANGE_GONE) {
        fprintf(stderr, "notice: the directory of %s is gone, what was read stays\n", notice->path);
        return;
    }
    /* Every change sets the clock back: who writes in pieces is read when he has finished. */
    gori_timer_start(notice->loop, &notice->quiet, QUIET);
}

static void quiet(struct gori_timer *timer)
{
    read_text(timer->user);
}

/* Watched first, and read then: no change falls in between. */
static int start(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    struct notice *notice = gori_runtime_user(runtime);
    (void)worker;
    notice->loop = loop;
    notice->watch.on_change = changed;
    notice->watch.user = notice;
    notice->quiet.on_expire = quiet;
    notice->quiet.user = notice;
    int result = gori_watch_start_file(loop, notice->path, &notice->watch);
    if (result >= 0) {
        read_text(notice);
    }
    return result;
}

static void end(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    struct notice *notice = gori_runtime_user(runtime);
    (void)worker;
    (void)loop;
    gori_watch_stop(&notice->watch);
    gori_timer_stop(&notice->quiet);
}

static void opened(struct gori_session *session)
{
    const struct notice *notice = gori_session_user(session);
    if (notice->text != NULL && gori_session_send_block(session, notice->text) < 0) {
        gori_session_close(session);
        return;
    }
    gori_session_close_after_flush(session);
}

static size_t ignore(struct gori_session *session, struct gori_slice bytes)
{
    (void)session;
    return bytes.size;
}

static int serve(struct gori_runtime *runtime, struct notice *notice, const char *text)
{
    static const struct gori_session_events events = {.on_open = opened, .on_recv = ignore};
    struct gori_listener_config listener = {.events = &events, .user = notice};
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
    struct notice notice = {.path = argc > 1 ? argv[1] : NULL};
    const struct gori_runtime_config config = {
        .workers = 1, .handle_signals = true, .on_start = start, .on_end = end, .user = &notice};
    struct gori_runtime *runtime;
    if (notice.path == NULL) {
        fprintf(stderr, "usage: notice_example FILE [ADDR:PORT]\n");
        return 2;
    }
    int result = gori_runtime_create(&config, &runtime);
    if (result >= 0) {
        result = serve(runtime, &notice, argc > 2 ? argv[2] : "127.0.0.1:7013");
        gori_runtime_destroy(runtime);
    }
    gori_block_unref(notice.text);
    if (result < 0) {
        fprintf(stderr, "notice: %s\n", gori_error_text(result));
    }
    return result < 0;
}
