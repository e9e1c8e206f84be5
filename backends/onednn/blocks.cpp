#include "backends/onednn/blocks.h"

#include <hwy/cache_control.h>

namespace keel::onednn {
namespace {

thread_local Executor* entered = nullptr;

// A body and the order in which a range of its blocks runs.
struct Blocks {
  void (*call)(void*, std::int64_t);
  void* body;
  bool backwards;

  void run(std::int64_t first, std::int64_t last) const {
    for (std::int64_t i = first; i < last; ++i) call(body, backwards ? first + last - 1 - i : i);
    detail::end_streams();
  }
};

}  // namespace

EnteredExecutor::EnteredExecutor(Executor& executor) : previous_(entered) { entered = &executor; }

EnteredExecutor::~EnteredExecutor() { entered = previous_; }

namespace detail {

void end_streams() { hwy::FlushStream(); }

void parallel_blocks(std::int64_t blocks, void (*call)(void*, std::int64_t), void* body,
                     bool backwards) {
  Blocks work{call, body, backwards};
  if (entered == nullptr || entered->threads() == 1) return work.run(0, blocks);
  entered->share(
      blocks,
      [](void* argument, std::int64_t first, std::int64_t last) {
        static_cast<const Blocks*>(argument)->run(first, last);
      },
      &work);
}

}  // namespace detail
}  // namespace keel::onednn
