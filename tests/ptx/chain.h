// How long a block takes at least if it were alone and a device did nothing but wait for results.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/ptx/cost.h"

namespace keel::ptx {

// Between two branches or barriers a warp's instructions begin as soon as their operands are there,
// in the best order that ptxas could find, one in a cycle; a branch or a barrier waits until all
// before it have begun. A barrier lets its warps go on when the last has come.
class Chain {
 public:
  Chain(const Latencies& latencies, int warps, std::uint32_t register_bytes);

  const Latencies& latencies() const { return latencies_; }
  // Another block begins.
  void restart();
  // `latency` of its result.
  void note(int warp, const Instruction& i, const Cost& cost, int latency);
  // All that comes later waits for this instruction.
  void note_branch(int warp, const Instruction& i);
  void meet(std::span<const int> warps);
  // When the last warp has come to where it is.
  std::int64_t cycles() const;

 private:
  struct Stretch {
    std::int64_t first = 0, latest = 0;  // when its first and its last instruction begin
    std::int64_t count = 0;              // of its instructions
  };
  std::int64_t begin_of(int warp, const Instruction& i);
  std::int64_t& ready(int warp, std::uint32_t place) {
    return ready_[std::size_t(warp) * registers_ + place / 4];
  }
  static void close(Stretch& stretch);

  Latencies latencies_;
  std::size_t registers_;
  std::vector<std::int64_t> ready_;  // when each register of each warp has its value
  std::vector<Stretch> stretches_;
};

}  // namespace keel::ptx
