/* SPDX-License-Identifier: MIT */
/*
 * Asks for an engine by making a loop on it.  Contract: has_engine.h.
 */
#include "fault/has_engine.h"

#include <gori/loop.h>
#include <string.h>

bool fault_has_engine(const char *engine)
{
    struct gori_loop_config config = {.engine = engine};
    struct gori_loop *loop = NULL;
    if (strcmp(engine, "sim") == 0) {
        return true;
    }
    int error = gori_loop_create(&config, &loop);
    gori_loop_destroy(loop);
    return error == 0;
}
