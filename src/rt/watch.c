/* SPDX-License-Identifier: MIT */
/*
 * Watches: callbacks made of the records of a watcher (os/watch.h, or the simulator's), which a
 * wait on its source (gori_op_wait) tells to look at.  Contract: <gori/watch.h>.
 *
 *  1. A place has the watches of one directory, of files in it too.  It lives as long as it has
 *     any; the watcher tells nothing of it after that (W4), and what was taken from the watcher and
 *     not yet delivered forgets it.
 *  2. A record is held back until the next one is there: it may be its like, and is one with it, or
 *     the other half of its rename.  At the end of a look what is held is delivered, but for half a
 *     rename, which waits a moment longer (HALF_WAIT): the system makes the halves one after the
 *     other, and we may have looked in between.
 *  3. A callback may stop and start any watch.  So a list is delivered to by moving it away and
 *     taking from it one by one: who was stopped is not in it any more, who is started comes into
 *     the list that is not delivered to.
 *  4. While the wait is not in flight the timer runs: work was left over (WORK_MAX), or the wait
 *     could not be submitted, or ended in an error.  So nothing is lost, at worst it comes late.
 * Thread: the loop's.
 */
#include <gori/error.h>
#include <gori/timer.h>
#include <gori/watch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "os/watch.h"
#include "rt/loop.h"

enum { WORK_MAX = 256 }; /* records in one turn */

#define HALF_WAIT  (2 * GORI_MILLISECONDS)
#define RETRY_WAIT (100 * GORI_MILLISECONDS)

struct gi_watch_place {
    struct gi_os_place native;
    struct gori_link watches; /* but those that are being delivered to (rule 3) */
    uint32_t watch_count;
    bool is_removed; /* from the watcher: GONE */
};

/** A record with memory of its own. */
struct held {
    bool is_there;
    enum gi_watch_kind kind;
    struct gi_watch_place *place; /* NULL: all */
    uint32_t pair;
    gori_time deadline; /* half a rename waits until then */
    char name[GI_WATCH_NAME_BYTES];
};

/** Of a loop: its watcher, and what is between that and the callbacks. */
struct gi_watch_store {
    struct gori_loop *loop;
    struct gi_watcher *watcher; /* NULL: the loop ends */
    struct gori_handle handle;  /* of the watcher's source, which it closes */
    struct gori_op wait;
    struct gori_timer timer;
    struct gori_link all; /* the watches */
    struct held held;     /* rule 2 */
    struct held next;     /* what comes after it, while it is delivered */
};

static const struct gi_watch_calls *calls_of(const struct gori_loop *loop)
{
    return loop->engine->impl->watches;
}

/* Places ----------------------------------------------------------------------------------- */

static void forget(struct held *held, const struct gi_watch_place *place)
{
    if (held->place == place) {
        held->is_there = false;
    }
}

static void remove_place(struct gi_watch_store *store, struct gi_watch_place *place)
{
    if (!place->is_removed) {
        place->is_removed = true;
        calls_of(store->loop)->remove(store->watcher, &place->native);
        forget(&store->held, place);
        forget(&store->next, place);
    }
}

/* The last watch of a place takes the place along. */
static void detach(struct gori_watch *watch)
{
    struct gori_loop *loop = watch->loop;
    struct gi_watch_place *place = watch->place;
    gi_list_remove(&watch->link);
    gi_list_remove(&watch->all);
    watch->place = NULL;
    if (watch->name != NULL) {
        gi_free(loop->allocator, watch->name, strlen(watch->name) + 1);
        watch->name = NULL;
    }
    place->watch_count--;
    if (place->watch_count == 0) {
        remove_place(loop->watches, place);
        gi_free(loop->allocator, place, sizeof(*place));
    }
}

/* Finds or makes the place of a directory. */
static int attach_place(struct gi_watch_store *store, const char *directory, const char *name,
                        struct gi_watch_place **ret_place)
{
    const struct gori_allocator *allocator = store->loop->allocator;
    struct gi_watch_place *place = gi_alloc_zero(allocator, sizeof(*place));
    if (place == NULL) {
        return GORI_ENOMEM;
    }
    struct gi_os_place *native;
    int error =
        calls_of(store->loop)->add(store->watcher, directory, name, &place->native, &native);
    if (error < 0 || native != &place->native) {
        gi_free(allocator, place, sizeof(*place));
    }
    if (error < 0) {
        return error;
    }
    *ret_place = gori_container_of(native, struct gi_watch_place, native);
    if (*ret_place == place) {
        gi_list_init(&place->watches);
    }
    return 0;
}

