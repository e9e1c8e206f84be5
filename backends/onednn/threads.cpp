#include "backends/onednn/threads.h"

#include <pthread.h>
#include <signal.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "src/core/error.h"

#ifdef __SANITIZE_THREAD__
#include <thread>
#endif

namespace keel::onednn {
namespace {

// Holds signals back from the calling thread while it lives, and from the threads that this thread
// starts meanwhile, for good: all but those that a thread causes itself, such as a division by 0.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t held;
    sigfillset(&held);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      sigdelset(&held, fault);
    }
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

// The threads of the arena that the calling thread is in.
class ArenaExecutor : public Executor {
 public:
  int threads() const override { return threads_entered(); }
  void share(std::int64_t blocks, Work work, void* argument) override;
};

#ifdef __SANITIZE_THREAD__
// oneTBB is not compiled with the thread sanitizer, which would take whatever it hands from thread
// to thread for raced. Under the sanitizer ranges run in threads of their own: two blocks that
// touch the same memory are found all the same.
void ArenaExecutor::share(std::int64_t blocks, Work work, void* argument) {
  const std::int64_t threads = std::min<std::int64_t>(threads_entered(), blocks);
  std::vector<std::thread> others;
  for (std::int64_t t = 1; t < threads; ++t) {
    others.emplace_back(work, argument, blocks * t / threads, blocks * (t + 1) / threads);
  }
  work(argument, 0, blocks / threads);
  for (std::thread& other : others) other.join();
}
#else
void ArenaExecutor::share(std::int64_t blocks, Work work, void* argument) {
  tbb::parallel_for(
      tbb::blocked_range<std::int64_t>(0, blocks),
      [=](const tbb::blocked_range<std::int64_t>& range) {
        work(argument, range.begin(), range.end());
      },
      tbb::static_partitioner());
}
#endif

void* pass(void* gate) {
  const std::lock_guard wait(*static_cast<std::mutex*>(gate));
  return nullptr;
}

// Starts so many threads at once, with stacks as large as oneTBB's, and ends them. Returns the
// system's reason when it refuses one, or 0.
int try_threads(int count) {
  constexpr std::size_t kStackBytes = 4 << 20;
  std::mutex gate;
  std::unique_lock closed(gate);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  std::vector<pthread_t> started;
  int problem = 0;
  while (problem == 0 && std::ssize(started) < count) {
    pthread_t thread{};
    problem = pthread_create(&thread, &attributes, pass, &gate);
    if (problem == 0) started.push_back(thread);
  }
  closed.unlock();
  for (const pthread_t thread : started) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return problem;
}

// oneTBB ends the process when it cannot start a thread, and so is not let try in vain.
void expect_threads(int count) {
  const int problem = try_threads(count - 1);
  check(problem == 0, ErrorKind::kMemory, "cannot start {} threads: {} (--threads asks for fewer)",
        count, std::strerror(problem));
}

// The tasks by which the entered threads help an arena of another concurrency; null outside of
// Threads::enter. They have ended when enter() returns.
thread_local tbb::task_group* helpers_entered = nullptr;

class EnteredHelpers {
 public:
  EnteredHelpers() : previous_(helpers_entered) {
#ifndef __SANITIZE_THREAD__
    helpers_entered = &helpers_;
#endif
  }
  ~EnteredHelpers() {
    helpers_entered = previous_;
    helpers_.wait();
  }
  EnteredHelpers(const EnteredHelpers&) = delete;
  EnteredHelpers& operator=(const EnteredHelpers&) = delete;

 private:
  tbb::task_group helpers_;
  tbb::task_group* previous_;
};

// An arena with kPrimitiveConcurrency slots, for one calling thread. All slots are reserved for
// threads from outside; the entered threads join the arena and help while a call runs.
// For each part of a loop oneTBB queues a proxy task at a slot, and frees the proxies at a slot
// without a thread only together with the arena (issue 1403 of uxlfoundation/oneTBB). Their memory
// would grow with every step, so the arena is replaced after kCalls calls. An arena with workers
// would not be freed before a worker visits it; this one is freed by the last thread that leaves.
class PrimitiveArena {
 public:
  PrimitiveArena() = default;
  PrimitiveArena(const PrimitiveArena&) = delete;
  PrimitiveArena& operator=(const PrimitiveArena&) = delete;

  void execute(int threads, const std::function<void()>& body) {
    if (calls_++ % kCalls == 0) shared_ = std::make_shared<Shared>();
    const std::shared_ptr<Shared> shared = shared_;
    const tbb::task_handle open = shared->work.defer([] {});  // helpers stay while it exists
    while (helpers_entered != nullptr && shared->helpers < threads - 1) {
      ++shared->helpers;
      helpers_entered->run([shared] {
        shared->arena.execute([&] { shared->work.wait(); });
        --shared->helpers;
      });
    }
    shared->arena.execute(body);
  }

 private:
  struct Shared {
    tbb::task_arena arena{kPrimitiveConcurrency, kPrimitiveConcurrency};
    tbb::task_group work;  // of a call, for others to wait for
    std::atomic<int> helpers = 0;
  };
  static constexpr std::int64_t kCalls = 2000;
  std::shared_ptr<Shared> shared_;
  std::int64_t calls_ = 0;
};

}  // namespace

struct Threads::Arena {
  // The arena decides how many threads work. The limit over all arenas is only ever raised, so that
  // more threads than cores can be asked for, and the smallest living limit counts.
  explicit Arena(int count)
      : limit(tbb::global_control::max_allowed_parallelism,
              std::size_t(std::max(count, tbb::info::default_concurrency()))),
        arena(count) {}
  tbb::global_control limit;
  tbb::task_arena arena;
};

Threads::Threads(int count) : count_(count) {
  check(count >= 0, ErrorKind::kUsage, "threads: expected 0 (all) or more, got {}", count);
  if (count == 0) count_ = tbb::info::default_concurrency();
  // Another limit may start threads for work of other arenas.
  const HeldSignals held;
  expect_threads(count_);
  arena_ = std::make_unique<Arena>(count_);
}

Threads::~Threads() {
  const HeldSignals held;
  arena_.reset();
}

void Threads::enter(const std::function<void()>& body) {
  const HeldSignals held;
  arena_->arena.execute([&body] {
    ArenaExecutor executor;
    const EnteredExecutor entered(executor);
    const EnteredHelpers helpers;
    body();
  });
}

void with_primitive_concurrency(const std::function<void()>& body) {
  // Every slot is kept for threads from outside; for slots that workers may take, but are too few
  // for, oneTBB would warn on stderr.
  tbb::task_arena arena(kPrimitiveConcurrency, kPrimitiveConcurrency);
  arena.execute(body);
}

int threads_entered() { return tbb::this_task_arena::max_concurrency(); }

void at_primitive_concurrency(const std::function<void()>& body) {
  thread_local PrimitiveArena arena;
  arena.execute(std::min(threads_entered(), kPrimitiveConcurrency), body);
}

}  // namespace keel::onednn
