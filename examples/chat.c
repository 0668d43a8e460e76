/* SPDX-License-Identifier: MIT */
/*
 * chat: every line that somebody sends goes to everybody else.  A line is encoded once, as a block,
 * and all receivers refer to it; who reads too slowly is cut off by the limit of his queue, and
 * nobody waits for him.  One worker, so that the room needs no lock.
 *
 *     chat_example [ADDR:PORT]         and then, several times: nc 127.0.0.1 7010
 */
#include <gori/block.h>
#include <gori/error.h>
#include <gori/runtime.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES_MAX 4096

/* Comes with each session: a link of the ring of everybody in the room. */
struct member {
    struct member *next;
    struct member *previous;
    struct gori_session *session;
    unsigned number;
};

struct room {
    struct member ring; /* holds nobody itself */
    unsigned joined;
};

static struct room *room_of(struct gori_session *session)
{
    return gori_session_user(session);
}

/* Sends a block to all but one.  A session that cannot take it closes itself, by its own limit. */
static void say_to_all(struct room *room, struct gori_block *block, const struct member *but)
{
    for (struct member *member = room->ring.next; member != &room->ring; member = member->next) {
        if (member != but) {
            int ignored = gori_session_send_block(member->session, block);
            (void)ignored;
        }
    }
}

static void say(struct room *room, struct member *from, const void *text, size_t size)
{
    char name[32];
    int name_size = snprintf(name, sizeof(name), "%u: ", from->number);
    struct gori_block *block;
    uint8_t *data;
    if (gori_block_build(NULL, (size_t)name_size + size, &block, &data) < 0) {
        return; /* no memory for this line; the next one may fit */
    }
    memcpy(data, name, (size_t)name_size);
    memcpy(data + name_size, text, size);
    say_to_all(room, block, from);
    gori_block_unref(block);
}

static void join(struct gori_session *session)
{
    struct member *member = gori_session_context(session);
    struct room *room = room_of(session);
    member->session = session;
    member->number = ++room->joined;
    member->previous = room->ring.previous;
    member->next = &room->ring;
    member->previous->next = member;
    room->ring.previous = member;
    say(room, member, "joined\n", strlen("joined\n"));
}

static void leave(struct gori_session *session, enum gori_close_reason reason, int error)
{
    (void)error;
    struct member *member = gori_session_context(session);
    member->previous->next = member->next;
    member->next->previous = member->previous;
    char text[64];
    int size = snprintf(text, sizeof(text), "left (%s)\n", gori_close_reason_name(reason));
    say(room_of(session), member, text, (size_t)size);
}

/* Takes whole lines; a part of one is left, and comes again with what follows it. */
static size_t receive(struct gori_session *session, struct gori_slice bytes)
{
    size_t start = 0;
    const uint8_t *end;
    while ((end = memchr(bytes.data + start, '\n', bytes.size - start)) != NULL) {
        size_t size = (size_t)(end + 1 - (bytes.data + start));
        say(room_of(session), gori_session_context(session), bytes.data + start, size);
        start += size;
    }
    if (bytes.size - start > LINE_BYTES_MAX) {
        gori_session_close(session);
    }
    return start;
}

static int serve(struct gori_runtime *runtime, struct room *room, const char *text)
{
    static const struct gori_session_events events = {
        .on_open = join,
        .on_recv = receive,
        .on_close = leave,
    };
    struct gori_listener_config listener = {
        .events = &events,
        .user = room,
        .options = {.context_bytes = sizeof(struct member), .send_max = 1 << 20},
    };
    int result = gori_addr_parse(text, &listener.addr);
    if (result < 0) {
        return result;
    }
    struct gori_addr bound;
    result = gori_runtime_listen(runtime, &listener, &bound);
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
    struct room room = {0};
    room.ring.next = &room.ring;
    room.ring.previous = &room.ring;
    const struct gori_runtime_config config = {.workers = 1, .handle_signals = true};
    struct gori_runtime *runtime;
    int result = gori_runtime_create(&config, &runtime);
    if (result >= 0) {
        result = serve(runtime, &room, argc > 1 ? argv[1] : "127.0.0.1:7010");
        gori_runtime_destroy(runtime);
    }
    if (result < 0) {
        fprintf(stderr, "chat: %s\n", gori_error_text(result));
    }
    return result < 0;
}
