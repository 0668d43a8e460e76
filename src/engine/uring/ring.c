/* SPDX-License-Identifier: MIT */
/*
 * The raw ring, see ring.h.  Not thread-safe but for what the kernel shares: the words behind the
 * kernel_ pointers, which are read with acquire and written with release; each names its pair.
 * Reading: io_uring_setup(2), io_uring_enter(2), IORING_REGISTER_RESIZE_RINGS.
 */
#include "engine/uring/ring.h"

#include <errno.h>
#include <linux/time_types.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/os.h"

/* One mapping of the ring's memory. */
struct mapping {
    void *memory;
    size_t bytes;
};

static int system_setup(uint32_t entries, struct io_uring_params *params)
{
    long fd = syscall(SYS_io_uring_setup, entries, params);
    return fd < 0 ? -errno : (int)fd;
}

static int system_register(int fd, uint32_t opcode, void *argument, uint32_t count)
{
    long result = syscall(SYS_io_uring_register, fd, opcode, argument, count);
    return result < 0 ? -errno : (int)result;
}

static void unmap(struct mapping mapping)
{
    if (mapping.memory != NULL) {
        (void)munmap(mapping.memory, mapping.bytes);
    }
}

/* A child must not share the queues: it could not use them, and would keep the ring alive. */
static int map(int fd, uint64_t offset, size_t bytes, struct mapping *ret_mapping)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)offset);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    (void)madvise(memory, bytes, MADV_DONTFORK);
    *ret_mapping = (struct mapping){.memory = memory, .bytes = bytes};
    return 0;
}

static size_t rings_bytes(const struct io_uring_params *params)
{
    size_t cq_bytes = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    size_t sq_bytes = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
    return gi_max_size(cq_bytes, sq_bytes);
}

/* Points the ring at its memory, as `params` describes it, and takes over where the kernel is. */
static void point_at(struct gi_ring *ring, struct mapping rings, struct mapping sqes,
                     const struct io_uring_params *params)
{
    char *base = rings.memory;
    ring->rings_memory = rings.memory;
    ring->rings_bytes = rings.bytes;
    ring->sqes = sqes.memory;
    ring->sqes_bytes = sqes.bytes;
    ring->sq_mask = params->sq_entries - 1;
    ring->cq_mask = params->cq_entries - 1;
    ring->kernel_sq_head = (uint32_t *)(void *)(base + params->sq_off.head);
    ring->kernel_sq_tail = (uint32_t *)(void *)(base + params->sq_off.tail);
    ring->kernel_sq_flags = (uint32_t *)(void *)(base + params->sq_off.flags);
    ring->kernel_cq_head = (uint32_t *)(void *)(base + params->cq_off.head);
    ring->kernel_cq_tail = (uint32_t *)(void *)(base + params->cq_off.tail);
    ring->cqes = (const struct io_uring_cqe *)(void *)(base + params->cq_off.cqes);
    if (!(ring->features & GI_URING_NO_SQARRAY)) {
        uint32_t *array = (uint32_t *)(void *)(base + params->sq_off.array);
        for (uint32_t i = 0; i < params->sq_entries; i++) {
            array[i] = i;
        }
    }
}

/* Reads how far the kernel is; pairs with its release of the SQ head and the CQ tail. */
static void look(struct gi_ring *ring)
{
    ring->sq_head = __atomic_load_n(ring->kernel_sq_head, __ATOMIC_ACQUIRE);
    ring->cq_tail = __atomic_load_n(ring->kernel_cq_tail, __ATOMIC_ACQUIRE);
}

/* Says how far we are; pairs with the kernel's acquire of the SQ tail and the CQ head. */
static void publish(struct gi_ring *ring)
{
    __atomic_store_n(ring->kernel_sq_tail, ring->sq_tail, __ATOMIC_RELEASE);
    __atomic_store_n(ring->kernel_cq_head, ring->cq_head, __ATOMIC_RELEASE);
}

/*
 * From the best set of flags down to what 6.0 has.  SINGLE_ISSUER is always there: it came with
 * multishot receive, which cannot be probed for, and without which this engine is not worth having.
 */
static int setup_ladder(struct gi_ring *ring, const struct gi_ring_config *config,
                        struct io_uring_params *params)
{
    static const uint32_t ladder[] = {
        GI_URING_DEFER_TASKRUN | GI_URING_NO_SQARRAY,
        GI_URING_DEFER_TASKRUN,
        GI_URING_NO_SQARRAY,
        0,
    };
    int result = -EINVAL;
    for (size_t i = 0; i < GI_ARRAY_COUNT(ladder) && result == -EINVAL; i++) {
        uint32_t features = ladder[i];
        if (features & config->disabled) {
            continue;
        }
        *params = (struct io_uring_params){.cq_entries = config->cq_entries};
        params->flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL |
                        IORING_SETUP_SINGLE_ISSUER;
        params->flags |= features & GI_URING_DEFER_TASKRUN ? IORING_SETUP_DEFER_TASKRUN
                                                           : IORING_SETUP_COOP_TASKRUN;
        params->flags |= features & GI_URING_NO_SQARRAY ? GI_URING_SETUP_NO_SQARRAY : 0;
        result = system_setup(config->sq_entries, params);
        ring->features = features;
    }
    return result;
}

