// Counts what a launch does: instructions by class, and what it moves and how well.
#pragma once

#include <array>
#include <vector>

#include "tests/ptx/cost.h"
#include "tests/ptx/sectors.h"

namespace keel::ptx {

class Warp;

struct Counts {
  std::array<std::int64_t, kClasses> instructions{};  // of the device, a warp's as one
  std::int64_t barriers = 0;                          // that warps came to

  // Counts of global memory. A request is one instruction of a warp; it moves whole sectors.
  std::int64_t requests = 0, asked_bytes = 0;  // bytes that lanes ask for, each once a request
  std::int64_t read_sectors = 0, written_sectors = 0;  // of all requests
  std::int64_t wasted_sectors = 0;     // beyond those that the bytes asked for would fill
  std::int64_t from_memory = 0;        // sectors read for the first time in the pass
  std::int64_t from_earlier = 0;       // read by the launch once, touched earlier in the pass
  std::int64_t again_own = 0, again_other = 0;  // read again, by the same or another block
  std::int64_t to_memory = 0;                   // written, each once

  // Counts of shared memory. Each of 32 banks gives one word of 4 bytes a cycle.
  std::int64_t shared_requests = 0, shared_cycles = 0, conflicts = 0;  // cycles beyond the least
  std::int64_t local_sectors = 0;  // a lane's words lie beside those of its neighbours
};

class Tally {
 public:
  Tally(const Code& code, Sectors& sectors);

  const Counts& counts() const { return counts_; }

  // An instruction that lanes have run; an access comes after what its addresses said.
  void note(const Instruction& i);
  void note_branch(const Instruction& i);
  void note_access(const Warp& warp, const Access& access, Lanes lanes,
                   const std::uint64_t (&addresses)[kLanes]);
  void note_prefetch(Lanes lanes, const std::uint64_t (&addresses)[kLanes]);

 private:
  void note_global(std::int64_t block, const Access& access, Lanes lanes,
                   const std::uint64_t (&addresses)[kLanes]);
  void note_shared(const Access& access, Lanes lanes, const std::uint64_t (&addresses)[kLanes]);
  void note_read(std::uint64_t sector, std::int64_t block);

  const Code& code_;
  std::vector<Cost> costs_;  // of each instruction of the code
  Sectors& sectors_;
  Counts counts_;
  std::vector<std::uint64_t> touched_;
};

}  // namespace keel::ptx
