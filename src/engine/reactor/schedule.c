/* SPDX-License-Identifier: MIT */
/*
 * Where a handle waits: the lists of reactor.h, and for level pollers what is asked of them.
 * Thread: the loop's.
 */
#include "base/assert.h"
#include "base/compiler.h"
#include "engine/reactor/reactor.h"

/* A level poller watches the directions that ops wait in, and no others: it would not stop. */
void gi_reactor_watch(struct gi_reactor *reactor, struct gori_handle *handle)
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

void gi_reactor_enqueue(struct gi_reactor *reactor, struct gori_handle *handle)
{
    if (gi_link_is_linked(&handle->link)) {
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
    gi_reactor_schedule(reactor, handle);
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
    bool may_write = (handle->ready & GI_POLL_WRITE) && !gi_list_is_empty(&handle->writes);
    if (GI_UNLIKELY((handle->ready & GI_REACTOR_PARKED) && may_write)) {
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
