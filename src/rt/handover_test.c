/* SPDX-License-Identifier: MIT */
/*
 * Goal: while listeners move between loops, a runtime runs again and again, or another one takes
 * its place, no client is refused, reset or left without its answer.
 * Method: clients that connect, ask and hang up all the time; what they have achieved drives the
 * moves.  GORI_HANDOVER says how many connections each test makes (default 3,000).
 */
#include <fcntl.h>
#include <gori/error.h>
#include <gori/runtime.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/atomic.h"
#include "base/list.h"
#include "engine/sim/sim.h"
#include "lib/test.h"
#include "rt/loop.h"

enum { CLIENTS = 2, LOOPS = 3, WORKERS = 3, STEP = 40 };

/* Clients ----------------------------------------------------------------------------------- */

typedef void progress_fn(void *user);

struct crowd {
    pthread_t threads[CLIENTS];
    struct gori_addr addr;
    uint32_t wanted;
    struct gi_atomic_u32 begun;
    struct gi_atomic_u32 ended; /* threads */
    progress_fn *on_progress;   /* after each STEP connections of a client, or NULL */
    void *user;
};

static void connect_ask_and_hang_up(const struct gori_addr *addr)
{
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GT_CHECK(client >= 0);
    GT_EQUAL(connect(client, (const struct sockaddr *)(const void *)addr->as.native, addr->size),
             0);
    char byte = 'q';
    GT_EQUAL(send(client, &byte, 1, MSG_NOSIGNAL), 1);
    byte = 0;
    GT_EQUAL(recv(client, &byte, 1, 0), 1);
    GT_EQUAL(byte, 'q');
    /* By a reset: so many ports would not be free again in time. */
    const struct linger at_once = {.l_onoff = 1};
    GT_EQUAL(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(client);
}

static void *be_client(void *argument)
{
    struct crowd *crowd = argument;
    uint32_t number;
    while ((number = gi_atomic_u32_add(&crowd->begun, 1, GI_RELAXED)) < crowd->wanted) {
        connect_ask_and_hang_up(&crowd->addr);
        if (crowd->on_progress != NULL && number % STEP == 0) {
            crowd->on_progress(crowd->user);
        }
    }
    (void)gi_atomic_u32_add(&crowd->ended, 1, GI_RELEASE);
    return NULL;
}

static void crowd_start(struct crowd *crowd)
{
    const char *wanted = getenv("GORI_HANDOVER");
    crowd->wanted = wanted != NULL ? (uint32_t)strtoul(wanted, NULL, 10) : 3000;
    for (int i = 0; i < CLIENTS; i++) {
        GT_EQUAL(pthread_create(&crowd->threads[i], NULL, be_client, crowd), 0);
    }
}

static bool crowd_has_ended(const struct crowd *crowd)
{
    return gi_atomic_u32_load(&crowd->ended, GI_ACQUIRE) == CLIENTS;
}

static void crowd_join(struct crowd *crowd)
{
    for (int i = 0; i < CLIENTS; i++) {
        GT_EQUAL(pthread_join(crowd->threads[i], NULL), 0);
    }
}

static size_t echoed(struct gori_session *session, struct gori_slice bytes)
{
    GT_CHECK(gori_session_send(session, bytes.data, bytes.size) >= 0);
    return bytes.size;
}

static bool has_engine(const char *engine)
{
    const struct gori_loop_config config = {.engine = engine};
    struct gori_loop *loop;
    if (gori_loop_create(&config, &loop) < 0) {
        return false;
    }
    gori_loop_destroy(loop);
    return true;
}

/* Listeners that walk from loop to loop ----------------------------------------------------- */

/* What a walker has on one loop; of that thread. */
struct stay {
    struct walker *walker;
    uint32_t opened;
    struct gori_listener *listener; /* NULL when the walker is elsewhere */
};

struct walker {
    struct gori_task task;
    struct walk *walk;
    struct stay stays[LOOPS];
    uint32_t at;
    uint32_t steps;
    gori_native native; /* on the way, else NONE */
};

struct walk {
    const char *engine;
    struct gori_addr addr;
    pthread_t threads[LOOPS];
    struct gi_atomic_pointer loops[LOOPS];
    struct gi_atomic_u32 started;
    struct gi_atomic_u32 ended; /* loops, and who stops them */
    struct walker walkers[LOOPS];
};

static struct gori_loop *walk_loop(struct walk *walk, uint32_t index)
{
    return gi_atomic_pointer_load(&walk->loops[index], GI_ACQUIRE);
}

static void count_and_go_on(struct gori_session *session)
{
    struct stay *stay = gori_session_user(session);
    struct walker *walker = stay->walker;
    if (++stay->opened % STEP == 0 && stay->listener != NULL) {
        GT_EQUAL(gori_listener_release(stay->listener, &walker->native), 0);
        GT_EQUAL(gori_listener_release(stay->listener, &walker->native), GORI_ECLOSED);
        stay->listener = NULL;
        walker->at = (walker->at + 1) % LOOPS;
        GT_EQUAL(gori_loop_post(walk_loop(walker->walk, walker->at), &walker->task), 0);
    }
}

static const struct gori_session_events walk_events = {.on_open = count_and_go_on,
                                                       .on_recv = echoed};

static void arrive(struct gori_task *task)
{
    struct walker *walker = task->user;
    struct stay *stay = &walker->stays[walker->at];
    const struct gori_listener_config config = {.events = &walk_events, .user = stay};
    gori_native native = walker->native;
    walker->native = GORI_NATIVE_NONE;
    walker->steps++;
    struct gori_loop *loop = walk_loop(walker->walk, walker->at);
    GT_EQUAL(gori_listener_adopt(loop, native, &config, &stay->listener), 0);
}

static void *run_walk_loop(void *argument)
{
    struct walker *walker = argument;
    struct walk *walk = walker->walk;
    const struct gori_loop_config config = {.engine = walk->engine};
    uint32_t index = walker->at;
    struct stay *stay = &walker->stays[index];
    const struct gori_listener_config listener = {
        .addr = walk->addr, .events = &walk_events, .user = stay, .reuse_port = true};
    struct gori_loop *loop;
    GT_EQUAL(gori_loop_create(&config, &loop), 0);
    gi_atomic_pointer_store(&walk->loops[index], loop, GI_RELEASE);
    GT_EQUAL(gori_listener_open(loop, &listener, &stay->listener), 0);
    if (index == 0) {
        gori_listener_addr(stay->listener, &walk->addr);
    }
    (void)gi_atomic_u32_add(&walk->started, 1, GI_RELEASE);
    GT_EQUAL(gori_loop_run(loop), 0);
    (void)gi_atomic_u32_add(&walk->ended, 1, GI_ACQ_REL);
    while (gi_atomic_u32_load(&walk->ended, GI_ACQUIRE) < LOOPS + 1) {
        (void)sched_yield(); /* others may still post to this loop, or stop it */
    }
    gori_loop_destroy(loop);
    return NULL;
}

static void walk_on(const char *engine)
{
    static struct walk walk;
    static struct crowd crowd;
    if (!has_engine(engine)) {
        GT_SKIP("the engine is not to be had here");
    }
    walk.engine = engine;
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &walk.addr), 0);
    for (uint32_t i = 0; i < LOOPS; i++) {
        struct walker *walker = &walk.walkers[i];
        *walker = (struct walker){.walk = &walk, .at = i, .native = GORI_NATIVE_NONE};
        walker->task = (struct gori_task){.run = arrive, .user = walker};
        for (uint32_t k = 0; k < LOOPS; k++) {
            walker->stays[k].walker = walker;
        }
        GT_EQUAL(pthread_create(&walk.threads[i], NULL, run_walk_loop, walker), 0);
        while (gi_atomic_u32_load(&walk.started, GI_ACQUIRE) < i + 1) {
            (void)sched_yield();
        }
    }
    crowd.addr = walk.addr;
    crowd_start(&crowd);
    crowd_join(&crowd);
    for (uint32_t i = 0; i < LOOPS; i++) {
        gori_loop_stop(walk_loop(&walk, i));
    }
    (void)gi_atomic_u32_add(&walk.ended, 1, GI_ACQ_REL);
    uint32_t steps = 0;
    for (uint32_t i = 0; i < LOOPS; i++) {
        GT_EQUAL(pthread_join(walk.threads[i], NULL), 0);
        steps += walk.walkers[i].steps;
        if (walk.walkers[i].native != GORI_NATIVE_NONE) {
            close((int)walk.walkers[i].native); /* it was on the way */
        }
    }
    GT_CHECK(steps > LOOPS);
}

