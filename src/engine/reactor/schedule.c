/* SPDX-License-Identifier: MIT */
/*
 * Where a handle waits: the lists of reactor.h, and for level pollers what is asked of them.
 * Thread: the loop's.
 */
#include "base/assert.h"
#include "base/compiler.h"
#include "engine/reactor/reactor.h"

static bool may_read(const struct gori_handle *handle)
{
    return (handle->ready & GI_POLL_READ) && !gi_list_is_empty(&handle->reads);
}

static bool may_write(const struct gori_handle *handle)
{
    return (handle->ready & GI_POLL_WRITE) && !gi_list_is_empty(&handle->writes);
}

/* A level poller watches the directions that ops wait in, and no others: it would not stop. */
static GI_NOINLINE void set_mask(struct gi_reactor *reactor, struct gori_handle *handle)
{
    uint32_t mask = 0;
    if (!gi_list_is_empty(&handle->reads) && !(handle->ready & GI_POLL_READ)) {
        mask |= GI_POLL_READ;
    }
    if (!gi_list_is_empty(&handle->writes) && !(handle->ready & GI_POLL_WRITE)) {
        mask |= GI_POLL_WRITE;
    }
    if (mask != handle->armed) {
        handle->armed = (uint8_t)mask;
        uint64_t token = gi_slots_token(&reactor->slots, handle->slot);
        reactor->poller->impl->set(reactor->poller, (int)handle->native, token, mask);
    }
}

static void watch(struct gi_reactor *reactor, struct gori_handle *handle)
{
    if (!reactor->is_edge) {
        set_mask(reactor, handle);
    }
}

void gi_reactor_schedule(struct gi_reactor *reactor, struct gori_handle *handle)
{
    watch(reactor, handle);
    if ((!may_read(handle) && !may_write(handle)) || gi_link_is_linked(&handle->link)) {
        return;
    }
    if (GI_LIKELY(handle->budget > 0)) {
        gi_list_push_back(&reactor->ready, &handle->link);
        return;
    }
    handle->budget = GI_REACTOR_BUDGET;
    gi_list_push_back(&reactor->later, &handle->link);
}

void gi_reactor_park(struct gi_reactor *reactor, struct gori_handle *handle, struct gori_link *list)
{
    handle->ready |= GI_REACTOR_PARKED;
    gi_list_push_back(list, &handle->link);
    watch(reactor, handle);
}

static void unpark(struct gori_handle *handle)
{
    gi_list_remove(&handle->link);
    handle->ready &= (uint8_t)~GI_REACTOR_PARKED;
}

void gi_reactor_note(struct gi_reactor *reactor, struct gori_handle *handle, uint32_t mask)
{
    handle->ready |= (uint8_t)mask;
    handle->budget = GI_REACTOR_BUDGET;
    if ((handle->ready & GI_REACTOR_PARKED) && may_write(handle)) {
        unpark(handle); /* only its receive has to wait */
    }
    gi_reactor_schedule(reactor, handle);
}

void gi_reactor_resume(struct gi_reactor *reactor, struct gori_link *list, uint32_t count)
{
    for (uint32_t i = 0; i < count && !gi_list_is_empty(list); i++) {
        struct gori_handle *handle =
            gori_container_of(gi_list_first(list), struct gori_handle, link);
        unpark(handle);
        gi_reactor_schedule(reactor, handle);
    }
}
