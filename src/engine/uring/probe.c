/* SPDX-License-Identifier: MIT */
/*
 * Trials and the report; see probe.h.  What can be tried is tried.  Kernel versions are believed
 * only for what cannot be tried: faults in what is present. Reading: io_uring_setup(2),
 * Documentation/admin-guide/sysctl/kernel.rst (io_uring_disabled).
 */
#include "engine/uring/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <gori/error.h>

#include "base/assert.h"
#include "engine/uring/uring.h"
#include "os/os.h"

#define PROBE_USER_DATA GI_URING_OWN(GI_URING_NOTHING)

struct feature_row {
    const char *name;
    uint32_t bit;
    const char *since;
    const char *use;
};

static const struct feature_row feature_rows[] = {
#define FEATURE_ROW(name, bit, text, since, use) {text, name, since, use},
    GI_URING_FEATURE_MAP(FEATURE_ROW)
#undef FEATURE_ROW
};

static bool is_word(const char *word, const char *text, size_t size)
{
    return strlen(word) == size && memcmp(word, text, size) == 0;
}

uint32_t gi_uring_features_parse(const char *list)
{
    uint32_t features = 0;
    while (list != NULL && *list != '\0') {
        size_t size = strcspn(list, ",");
        for (size_t i = 0; i < GI_ARRAY_COUNT(feature_rows); i++) {
            if (is_word(feature_rows[i].name, list, size)) {
                features |= feature_rows[i].bit;
            }
        }
        features |= is_word("all", list, size) ? (uint32_t)GI_URING_ENGINE : 0;
        list += size + (list[size] == ',');
    }
    return features;
}

uint32_t gi_uring_features_disabled(void)
{
    return gi_uring_features_parse(getenv("GORI_URING_DISABLE"));
}

int gi_uring_error(int system_error)
{
    switch (system_error) {
    case EPERM:
    case EACCES:
        return GORI_EPERM;
    case ENOSYS:
    case EINVAL:
    case EOPNOTSUPP:
        return GORI_ENOSYS;
    default:
        return gi_os_error(system_error);
    }
}

/* Submits one SQE alone and answers with its result. */
static int try_sqe(struct gi_ring *ring, const struct io_uring_sqe *trial)
{
    struct io_uring_sqe *sqe = gi_ring_take_sqe(ring);
    GI_ASSERT(sqe != NULL);
    *sqe = *trial;
    sqe->user_data = PROBE_USER_DATA;
    const struct io_uring_cqe *cqe = NULL;
    while (cqe == NULL) { /* a signal may end the wait before it is there */
        int error = gi_ring_enter(ring, 1, GORI_NEVER);
        if (error < 0) {
            return error;
        }
        cqe = gi_ring_next_cqe(ring);
    }
    return cqe->res;
}

int gi_uring_try_nothing(struct gi_ring *ring)
{
    const struct io_uring_sqe nothing = {.opcode = IORING_OP_NOP};
    return try_sqe(ring, &nothing);
}

int gi_uring_try_vectorized(struct gi_ring *ring)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
        return -errno;
    }
    static const uint8_t byte;
    const struct gori_slice pieces[2] = {{.data = &byte, .size = 1}, {.data = &byte, .size = 1}};
    const struct io_uring_sqe send = {
        .opcode = IORING_OP_SEND,
        .ioprio = GI_URING_IOPRIO_VECTORIZED,
        .fd = fds[0],
        .addr = (uintptr_t)pieces,
        .len = 2,
        .msg_flags = MSG_WAITALL | MSG_NOSIGNAL,
    };
    int sent = try_sqe(ring, &send);
    gi_os_close(fds[0]);
    gi_os_close(fds[1]);
    return sent == 2 ? 1 : 0;
}

/* A file of some lines, terminated; "" when it is not there. */
static void read_text(const char *folder, const char *name, char *text, size_t text_bytes)
{
    char path[128];
    text[0] = '\0';
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path)) {
        return;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    ssize_t size = read(fd, text, text_bytes - 1);
    text[size > 0 ? size : 0] = '\0';
    gi_os_close(fd);
}

void gi_uring_surroundings_read(const char *proc, struct gi_uring_surroundings *ret_surroundings)
{
    char text[4096];
    read_text(proc, "sys/kernel/io_uring_disabled", text, sizeof(text));
    int disabled = text[0] >= '0' && text[0] <= '9' ? text[0] - '0' : -1;
    read_text(proc, "self/status", text, sizeof(text));
    const char *line = strstr(text, "\nSeccomp:");
    bool filtered = line != NULL && strtol(line + sizeof("\nSeccomp:") - 1, NULL, 10) == 2;
    struct gi_os_limits limits;
    gi_os_limits_get(&limits);
    *ret_surroundings = (struct gi_uring_surroundings){
        .sysctl_disabled = disabled,
        .filtered = filtered,
        .memlock_exempt = limits.memlock_exempt,
        .memlock_bytes = limits.memlock_soft,
    };
}