/* Delivering ------------------------------------------------------------------------------- */

/* What a change of a directory is to who watches a file in it; false when it is nothing. */
static bool narrow(const char *name, struct gori_change *change)
{
    if (change->kind == GORI_CHANGE_LOST || change->kind == GORI_CHANGE_GONE) {
        return true;
    }
    bool is_name = strcmp(change->name, name) == 0;
    if (change->kind == GORI_CHANGE_RENAMED) {
        bool is_from = strcmp(change->from, name) == 0;
        change->kind = is_name ? GORI_CHANGE_CREATED : GORI_CHANGE_DELETED;
        change->name = is_name ? change->name : change->from;
        change->from = NULL;
        return is_name || is_from;
    }
    return is_name;
}

static void tell(struct gori_watch *watch, struct gori_change change)
{
    if (watch->name == NULL || narrow(watch->name, &change)) {
        if (change.kind == GORI_CHANGE_GONE) {
            detach(watch);
        }
        watch->on_change(watch, &change);
    }
}

static void tell_place(struct gi_watch_place *place, const struct gori_change *change)
{
    struct gori_link waiting;
    gi_list_init(&waiting);
    gi_list_move_all(&place->watches, &waiting);
    struct gori_link *link;
    while ((link = gi_list_pop_front(&waiting)) != NULL) {
        struct gori_watch *watch = gori_container_of(link, struct gori_watch, link);
        gi_list_push_back(&watch->place->watches, link);
        tell(watch, *change);
    }
}

static void tell_all(struct gi_watch_store *store, const struct gori_change *change)
{
    struct gori_link waiting;
    gi_list_init(&waiting);
    gi_list_move_all(&store->all, &waiting);
    struct gori_link *link;
    while ((link = gi_list_pop_front(&waiting)) != NULL) {
        gi_list_push_back(&store->all, link);
        tell(gori_container_of(link, struct gori_watch, all), *change);
    }
}

static enum gori_change_kind kind_of(enum gi_watch_kind kind)
{
    static const enum gori_change_kind kinds[] = {
        [GI_WATCH_CREATED] = GORI_CHANGE_CREATED,    [GI_WATCH_DELETED] = GORI_CHANGE_DELETED,
        [GI_WATCH_MOVED_FROM] = GORI_CHANGE_DELETED, [GI_WATCH_MOVED_TO] = GORI_CHANGE_CREATED,
        [GI_WATCH_MODIFIED] = GORI_CHANGE_MODIFIED,  [GI_WATCH_ATTRIBUTES] = GORI_CHANGE_ATTRIBUTES,
        [GI_WATCH_GONE] = GORI_CHANGE_GONE,          [GI_WATCH_LOST] = GORI_CHANGE_LOST,
    };
    return kinds[kind];
}

static void deliver(struct gi_watch_store *store, const struct held *held,
                    const struct gori_change *change)
{
    if (held->place == NULL) {
        tell_all(store, change);
        return;
    }
    if (held->kind == GI_WATCH_GONE) {
        /* Before anybody is told: who starts again at once starts anew. */
        remove_place(store, held->place);
    }
    tell_place(held->place, change);
}

/* Delivers what is held; callbacks see a copy, since they may make us forget it. */
static void deliver_held(struct gi_watch_store *store)
{
    if (store->held.is_there) {
        struct held held = store->held;
        struct gori_change change = {.kind = kind_of(held.kind), .name = held.name};
        store->held.is_there = false;
        deliver(store, &held, &change);
    }
}

static void deliver_rename(struct gi_watch_store *store)
{
    struct held from = store->held;
    struct held to = store->next;
    struct gori_change change = {.kind = GORI_CHANGE_RENAMED, .name = to.name, .from = from.name};
    store->held.is_there = false;
    store->next.is_there = false;
    deliver(store, &to, &change);
}

/* Taking ----------------------------------------------------------------------------------- */

