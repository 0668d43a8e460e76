/* SPDX-License-Identifier: MIT */
/*
 * Operations: the completion contract that everything else in gori is built on, and the stream
 * socket operations themselves.  Most programs use sessions (<gori/session.h>) instead.
 *
 * The contract, for every engine:
 *  1. From an accepted submit to its last completion the op, and the buffers it names, belong to
 *     the runtime.
 *  2. Every accepted op completes exactly once; a multishot op several times, the last one marked
 *     by `is_last`.
 *  3. A submit that returns an error never completes.
 *  4. No completion runs inside submit, cancel or close.
 *  5. Completions run on the thread of the op's loop, and the ones of one op in the order of
 *     the stream.
 *  6. Cancel asks; only the op's own last completion says what happened.
 *  7. Inside its last completion an op may be submitted again or its memory freed.
 *  8. Closing a handle cancels its ops.  `on_close` is the last callback there will ever be for the
 *     handle, and comes once.
 *  9. No queue is unbounded: a loop accepts `ops_max` operations and answers GORI_ELIMIT beyond.
 * 10. A descriptor is not released for reuse while any op on it is in flight.
 *
 * Stability: unstable until 1.0.
 */
#ifndef GORI_OP_H
#define GORI_OP_H

#include <gori/addr.h>
#include <gori/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gori_buffer;
struct gori_handle;
struct gori_loop;
struct gori_op;

/** The operating system's name of a socket; in the simulator, the simulator's. */
typedef intptr_t gori_native;

#define GORI_NATIVE_NONE ((gori_native)-1)

/** What a completion says.  Valid during the callback only. */
struct gori_completion {
    int64_t result;             /* >= 0: bytes moved, or 0 for done; < 0: GORI_E… */
    bool is_last;               /* no further completion of this op comes */
    gori_native accepted;       /* accept: the new socket, now the callee's; else NONE */
    struct gori_buffer *buffer; /* multishot receive with result > 0: holds `data`; the callee's
                                   until gori_buffer_release */
    struct gori_slice data;     /* the bytes received into `buffer` */
};

typedef void gori_op_fn(struct gori_op *op, const struct gori_completion *completion);
typedef void gori_handle_fn(struct gori_handle *handle);

enum gori_op_kind {
    GORI_OP_NONE = 0,
    GORI_OP_ACCEPT = 1, /* multishot */
    GORI_OP_CONNECT = 2,
    GORI_OP_RECV = 3,       /* into the caller's memory */
    GORI_OP_RECV_MULTI = 4, /* multishot, into the loop's receive buffers */
    GORI_OP_SEND = 5,       /* all of the pieces, in order */
    GORI_OP_SEND_FILE = 6,  /* all of the range */
    GORI_OP_WAIT = 7,       /* until an event source is ready */
    /* of files: <gori/file_op.h> */
    GORI_OP_FILE_OPEN = 8,
    GORI_OP_FILE_READ = 9,
    GORI_OP_FILE_WRITE = 10,
    GORI_OP_FILE_SYNC = 11,
    GORI_OP_FILE_STAT = 12,
    GORI_OP_FILE_TRUNCATE = 13,
    GORI_OP_FILE_CLOSE = 14,
    GORI_OP_WAIT_WRITABLE = 15 /* until an event source takes something */
};

/** One operation.  Embed it; zero it before its first use. */
struct gori_op {
    /* public: set by the caller, kept by the runtime */
    gori_op_fn *on_complete;
    void *user;
    /* read-only */
    struct gori_handle *handle; /* set by submit */
    uint8_t kind;               /* enum gori_op_kind */
    /* private */
    uint8_t state;
    uint8_t flags;
    uint8_t more; /* of a send: another follows at once */
    uint32_t slot;
    struct gori_link link;
    union {
        struct {
            const struct gori_addr *addr;
        } connect;
        struct {
            void *data;
            size_t size;
        } recv;
        struct {
            const struct gori_slice *pieces;
            uint32_t count;
            uint32_t index;  /* first piece not sent whole */
            size_t offset;   /* bytes of it sent */
            size_t progress; /* bytes sent of all pieces */
        } send;
        struct {
            int file;
            uint64_t offset;
            uint64_t size;
            uint64_t progress;
        } send_file;
        struct {
            int64_t result; /* decided, not yet delivered */
        } done;
    } as;
};

