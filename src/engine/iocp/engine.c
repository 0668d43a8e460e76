/* SPDX-License-Identifier: MIT */
/*
 * The IOCP engine: its life, its turn, and how other threads wake it.  A turn is one system call,
 * which waits and harvests; operations are submitted when they are asked for.
 * Thread: the loop's, but for wake.  Reading: GetQueuedCompletionStatusEx (Microsoft Learn),
 * README.md beside this file.
 */
#include <gori/error.h>

#include "base/alloc.h"
#include "engine/iocp/iocp.h"

/* How long to wait before asking again for memory that was not there. */
#define RETRY_TIME (5 * GORI_MILLISECONDS)

static int create(const struct gi_engine_config *config, struct gi_engine **ret_engine)
{
    struct gi_iocp_calls calls;
    int error = gi_iocp_find_calls(&calls);
    if (error < 0) {
        return error;
    }
    struct gi_iocp *iocp = gi_alloc_zero(config->allocator, sizeof(*iocp));
    if (iocp == NULL) {
        return GORI_ENOMEM;
    }
    iocp->port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
    if (iocp->port == NULL) {
        error = gi_os_error((int)GetLastError());
        gi_free(config->allocator, iocp, sizeof(*iocp));
        return error;
    }
    iocp->base.impl = &gi_engine_iocp;
    iocp->base.native_kinds = GI_KIND_BIT(GORI_OP_FILE_READ) | GI_KIND_BIT(GORI_OP_FILE_WRITE);
    iocp->allocator = config->allocator;
    iocp->buffers = config->buffers;
    iocp->calls = calls;
    gi_iocp_requests_init(&iocp->requests, config->allocator);
    struct gori_link *const lists[] = {&iocp->ready, &iocp->later, &iocp->starved, &iocp->closing,
                                       &iocp->done};
    for (size_t i = 0; i < GI_ARRAY_COUNT(lists); i++) {
        gi_list_init(lists[i]);
    }
    gi_atomic_bool_init(&iocp->wake_pending, false);
    *ret_engine = &iocp->base;
    return 0;
}

static void destroy(struct gi_engine *engine)
{
    struct gi_iocp *iocp = gi_iocp_of(engine);
    gi_iocp_requests_fini(&iocp->requests);
    (void)CloseHandle(iocp->port);
    gi_free(iocp->allocator, iocp, sizeof(*iocp));
}

static gori_time read_clock(struct gi_engine *engine)
{
    (void)engine;
    return gi_os_now();
}

static uint32_t next_key(struct gi_iocp *iocp)
{
    do {
        iocp->last_key++;
    } while (iocp->last_key == GI_IOCP_KEY_WAKE || iocp->last_key == GI_IOCP_KEY_FILE);
    return iocp->last_key;
}

/* Ties the socket to the port, for good: one that belongs to another port is GORI_EINVAL. */
static int join_port(struct gi_iocp *iocp, struct gori_handle *handle)
{
    HANDLE native = (HANDLE)handle->native;
    handle->slot = next_key(iocp);
    handle->ready = 0;
    if (CreateIoCompletionPort(native, iocp->port, handle->slot, 0) == NULL) {
        return gi_os_error((int)GetLastError());
    }
    /* Without it every operation has its packet: slower, not wrong. */
    if (iocp->calls.may_skip &&
        SetFileCompletionNotificationModes(native, FILE_SKIP_COMPLETION_PORT_ON_SUCCESS |
                                                       FILE_SKIP_SET_EVENT_ON_HANDLE)) {
        handle->ready = GI_IOCP_SKIP;
    }
    return 0;
}

static int attach(struct gi_engine *engine, struct gori_handle *handle)
{
    if (handle->flags & GI_HANDLE_SOURCE) {
        handle->slot = next_key(gi_iocp_of(engine));
        handle->ready = 0;
    } else {
        /* For the reads of `next`, which must not wait; overlapped operations do not care. */
        int error = gi_os_set_blocking((int)handle->native, false);
        if (error == 0) {
            error = join_port(gi_iocp_of(engine), handle);
        }
        if (error < 0) {
            return error;
        }
    }
    handle->in_flight = 0;
    handle->armed = 0;
    handle->budget = GI_IOCP_BUDGET;
    handle->link = (struct gori_link){0};
    gi_list_init(&handle->reads);
    gi_list_init(&handle->writes);
    return 0;
}

/* Receives wait although the pool may still grow: there was no memory for it. */
static bool lacks_memory(const struct gi_iocp *iocp)
{
    return !gi_list_is_empty(&iocp->starved) && iocp->buffers->free_count == 0 &&
           gi_buffers_can_lend(iocp->buffers);
}