static int map_queues(struct gi_ring *ring, const struct io_uring_params *params)
{
    struct mapping rings = {0};
    struct mapping sqes = {0};
    int error = map(ring->fd, IORING_OFF_SQ_RING, rings_bytes(params), &rings);
    if (error == 0) {
        error =
            map(ring->fd, IORING_OFF_SQES, params->sq_entries * sizeof(struct io_uring_sqe), &sqes);
    }
    if (error < 0) {
        unmap(rings);
        return error;
    }
    point_at(ring, rings, sqes, params);
    return 0;
}

/* Saves the kernel the look-up of the descriptor.  The table holds 16 rings a thread; full is fine.
 */
static void register_fd(struct gi_ring *ring)
{
    struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (uint32_t)ring->fd};
    if (system_register(ring->fd, IORING_REGISTER_RING_FDS, &update, 1) == 1) {
        ring->enter_fd = (int)update.offset;
        ring->enter_flags |= IORING_ENTER_REGISTERED_RING;
        ring->features |= GI_URING_REGISTERED_RING;
    }
}

/* Submits so many, and waits for so many. */
struct enter {
    uint32_t submit_count;
    uint32_t wait_count;
    uint32_t flags;
};

static int enter_system(struct gi_ring *ring, struct enter enter,
                        struct io_uring_getevents_arg *argument)
{
    publish(ring);
    ring->enters++;
    long result = syscall(SYS_io_uring_enter, ring->enter_fd, enter.submit_count, enter.wait_count,
                          ring->enter_flags | enter.flags, argument,
                          argument != NULL ? sizeof(*argument) : 0);
    int error = result < 0 ? -errno : 0;
    look(ring);
    return error;
}

/* Whether the kernel takes absolute deadlines: one that is long past ends the wait at once. */
static bool probe_abs_timer(struct gi_ring *ring)
{
    struct __kernel_timespec past = {0};
    struct io_uring_getevents_arg argument = {.ts = (uintptr_t)&past};
    const struct enter enter = {
        .wait_count = 1,
        .flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG | GI_URING_ENTER_ABS_TIMER,
    };
    return enter_system(ring, enter, &argument) == -ETIME;
}

/* A kernel that knows the opcode looks at the argument, which is not there, before all else. */
static bool probe_resize(struct gi_ring *ring)
{
    void *nowhere = (void *)UINTPTR_MAX;
    return system_register(ring->fd, GI_URING_REGISTER_RESIZE_RINGS, nowhere, 1) == -EFAULT;
}

static void take_features(struct gi_ring *ring, uint32_t disabled)
{
    ring->features |= (GI_URING_ACCEPT_MULTISHOT | GI_URING_RECV_MULTISHOT) & ~disabled;
    if (!(disabled & GI_URING_REGISTERED_RING)) {
        register_fd(ring);
    }
    if (!(disabled & GI_URING_NO_IOWAIT) && (ring->kernel_features & GI_URING_FEAT_NO_IOWAIT)) {
        ring->enter_flags |= GI_URING_ENTER_NO_IOWAIT;
        ring->features |= GI_URING_NO_IOWAIT;
    }
    if (!(disabled & GI_URING_ABS_TIMER) && probe_abs_timer(ring)) {
        ring->features |= GI_URING_ABS_TIMER;
    }
    /* The kernel does not say where the array of a resized ring lies: without one only. */
    uint32_t needed = GI_URING_DEFER_TASKRUN | GI_URING_NO_SQARRAY;
    if (!(disabled & GI_URING_RESIZE_RINGS) && (ring->features & needed) == needed &&
        probe_resize(ring)) {
        ring->features |= GI_URING_RESIZE_RINGS;
    }
}

int gi_ring_init(struct gi_ring *ring, const struct gi_ring_config *config)
{
    struct io_uring_params params;
    *ring = (struct gi_ring){.fd = -1};
    int fd = setup_ladder(ring, config, &params);
    if (fd < 0) {
        return fd;
    }
    ring->fd = fd;
    ring->enter_fd = fd;
    ring->kernel_flags = params.flags;
    ring->kernel_features = params.features;
    uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG |
                      IORING_FEAT_SUBMIT_STABLE;
    int result = (params.features & needed) == needed ? map_queues(ring, &params) : -EINVAL;
    if (result < 0) {
        gi_os_close(fd);
        *ring = (struct gi_ring){.fd = -1};
        return result;
    }
    look(ring);
    take_features(ring, config->disabled);
    return 0;
}

