/* SPDX-License-Identifier: MIT */
/*
 * A thread that waits for what asks a program to end, or for an interrupt of our own.
 * Thread: one opens and waits; any may interrupt.
 */
#include "os/event.h"
#include "os/os.h"

int gi_os_signals_open(struct gi_os_signals *signals)
{
    *signals = (struct gi_os_signals){0};
    gi_atomic_bool_init(&signals->is_interrupted, false);
    int error = gi_os_signal_watch_open(&signals->watch);
    if (error < 0) {
        return error;
    }
    uint64_t set = gi_os_signal_stop_set();
    for (int number = 1; number <= GI_OS_SIGNAL_MAX && error == 0; number++) {
        if (set & GI_OS_SIGNAL_BIT(number)) {
            error = gi_os_signal_watch_add(&signals->watch, number);
        }
    }
    if (error < 0) {
        gi_os_signals_close(signals);
        return error;
    }
    gi_os_signal_ignore_pipe();
    return 0;
}

void gi_os_signals_close(struct gi_os_signals *signals)
{
    gi_os_signal_watch_close(&signals->watch);
    gi_os_event_close((int)signals->watch.source);
}

int gi_os_signals_wait(struct gi_os_signals *signals)
{
    for (;;) {
        signals->came |= gi_os_signal_watch_take(&signals->watch);
        if (signals->came != 0) {
            signals->came &= signals->came - 1; /* each of them is told for itself */
            return 1;
        }
        /* Pairs with the store in gi_os_signals_interrupt. */
        if (gi_atomic_bool_exchange(&signals->is_interrupted, false, GI_ACQUIRE)) {
            return 0;
        }
        int error = gi_os_event_wait((int)signals->watch.source);
        if (error < 0) {
            return error;
        }
    }
}

void gi_os_signals_interrupt(struct gi_os_signals *signals)
{
    gi_atomic_bool_store(&signals->is_interrupted, true, GI_RELEASE);
    gi_os_signal_watch_poke(&signals->watch);
}
