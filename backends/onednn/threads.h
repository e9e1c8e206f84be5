// Threads of the onednn backend, an executor of blocks by oneTBB. Only threads.cpp knows oneTBB.
#pragma once

#include <functional>
#include <memory>

#include "backends/onednn/blocks.h"

namespace keel::onednn {

// oneDNN decides at creation of a primitive into how many parts it splits sums. Primitives are
// created under this concurrency on every machine, so the number of threads that later run
// them never changes a bit.
inline constexpr int kPrimitiveConcurrency = 8;

class Threads {
 public:
  // 0: as many as the machine has. Throws Error{kUsage} for a negative number.
  explicit Threads(int count);
  ~Threads();
  int count() const { return count_; }

  // Runs body on these threads: parallel_blocks and oneDNN use all of them inside body. A signal of
  // the process waits until body is done, or is handled on a thread that does not compute. The
  // reason: on AVX2 the products of oneDNN 3.2 use a thread's stack pointer for an address in the
  // heap (issue 4845 of uxlfoundation/oneDNN), and to call a handler the system would store there.
  void enter(const std::function<void()>& body);

 private:
  struct Arena;
  int count_;
  std::unique_ptr<Arena> arena_;
};

// Runs body only on this thread, under a concurrency of kPrimitiveConcurrency.
// Use it to create primitives.
void with_primitive_concurrency(const std::function<void()>& body);

// Runs body on at most kPrimitiveConcurrency of the threads entered, under a concurrency of
// kPrimitiveConcurrency. Use it for primitives that check the concurrency again when they run.
void at_primitive_concurrency(const std::function<void()>& body);
// The number of threads entered.
int threads_entered();

}  // namespace keel::onednn
