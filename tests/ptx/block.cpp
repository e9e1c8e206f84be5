#include "tests/ptx/block.h"

#include <algorithm>
#include <cstring>

#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostRegisters = 64 << 10;
constexpr std::int64_t kMostShared = 48 << 10;  // without asking for more

int warps_of(int threads) { return (threads + kLanes - 1) / kLanes; }

std::uint64_t special(const std::string& name, const Launch& launch, std::int64_t block,
                      int thread) {
  if (name == "%tid.x") return std::uint64_t(thread);
  if (name == "%ntid.x") return std::uint64_t(launch.threads);
  if (name == "%ctaid.x") return std::uint64_t(block);
  if (name == "%nctaid.x") return std::uint64_t(launch.blocks);
  if (name == "%laneid") return std::uint64_t(thread % kLanes);
  if (name.ends_with(".y") || name.ends_with(".z")) return name.starts_with("%n") ? 1 : 0;
  fail("the register {} is not known", name);
}

void check_limits(const Launch& launch) {
  const Code& code = launch.code;
  if (launch.threads < 1 || launch.threads > std::min(kMostThreads, code.most_threads)) {
    fail("{} threads a block, the kernel takes {}", launch.threads, code.most_threads);
  }
  if (launch.blocks < 1 || launch.blocks >= std::int64_t{1} << 31) {
    fail("a grid of {} blocks", launch.blocks);
  }
  // A warp gets its registers by 256.
  const int registers = (code.registers * kLanes + 255) / 256 * 256 * warps_of(launch.threads);
  if (registers > kMostRegisters) {
    fail("{} registers a block, a multiprocessor has {}", registers, kMostRegisters);
  }
  if (code.static_shared > kMostShared) {
    fail("{} bytes of shared memory, a block has {}", code.static_shared, kMostShared);
  }
}

}  // namespace

Block::Block(Launch& launch)
    : launch_(launch),
      registers_(std::size_t(warps_of(launch.threads)) * launch.code.register_bytes + 64),
      shared_(std::size_t(launch.code.shared_bytes)),
      local_(std::size_t(warps_of(launch.threads) * kLanes * launch.code.local_bytes)),
      cells_(launch.code.shared_bytes),
      clock_(warps_of(launch.threads)) {
  const auto start = reinterpret_cast<std::uintptr_t>(registers_.data());
  std::byte* const first = registers_.data() + (64 - start % 64) % 64;
  for (int warp = 0; warp < warps_of(launch.threads); ++warp) {
    warps_.emplace_back(*this, warp, first + std::size_t(warp) * code().register_bytes);
    preset(warp, false);
  }
}

// Sets the registers that have a value before the kernel begins: those that depend on the block,
// or all others.
void Block::preset(int warp, bool of_block) {
  for (const Preset& preset : code().presets) {
    if ((preset.special == "%ctaid.x") != of_block) continue;
    if (preset.type == Type::kPredicate) {
      const Lanes lanes = preset.bits ? ~Lanes{0} : 0;
      std::memcpy(warps_[std::size_t(warp)].at(preset.place), &lanes, sizeof lanes);
      continue;
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      std::uint64_t bits = preset.bits;
      if (!preset.special.empty()) {
        bits = special(preset.special, launch_, number_, warp * kLanes + lane);
      }
      const auto bytes = std::size_t(bytes_of(preset.type));
      std::memcpy(warps_[std::size_t(warp)].at(preset.place) + std::size_t(lane) * bytes, &bits,
                  bytes);
    }
  }
}

void Block::reset(std::int64_t number) {
  number_ = number;
  std::fill(shared_.begin(), shared_.end(), std::byte{0xff});
  std::fill(local_.begin(), local_.end(), std::byte{0xff});
  written_.assign(shared_.size(), 0);
  cells_ = SharedCells(std::int64_t(shared_.size()));
  clock_ = Clock(warps());
  for (int warp = 0; warp < warps(); ++warp) {
    preset(warp, true);
    const int left = launch_.threads - warp * kLanes;
    warps_[std::size_t(warp)].start(left >= kLanes ? ~Lanes{0} : (Lanes{1} << left) - 1);
  }
}

void Block::run(std::int64_t number) {
  reset(number);
  try {
    while (run_ready()) {
    }
    for (const Warp& warp : warps_) {
      if (warp.state() != Warp::State::kDone) fail_waiting();
    }
  } catch (const Fault& fault) {
    throw Fault(fmt::format("block {}, warp {}, line {}: {}", number, running_->number(),
                            running_->line(), fault.what()));
  }
}

// Gives each warp that can go on its step; false if none can.
bool Block::run_ready() {
  bool is_any = false;
  for (Warp& warp : warps_) {
    if (warp.state() != Warp::State::kReady) continue;
    is_any = true;
    running_ = &warp;
    warp.run();
    if (warp.state() == Warp::State::kAtBarrier) try_barrier(warp);
  }
  return is_any;
}

// Opens a barrier if all have come that it is for.
void Block::try_barrier(const Warp& last) {
  const int wanted = last.barrier_threads() ? last.barrier_threads() : warps() * kLanes;
  if (wanted % kLanes) fail("a barrier of {} threads, not of whole warps", wanted);
  std::vector<int> here;
  for (const Warp& warp : warps_) {
    if (warp.state() != Warp::State::kAtBarrier || warp.barrier() != last.barrier()) continue;
    if (warp.line() != last.line() || warp.barrier_threads() != last.barrier_threads()) {
      fail("different barriers: warp {} waits at line {}, warp {} at line {}", warp.number(),
           warp.line(), last.number(), last.line());
    }
    here.push_back(warp.number());
  }
  if (int(here.size()) * kLanes < wanted) return;
  clock_.meet(here);
  for (const int warp : here) warps_[std::size_t(warp)].pass_barrier();
}

void Block::fail_waiting() const {
  std::string text;
  for (const Warp& warp : warps_) {
    text += warp.state() == Warp::State::kDone
                ? fmt::format("; warp {} has returned", warp.number())
                : fmt::format("; warp {} waits at line {}", warp.number(), warp.line());
  }
  fail("a barrier that not all threads reach{}", text);
}

void run_grid(Launch& launch) {
  try {
    check_limits(launch);
    launch.cells.restart();
    Block block(launch);
    for (std::int64_t number = 0; number < launch.blocks; ++number) block.run(number);
  } catch (const Fault& fault) {
    throw Fault(fmt::format("kernel {}, {}", launch.code.name, fault.what()));
  }
}

}  // namespace keel::ptx
