/* SPDX-License-Identifier: MIT */
/*
 * What of Winsock the engine needs and must ask for: the extension functions, and whether its
 * sockets are the kernel's own.
 * Thread: any.
 */
#ifndef GI_ENGINE_IOCP_PROBE_H
#define GI_ENGINE_IOCP_PROBE_H

#include "os/windows/system.h"

#include <gori/engine.h>
#include <stdbool.h>

struct gi_iocp_calls {
    LPFN_ACCEPTEX accept;
    LPFN_CONNECTEX connect;
    LPFN_TRANSMITFILE transmit_file;
    /* FILE_SKIP_COMPLETION_PORT_ON_SUCCESS is sound: sockets are file handles of the kernel.  With
       a layered provider in between some operations that succeed at once have a packet all the
       same. */
    bool may_skip;
};

/** GORI_ENOSYS when a function is missing. */
int gi_iocp_find_calls(struct gi_iocp_calls *ret_calls);

/** gi_engine_impl.report. */
void gi_iocp_report(struct gori_engine_report *ret_report);

#endif
