#include "plugin/c/callers_threads.h"

#include <atomic>

#include "src/core/error.h"

namespace keel::plugin {
namespace {

// The status that a parallel for of this thread returned since it was set to 0. run() gives nothing
// back.
thread_local std::int32_t parallel_for_status = 0;

// Blocks as a body of a parallel for.
struct Blocks {
  onednn::Executor::Work work;
  void* argument;
};

// Work that counts its blocks.
struct Counted {
  Blocks blocks;
  std::atomic<std::int64_t> done = 0;
};

}  // namespace

void CallersThreads::share(std::int64_t blocks, Work work, void* argument) {
  Counted counted{{work, argument}};
  parallel_for_status = 0;
  executor_.run(
      executor_.context, blocks,
      [](void* of, std::int64_t first, std::int64_t last) {
        auto& all = *static_cast<Counted*>(of);
        all.blocks.work(all.blocks.argument, first, last);
        all.done += last - first;
      },
      &counted);
  left_ += blocks - counted.done;
  if (parallel_for_status != 0) status_ = parallel_for_status;
}

void CallersThreads::check_done() const {
  check(status_ == 0, ErrorKind::kUsage, "executor: the parallel for failed with {}", status_);
  check(left_ == 0, ErrorKind::kUsage, "executor: expected that run() does every block once, {} {}",
        left_ > 0 ? left_ : -left_, left_ > 0 ? "were left" : "were done again");
}

}  // namespace keel::plugin

void keel_run_parallel_for(void* context, int64_t blocks, void (*work)(void*, int64_t, int64_t),
                           void* argument) {
  using keel::plugin::Blocks;
  Blocks body{work, argument};
  const std::int32_t status = static_cast<const keel_parallel_for*>(context)->call(
      0, blocks, 1,
      [](int64_t first, int64_t last, void* of) {
        const auto& run = *static_cast<const Blocks*>(of);
        run.work(run.argument, first, last);
      },
      &body);
  if (status != 0) keel::plugin::parallel_for_status = status;
}