static void hold(const struct gori_loop *loop, struct held *held,
                 const struct gi_watch_record *record)
{
    size_t size = strlen(record->name) + 1;
    bool fits = size <= sizeof(held->name); /* no usual file system has longer ones */
    held->is_there = true;
    held->kind = fits ? record->kind : GI_WATCH_LOST;
    held->place = record->place == NULL
                      ? NULL
                      : gori_container_of(record->place, struct gi_watch_place, native);
    held->pair = record->pair;
    held->deadline = gi_add_saturated_u64(loop->now, HALF_WAIT);
    memcpy(held->name, fits ? record->name : "", fits ? size : 1);
}

static bool is_like(const struct held *held, const struct held *next)
{
    bool can_be = held->kind == GI_WATCH_MODIFIED || held->kind == GI_WATCH_ATTRIBUTES ||
                  held->kind == GI_WATCH_LOST;
    return can_be && held->kind == next->kind && held->place == next->place &&
           strcmp(held->name, next->name) == 0;
}

static bool is_rename(const struct held *held, const struct held *next)
{
    return held->kind == GI_WATCH_MOVED_FROM && next->kind == GI_WATCH_MOVED_TO &&
           held->pair == next->pair && held->place == next->place;
}

/* Rule 2. */
static void take(struct gi_watch_store *store, const struct gi_watch_record *record)
{
    struct held *held = &store->held;
    struct held *next = &store->next;
    hold(store->loop, next, record);
    if (held->is_there && is_like(held, next)) {
        next->is_there = false;
    } else if (held->is_there && is_rename(held, next)) {
        deliver_rename(store);
    } else {
        deliver_held(store);
        *held = *next;
        next->is_there = false;
    }
}

/* Takes what there is, up to WORK_MAX.  Result: 1 when there may be more, else 0 or an error. */
static int take_all(struct gi_watch_store *store)
{
    for (int i = 0; i < WORK_MAX; i++) {
        struct gi_watch_record record;
        int result = calls_of(store->loop)->next(store->watcher, &record);
        if (result < 0) {
            record = (struct gi_watch_record){.kind = GI_WATCH_LOST, .name = ""};
            take(store, &record);
        }
        if (result <= 0) {
            return result;
        }
        take(store, &record);
    }
    return 1;
}

/* Whether what is held waits for its other half. */
static bool is_waiting(const struct gori_loop *loop, const struct held *held)
{
    return held->is_there && held->kind == GI_WATCH_MOVED_FROM && loop->now < held->deadline;
}

static void look(struct gi_watch_store *store)
{
    int result = take_all(store);
    gori_time again = GORI_NEVER;
    if (is_waiting(store->loop, &store->held)) {
        again = store->held.deadline - store->loop->now;
    } else {
        deliver_held(store);
    }
    if (result > 0) {
        again = 0;
    } else if (result < 0 || (!gori_op_is_active(&store->wait) &&
                              gori_op_wait(&store->wait, &store->handle) < 0)) {
        again = gi_min_u64(again, RETRY_WAIT);
    }
    if (again != GORI_NEVER) {
        gori_timer_start(store->loop, &store->timer, again);
    }
}

static void on_ready(struct gori_op *wait, const struct gori_completion *completion)
{
    struct gi_watch_store *store = wait->user;
    if (store->watcher == NULL) {
        return;
    }
    if (completion->result < 0) {
        gori_timer_start(store->loop, &store->timer, RETRY_WAIT);
        return;
    }
    look(store);
}

static void on_time(struct gori_timer *timer)
{
    look(timer->user);
}

/* Starting and stopping -------------------------------------------------------------------- */

/* The watcher, its source on the loop, and the first wait. */
static int open_watcher(struct gi_watch_store *store)
{
    struct gori_loop *loop = store->loop;
    const struct gi_watch_calls *calls = calls_of(loop);
    int error = calls->create(loop->engine, loop->allocator, &store->watcher);
    if (error < 0) {
        return error;
    }
    gori_native source = calls->source(store->watcher);
    error = gi_handle_adopt_source(loop, source, &store->handle);
    if (error < 0) {
        calls->destroy(store->watcher);
        loop->engine->impl->events->close(loop->engine, source);
        return error;
    }
    if (gori_op_wait(&store->wait, &store->handle) < 0) {
        gori_timer_start(loop, &store->timer, RETRY_WAIT); /* rule 4 */
    }
    return 0;
}

