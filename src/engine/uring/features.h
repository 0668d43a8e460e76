/* SPDX-License-Identifier: MIT */
/*
 * The parts of io_uring that the engine uses when they are there, each of which can be switched off
 * by name in the environment: GORI_URING_DISABLE=resize_rings,no_iowait.  "all" switches the whole
 * engine off.  Everything else it uses is in every kernel since 6.0 and has no name.
 */
#ifndef GI_ENGINE_URING_FEATURES_H
#define GI_ENGINE_URING_FEATURES_H

#include <stdint.h>

/** The table: X(name, bit, text, since, kernel, what it does for us). */
#define GI_URING_FEATURE_MAP(X)                                                                    \
    X(GI_URING_DEFER_TASKRUN, 0, "defer_taskrun", "6.1",                                           \
      "completions are made inside our own call, in batches, not by interrupting the thread")      \
    X(GI_URING_NO_SQARRAY, 1, "no_sqarray", "6.6", "one cache line less for each submission")      \
    X(GI_URING_REGISTERED_RING, 2, "registered_ring", "5.18",                                      \
      "saves the look-up of the ring's descriptor in each call")                                   \
    X(GI_URING_ABS_TIMER, 3, "abs_timer", "6.12",                                                  \
      "waits until a deadline instead of for a span: no clock is read before a wait")              \
    X(GI_URING_NO_IOWAIT, 4, "no_iowait", "6.15",                                                  \
      "an idle loop shows as idle, not as 100 % iowait")                                           \
    X(GI_URING_RESIZE_RINGS, 5, "resize_rings", "6.13",                                            \
      "rings start small and double when they are half full, so that many loops fit the limits")   \
    X(GI_URING_SEND_VECTORIZED, 6, "send_vectorized", "6.17",                                      \
      "a gathered send without a message header to copy")                                          \
    X(GI_URING_ACCEPT_MULTISHOT, 7, "accept_multishot", "5.19",                                    \
      "one submission accepts connections until it is cancelled")                                  \
    X(GI_URING_RECV_MULTISHOT, 8, "recv_multishot", "6.0",                                         \
      "one submission receives until the stream ends; an idle connection holds no buffer")         \
    X(GI_URING_FILES, 9, "files", "5.6",                                                           \
      "files are opened, read, written, synced and closed without threads of ours")                \
    X(GI_URING_FILE_TRUNCATE, 10, "file_truncate", "6.9", "and truncated")

/** The features, one bit each. */
enum gi_uring_feature {
#define GI_URING_FEATURE_ENUM(name, bit, text, since, use) name = 1 << (bit),
    GI_URING_FEATURE_MAP(GI_URING_FEATURE_ENUM)
#undef GI_URING_FEATURE_ENUM
        GI_URING_FEATURES_ALL = (1 << 11) - 1,
    GI_URING_ENGINE = 1 << 16 /* not a feature: the whole engine, as "all" */
};

/** The features named in a comma list, as bits; unknown names are ignored.  NULL names none. */
uint32_t gi_uring_features_parse(const char *list);

/** The features that GORI_URING_DISABLE names. */
uint32_t gi_uring_features_disabled(void);

#endif
