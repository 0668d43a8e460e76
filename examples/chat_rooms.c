/* SPDX-License-Identifier: MIT */
/*
 * chat_rooms: a chat over all cores.  Connections are spread over the loops; a room is a job queue,
 * so its members need no lock, whichever loops they are on.  The loops run the jobs themselves.
 *
 *     chat_rooms_example [ADDR:PORT]     nc 127.0.0.1 7011: first the number of a room, 0 to 15,
 *                                        then lines, which go to the others in it
 */
#include <gori/block.h>
#include <gori/error.h>
#include <gori/job_queue.h>
#include <gori/job_scheduler.h>
#include <gori/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOMS          16
#define MEMBERS_MAX    1000
#define LINE_BYTES_MAX 1024

struct house;

/* Touched by jobs of its queue only. */
struct room {
    struct house *house;
    struct gori_job_queue *queue;
    uint64_t members[MEMBERS_MAX]; /* session ids: they may be of any loop, and gone */
    size_t count;
};

struct house {
    struct gori_runtime *runtime;
    struct gori_job_scheduler *scheduler;
    struct room rooms[ROOMS];
};

/* Comes with each session. */
struct visitor {
    struct room *room; /* NULL until it has said which */
};

/* What a session tells its room: that it is there (no text), or a line. */
struct word {
    struct gori_job job;
    struct room *room;
    uint64_t from;
    size_t size;
    char text[];
};

static void drop(struct gori_job *job)
{
    free(gori_container_of(job, struct word, job));
}

/* Sends to all but one.  Who is gone is forgotten; who cannot keep up misses the line. */
static void say_to_others(struct room *room, uint64_t from, struct gori_block *block)
{
    size_t kept = 0;
    for (size_t i = 0; i < room->count; i++) {
        uint64_t id = room->members[i];
        int result = id == from ? 0 : gori_runtime_send(room->house->runtime, id, block);
        if (result != GORI_ESTALE && result != GORI_ECLOSED) {
            room->members[kept++] = id;
        }
    }
    room->count = kept;
}

/* The job: one at a time for each room. */
static void hear(struct gori_job *job)
{
    struct word *word = gori_container_of(job, struct word, job);
    struct room *room = word->room;
    struct gori_block *block;
    if (word->size == 0) {
        if (room->count < MEMBERS_MAX) {
            room->members[room->count++] = word->from;
        }
    } else if (gori_block_create(NULL, word->text, word->size, &block) == 0) {
        say_to_others(room, word->from, block);
        gori_block_unref(block);
    }
    free(word);
}

/* Result: whether the room will hear it. */
static int tell(struct room *room, uint64_t from, const void *text, size_t size)
{
    struct word *word = malloc(sizeof(*word) + size);
    if (word == NULL) {
        return 0;
    }
    *word = (struct word){.job = {.run = hear, .on_drop = drop}, .room = room, .from = from};
    word->size = size;
    if (size > 0) {
        memcpy(word->text, text, size);
    }
    if (gori_job_queue_push(room->queue, &word->job) < 0) {
        free(word);
        return 0;
    }
    return 1;
}

static void take_line(struct gori_session *session, const char *line, size_t size)
{
    struct visitor *visitor = gori_session_context(session);
    struct house *house = gori_session_user(session);
    if (visitor->room == NULL) {
        size_t number = 0;
        for (size_t i = 0; i < size && line[i] >= '0' && line[i] <= '9'; i++) {
            number = 10 * number + (size_t)(line[i] - '0');
        }
        visitor->room = &house->rooms[number % ROOMS];
        size = 0;
    }
    if (!tell(visitor->room, gori_session_id(session), line, size)) {
        gori_session_close(session); /* the room is overrun: better than to lose lines silently */
    }
}

static size_t receive(struct gori_session *session, struct gori_slice bytes)
{
    size_t start = 0;
    const uint8_t *end;
    while ((end = memchr(bytes.data + start, '\n', bytes.size - start)) != NULL) {
        size_t size = (size_t)(end + 1 - (bytes.data + start));
        take_line(session, (const char *)bytes.data + start, size);
        start += size;
    }
    if (bytes.size - start > LINE_BYTES_MAX) {
        gori_session_close(session);
    }
    return start;
}

/* Each loop of the runtime is a worker of the scheduler too. */
static int join_scheduler(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    struct house *house = gori_runtime_user(runtime);
    (void)worker;
    return gori_job_scheduler_attach(house->scheduler, loop);
}

static int open_house(struct house *house)
{
    const struct gori_job_scheduler_config scheduler = {.no_threads = true};
    const struct gori_runtime_config runtime = {
        .handle_signals = true, .on_start = join_scheduler, .user = house};
    int result = gori_job_scheduler_create(&scheduler, &house->scheduler);
    for (size_t i = 0; result >= 0 && i < ROOMS; i++) {
        house->rooms[i].house = house;
        result = gori_job_queue_create(house->scheduler, NULL, &house->rooms[i].queue);
    }
    return result < 0 ? result : gori_runtime_create(&runtime, &house->runtime);
}

static int serve(struct house *house, const char *text)
{
    static const struct gori_session_events events = {.on_recv = receive};
    struct gori_listener_config listener = {
        .events = &events,
        .user = house,
        .accept_policy = GORI_ACCEPT_LEAST,
        .options = {.context_bytes = sizeof(struct visitor)},
    };
    struct gori_addr bound;
    int result = gori_addr_parse(text, &listener.addr);
    if (result >= 0) {
        result = gori_runtime_listen(house->runtime, &listener, &bound);
    }
    if (result < 0) {
        return result;
    }
    char name[GORI_ADDR_TEXT_BYTES];
    gori_addr_format(&bound, name, sizeof(name));
    printf("listening on %s\n", name);
    fflush(stdout);
    return gori_runtime_run(house->runtime);
}

int main(int argc, char **argv)
{
    static struct house house;
    int result = open_house(&house);
    if (result >= 0) {
        result = serve(&house, argc > 1 ? argv[1] : "127.0.0.1:7011");
    }
    for (size_t i = 0; i < ROOMS; i++) {
        gori_job_queue_destroy(house.rooms[i].queue);
    }
    gori_job_scheduler_destroy(house.scheduler); /* drops what no loop has run */
    gori_runtime_destroy(house.runtime);
    if (result < 0) {
        fprintf(stderr, "chat_rooms: %s\n", gori_error_text(result));
    }
    return result < 0;
}
