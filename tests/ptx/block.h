// A block: its warps, its memory, and what is watched of both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/ptx/pieces.h"
#include "tests/ptx/races.h"
#include "tests/ptx/tally.h"
#include "tests/ptx/warp.h"

namespace keel::ptx {

// The data that all blocks of a launch share.
struct Launch {
  const Code& code;
  std::int64_t blocks;
  int threads;  // of a block
  std::span<const std::byte> parameters;
  const Memory& memory;
  GlobalCells& cells;
  Tally* tally = nullptr;  // counts, if it is wanted
};

class Block {
 public:
  explicit Block(Launch& launch);
  // Runs the block of this number. Throws Fault.
  void run(std::int64_t number);

  const Code& code() const { return launch_.code; }
  const Launch& launch() const { return launch_; }
  Tally* tally() const { return launch_.tally; }
  GlobalCells& global_cells() { return launch_.cells; }
  SharedCells& shared_cells() { return cells_; }
  std::span<std::byte> shared() { return shared_; }
  // Which bytes of shared memory have been written.
  std::vector<std::uint8_t>& written() { return written_; }
  // The local memory of a thread.
  std::byte* local(int thread) { return local_.data() + thread * code().local_bytes; }
  Clock& clock() { return clock_; }
  std::int64_t number() const { return number_; }

 private:
  void reset(std::int64_t number);
  void preset(int warp, bool of_block);
  bool run_ready();
  void try_barrier(const Warp& last);
  [[noreturn]] void fail_waiting() const;
  int warps() const { return int(warps_.size()); }

  Launch& launch_;
  std::int64_t number_ = 0;
  std::vector<std::byte> registers_, shared_, local_;
  std::vector<std::uint8_t> written_;
  SharedCells cells_;
  Clock clock_;
  std::vector<Warp> warps_;
  const Warp* running_ = nullptr;  // for messages
};

// Runs a kernel. Throws Fault, which names kernel, block, warp and line.
void run_grid(Launch& launch);

}  // namespace keel::ptx
