// Threads of the onednn backend. The only place that knows oneTBB.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

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

  // Runs body on these threads: parallel_blocks and oneDNN use all of them inside body.
  void enter(const std::function<void()>& body);

 private:
  struct Arena;
  int count_;
  std::unique_ptr<Arena> arena_;
};

// Runs body on this thread alone, under a concurrency of kPrimitiveConcurrency.
// Use it to create primitives.
void with_primitive_concurrency(const std::function<void()>& body);

// Runs body on at most kPrimitiveConcurrency of the threads entered, under a concurrency of
// kPrimitiveConcurrency. Use it for primitives that check the concurrency again when they run.
void at_primitive_concurrency(const std::function<void()>& body);
// The number of threads entered.
int threads_entered();

namespace detail {
// Makes this thread's earlier stores past the caches visible before any of its later stores.
void end_streams();
void parallel_blocks(std::int64_t blocks, void (*call)(void*, std::int64_t), void* body,
                     bool backwards = false);
}  // namespace detail

// Runs body(block) for every block in [0, blocks) on the threads entered. A block must depend on
// sizes only, never on the thread count; results then have the same bits for any count.
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