GI_PRINTF(3, 4)
static void explain(struct gori_engine_report *report, enum gori_feature_state state,
                    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report->state = state;
    (void)vsnprintf(report->text, sizeof(report->text), format, arguments);
    va_end(arguments);
}

static void explain_refusal(const struct gi_uring_surroundings *surroundings,
                            struct gori_engine_report *report)
{
    if (surroundings->sysctl_disabled > 0) {
        explain(report, GORI_FEATURE_SYSCTL,
                "the administrator has switched io_uring off: kernel.io_uring_disabled is %d; 0 "
                "allows it to all, 1 to the group kernel.io_uring_group",
                surroundings->sysctl_disabled);
    } else if (surroundings->filtered) {
        explain(report, GORI_FEATURE_SECCOMP,
                "a seccomp filter refuses the system calls, as containers do by default; allow "
                "io_uring_setup, io_uring_enter and io_uring_register in its profile");
    } else {
        explain(report, GORI_FEATURE_ERROR,
                "refused without a filter or a sysctl: a security module (LSM) may forbid it");
    }
}

void gi_uring_explain(int system_error, const struct gi_uring_surroundings *surroundings,
                      struct gori_engine_report *report)
{
    switch (system_error) {
    case EPERM:
    case EACCES:
        explain_refusal(surroundings, report);
        break;
    case ENOSYS:
        if (surroundings->filtered) {
            explain_refusal(surroundings, report);
            break;
        }
        explain(report, GORI_FEATURE_KERNEL, "this kernel is built without io_uring");
        break;
    case EINVAL:
    case EOPNOTSUPP:
        explain(report, GORI_FEATURE_KERNEL, "this kernel is older than 6.0, which is needed");
        break;
    case ENOMEM:
        if (surroundings->memlock_exempt || surroundings->memlock_bytes == UINT64_MAX) {
            explain(report, GORI_FEATURE_ERROR, "the system is out of memory");
            break;
        }
        explain(report, GORI_FEATURE_MEMLOCK,
                "rings count as locked memory, of which this user may have %llu KiB over all "
                "processes; raise the limit (ulimit -l, LimitMEMLOCK=)",
                (unsigned long long)(surroundings->memlock_bytes / 1024));
        break;
    default:
        explain(report, GORI_FEATURE_ERROR, "%s", gori_error_text(gi_os_error(system_error)));
        break;
    }
}

static void add(struct gori_engine_report *report, const char *name, enum gori_feature_state state,
                const char *text)
{
    GI_ASSERT(report->feature_count < GORI_FEATURES_MAX);
    struct gori_feature *feature = &report->features[report->feature_count++];
    feature->name = name;
    feature->state = state;
    (void)snprintf(feature->text, sizeof(feature->text), "%s", text);
}

static void add_optional(struct gori_engine_report *report, uint32_t used, uint32_t disabled)
{
    for (size_t i = 0; i < GI_ARRAY_COUNT(feature_rows); i++) {
        char text[sizeof(report->features[0].text)];
        const struct feature_row *feature = &feature_rows[i];
        if (used & feature->bit) {
            add(report, feature->name, GORI_FEATURE_USED, feature->use);
        } else if (disabled & feature->bit) {
            add(report, feature->name, GORI_FEATURE_OPTION,
                "switched off by GORI_URING_DISABLE in the environment");
        } else {
            (void)snprintf(text, sizeof(text), "needs Linux %s: %s", feature->since, feature->use);
            add(report, feature->name, GORI_FEATURE_KERNEL, text);
        }
    }
}

/* What every kernel has that has a ring for us. */
static void add_basic(struct gori_engine_report *report)
{
    add(report, "single_issuer", GORI_FEATURE_USED,
        "one thread, one ring; what defer_taskrun builds on");
    add(report, "submit_all", GORI_FEATURE_USED,
        "one bad submission does not hold up those after it");
    add(report, "provided_buffers", GORI_FEATURE_USED,
        "receives take a buffer when there is data, from a small ring that stays in the cache");
    add(report, "recv_poll_first", GORI_FEATURE_USED,
        "no vain try to receive before there is data");
    add(report, "send_waitall", GORI_FEATURE_USED,
        "the kernel goes on by itself after a short send");
    add(report, "cancel_by_descriptor", GORI_FEATURE_USED,
        "closing ends everything on a socket with one submission");
}

/* Versions in which waiting for a minimum, and receiving in bundles, are known to go wrong. */
static bool is_known_bad(const char *release)
{
    unsigned major = 0;
    unsigned minor = 0;
    unsigned patch = 0;
    if (sscanf(release, "%u.%u.%u", &major, &minor, &patch) < 2) {
        return false;
    }
    if (major == 6) {
        return (minor == 12 && patch < 94) || (minor > 12 && minor < 18) ||
               (minor == 18 && patch < 36) || minor > 18 || minor == 10 || minor == 11;
    }
    return major == 7 && minor == 0 && patch < 13;
}

