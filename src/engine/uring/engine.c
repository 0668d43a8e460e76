/* SPDX-License-Identifier: MIT */
/*
 * The io_uring engine: its life, its turn, and how other threads wake it.
 *
 * A turn is one system call: it submits everything since the last one, waits, and harvests.  The
 * completions stay in the kernel's queue until the runtime pulls them.
 * Thread: the loop's, but for wake.  Reading: io_uring(7), README.md beside this file.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <gori/error.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "engine/uring/probe.h"
#include "engine/uring/uring.h"
#include "os/os.h"

/* Rings start small, because their memory counts against a limit of the whole user, and double. */
#define SQ_ENTRIES_START 256u
#define CQ_ENTRIES_START 2048u
#define SQ_ENTRIES_MAX   4096u
#define CQ_ENTRIES_MAX   65536u

/* Where rings cannot grow later: room for a burst on some thousand connections. */
#define SQ_ENTRIES_FIXED 512u
#define CQ_ENTRIES_FIXED 8192u

#define CQ_ENTRIES_LEAST 128u

/* The memory of a ring that was closed, also by another process, is free again only a while later.
 */
#define MEMORY_WAIT  (200 * GORI_MILLISECONDS)
#define MEMORY_PAUSE (5 * GORI_MILLISECONDS)

static void pause_for(gori_time span)
{
    struct timespec timespec = {.tv_nsec = (long)span};
    (void)nanosleep(&timespec, NULL);
}

/*
 * Opens the ring.  When memory is short: the limit on locked memory is raised as far as allowed,
 * then waited for, then smaller rings are tried.
 */
static int open_ring(struct gi_uring *uring)
{
    struct gi_ring_config config = {.sq_entries = SQ_ENTRIES_START,
                                    .cq_entries = CQ_ENTRIES_START,
                                    .disabled = gi_uring_features_disabled()};
    int error = gi_ring_init(&uring->ring, &config);
    if (error == -ENOMEM) {
        gi_os_limits_raise();
        error = gi_ring_init(&uring->ring, &config);
    }
    gori_time give_up = gi_os_now() + MEMORY_WAIT;
    while (error == -ENOMEM && gi_os_now() < give_up) {
        pause_for(MEMORY_PAUSE);
        error = gi_ring_init(&uring->ring, &config);
    }
    while (error == -ENOMEM && config.cq_entries > CQ_ENTRIES_LEAST) {
        config.sq_entries /= 2;
        config.cq_entries /= 2;
        error = gi_ring_init(&uring->ring, &config);
    }
    if (error < 0 || (uring->ring.features & GI_URING_RESIZE_RINGS)) {
        return error;
    }
    /* It will have to do for good: try a larger one, keep this one when that is not to be had. */
    struct gi_ring larger;
    config.sq_entries = SQ_ENTRIES_FIXED;
    config.cq_entries = CQ_ENTRIES_FIXED;
    if (gi_ring_init(&larger, &config) == 0) {
        gi_ring_fini(&uring->ring);
        uring->ring = larger;
    }
    return 0;
}

static int open_headers(struct gi_uring *uring)
{
    if (!(gi_uring_features_disabled() & GI_URING_SEND_VECTORIZED)) {
        int result = gi_uring_try_vectorized(&uring->ring);
        if (result < 0) {
            return gi_os_error(-result);
        }
        if (result > 0) {
            uring->ring.features |= GI_URING_SEND_VECTORIZED;
            return 0;
        }
    }
    uint32_t count = gi_ring_sq_entries(&uring->ring);
    uring->headers = gi_alloc_array(uring->allocator, count, sizeof(struct msghdr));
    uring->header_count = uring->headers != NULL ? count : 0;
    return uring->headers != NULL ? 0 : GORI_ENOMEM;
}

static int open_parts(struct gi_uring *uring, struct gi_buffers *pool)
{
    int error = open_ring(uring);
    if (error == 0) {
        error = gi_uring_try_nothing(&uring->ring);
    }
    if (error == 0) {
        error = gi_recv_buffers_init(&uring->recv_buffers, &uring->ring, pool);
    }
    if (error < 0) {
        return gi_uring_error(-error);
    }
    error = open_headers(uring);
    if (error < 0) {
        return error;
    }
    uring->ring.features |=
        gi_uring_try_files(&uring->ring, gi_uring_features_disabled(), &uring->base.native_kinds);
    uring->shared.wake_fd = eventfd(0, EFD_CLOEXEC);
    return uring->shared.wake_fd < 0 ? gi_os_error(errno) : 0;
}

/*
 * A wake is one write to an eventfd that the kernel reads for us; while that read is not seen, more
 * wakes write nothing.  They are not lost: whoever finds `woken` set did so before it was cleared,
 * and the loop looks at its mailbox after that.  Why no message between rings: docs/adr/0013.
 */
