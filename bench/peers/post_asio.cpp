/* SPDX-License-Identifier: MIT */
/*
 * What a message to the loop of another thread costs with asio's post, measured as micro/post.c does.
 */
#include "micro/cpus.h"
#include "micro/micro.h"

#include <asio.hpp>
#include <atomic>
#include <cstdio>
#include <thread>

namespace {

constexpr unsigned BURST = 10000;
constexpr unsigned BURSTS = 50;
constexpr unsigned WAKES = 1000;

asio::io_context context(1);
std::atomic<bool> keep_busy;
std::atomic<uint32_t> run_count;
std::atomic<uint64_t> woken_ns;
uint64_t call_ns[WAKES];
uint64_t arrival_ns[WAKES];

void stay_busy()
{
    if (keep_busy.load(std::memory_order_relaxed)) {
        asio::post(context, stay_busy);
    }
}

void measure_busy()
{
    keep_busy = true;
    asio::post(context, stay_busy);
    for (unsigned burst = 0; burst < BURSTS; burst++) {
        run_count = 0;
        uint64_t from_ns = micro_now_ns();
        for (unsigned i = 0; i < BURST; i++) {
            asio::post(context, [] { run_count.fetch_add(1, std::memory_order_release); });
        }
        call_ns[burst] = micro_now_ns() - from_ns;
        while (run_count.load(std::memory_order_acquire) < BURST) {
        }
        arrival_ns[burst] = micro_now_ns() - from_ns;
    }
    keep_busy = false;
    std::printf("{\"asio, busy loop: post\": %.2f", micro_median(call_ns, BURSTS) / BURST);
    std::printf(", \"asio, busy loop: post and run\": %.2f",
                micro_median(arrival_ns, BURSTS) / BURST);
}

void measure_sleeping()
{
    for (unsigned i = 0; i < WAKES; i++) {
        struct timespec delay = {0, 200 * 1000};
        (void)nanosleep(&delay, nullptr);
        woken_ns = 0;
        uint64_t from_ns = micro_now_ns();
        asio::post(context, [] { woken_ns.store(micro_now_ns(), std::memory_order_release); });
        call_ns[i] = micro_now_ns() - from_ns;
        uint64_t arrived_ns;
        while ((arrived_ns = woken_ns.load(std::memory_order_acquire)) == 0) {
        }
        arrival_ns[i] = arrived_ns - from_ns;
    }
    std::printf(", \"asio, sleeping loop: post\": %.1f", micro_median(call_ns, WAKES));
    std::printf(", \"asio, sleeping loop: until it runs\": %.1f}\n",
                micro_median(arrival_ns, WAKES));
}

} // namespace

int main()
{
    struct micro_cpus cpus = micro_find_cpus();
    auto work = asio::make_work_guard(context);
    std::thread thread([&cpus] {
        micro_take_cpu(cpus.first);
        context.run();
    });
    micro_take_cpu(cpus.last);
    measure_busy();
    measure_sleeping();
    work.reset();
    thread.join();
    return 0;
}