/** A socket, or an event source, on a loop.  Embed it; zero it before open. */
struct gori_handle {
    /* public */
    gori_handle_fn *on_close;
    void *user;
    /* read-only */
    struct gori_loop *loop;
    gori_native native;
    /* private */
    uint32_t slot;
    uint32_t in_flight; /* operations that the engine holds */
    uint8_t state;
    uint8_t flags;
    uint8_t ready;
    uint8_t armed;
    uint32_t budget;         /* steps left in this turn */
    struct gori_link reads;  /* ops waiting to read, accept */
    struct gori_link writes; /* ops waiting to write, connect */
    struct gori_link link;   /* the engine's list of handles with work */
    struct gori_link open;   /* the loop's list of all of them */
};

/** Largest number of pieces in one send. */
#define GORI_SEND_PIECES_MAX 64

/**
 * Opens a stream socket of a family on a loop, not connected.
 * Thread: the loop's.  Memory: `handle` is the caller's and must live until its `on_close`.
 * Errors: GORI_EMFILE, GORI_ENFILE, GORI_ENOMEM, GORI_ENOBUFS.
 */
GORI_API GORI_MUST_USE int gori_handle_open(struct gori_loop *loop, enum gori_addr_family family,
                                            struct gori_handle *handle);

/**
 * Puts an existing socket (an accepted one, or one that came from outside) on a loop.
 * Thread: the loop's.  Memory: as gori_handle_open; on success the loop owns `native`, on failure
 * the caller still does.
 */
GORI_API GORI_MUST_USE int gori_handle_adopt(struct gori_loop *loop, gori_native native,
                                             struct gori_handle *handle);

/**
 * Puts what another library waits for on a loop, for gori_op_wait and nothing else: on POSIX any
 * descriptor that can be polled (not a plain file), on Windows an object that stays signalled (a
 * process, a manual-reset event).  Its mode is left alone.
 * Thread: the loop's.  Memory: as gori_handle_open.  `native` stays the caller's, who may close it
 * at any time: what is watched is a duplicate, and a socket lives for as long as one of both does.
 * Errors: as gori_handle_open; GORI_EINVAL; GORI_EPERM for what cannot be polled; GORI_ELIMIT where
 * the engine cannot watch so high a number.
 */
GORI_API GORI_MUST_USE int gori_handle_watch(struct gori_loop *loop, gori_native native,
                                             struct gori_handle *handle);

/** What a listening socket is like.  Zero means the default for every field. */
struct gori_listen_options {
    uint32_t backlog; /* default 4096; the system may cap it */
    bool reuse_port;  /* share the port between loops (SO_REUSEPORT) */
    bool ipv6_only;   /* an IPv6 wildcard takes no IPv4 */
};

/**
 * Opens a socket that listens on `addr`, for gori_op_accept.  `options` may be NULL.
 * Thread: the loop's.  Memory: as gori_handle_open.
 * Errors: GORI_EINVAL, GORI_EADDRINUSE, GORI_EADDRNOTAVAIL, GORI_EACCESS, GORI_EMFILE, GORI_ENFILE,
 * GORI_ENOMEM; GORI_EADDRINUSE for a UNIX path on which a live server listens; a dead one's path is
 * taken over.
 */
GORI_API GORI_MUST_USE int gori_handle_listen(struct gori_loop *loop, const struct gori_addr *addr,
                                              const struct gori_listen_options *options,
                                              struct gori_handle *handle);

/** Our own address of a handle, with the port that the system chose.  Errors: GORI_ECLOSED. */
GORI_API GORI_MUST_USE int gori_handle_addr(const struct gori_handle *handle,
                                            struct gori_addr *ret_addr);

/**
 * Closes a handle: its ops complete with GORI_ECANCELED or with what they did, then the descriptor
 * is closed, then `on_close` runs from the loop.
 * Thread: the loop's.  Callback: never inside this call.  Calling it twice is the same as once.
 */
GORI_API void gori_handle_close(struct gori_handle *handle);

/** As gori_handle_close, but the peer is sent a reset instead of an orderly end (SO_LINGER 0). */
GORI_API void gori_handle_reset(struct gori_handle *handle);

/**
 * Ends the sending direction: the peer reads everything sent so far, then the end of the stream.
 * Thread: the loop's.  Errors: GORI_ECLOSED when it is closing, or not connected.
 */
GORI_API GORI_MUST_USE int gori_handle_shutdown(struct gori_handle *handle);

/** Closes a socket that no handle ever owned, such as an accepted one nobody wants. */
GORI_API void gori_native_close(struct gori_loop *loop, gori_native native);

