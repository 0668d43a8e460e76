/* SPDX-License-Identifier: MIT */
/*
 * The operating system, as the layers above see it: sockets, clock, threads, limits, files,
 * signals.  The only layer that knows errno, and the only one with an #ifdef for a system.
 * Not an engine: nothing here waits for input or output, but gi_os_signals_wait.
 * Thread: any, unless a function says otherwise.
 */
#ifndef GI_OS_OS_H
#define GI_OS_OS_H

#include <gori/addr.h>
#include <gori/base.h>
#include <gori/file.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "os/signal.h"

/** The GORI_E… value of an errno; unknown ones are GORI_EUNKNOWN.  0 is 0. */
int gi_os_error(int system_error);

/* Clock (clock.c) ------------------------------------------------------------------------ */

/** Monotonic nanoseconds. */
gori_time gi_os_now(void);

/** Seconds since 1970, of the system's calendar. */
int64_t gi_os_calendar_seconds(void);

/** 64 bits of the system's randomness. */
uint64_t gi_os_entropy(void);

/* Sockets (socket.c) --------------------------------------------------------------------- */

#define GI_OS_BLOCKING   0x1 /* leave O_NONBLOCK unset, as io_uring needs it, where there is one */
#define GI_OS_REUSE_PORT 0x2
#define GI_OS_IPV6_ONLY  0x4
#define GI_OS_NO_DELAY   0x8 /* on a listener: what it accepts does not gather small sends */

/** A stream socket that is bound and listens.  A dead UNIX path is taken over, a live one is not.
 */
int gi_os_listen(const struct gori_addr *addr, uint32_t backlog, uint32_t flags, int *ret_fd);

/** A stream socket of a family, not connected; close-on-exec. */
int gi_os_socket(enum gori_addr_family family, uint32_t flags, int *ret_fd);

/** Whether GI_OS_REUSE_PORT spreads connections over the sockets that share a port. */
bool gi_os_balances_ports(void);

/** One queued connection of a listener; GORI_EAGAIN when there is none, never waits. */
int gi_os_accept(int listener_fd, uint32_t flags, int *ret_fd);

/** The same in one call, for a listener that is known not to block. */
int gi_os_accept_now(int listener_fd, uint32_t flags, int *ret_fd);

/** Another descriptor of the same socket. */
int gi_os_duplicate(int fd, int *ret_fd);

/** Whether a duplicate may be used by another loop or process than the original. */
bool gi_os_shares_sockets(void);

/** 0 for a stream socket that listens, else GORI_EINVAL. */
int gi_os_check_listening(int fd);

/** Names a file for as long as it exists. */
struct gi_os_file_id {
    uint64_t device;
    uint64_t inode; /* 0 for none */
};

/** Which file the path of a UNIX address names; none for an abstract one. */
void gi_os_socket_path_id(const struct gori_addr *addr, struct gi_os_file_id *ret_id);

/** Removes the path of a UNIX address if it still names that file. */
void gi_os_remove_socket_path(const struct gori_addr *addr, const struct gi_os_file_id *id);

int gi_os_set_blocking(int fd, bool on);
int gi_os_set_no_delay(int fd, bool on); /* 0 for sockets that have no such thing */
int gi_os_set_reset_on_close(int fd);
int gi_os_shutdown_send(int fd);
int gi_os_local_addr(int fd, struct gori_addr *ret_addr);
int gi_os_peer_addr(int fd, struct gori_addr *ret_addr);
void gi_os_close(int fd); /* of a socket; see gi_os_close_file */

/* Moving bytes without waiting (socket_io.c, send_file.c) -------------------------------- */

/* All answer GORI_EAGAIN where they would have to wait, whatever the mode of the socket; the last
   two need one that does not block. */

/** Bytes received, 0 at the end of the stream. */
int64_t gi_os_receive(int fd, void *data, size_t size);

/**
 * Bytes sent of `count` pieces (1 to GORI_SEND_PIECES_MAX), the first one from `offset` on, in one
 * call; with `more` the system may keep what does not fill a packet for the next one.  A peer that
 * is gone is GORI_EPIPE, never a signal.
 */
int64_t gi_os_send(int fd, const struct gori_slice *pieces, uint32_t count, size_t offset,
                   bool more);

/**
 * Connects: 0 when it is done, 1 when it is under way.  The socket becomes writable when that ends,
 * and the same call says then how.  GORI_EAGAIN: the peer's queue is full, nothing will tell when
 * it is not any more (UNIX sockets).
 */
int gi_os_connect(int fd, const struct gori_addr *addr);

/** As poll(2), to the nanosecond where the system can; 0 also after a signal. */
struct pollfd;
int gi_os_poll(struct pollfd *entries, uint32_t count, gori_time timeout);

/** Bytes of a file sent, up to `size` from `offset` on; 0 at the end of the file. */
int64_t gi_os_send_file(int fd, int file, uint64_t offset, size_t size);

/* Waking a thread that waits for descriptors (wake.c) ------------------------------------ */

/** A pair of descriptors, which may be one: what is signalled makes `read_fd` readable. */
struct gi_os_wake {
    int read_fd;
    int write_fd;
};

int gi_os_wake_open(struct gi_os_wake *wake);
void gi_os_wake_close(struct gi_os_wake *wake);
void gi_os_wake_signal(const struct gi_os_wake *wake); /* from any thread */
void gi_os_wake_clear(const struct gi_os_wake *wake);  /* no longer readable */

/* Threads (thread.c, cpu.c) -------------------------------------------------------------- */

