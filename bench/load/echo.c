/* SPDX-License-Identifier: MIT */
/* The echo protocol of the load generator: what comes back must be, byte for byte, what was
 * sent. */
#include "load.h"

/* Depends on the place in the message, so that lost or doubled bytes are seen. */
static char pattern(uint64_t offset)
{
    return (char)('!' + offset % 89);
}

static size_t fill_echo(const struct load_options *options, char *batch)
{
    size_t total = (size_t)options->size * options->depth;
    if (total > LOAD_BATCH_BYTES_MAX) {
        return 0;
    }
    for (size_t i = 0; i < total; i++) {
        batch[i] = pattern(i % options->size);
    }
    return total;
}

static int take_echo(const struct load_options *options, struct load_answer *answer,
                     const char *data, size_t size)
{
    int complete = 0;
    uint64_t left = answer->in_body ? answer->body_left : options->size;
    for (size_t i = 0; i < size; i++) {
        if (data[i] != pattern(options->size - left)) {
            return -1 - LOAD_ERROR_CONTENT;
        }
        if (--left == 0) {
            complete++;
            left = options->size;
        }
    }
    answer->in_body = true;
    answer->body_left = left;
    return complete;
}

const struct load_protocol load_echo_protocol = {.fill = fill_echo, .take = take_echo};
