#include "tests/ptx/tally.h"

#include <algorithm>
#include <bit>

#include "tests/ptx/block.h"

namespace keel::ptx {
namespace {

constexpr int kBanks = 32;

// Sorts, and leaves each value once.
void sort_once(std::vector<std::uint64_t>& values) {
  std::ranges::sort(values);
  const auto rest = std::ranges::unique(values);
  values.erase(rest.begin(), rest.end());
}

}  // namespace

Tally::Tally(const Code& code, Sectors& sectors) : code_(code), sectors_(sectors) {
  for (const Instruction& i : code.instructions) costs_.push_back(cost_of(i));
  sectors_.begin_launch();
}

void Tally::note(const Instruction& i) {
  const Cost cost = costs_[std::size_t(&i - code_.instructions.data())];
  counts_.instructions[std::size_t(cost.type)] += cost.count;
}

void Tally::note_branch(const Instruction& i) {
  ++counts_.instructions[std::size_t(Class::kControl)];
  if (i.flow == Flow::kBarrier) ++counts_.barriers;
}

void Tally::note_access(const Warp& warp, const Access& access, Lanes lanes,
                        const std::uint64_t (&addresses)[kLanes]) {
  if (access.space == Space::kGlobal) {
    note_global(warp.block().number(), access, lanes, addresses);
  } else if (access.space == Space::kShared) {
    note_shared(access, lanes, addresses);
  } else if (access.space == Space::kLocal) {
    const int words = (access.bytes * access.count + 3) / 4;
    counts_.local_sectors += words * ((std::popcount(lanes) + 7) / 8);
  }
}

// Bytes that several lanes ask for count once.
void Tally::note_global(std::int64_t block, const Access& access, Lanes lanes,
                        const std::uint64_t (&addresses)[kLanes]) {
  const auto bytes = std::uint64_t(access.bytes * access.count);
  touched_.clear();
  for (Lanes left = lanes; left; left &= left - 1) {
    touched_.push_back(addresses[std::countr_zero(left)]);
  }
  sort_once(touched_);
  const std::uint64_t asked = touched_.size() * bytes;
  for (std::uint64_t& address : touched_) address /= kSectorBytes;
  sort_once(touched_);
  ++counts_.requests;
  counts_.asked_bytes += std::int64_t(asked);
  counts_.wasted_sectors +=
      std::int64_t(touched_.size() - (asked + kSectorBytes - 1) / kSectorBytes);
  for (const std::uint64_t sector : touched_) {
    if (access.is_store) {
      ++counts_.written_sectors;
      counts_.to_memory += sectors_.write(sector, block);
    } else {
      note_read(sector, block);
    }
  }
}

void Tally::note_read(std::uint64_t sector, std::int64_t block) {
  ++counts_.read_sectors;
  const Found found = sectors_.read(sector, block);
  counts_.from_memory += found == Found::kMemory;
  counts_.from_earlier += found == Found::kEarlier;
  counts_.again_other += found == Found::kOtherBlock;
  counts_.again_own += found == Found::kOwnBlock;
}

void Tally::note_prefetch(Lanes lanes, const std::uint64_t (&addresses)[kLanes]) {
  constexpr std::uint64_t kLine = 4;  // sectors, which are fetched together
  for (Lanes left = lanes; left; left &= left - 1) {
    const std::uint64_t first = addresses[std::countr_zero(left)] / kSectorBytes / kLine * kLine;
    for (std::uint64_t i = 0; i < kLine; ++i) counts_.from_memory += sectors_.prefetch(first + i);
  }
}

// As many lanes at a time as fill the banks once if they have neighbouring elements; lanes that
// ask for the same word get it together.
void Tally::note_shared(const Access& access, Lanes lanes,
                        const std::uint64_t (&addresses)[kLanes]) {
  const int words = std::max(1, access.bytes * access.count / 4);
  const int group = kBanks / words;
  ++counts_.shared_requests;
  for (int first = 0; first < kLanes; first += group) {
    touched_.clear();
    for (int lane = first; lane < first + group; ++lane) {
      for (int word = 0; (lanes >> lane & 1) && word < words; ++word) {
        touched_.push_back(addresses[lane] / 4 + std::uint64_t(word));
      }
    }
    if (touched_.empty()) continue;
    sort_once(touched_);
    std::array<int, kBanks> of_bank{};
    for (const std::uint64_t word : touched_) ++of_bank[word % kBanks];
    const int cycles = std::ranges::max(of_bank);
    counts_.shared_cycles += cycles;
    counts_.conflicts += cycles - 1;
  }
}

}  // namespace keel::ptx
