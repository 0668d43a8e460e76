/* SPDX-License-Identifier: MIT */
/*
 * The io_uring interface of the kernel: <linux/io_uring.h> as of Linux 6.1, which is what the
 * oldest system we build on has, and the later constants under names of our own, so that a newer
 * header never clashes.  Numbers only; what they mean for us stands where they are used. Reading:
 * io_uring_setup(2), io_uring_enter(2), io_uring_register(2); include/uapi/linux/io_uring.h.
 */
#ifndef GI_ENGINE_URING_ABI_H
#define GI_ENGINE_URING_ABI_H

#include <gori/base.h>
#include <linux/io_uring.h>
#include <sys/uio.h>

/* io_uring_setup flags. */
#define GI_URING_SETUP_NO_SQARRAY (1U << 16) /* 6.6 */

/* io_uring_enter flags. */
#define GI_URING_ENTER_ABS_TIMER (1U << 5) /* 6.12 */
#define GI_URING_ENTER_NO_IOWAIT (1U << 7) /* 6.15 */

/* io_uring_params.features. */
#define GI_URING_FEAT_RECVSEND_BUNDLE (1U << 14) /* 6.10 */
#define GI_URING_FEAT_MIN_TIMEOUT     (1U << 15) /* 6.12 */
#define GI_URING_FEAT_NO_IOWAIT       (1U << 17) /* 6.15 */

/* SQE opcodes. */
#define GI_URING_OP_FTRUNCATE 55U /* 6.9 */

/* SQE ioprio of IORING_OP_SEND. */
#define GI_URING_IOPRIO_VECTORIZED (1U << 5) /* 6.17 */

/* io_uring_register opcodes. */
#define GI_URING_REGISTER_RESIZE_RINGS 33U /* 6.13 */

/* What is written to memory shared with the kernel, or read from it. */
_Static_assert(sizeof(struct io_uring_sqe) == 64, "a submission is one cache line");
_Static_assert(sizeof(struct io_uring_cqe) == 16, "four completions fit a cache line");
_Static_assert(sizeof(struct io_uring_buf) == 16, "an entry of a provided buffer ring");
_Static_assert(sizeof(struct io_uring_buf_reg) == 40, "the argument of REGISTER_PBUF_RING");
_Static_assert(sizeof(struct io_uring_params) == 120, "the argument of io_uring_setup");
_Static_assert(sizeof(struct io_uring_getevents_arg) == 24, "the argument of EXT_ARG");
_Static_assert(offsetof(struct io_uring_sqe, user_data) == 32, "");
_Static_assert(offsetof(struct io_uring_buf, resv) == 14,
               "the ring's tail lies in its first entry");

/* Pieces of a send go to the kernel as they are. */
_Static_assert(sizeof(struct gori_slice) == sizeof(struct iovec), "");
_Static_assert(offsetof(struct gori_slice, data) == offsetof(struct iovec, iov_base), "");
_Static_assert(offsetof(struct gori_slice, size) == offsetof(struct iovec, iov_len), "");

#endif