GT_TEST(listeners_that_share_a_port_move_and_nobody_is_refused_epoll)
{
    walk_on("epoll");
}

GT_TEST(listeners_that_share_a_port_move_and_nobody_is_refused_io_uring)
{
    walk_on("io_uring");
}

/* Runtimes ---------------------------------------------------------------------------------- */

struct place {
    struct gori_runtime *runtime;
    pthread_t thread;
    struct gi_atomic_u32 started;   /* workers, over all runs */
    struct gi_atomic_bool can_stop; /* all of this run have started, and nobody has stopped them */
    struct gi_atomic_bool over;
    uint32_t runs;
};

static int worker_started(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    (void)worker;
    (void)loop;
    struct place *place = gori_runtime_user(runtime);
    if ((gi_atomic_u32_add(&place->started, 1, GI_ACQ_REL) + 1) % WORKERS == 0) {
        gi_atomic_bool_store(&place->can_stop, true, GI_RELEASE);
    }
    return 0;
}

/* The clients end their sessions themselves. */
static void let_them_end(struct gori_runtime *runtime, uint32_t worker, struct gori_loop *loop)
{
    (void)runtime;
    (void)worker;
    (void)loop;
}

static const struct gori_session_events place_events = {.on_recv = echoed};

static void place_create(struct place *place, const char *engine)
{
    const struct gori_runtime_config config = {
        .loop.engine = engine,
        .workers = WORKERS,
        .drain_timeout = GORI_NEVER,
        .on_start = worker_started,
        .on_stop = let_them_end,
        .user = place,
    };
    *place = (struct place){0};
    GT_EQUAL(gori_runtime_create(&config, &place->runtime), 0);
}