/**
 * Accepts connections until it is cancelled.  Each completion carries one in `accepted`; an error
 * ends it (GORI_EMFILE, GORI_ENFILE, GORI_ENOBUFS, GORI_ECONNABORTED are passing conditions).
 * Thread: the loop's.  Errors: GORI_ECLOSED, GORI_ELIMIT, GORI_ENOMEM.
 */
GORI_API GORI_MUST_USE int gori_op_accept(struct gori_op *op, struct gori_handle *listener);

/**
 * Connects; result 0 when the peer has accepted.
 * Memory: `addr` must live until the completion.  Thread, errors: as gori_op_accept.
 */
GORI_API GORI_MUST_USE int gori_op_connect(struct gori_op *op, struct gori_handle *handle,
                                           const struct gori_addr *addr);

/**
 * Receives once, at least one byte, into the caller's memory.  Result: bytes; 0 at the end of the
 * stream.  Memory: `data` belongs to the runtime until the completion.
 * Only one receive, of either kind, is on a handle at a time: a second answers GORI_EBUSY.
 */
GORI_API GORI_MUST_USE int gori_op_recv(struct gori_op *op, struct gori_handle *handle, void *data,
                                        size_t size);

/**
 * Receives until the end of the stream, an error or a cancel, into buffers that the loop lends
 * only when there is data: an idle connection holds none.  When the loop is out of buffers the op
 * waits, in turn, until some return.  Result: bytes in `data`; 0, last, at the end of the stream.
 */
GORI_API GORI_MUST_USE int gori_op_recv_multi(struct gori_op *op, struct gori_handle *handle);

/**
 * Sends all bytes of `count` pieces in order (1 to GORI_SEND_PIECES_MAX).  Result: their sum, or an
 * error, after which an unknown part has been sent.
 * Memory: the array and the bytes belong to the runtime until the completion.
 * Only one send, of either kind, is on a handle at a time: a second answers GORI_EBUSY.
 */
GORI_API GORI_MUST_USE int gori_op_send(struct gori_op *op, struct gori_handle *handle,
                                        const struct gori_slice *pieces, uint32_t count);

/**
 * As gori_op_send, for bytes that another send follows as soon as they are sent: the system may
 * keep a last packet that is not full for what follows.
 */
GORI_API GORI_MUST_USE int gori_op_send_more(struct gori_op *op, struct gori_handle *handle,
                                             const struct gori_slice *pieces, uint32_t count);

/** The range of a file that gori_op_send_file sends. */
struct gori_file_range {
    int file;        /* descriptor, open for reading; the caller's, open until the completion; of
                        a gori_file: gori_file_descriptor */
    uint64_t offset; /* bytes */
    uint64_t size;   /* bytes */
};

/**
 * Sends a range of a file without copying it through user memory where the system can.  Result:
 * its size; GORI_ETRUNCATED when the file ended early, after which a part has been sent.
 */
GORI_API GORI_MUST_USE int gori_op_send_file(struct gori_op *op, struct gori_handle *handle,
                                             const struct gori_file_range *range);

/**
 * Waits until a handle of gori_handle_watch is ready: on POSIX until it can be read without
 * waiting, or is at its end or in error; on Windows until it is signalled.  Result: 0, at once when
 * it is ready already.  Nothing is read from it, and nothing remembered: who waits again before it
 * was read or reset is answered again.
 * Thread, errors: as gori_op_accept.  GORI_EBUSY: one wait is on a handle at a time.
 */
GORI_API GORI_MUST_USE int gori_op_wait(struct gori_op *op, struct gori_handle *handle);

/**
 * As gori_op_wait, until the handle can be written without waiting, or is in error; a socket that
 * connects is at its end then, one way or the other.  Beside a gori_op_wait on the same handle.
 * Errors: GORI_ENOTSUP on Windows, where objects are signalled and no more.
 */
GORI_API GORI_MUST_USE int gori_op_wait_writable(struct gori_op *op, struct gori_handle *handle);

/**
 * Asks for an op to end.  It completes with GORI_ECANCELED, or with what it did when that came
 * first.  Asking for one that is not in flight does nothing.
 * Thread: the loop's.  Callback: never inside this call.
 */
GORI_API void gori_op_cancel(struct gori_op *op);

/** Whether an op is in flight: accepted and not yet completed for the last time. */
GORI_API bool gori_op_is_active(const struct gori_op *op);

/** Keeps a receive buffer for one more holder.  Thread: the loop's. */
GORI_API void gori_buffer_retain(struct gori_buffer *buffer);

/** Gives a receive buffer back; with its last holder it returns to the loop.  Thread: the loop's.
 */
GORI_API void gori_buffer_release(struct gori_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
