#include "tests/ptx/chain.h"

#include <algorithm>

namespace keel::ptx {

Chain::Chain(const Latencies& latencies, int warps, std::uint32_t register_bytes)
    : latencies_(latencies),
      registers_(register_bytes / 4 + 1),
      ready_(std::size_t(warps) * registers_),
      stretches_(std::size_t(warps)) {}

void Chain::restart() {
  std::fill(ready_.begin(), ready_.end(), 0);
  std::fill(stretches_.begin(), stretches_.end(), Stretch{});
}

// The operands that are read decide when an instruction begins.
std::int64_t Chain::begin_of(int warp, const Instruction& i) {
  std::int64_t begin = stretches_[std::size_t(warp)].first;
  if (i.is_guarded) begin = std::max(begin, ready(warp, i.guard));
  const int operands = int(i.form->operands.size());
  for (int operand = i.form->results; operand < operands; ++operand) {
    begin = std::max(begin, ready(warp, i.place[std::size_t(operand)]));
  }
  return begin;
}

void Chain::note(int warp, const Instruction& i, const Cost& cost, int latency) {
  Stretch& stretch = stretches_[std::size_t(warp)];
  const std::int64_t begin = begin_of(warp, i);
  stretch.latest = std::max(stretch.latest, begin);
  stretch.count += cost.count;
  for (int result = 0; result < i.form->results; ++result) {
    ready(warp, i.place[std::size_t(result)]) = begin + latency;
  }
}

void Chain::close(Stretch& stretch) {
  stretch.first = std::max(stretch.latest, stretch.first + stretch.count);
  stretch.latest = stretch.first;
  stretch.count = 0;
}

void Chain::note_branch(int warp, const Instruction& i) {
  Stretch& stretch = stretches_[std::size_t(warp)];
  stretch.latest = std::max(stretch.latest, begin_of(warp, i));
  ++stretch.count;
  close(stretch);
}

void Chain::meet(std::span<const int> warps) {
  std::int64_t last = 0;
  for (const int warp : warps) last = std::max(last, stretches_[std::size_t(warp)].first);
  for (const int warp : warps) stretches_[std::size_t(warp)] = {last, last, 0};
}

std::int64_t Chain::cycles() const {
  std::int64_t last = 0;
  for (Stretch stretch : stretches_) {
    close(stretch);
    last = std::max(last, stretch.first);
  }
  return last;
}

}  // namespace keel::ptx