void gi_ring_fini(struct gi_ring *ring)
{
    if (ring->fd < 0) {
        return;
    }
    if (ring->features & GI_URING_REGISTERED_RING) {
        struct io_uring_rsrc_update update = {.offset = (uint32_t)ring->enter_fd};
        (void)system_register(ring->fd, IORING_UNREGISTER_RING_FDS, &update, 1);
    }
    unmap((struct mapping){.memory = ring->sqes, .bytes = ring->sqes_bytes});
    unmap((struct mapping){.memory = ring->rings_memory, .bytes = ring->rings_bytes});
    gi_os_close(ring->fd);
    *ring = (struct gi_ring){.fd = -1};
}

/* A wait with an end: absolute where the kernel can, else what is left of it. */
static int enter_until(struct gi_ring *ring, struct enter enter, gori_time deadline)
{
    gori_time time = deadline;
    enter.flags |= IORING_ENTER_EXT_ARG;
    if (ring->features & GI_URING_ABS_TIMER) {
        enter.flags |= GI_URING_ENTER_ABS_TIMER;
    } else {
        gori_time now = gi_os_now();
        time = deadline > now ? deadline - now : 0;
    }
    struct __kernel_timespec timespec = {.tv_sec = (int64_t)(time / GORI_SECONDS),
                                         .tv_nsec = (long long)(time % GORI_SECONDS)};
    struct io_uring_getevents_arg argument = {.ts = (uintptr_t)&timespec};
    return enter_system(ring, enter, &argument);
}

static int enter(struct gi_ring *ring, struct enter enter, gori_time deadline)
{
    bool has_end = enter.wait_count > 0 && deadline != GORI_NEVER;
    int error = has_end ? enter_until(ring, enter, deadline) : enter_system(ring, enter, NULL);
    return error == -ETIME || error == -EINTR ? 0 : error;
}

int gi_ring_enter(struct gi_ring *ring, uint32_t wait_count, gori_time deadline)
{
    const struct enter all = {.submit_count = gi_ring_queued(ring),
                              .wait_count = wait_count,
                              .flags = IORING_ENTER_GETEVENTS};
    return enter(ring, all, deadline);
}

int gi_ring_wait(struct gi_ring *ring, gori_time deadline)
{
    const struct enter none = {.wait_count = 1, .flags = IORING_ENTER_GETEVENTS};
    return enter(ring, none, deadline);
}

int gi_ring_flush(struct gi_ring *ring)
{
    const struct enter all = {.submit_count = gi_ring_queued(ring)};
    return enter_system(ring, all, NULL);
}

int gi_ring_register(const struct gi_ring *ring, uint32_t opcode, void *argument, uint32_t count)
{
    return system_register(ring->fd, opcode, argument, count);
}

/*
 * Whether there is address space for queues of these sizes.  The kernel refuses a mapping at an
 * address of our choice, so nothing can be held for it; but to look first leaves only a race.
 */
static bool has_room(uint32_t sq_entries, uint32_t cq_entries)
{
    size_t bytes = sq_entries * (sizeof(struct io_uring_sqe) + sizeof(uint32_t)) +
                   cq_entries * sizeof(struct io_uring_cqe) + 3 * 4096;
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED && munmap(memory, bytes) == 0;
}

int gi_ring_resize(struct gi_ring *ring, uint32_t sq_entries, uint32_t cq_entries)
{
    if (!(ring->features & GI_URING_RESIZE_RINGS)) {
        return -EINVAL;
    }
    if (!has_room(sq_entries, cq_entries)) {
        return -ENOMEM;
    }
    struct io_uring_params params = {.sq_entries = sq_entries, .cq_entries = cq_entries};
    params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    publish(ring);
    int error = gi_ring_register(ring, GI_URING_REGISTER_RESIZE_RINGS, &params, 1);
    if (error < 0) {
        return error;
    }
    struct mapping old_rings = {.memory = ring->rings_memory, .bytes = ring->rings_bytes};
    struct mapping old_sqes = {.memory = ring->sqes, .bytes = ring->sqes_bytes};
    if (map_queues(ring, &params) < 0) {
        return -ENOTRECOVERABLE;
    }
    unmap(old_rings);
    unmap(old_sqes);
    look(ring);
    return 0;
}

bool gi_ring_has_overflow(const struct gi_ring *ring)
{
    uint32_t flags = __atomic_load_n(ring->kernel_sq_flags, __ATOMIC_RELAXED);
    return (flags & IORING_SQ_CQ_OVERFLOW) != 0;
}
