/* SPDX-License-Identifier: MIT */
/*
 * Calls on open files, as the operating system has them: for all engines but sim.
 * Thread: any.
 */
#include "base/compiler.h"
#include "engine/engine.h"
#include "os/os.h"

static int64_t read_at(void *place, int descriptor, void *data, size_t size, uint64_t offset)
{
    (void)place;
    return gi_os_read_at(descriptor, data, size, offset);
}

static int close_file(void *place, int descriptor)
{
    (void)place;
    return gi_os_file_close(descriptor);
}

const struct gi_file_calls gi_system_files = {.read = read_at, .close = close_file};