static void uring_wake(struct gi_engine *engine)
{
    struct gi_uring *uring = (struct gi_uring *)engine;
    if (!gi_atomic_bool_exchange(&uring->shared.woken, true, GI_ACQ_REL)) {
        uint64_t one = 1;
        ssize_t written = write(uring->shared.wake_fd, &one, sizeof(one));
        GI_ASSERT(written == sizeof(one));
    }
}

/* The kernel would write to memory that is going away: the read it waits in is made to end. */
static void end_wake(struct gi_uring *uring)
{
    struct gi_completion completion;
    while (uring->wake_armed) {
        uring_wake(&uring->base);
        if (gi_ring_enter(&uring->ring, 1, GORI_NEVER) < 0) {
            return;
        }
        GI_ASSERT(!gi_uring_next(&uring->base, &completion));
    }
}

static void uring_destroy(struct gi_engine *engine)
{
    struct gi_uring *uring = (struct gi_uring *)engine;
    if (uring == NULL) {
        return;
    }
    GI_ASSERT(uring->ops_in_flight == 0);
    end_wake(uring);
    gi_recv_buffers_fini(&uring->recv_buffers, &uring->ring);
    gi_free(uring->allocator, uring->headers, uring->header_count * sizeof(struct msghdr));
    gi_ring_fini(&uring->ring);
    if (uring->shared.wake_fd >= 0) {
        gi_os_close(uring->shared.wake_fd);
    }
    gi_uring_slots_fini(&uring->slots);
    gi_free(uring->allocator, uring, sizeof(*uring));
}

static int uring_create(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    if (gi_uring_features_disabled() & GI_URING_ENGINE) {
        return GORI_ENOSYS;
    }
    struct gi_uring *uring = gi_alloc_zero(config->allocator, sizeof(*uring));
    if (uring == NULL) {
        return GORI_ENOMEM;
    }
    uring->base.impl = &gi_engine_uring;
    uring->allocator = config->allocator;
    uring->ops_max = gi_min_u32(config->ops_max, GI_URING_SLOTS_MAX);
    uring->ring.fd = -1;
    uring->shared.wake_fd = -1;
    gi_atomic_bool_init(&uring->shared.woken, false);
    gi_uring_slots_init(&uring->slots, config->allocator);
    int error = open_parts(uring, config->buffers);
    if (error < 0) {
        uring_destroy(&uring->base);
        return error;
    }
    uring->may_grow = (uring->ring.features & GI_URING_RESIZE_RINGS) != 0;
    *ret_engine = &uring->base;
    return 0;
}

static gori_time uring_now(struct gi_engine *engine)
{
    (void)engine;
    return gi_os_now();
}

/* Message headers follow the size of the queue of submissions, which is empty now. */
static bool enlarge_headers(struct gi_uring *uring, uint32_t count)
{
    if (uring->headers == NULL || count <= uring->header_count) {
        return true;
    }
    struct msghdr *headers =
        gi_realloc(uring->allocator, uring->headers, uring->header_count * sizeof(struct msghdr),
                   count * sizeof(struct msghdr));
    if (headers == NULL) {
        return false;
    }
    uring->headers = headers;
    uring->header_count = count;
    return true;
}

/*
 * Doubles the queue that was too small, once all that was submitted is taken and nothing waits in
 * the kernel for room.  Where that fails (the memory limit), they stay as they are for good.
 */
static GI_COLD int grow(struct gi_uring *uring)
{
    struct gi_ring *ring = &uring->ring;
    if (gi_ring_queued(ring) > 0 || gi_ring_has_overflow(ring)) {
        return 0;
    }
    uint32_t sq_entries = gi_ring_sq_entries(ring);
    uint32_t cq_entries = gi_ring_cq_entries(ring);
    uint32_t sq_wanted = gi_min_u32(sq_entries * (uring->sq_was_full ? 2 : 1), SQ_ENTRIES_MAX);
    uint32_t cq_wanted = gi_min_u32(cq_entries * (uring->cq_was_full ? 2 : 1), CQ_ENTRIES_MAX);
    cq_wanted = gi_max_u32(cq_wanted, sq_wanted * 2);
    uring->sq_was_full = false;
    uring->cq_was_full = false;
    if (sq_wanted == sq_entries && cq_wanted == cq_entries) {
        uring->may_grow = false;
        return 0;
    }
    /* Headers first: more of them than the queue is long do no harm, fewer would. */
    int error = enlarge_headers(uring, sq_wanted) ? 0 : -ENOMEM;
    if (error == 0) {
        error = gi_ring_resize(ring, sq_wanted, cq_wanted);
    }
    uring->may_grow = error == 0;
    return error == -ENOTRECOVERABLE ? GORI_ENOMEM : 0;
}

/*
 * The kernel has no memory for requests now.  What was queued stays queued; before it is tried
 * again a completion has to come, which may free some, or some time to pass: no spin.
 */
static GI_COLD int wait_for_memory(struct gi_uring *uring, gori_time deadline)
{
    return gi_ring_wait(&uring->ring, gi_min_u64(deadline, gi_os_now() + MEMORY_PAUSE));
}