/* What is there and left alone, so that nobody has to ask. */
static void add_unneeded(struct gori_engine_report *report, const struct gi_ring *ring)
{
    struct utsname system;
    bool known_bad = uname(&system) == 0 && is_known_bad(system.release);
    enum gori_feature_state delicate = known_bad ? GORI_FEATURE_KNOWN_BAD : GORI_FEATURE_UNNEEDED;
    bool has_bundles = ring->kernel_features & GI_URING_FEAT_RECVSEND_BUNDLE;
    bool has_min_wait = ring->kernel_features & GI_URING_FEAT_MIN_TIMEOUT;
    add(report, "recv_bundle", has_bundles ? delicate : GORI_FEATURE_KERNEL,
        "several buffers in one completion: wrong order or lengths in many kernels, little gain");
    add(report, "min_wait", has_min_wait ? delicate : GORI_FEATURE_KERNEL,
        "waits longer for more completions: adds latency at low load");
    add(report, "incremental_buffers", GORI_FEATURE_UNNEEDED,
        "buffers used piece by piece: small hot buffers do the same without shared pieces");
    add(report, "send_zerocopy", GORI_FEATURE_UNNEEDED,
        "pays from 16 KiB on a network card with registered memory; copies twice over loopback");
    add(report, "registered_files", GORI_FEATURE_UNNEEDED,
        "saves nothing measurable with one thread per ring, and sockets lose their other calls");
    add(report, "sqpoll", GORI_FEATURE_UNNEEDED,
        "a kernel thread that submits: needs a processor of its own for each loop");
    add(report, "splice", GORI_FEATURE_UNNEEDED,
        "runs on a thread of its own for each call; sendfile from the loop is cheaper");
    add(report, "close_and_shutdown", GORI_FEATURE_UNNEEDED,
        "of sockets, as submissions: the system calls are cheaper, and their effect is at once");
    add(report, "msg_ring", GORI_FEATURE_UNNEEDED,
        "messages between rings: a mailbox and one wake of a sleeping loop cost less");
    add(report, "napi_busy_poll", GORI_FEATURE_UNNEEDED,
        "lower latency on a network card for a processor that never rests");
    add(report, "link_timeout", GORI_FEATURE_UNNEEDED,
        "one timer wheel and one deadline a turn cost less than a timeout for each operation");
    add(report, "zerocopy_receive", GORI_FEATURE_UNNEEDED,
        "needs a network card that splits headers, and administrator's rights");
}

static int try_buffer_ring(const struct gi_ring *ring)
{
    size_t bytes = 4096;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -ENOMEM;
    }
    struct io_uring_buf_reg group = {.ring_addr = (uintptr_t)memory, .ring_entries = 8};
    int result = gi_ring_register(ring, IORING_REGISTER_PBUF_RING, &group, 1);
    if (result >= 0) {
        result = gi_ring_register(ring, IORING_UNREGISTER_PBUF_RING, &group, 1);
    }
    (void)munmap(memory, bytes);
    return result;
}

/* Opens a small ring and does with it what the engine will need.  Result: 0 or a negative errno. */
static int try_ring(struct gi_ring *ring, uint32_t disabled)
{
    const struct gi_ring_config config = {.sq_entries = 8, .cq_entries = 16, .disabled = disabled};
    int error = gi_ring_init(ring, &config);
    if (error < 0) {
        return error;
    }
    error = gi_uring_try_nothing(ring);
    if (error == 0) {
        error = try_buffer_ring(ring);
    }
    if (error >= 0 && !(disabled & GI_URING_SEND_VECTORIZED)) {
        error = gi_uring_try_vectorized(ring);
        ring->features |= error > 0 ? (uint32_t)GI_URING_SEND_VECTORIZED : 0;
    }
    if (error < 0) {
        gi_ring_fini(ring);
        return error;
    }
    uint32_t kinds;
    ring->features |= gi_uring_try_files(ring, disabled, &kinds);
    return 0;
}

void gi_uring_report(struct gori_engine_report *ret_report)
{
    *ret_report = (struct gori_engine_report){.name = "io_uring"};
    uint32_t disabled = gi_uring_features_disabled();
    if (disabled & GI_URING_ENGINE) {
        explain(ret_report, GORI_FEATURE_OPTION,
                "switched off: GORI_URING_DISABLE=all is in the environment");
        return;
    }
    struct gi_ring ring;
    int error = try_ring(&ring, disabled);
    if (error < 0) {
        struct gi_uring_surroundings surroundings;
        gi_uring_surroundings_read("/proc", &surroundings);
        gi_uring_explain(-error, &surroundings, ret_report);
        return;
    }
    ret_report->usable = true;
    explain(ret_report, GORI_FEATURE_USED,
            "works here; GORI_URING_DISABLE=NAME,NAME switches single features off");
    add_optional(ret_report, ring.features, disabled);
    add_basic(ret_report);
    add_unneeded(ret_report, &ring);
    gi_ring_fini(&ring);
}