static void place_listen(struct place *place, enum gori_accept_policy policy,
                         struct gori_addr *ret_addr)
{
    struct gori_listener_config config = {
        .events = &place_events, .keep_socket = true, .accept_policy = policy};
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &config.addr), 0);
    GT_EQUAL(gori_runtime_listen(place->runtime, &config, ret_addr), 0);
}

static void stop_once(void *user)
{
    struct place *place = user;
    if (gi_atomic_bool_exchange(&place->can_stop, false, GI_ACQ_REL)) {
        gori_runtime_stop(place->runtime);
    }
}

static void *run_until_over(void *argument)
{
    struct place *place = argument;
    while (!gi_atomic_bool_load(&place->over, GI_ACQUIRE)) {
        GT_EQUAL(gori_runtime_run(place->runtime), 0);
        place->runs++;
    }
    return NULL;
}

static void run_again_and_again(const char *engine, enum gori_accept_policy policy)
{
    static struct place place;
    static struct crowd crowd;
    if (!has_engine(engine)) {
        GT_SKIP("the engine is not to be had here");
    }
    place_create(&place, engine);
    place_listen(&place, policy, &crowd.addr);
    crowd.on_progress = stop_once;
    crowd.user = &place;
    crowd_start(&crowd); /* before anybody accepts */
    GT_EQUAL(pthread_create(&place.thread, NULL, run_until_over, &place), 0);
    crowd_join(&crowd);
    gi_atomic_bool_store(&place.over, true, GI_RELEASE);
    while (!gi_atomic_bool_exchange(&place.can_stop, false, GI_ACQ_REL)) {
        (void)sched_yield();
    }
    gori_runtime_stop(place.runtime);
    GT_EQUAL(pthread_join(place.thread, NULL), 0);
    uint64_t accepted = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct gori_worker_stats stats;
        gori_runtime_read_stats(place.runtime, i, &stats);
        accepted += stats.accepted;
    }
    GT_EQUAL(accepted, crowd.wanted);
    GT_CHECK(place.runs > 3);
    gori_runtime_destroy(place.runtime);
    /* Now nobody listens any more. */
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GT_CHECK(connect(client, (const struct sockaddr *)(const void *)crowd.addr.as.native,
                     crowd.addr.size) < 0);
    close(client);
}

