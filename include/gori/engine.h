/* SPDX-License-Identifier: MIT */
/*
 * What engines there are, which of them this machine can run, which features each uses here, and
 * why not.  `gori doctor` prints what these functions say.  Stability: unstable until 1.0.
 */
#ifndef GORI_ENGINE_H
#define GORI_ENGINE_H

#include <gori/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Why a feature or an engine is not used. */
enum gori_feature_state {
    GORI_FEATURE_USED = 1,
    GORI_FEATURE_KERNEL = 2,    /* this kernel does not have it */
    GORI_FEATURE_SECCOMP = 3,   /* a filter refuses the system call */
    GORI_FEATURE_SYSCTL = 4,    /* switched off by the administrator */
    GORI_FEATURE_MEMLOCK = 5,   /* the memory-lock limit is too small */
    GORI_FEATURE_OPTION = 6,    /* switched off by an option or the environment */
    GORI_FEATURE_KNOWN_BAD = 7, /* present, but faulty in this kernel */
    GORI_FEATURE_UNNEEDED = 8,  /* present, and deliberately not used */
    GORI_FEATURE_ERROR = 9,     /* the probe itself failed; see the text */
    GORI_FEATURE_SYSTEM = 10    /* another operating system's; not in this build */
};

/** One feature of an engine, as found on this machine.  Texts are static or live in the report. */
struct gori_feature {
    const char *name;
    enum gori_feature_state state;
    char text[160]; /* what it does for us, or why it is not used and what to do */
};

#define GORI_FEATURES_MAX 48

/** What is known of one engine on this machine. */
struct gori_engine_report {
    const char *name;
    bool usable;
    enum gori_feature_state state; /* USED when usable, or why not */
    char text[256];                /* the reason, and what to do about it */
    uint32_t feature_count;
    struct gori_feature features[GORI_FEATURES_MAX];
};

/** The number of engines: first those of this build, best first, then those of other systems. */
GORI_API uint32_t gori_engine_count(void);

/** The name of an engine, for --engine and GORI_ENGINE; NULL when `index` is not below the count.
 */
GORI_API const char *gori_engine_name(uint32_t index);

/**
 * Probes one engine.  Thread: any; takes some milliseconds, opens and closes descriptors.
 * Errors: GORI_EINVAL when `index` is not below gori_engine_count.
 */
GORI_API GORI_MUST_USE int gori_engine_probe(uint32_t index, struct gori_engine_report *ret_report);

/** The name of a state, such as "seccomp". */
GORI_API const char *gori_feature_state_name(enum gori_feature_state state);

#ifdef __cplusplus
}
#endif

#endif
