// Which signals the threads that share blocks take, and when.
#include "backends/onednn/threads.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

namespace keel::onednn {
namespace {

bool takes(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 0;
}

// The signals taken by the threads that share blocks, by this thread and by the others.
struct Taken {
  std::atomic<int> others = 0, by_others = 0, faults_by_others = 0;
  std::atomic<bool> by_caller = false;
};

// Shares blocks. The caller does not end its first one before another thread has had one, however
// late a busy machine lets that thread run.
void share_blocks(Taken& taken) {
  const std::thread::id caller = std::this_thread::get_id();
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  parallel_blocks(64, [&](std::int64_t) {
    if (std::this_thread::get_id() == caller) {
      taken.by_caller = takes(SIGTERM);
      while (taken.others == 0 && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return;
    }
    if (takes(SIGINT) || takes(SIGTERM) || takes(SIGHUP) || takes(SIGALRM)) ++taken.by_others;
    if (takes(SIGSEGV) && takes(SIGFPE)) ++taken.faults_by_others;
    ++taken.others;
  });
}

void check_signals(const std::function<void(const std::function<void()>&)>& enter) {
  Taken taken;
  enter([&] { share_blocks(taken); });
  CHECK(taken.others > 0);
  CHECK(taken.by_others == 0);
  CHECK(taken.faults_by_others == taken.others);
  CHECK_FALSE(taken.by_caller);
  CHECK(takes(SIGTERM));  // after it
}

volatile std::sig_atomic_t handled = 0;  // the number of the last signal

}  // namespace

TEST_CASE("onednn threads: while they work they take no signals but faults of their own") {
  Threads threads(3);
  check_signals([&](const auto& body) { threads.enter(body); });
  check_signals([&](const auto& body) { threads.enter([&] { at_primitive_concurrency(body); }); });
}

// oneTBB may start a thread for work that is just ending when others make or end their threads.
TEST_CASE("onednn threads: however many are made one after the other, none takes a signal") {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> takers = 0;
  for (int i = 0; i < 3000; ++i) {
    Threads threads(2 + i % 5);
    threads.enter([&] {
      parallel_blocks(16, [&](std::int64_t) {
        volatile double sum = 0;
        for (int k = 0; k < 2000; ++k) sum = sum + k;
        if (std::this_thread::get_id() != caller && takes(SIGTERM)) ++takers;
      });
    });
  }
  CHECK(takers == 0);
}

TEST_CASE("onednn threads: a signal that came meanwhile is handled after the work") {
  Threads threads(2);
  const auto before = std::signal(SIGUSR1, [](int signal) { handled = signal; });
  threads.enter([] {
    pthread_kill(pthread_self(), SIGUSR1);
    CHECK(handled == 0);
  });
  CHECK(handled == SIGUSR1);
  std::signal(SIGUSR1, before);
}

// oneTBB frees what it queues for absent threads only together with their arena.
TEST_CASE("onednn threads: loops at the concurrency of primitives leave no memory behind") {
  const auto resident_pages = [] {
    std::int64_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident;
  };
  // Helpers need time to leave an arena that is replaced.
  const auto work = [](std::int64_t) {
    volatile double sum = 0;
    for (int k = 0; k < 1000; ++k) sum = sum + k;
  };
  for (const int count : {1, 2, 3}) {
    CAPTURE(count);
    Threads threads(count);
    const auto loops = [&](int n) {
      threads.enter([&] {
        for (int i = 0; i < n; ++i) {
          at_primitive_concurrency([&] { parallel_blocks(64, work); });
        }
      });
    };
    loops(3000);
    const std::int64_t before = resident_pages();
    loops(6000);  // 11 MB in an arena that is never replaced
    CHECK((resident_pages() - before) * sysconf(_SC_PAGESIZE) < 6 << 20);
  }
}

}  // namespace keel::onednn