static GI_COLD int turn_error(struct gi_uring *uring, int error)
{
    switch (error) {
    case -EBUSY: /* completions wait in the kernel for room: they are harvested now */
        uring->cq_was_full = true;
        return 0;
    case -EAGAIN: /* after a wait for memory, see above: the next turn tries again */
        return 0;
    case -EBADR: /* the kernel had no memory for a completion and dropped it */
        return GORI_ENOMEM;
    case -EEXIST:
        return GORI_EWRONGTHREAD;
    default:
        return gi_os_error(-error);
    }
}

/*
 * The end of a wait.  Receives that are parked wait for buffers to return, which happens on this
 * thread; but when the pool could not grow for want of memory nothing may ever return, and it is
 * tried again by time; so are cancels that were in vain too often.
 */
static inline gori_time end_of_wait(const struct gi_uring *uring, gori_time deadline)
{
    if (GI_UNLIKELY(gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_VAIN) > 0)) {
        deadline = gi_min_u64(deadline, uring->vain_at);
    }
    if (GI_LIKELY(gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_PARKED) == 0) ||
        !gi_buffers_can_lend(uring->recv_buffers.pool)) {
        return deadline;
    }
    return gi_min_u64(deadline, gi_os_now() + MEMORY_PAUSE);
}

/* The pause is over: what could not be cancelled before is asked to end once more. */
static GI_COLD GI_NOINLINE void redo_vain(struct gi_uring *uring)
{
    if (gi_os_now() < uring->vain_at) {
        return;
    }
    while (gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_VAIN) > 0) {
        uint32_t index = gi_uring_slots_pop(&uring->slots, GI_URING_QUEUE_VAIN);
        gi_uring_slots_push(&uring->slots, GI_URING_QUEUE_REDO, index);
    }
}

/* Whether something can be delivered, or done, without the kernel. */
static inline bool has_work(const struct gi_uring *uring)
{
    return gi_ring_ready(&uring->ring) > 0 ||
           gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_READY) > 0 ||
           gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_CLOSED) > 0 ||
           gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_CALLS) > 0 ||
           gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_REDO) > 0 ||
           (gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_PARKED) > 0 &&
            uring->recv_buffers.provided > 0);
}

static int uring_turn(struct gi_engine *engine, gori_time deadline)
{
    struct gi_uring *uring = (struct gi_uring *)engine;
    struct gi_ring *ring = &uring->ring;
    gi_uring_arm_wake(uring);
    if (GI_UNLIKELY(gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_VAIN) > 0)) {
        redo_vain(uring);
    }
    if (GI_UNLIKELY(gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_REDO) > 0)) {
        gi_uring_redo(uring);
    }
    if (GI_UNLIKELY(gi_uring_slots_queued(&uring->slots, GI_URING_QUEUE_CALLS) > 0)) {
        gi_uring_make_calls(uring);
    }
    gi_recv_buffers_refill(&uring->recv_buffers);
    gi_uring_resume_parked(uring);
    /* Without the read of the eventfd (the queue was full, and the kernel took nothing) nobody
     * could end a wait: then the next turn arms it. */
    bool may_wait = deadline > 0 && !has_work(uring);
    bool waits = may_wait && uring->wake_armed;
    if (gi_ring_ready(ring) > 0 && gi_ring_queued(ring) == 0) {
        return 0; /* the runtime's budget ran out, and there is nothing to tell the kernel */
    }
    int error = gi_ring_enter(ring, waits ? 1 : 0, end_of_wait(uring, deadline));
    if (GI_UNLIKELY(error == -EAGAIN && may_wait)) {
        error = wait_for_memory(uring, deadline);
    }
    if (GI_UNLIKELY(error < 0)) {
        return turn_error(uring, error);
    }
    uring->cq_was_full |= gi_ring_ready(ring) > gi_ring_cq_entries(ring) / 2;
    if (GI_UNLIKELY((uring->cq_was_full || uring->sq_was_full) && uring->may_grow)) {
        return grow(uring);
    }
    return 0;
}

static void uring_stats(const struct gi_engine *engine, struct gi_engine_stats *ret_stats)
{
    const struct gi_uring *uring = (const struct gi_uring *)engine;
    ret_stats->waits = uring->ring.enters;
    ret_stats->stale_completions = uring->stale_completions;
}

const struct gi_engine_impl gi_engine_uring = {
    .name = "io_uring",
    .sockets = &gi_system_sockets,
    .events = &gi_system_events,
    .watches = &gi_system_watches,
    .files = &gi_system_files,
    .create = uring_create,
    .destroy = uring_destroy,
    .report = gi_uring_report,
    .now = uring_now,
    .attach = gi_uring_attach,
    .submit = gi_uring_submit,
    .cancel = gi_uring_cancel,
    .close = gi_uring_close,
    .turn = uring_turn,
    .next = gi_uring_next,
    .wake = uring_wake,
    .stats = uring_stats,
};
