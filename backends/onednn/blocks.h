// Blocks of a kernel's work, and who shares them out among threads. Kernels know no thread library:
// they hand blocks to the executor that is entered.
#pragma once

#include <cstdint>
#include <type_traits>

namespace keel::onednn {

// Shares blocks out among threads of its own.
class Executor {
 public:
  // Calls work(argument, first, last).
  using Work = void (*)(void* argument, std::int64_t first, std::int64_t last);

  virtual ~Executor() = default;
  // How many threads may work at once. With one, blocks run on the calling thread and share() is
  // not called.
  virtual int threads() const = 0;
  // Calls `work` for ranges [first, last) that together are [0, blocks), each block once, on any
  // threads, and returns when all calls have returned.
  virtual void share(std::int64_t blocks, Work work, void* argument) = 0;
};

// Has this thread's blocks run on an executor, as long as the object lives. Without one they run
// only on the calling thread.
class EnteredExecutor {
 public:
  explicit EnteredExecutor(Executor& executor);
  ~EnteredExecutor();
  EnteredExecutor(const EnteredExecutor&) = delete;
  EnteredExecutor& operator=(const EnteredExecutor&) = delete;

 private:
  Executor* previous_;
};

namespace detail {
// Makes this thread's earlier stores past the caches visible before any of its later stores.
void end_streams();
void parallel_blocks(std::int64_t blocks, void (*call)(void*, std::int64_t), void* body,
                     bool backwards = false);
}  // namespace detail

// Runs body(block) for every block in [0, blocks) on the threads of the entered executor. A block
// must depend on sizes only, never on the thread count; results then have the same bits for any
// count.
template <class Body>
void parallel_blocks(std::int64_t blocks, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  if (blocks == 1) {
    body(std::int64_t{0});
    return detail::end_streams();
  }
  detail::parallel_blocks(
      blocks, [](void* b, std::int64_t block) { (*static_cast<Plain*>(b))(block); },
      const_cast<std::remove_const_t<Plain>*>(&body));
}

// The same, but each thread visits the blocks that it has in parallel_blocks in reverse order: the
// data that it touched last there is still in its cache.
template <class Body>
void parallel_blocks_backwards(std::int64_t blocks, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::parallel_blocks(
      blocks, [](void* b, std::int64_t block) { (*static_cast<Plain*>(b))(block); },
      const_cast<std::remove_const_t<Plain>*>(&body), true);
}

// The maximum number of elements in a block of element-wise work. With fewer elements in all, one
// fork costs more than it saves.
inline constexpr std::int64_t kBlockElements = 16 * 1024;

// Runs body(begin, end) over [0, n) in blocks of at most `block` elements.
template <class Body>
void parallel_range(std::int64_t n, std::int64_t block, Body&& body) {
  if (n <= 0) return;
  const std::int64_t blocks = (n + block - 1) / block;
  parallel_blocks(blocks, [&](std::int64_t i) {
    const std::int64_t begin = i * block;
    body(begin, begin + block < n ? begin + block : n);
  });
}

}  // namespace keel::onednn