struct gi_os_thread {
    uintptr_t native;
};

typedef void gi_os_thread_fn(void *argument);

int gi_os_thread_start(struct gi_os_thread *thread, gi_os_thread_fn *run, void *argument);
void gi_os_thread_join(struct gi_os_thread *thread);
uintptr_t gi_os_thread_self(void);
void gi_os_thread_yield(void); /* others may run first */
void gi_os_thread_set_name(const char *name);

/** CPUs that this process may use (affinity and cgroup quota), at least 1. */
uint32_t gi_os_cpu_count(void);

/** Binds the calling thread to the `index`-th of those CPUs (modulo their number). */
int gi_os_pin(uint32_t index);

/** A mutex and condition in one, for start and stop of workers; not for hot paths. */
struct gi_os_monitor {
    uint64_t native[16];
};

int gi_os_monitor_init(struct gi_os_monitor *monitor);
void gi_os_monitor_fini(struct gi_os_monitor *monitor);
void gi_os_monitor_lock(struct gi_os_monitor *monitor);
void gi_os_monitor_unlock(struct gi_os_monitor *monitor);
void gi_os_monitor_wait(struct gi_os_monitor *monitor);
bool gi_os_monitor_wait_until(struct gi_os_monitor *monitor, gori_time deadline); /* false: late */
void gi_os_monitor_notify(struct gi_os_monitor *monitor);

/* Limits (limits.c) ---------------------------------------------------------------------- */

struct gi_os_limits {
    uint64_t descriptors_soft;
    uint64_t descriptors_hard;
    uint64_t memlock_soft; /* bytes; UINT64_MAX for none */
    uint64_t memlock_hard;
    bool memlock_exempt; /* the process may lock without limit */
};

void gi_os_limits_get(struct gi_os_limits *ret_limits);

/** Raises the soft limits of descriptors and locked memory to the hard ones, as far as allowed. */
void gi_os_limits_raise(void);

/* Signals (signals.c) -------------------------------------------------------------------- */

/** Waits for what asks a program to end (SIGTERM and SIGINT), or for gi_os_signals_interrupt. */
struct gi_os_signals {
    struct gi_os_signal_watch watch;
    uint64_t came; /* a set, of what was taken and is not told yet */
    struct gi_atomic_bool is_interrupted;
};

/** From now on neither ends the process; ignores SIGPIPE. */
int gi_os_signals_open(struct gi_os_signals *signals);
void gi_os_signals_close(struct gi_os_signals *signals);

/** Waits.  Result: 1 for a signal, 0 for an interrupt, or an error. */
int gi_os_signals_wait(struct gi_os_signals *signals);

/** Makes the wait return; from any thread, also from a signal handler. */
void gi_os_signals_interrupt(struct gi_os_signals *signals);

/* Files (file.c) ------------------------------------------------------------------------- */

/** Opens a folder for lookups beneath it. */
int gi_os_open_root(const char *path, int *ret_fd);

/** See gori_root_open_file; by openat2 where there is one, by a walk of our own elsewhere. */
int gi_os_open_beneath(int root_fd, const char *path, int *ret_fd, struct gori_file_info *ret_info);

/** See gori_root_stat. */
int gi_os_stat_beneath(int root_fd, const char *path, struct gori_file_info *ret_info);

int64_t gi_os_read_at(int fd, void *data, size_t size, uint64_t offset);

/** Closes a file or a root; not every system closes them as it closes sockets. */
void gi_os_close_file(int fd);

/* What file ops do, where a thread does them: all of these may block (file_op.c) --------- */

#define GI_OS_FILE_READ      0x01
#define GI_OS_FILE_WRITE     0x02
#define GI_OS_FILE_CREATE    0x04
#define GI_OS_FILE_EXCLUSIVE 0x08
#define GI_OS_FILE_TRUNCATE  0x10
#define GI_OS_FILE_APPEND    0x20

/** No root: the path is the system's own. */
#define GI_OS_NO_ROOT (-1)

/** How a file is opened. */
struct gi_os_file_open {
    int root_fd; /* the path stays beneath it; or GI_OS_NO_ROOT */
    const char *path;
    uint32_t flags; /* GI_OS_FILE_… */
    uint32_t mode;  /* of one that is made */
};

/**
 * The flags of open(2) for GI_OS_FILE_…, with O_NONBLOCK so that no FIFO is waited for: it is to be
 * taken off when the file is open.  Not on Windows.
 */
int gi_os_open_flags(uint32_t flags);

/** Opens a regular file or a folder; others are let go again with GORI_EACCESS. */
int gi_os_file_open(const struct gi_os_file_open *how, int *ret_fd,
                    struct gori_file_info *ret_info);

/** What is under a path. */
int gi_os_file_stat_path(int root_fd, const char *path, struct gori_file_info *ret_info);

int gi_os_file_stat(int fd, struct gori_file_info *ret_info);

/* One call: bytes moved, perhaps fewer than asked for; the first piece from `skip` on.  In the
   pieces of a read is room, whatever their type says. */
int64_t gi_os_file_read(int fd, const struct gori_slice *pieces, uint32_t count, size_t skip,
                        uint64_t offset);
int64_t gi_os_file_write(int fd, const struct gori_slice *pieces, uint32_t count, size_t skip,
                         uint64_t offset, bool append);

int gi_os_file_sync(int fd, bool data_only);
int gi_os_file_truncate(int fd, uint64_t size);
int gi_os_file_close(int fd); /* the descriptor is gone, whatever it says */

#endif