/* Milliseconds, rounded up: a wait that ends a little early would be a turn for nothing. */
static DWORD time_until(const struct gi_iocp *iocp, gori_time deadline)
{
    bool must_retry = lacks_memory(iocp);
    if (deadline == 0 || (deadline == GORI_NEVER && !must_retry)) {
        return deadline == 0 ? 0 : INFINITE;
    }
    gori_time now = gi_os_now();
    if (must_retry) {
        deadline = gi_min_u64(deadline, now + RETRY_TIME);
    }
    if (deadline <= now) {
        return 0;
    }
    gori_time milliseconds = (deadline - now - 1) / GORI_MILLISECONDS + 1;
    return (DWORD)gi_min_u64(milliseconds, INFINITE - 1);
}

static int wait_for_packets(struct gi_iocp *iocp, DWORD milliseconds)
{
    ULONG count = 0;
    iocp->stats.waits++;
    if (!GetQueuedCompletionStatusEx(iocp->port, iocp->packets, GI_IOCP_PACKETS_MAX, &count,
                                     milliseconds, FALSE)) {
        return GetLastError() == WAIT_TIMEOUT ? 0 : gi_os_error((int)GetLastError());
    }
    for (ULONG i = 0; i < count; i++) {
        if (iocp->packets[i].lpCompletionKey == GI_IOCP_KEY_WAKE) {
            /* Pairs with the exchange in wake: what was done before a wake that found the flag set
               is seen by whoever called this turn. */
            (void)gi_atomic_bool_exchange(&iocp->wake_pending, false, GI_ACQ_REL);
        } else {
            gi_iocp_take_packet(iocp, &iocp->packets[i]);
        }
    }
    return 0;
}

/* Makes up to `count` starved handles ready, the longest starved first. */
static void resume(struct gi_iocp *iocp, uint32_t count)
{
    for (uint32_t i = 0; i < count && !gi_list_is_empty(&iocp->starved); i++) {
        struct gori_link *link = gi_list_pop_front(&iocp->starved);
        gi_iocp_schedule(iocp, gori_container_of(link, struct gori_handle, link));
    }
}

static bool has_work(const struct gi_iocp *iocp)
{
    return !gi_list_is_empty(&iocp->ready) || !gi_list_is_empty(&iocp->done) ||
           !gi_list_is_empty(&iocp->closing) || iocp->came.first != NULL;
}

/* Between two looks at the port there is at most one turn that does not look, so that what was
   ready first cannot keep out what becomes ready. */
static int turn(struct gi_engine *engine, gori_time deadline)
{
    struct gi_iocp *iocp = gi_iocp_of(engine);
    gi_list_move_all(&iocp->later, &iocp->ready);
    resume(iocp, iocp->buffers->free_count);
    bool work = has_work(iocp);
    if (work && iocp->polled) {
        iocp->polled = false;
        return 0;
    }
    iocp->polled = true;
    int result = wait_for_packets(iocp, work ? 0 : time_until(iocp, deadline));
    if (lacks_memory(iocp)) {
        resume(iocp, 1);
    }
    return result;
}

static void wake(struct gi_engine *engine)
{
    struct gi_iocp *iocp = gi_iocp_of(engine);
    /* Pairs with wait_for_packets.  One packet is enough for all wakes until it is seen. */
    if (gi_atomic_bool_exchange(&iocp->wake_pending, true, GI_ACQ_REL)) {
        return;
    }
    /* It fails only while the system is out of memory for a packet; a wake must not be lost. */
    while (!PostQueuedCompletionStatus(iocp->port, 0, GI_IOCP_KEY_WAKE, NULL)) {
        Sleep(1);
    }
}

static void read_stats(const struct gi_engine *engine, struct gi_engine_stats *ret_stats)
{
    *ret_stats = gi_iocp_of(engine)->stats;
}

const struct gi_engine_impl gi_engine_iocp = {
    .name = "iocp",
    .sockets = &gi_system_sockets,
    .events = &gi_system_events,
    .watches = &gi_system_watches,
    .files = &gi_system_files,
    .attach_file = gi_iocp_attach_file,
    .create = create,
    .destroy = destroy,
    .report = gi_iocp_report,
    .now = read_clock,
    .attach = attach,
    .submit = gi_iocp_submit,
    .cancel = gi_iocp_cancel,
    .close = gi_iocp_close,
    .turn = turn,
    .next = gi_iocp_next,
    .wake = wake,
    .stats = read_stats,
};