GT_TEST(a_runtime_runs_again_and_nobody_is_refused_epoll)
{
    run_again_and_again("epoll", GORI_ACCEPT_KERNEL);
}

GT_TEST(a_runtime_runs_again_and_nobody_is_refused_io_uring)
{
    run_again_and_again("io_uring", GORI_ACCEPT_KERNEL);
}

GT_TEST(a_runtime_with_one_acceptor_runs_again_and_nobody_is_refused)
{
    run_again_and_again("auto", GORI_ACCEPT_LEAST);
}

/* The sockets of one become those of the other, by duplicates, as over a UNIX socket. */
static void place_take_over(struct place *place, const struct place *from)
{
    const struct gori_listener_config config = {.events = &place_events, .keep_socket = true};
    gori_native native;
    uint32_t count = 0;
    while ((native = gori_runtime_socket(from->runtime, count)) != GORI_NATIVE_NONE) {
        int copy = fcntl((int)native, F_DUPFD_CLOEXEC, 0);
        GT_CHECK(copy >= 0);
        GT_EQUAL(gori_runtime_adopt(place->runtime, copy, &config, NULL), 0);
        count++;
    }
    GT_EQUAL(count, WORKERS);
}

static void *run_once(void *argument)
{
    struct place *place = argument;
    GT_EQUAL(gori_runtime_run(place->runtime), 0);
    return NULL;
}

static void place_start(struct place *place)
{
    GT_EQUAL(pthread_create(&place->thread, NULL, run_once, place), 0);
    while (!gi_atomic_bool_load(&place->can_stop, GI_ACQUIRE)) {
        (void)sched_yield();
    }
}

static void place_end(struct place *place)
{
    gori_runtime_stop(place->runtime);
    GT_EQUAL(pthread_join(place->thread, NULL), 0);
    gori_runtime_destroy(place->runtime);
}

/* Each engine inherits sockets of the other, in the mode that they are in. */
GT_TEST(a_runtime_takes_the_place_of_another_and_nobody_is_refused)
{
    static const char *const engines[] = {"epoll", "auto"};
    static struct place places[2];
    static struct crowd crowd;
    place_create(&places[0], engines[0]);
    place_listen(&places[0], GORI_ACCEPT_KERNEL, &crowd.addr);
    place_start(&places[0]);
    crowd_start(&crowd);
    uint32_t now = 0;
    uint32_t changes = 0;
    while (!crowd_has_ended(&crowd)) {
        uint32_t next = 1 - now;
        place_create(&places[next], engines[next]);
        place_take_over(&places[next], &places[now]);
        place_start(&places[next]);
        place_end(&places[now]);
        now = next;
        changes++;
    }
    crowd_join(&crowd);
    place_end(&places[now]);
    GT_CHECK(changes > 0);
}

/* What cannot be ---------------------------------------------------------------------------- */

GT_TEST(a_port_that_a_run_has_closed_is_not_run_again)
{
    static struct place place;
    struct gori_listener_config config = {.events = &place_events};
    place_create(&place, "epoll");
    GT_EQUAL(gori_addr_parse("127.0.0.1:0", &config.addr), 0);
    GT_EQUAL(gori_runtime_listen(place.runtime, &config, NULL), 0);
    GT_CHECK(gori_runtime_socket(place.runtime, 0) == GORI_NATIVE_NONE);
    place_start(&place);
    gori_runtime_stop(place.runtime);
    GT_EQUAL(pthread_join(place.thread, NULL), 0);
    GT_EQUAL(gori_runtime_run(place.runtime), GORI_ECLOSED);
    gori_runtime_destroy(place.runtime);
}

