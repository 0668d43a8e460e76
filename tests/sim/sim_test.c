/* SPDX-License-Identifier: MIT */
/*
 * Plays scenarios over many seeds.
 *
 *     GORI_SIM_SEED=n      begin with this seed (default 1), and take one only
 *     GORI_SIM_COUNT=m     take so many
 *     GORI_SIM_SCENARIO=x  only this scenario
 *
 * Each scenario's first seeds are played twice, and must be the same to the last event.  A failure
 * prints the world and how to replay it, and ends the program.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "sim/run.h"

#define TWICE_COUNT      20
#define WATCHDOG_SECONDS 60

static const struct sim_scenario *const scenarios[] = {&sim_ops, &sim_echo, &sim_events,
                                                       &sim_web, &sim_jobs, &sim_files};

static struct {
    const struct sim_scenario *scenario;
    uint64_t seed;
} playing;

#if __has_include(<sys/wait.h>)
static void on_fatal(int number)
{
    fprintf(stderr,
            "signal %d in scenario %s; replay it with\n\n    ./dev sim SEED=%" PRIu64
            " SCENARIO=%s\n\n",
            number, playing.scenario->name, playing.seed, playing.scenario->name);
    fflush(stderr);
    (void)raise(number);
}

static void catch_signals(void)
{
    /* The address sanitizer has more to say of the others than we. */
    static const int numbers[] = {SIGABRT, SIGVTALRM, SIGSEGV, SIGBUS};
    const size_t count = GI_ASAN ? 2 : GI_ARRAY_COUNT(numbers);
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < count; i++) {
        (void)sigaction(numbers[i], &action, NULL);
    }
}

/* Of processor time: a busy machine is no fault of ours. */
static void start_watchdog(void)
{
    const struct itimerval watchdog = {.it_value.tv_sec = WATCHDOG_SECONDS};
    (void)setitimer(ITIMER_VIRTUAL, &watchdog, NULL);
}
#else
/* What dies or hangs there can be replayed here. */
static void catch_signals(void)
{
}

static void start_watchdog(void)
{
}
#endif

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t play(const struct sim_scenario *scenario, uint64_t seed)
{
    playing.scenario = scenario;
    playing.seed = seed;
    start_watchdog();
    return scenario->play(seed);
}

static bool play_all(const struct sim_scenario *scenario, uint64_t first, uint64_t count)
{
    double begin = seconds_now();
    uint64_t hash = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        uint64_t one = play(scenario, seed);
        if (seed < first + TWICE_COUNT && play(scenario, seed) != one) {
            fprintf(stderr, "%s: seed %" PRIu64 " is not the same world twice\n", scenario->name,
                    seed);
            return false;
        }
        hash = hash * 31 + one;
    }
    double seconds = seconds_now() - begin;
    printf("%s: %" PRIu64 " seeds from %" PRIu64 ", hash %016" PRIx64 ", %.1f s, %.0f seeds/s\n",
           scenario->name, count, first, hash, seconds, (double)count / seconds);
    return true;
}

int main(void)
{
    const char *only = getenv("GORI_SIM_SCENARIO");
    uint64_t seed = number_of("GORI_SIM_SEED", 0);
    uint64_t count = number_of("GORI_SIM_COUNT", seed > 0 ? 1 : 0);
    bool any = false;
    bool ok = true;
    catch_signals();
    for (size_t i = 0; i < GI_ARRAY_COUNT(scenarios) && ok; i++) {
        const struct sim_scenario *scenario = scenarios[i];
        if (only != NULL && only[0] != '\0' && strcmp(only, scenario->name) != 0) {
            continue;
        }
        any = true;
        ok = play_all(scenario, seed > 0 ? seed : 1, count > 0 ? count : scenario->seeds);
    }
    if (!any) {
        fprintf(stderr, "no scenario is called %s\n", only);
    }
    return ok && any ? 0 : 1;
}