/* The loop's store, made at the first call. */
static int get_store(struct gori_loop *loop, struct gi_watch_store **ret_store)
{
    if (loop->watches == NULL) {
        struct gi_watch_store *store = gi_alloc_zero(loop->allocator, sizeof(*store));
        if (store == NULL) {
            return GORI_ENOMEM;
        }
        store->loop = loop;
        store->wait.on_complete = on_ready;
        store->wait.user = store;
        store->timer.on_expire = on_time;
        store->timer.user = store;
        gi_list_init(&store->all);
        int error = open_watcher(store);
        if (error < 0) {
            gi_free(loop->allocator, store, sizeof(*store));
            return error;
        }
        loop->watches = store;
    }
    *ret_store = loop->watches;
    return 0;
}

static int copy_text(const struct gori_allocator *allocator, const char *text, size_t size,
                     char **ret_copy)
{
    char *copy = gi_alloc(allocator, size + 1);
    if (copy == NULL) {
        return GORI_ENOMEM;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    *ret_copy = copy;
    return 0;
}

static int start(struct gori_loop *loop, const char *directory, const char *name,
                 struct gori_watch *watch)
{
    struct gi_watch_store *store;
    struct gi_watch_place *place;
    int error = get_store(loop, &store);
    if (error == 0) {
        error = attach_place(store, directory, name, &place);
    }
    if (error < 0) {
        return error;
    }
    watch->loop = loop;
    watch->place = place;
    place->watch_count++;
    gi_list_push_back(&place->watches, &watch->link);
    gi_list_push_back(&store->all, &watch->all);
    return 0;
}

static int check(struct gori_loop *loop, const char *path, const struct gori_watch *watch)
{
    if (!gi_loop_on_thread(loop)) {
        return GORI_EWRONGTHREAD;
    }
    if (watch->place != NULL) {
        return GORI_EBUSY;
    }
    return path[0] == '\0' || watch->on_change == NULL ? GORI_EINVAL : 0;
}

int gori_watch_start_directory(struct gori_loop *loop, const char *path, struct gori_watch *watch)
{
    int error = check(loop, path, watch);
    return error < 0 ? error : start(loop, path, NULL, watch);
}

int gori_watch_start_file(struct gori_loop *loop, const char *path, struct gori_watch *watch)
{
    int error = check(loop, path, watch);
    if (error < 0) {
        return error;
    }
    size_t directory_size = gi_os_directory_size(path);
    const char *name = path + directory_size;
    size_t name_size = strlen(name);
    if (name_size == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return GORI_EINVAL;
    }
    if (name_size >= GI_WATCH_NAME_BYTES) {
        return GORI_ENAMETOOLONG;
    }
    if (calls_of(loop)->is_directory(loop->engine, path)) {
        return GORI_EISDIR;
    }
    char *directory;
    char *copy;
    error = directory_size == 0 ? copy_text(loop->allocator, ".", 1, &directory)
                                : copy_text(loop->allocator, path, directory_size, &directory);
    if (error < 0) {
        return error;
    }
    error = copy_text(loop->allocator, name, name_size, &copy);
    if (error == 0) {
        error = start(loop, directory, copy, watch);
        if (error == 0) {
            watch->name = copy;
        } else {
            gi_free(loop->allocator, copy, name_size + 1);
        }
    }
    gi_free(loop->allocator, directory, strlen(directory) + 1);
    return error;
}

void gori_watch_stop(struct gori_watch *watch)
{
    if (watch->place != NULL) {
        GI_ASSERT(gi_loop_on_thread(watch->loop));
        detach(watch);
    }
}

bool gori_watch_is_active(const struct gori_watch *watch)
{
    return watch->place != NULL;
}

/* The end of the loop ---------------------------------------------------------------------- */

void gi_watch_end_all(struct gori_loop *loop)
{
    struct gi_watch_store *store = loop->watches;
    if (store == NULL || store->watcher == NULL) {
        return;
    }
    struct gori_link *link;
    while ((link = gi_list_first(&store->all)) != NULL) {
        detach(gori_container_of(link, struct gori_watch, all));
    }
    gori_timer_stop(&store->timer);
    calls_of(loop)->destroy(store->watcher);
    store->watcher = NULL;
}

void gi_watch_fini(struct gori_loop *loop)
{
    gi_free(loop->allocator, loop->watches, sizeof(*loop->watches));
}