GT_TEST(what_does_not_listen_is_not_adopted)
{
    static struct place place;
    const struct gori_listener_config config = {.events = &place_events};
    const struct gori_loop_config loop_config = {.engine = "epoll"};
    struct gori_loop *loop;
    struct gori_listener *listener;
    int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    GT_EQUAL(gori_loop_create(&loop_config, &loop), 0);
    place_create(&place, "epoll");
    const gori_native natives[] = {stream, file, GORI_NATIVE_NONE};
    for (int i = 0; i < 3; i++) {
        GT_EQUAL(gori_listener_adopt(loop, natives[i], &config, &listener), GORI_EINVAL);
        GT_EQUAL(gori_runtime_adopt(place.runtime, natives[i], &config, NULL), GORI_EINVAL);
    }
    close(file); /* each is still ours */
    close(stream);
    gori_runtime_destroy(place.runtime);
    gori_loop_destroy(loop);
}

/* The path goes with the socket: whoever closes that removes it. */
GT_TEST(a_unix_path_outlives_the_listener_that_releases_it)
{
    const struct gori_loop_config loop_config = {.engine = "epoll"};
    struct gori_listener_config config = {.events = &place_events};
    struct gori_loop *loop;
    struct gori_listener *listener;
    gori_native native;
    char where[80];
    snprintf(where, sizeof(where), "unix:/tmp/gori-handover-%d.sock", (int)getpid());
    GT_EQUAL(gori_addr_parse(where, &config.addr), 0);
    GT_EQUAL(gori_loop_create(&loop_config, &loop), 0);
    for (int keep = 0; keep < 2; keep++) {
        GT_EQUAL(gori_listener_open(loop, &config, &listener), 0);
        GT_EQUAL(gori_listener_release(listener, &native), 0);
        while (!gi_list_is_empty(&loop->all_listeners)) {
            GT_CHECK(gori_loop_turn(loop, GORI_NEVER) >= 0);
        }
        GT_EQUAL(access(where + 5, F_OK), 0);
        config.keep_socket = keep != 0;
        GT_EQUAL(gori_listener_adopt(loop, native, &config, &listener), 0);
        gori_listener_close(listener);
        while (!gi_list_is_empty(&loop->all_listeners)) {
            GT_CHECK(gori_loop_turn(loop, GORI_NEVER) >= 0);
        }
        GT_EQUAL(access(where + 5, F_OK) == 0, keep != 0);
    }
    (void)unlink(where + 5);
    gori_loop_destroy(loop);
}

GT_TEST(a_simulated_socket_stays_where_it_is)
{
    const struct gi_sim_config sim_config = {0};
    struct gi_sim *sim;
    GT_EQUAL(gi_sim_create(NULL, &sim_config, &sim), 0);
    const struct gori_loop_config loop_config = {.engine = "sim", .simulation = sim};
    struct gori_listener_config config = {.events = &place_events};
    struct gori_loop *loop;
    struct gori_listener *listener;
    gori_native native = 77;
    GT_EQUAL(gori_loop_create(&loop_config, &loop), 0);
    GT_EQUAL(gori_addr_parse("127.0.0.1:80", &config.addr), 0);
    GT_EQUAL(gori_listener_open(loop, &config, &listener), 0);
    GT_EQUAL(gori_listener_release(listener, &native), GORI_ENOTSUP);
    GT_EQUAL(native, 77);
    GT_EQUAL(gori_listener_adopt(loop, 0, &config, &listener), GORI_ENOTSUP);
    gori_loop_destroy(loop);
    gi_sim_destroy(sim);
}

GT_MAIN()
