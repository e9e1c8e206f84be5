// A warp: 32 lanes that run a kernel's instructions together. Where they part, the lanes with the
// lowest instruction go first, so that they meet again as early as the code allows.
#pragma once

#include <vector>

#include "tests/ptx/instruction.h"

namespace keel::ptx {

class Block;

class Warp {
 public:
  enum class State { kReady, kAtBarrier, kDone };

  Warp(Block& block, int number, std::byte* registers)
      : block_(block), number_(number), registers_(registers) {}

  // Puts these lanes at the kernel's beginning.
  void start(Lanes lanes);
  // Runs until all lanes have returned or wait at a barrier. Throws Fault.
  void run();
  void pass_barrier() { state_ = State::kReady; }

  State state() const { return state_; }
  int number() const { return number_; }
  // The line in the PTX of the instruction that runs, or at which the warp waits.
  int line() const;
  // The number of the barrier that the warp waits at, and the threads of that barrier, 0 for all.
  int barrier() const { return barrier_; }
  int barrier_threads() const { return barrier_threads_; }

  // For handlers of instructions.
  Block& block() const { return block_; }
  std::byte* at(std::uint32_t place) const { return registers_ + place; }
  Lanes carry() const { return carry_; }
  void set_carry(Lanes lanes) { carry_ = lanes; }

 private:
  // Lanes that are at the same instruction; some wait there for others.
  struct Path {
    int at = 0;
    Lanes lanes = 0;
    bool waits = false;
  };

  bool choose();
  bool follow();
  bool branch(const Instruction& i, Lanes taken);
  bool leave(Lanes lanes);
  bool wait_for_others();
  bool arrive(const Instruction& i);
  bool are_all_here(const Instruction& i) const;
  void put(Path path);
  [[noreturn]] void fail_stuck() const;
  Lanes guarded(const Instruction& i) const;

  Block& block_;
  int number_;
  std::byte* registers_;
  State state_ = State::kDone;
  Path now_;
  std::vector<Path> others_;
  Lanes present_ = 0, live_ = 0, carry_ = 0;
  int barrier_ = 0, barrier_threads_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace keel::ptx
