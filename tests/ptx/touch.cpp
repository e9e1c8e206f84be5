#include "tests/ptx/touch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/ptx/block.h"
#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

const char* name_of(Space space) {
  switch (space) {
    case Space::kGlobal:
      return "global";
    case Space::kShared:
      return "shared";
    case Space::kLocal:
      return "local";
    default:
      return "parameter";
  }
}

// The bytes of an access that lie in one cell, as a record has them.
std::uint64_t bytes_in_cell(std::uint64_t address, int bytes) {
  return ((1u << std::min(4, bytes)) - 1) << address % 4;
}

}  // namespace

std::byte* Touch::base(int lane) const {
  Block& block = warp.block();
  switch (access.space) {
    case Space::kShared:
      return block.shared().data();
    case Space::kLocal:
      return block.local(warp.number() * kLanes + lane);
    case Space::kParam:
      return const_cast<std::byte*>(block.launch().parameters.data());
    default:
      return nullptr;
  }
}

std::int64_t Touch::size() const {
  const Code& code = warp.block().code();
  return access.space == Space::kShared  ? code.shared_bytes
         : access.space == Space::kLocal ? code.local_bytes
                                         : code.parameter_bytes;
}

bool Touch::is_within(std::uint64_t address) const {
  const Block& block = warp.block();
  if (access.space == Space::kGlobal) return block.launch().memory.holds(address, bytes());
  if (address + std::uint64_t(bytes()) > std::uint64_t(size())) return false;
  if (access.space != Space::kShared) return true;
  // Between the variables there are gaps that belong to nobody.
  for (const Placed& variable : block.code().shared) {
    const std::int64_t behind = std::int64_t(address) - variable.first;
    if (behind >= 0 && behind + bytes() <= variable.bytes) return true;
  }
  return false;
}

void Touch::locate(const std::uint64_t (&addresses)[kLanes], std::byte* (&places)[kLanes]) const {
  std::uint64_t joined = 0;
  for (int lane = 0; lane < kLanes; ++lane) joined |= lanes >> lane & 1 ? addresses[lane] : 0;
  const bool is_aligned = joined % std::uint64_t(bytes()) == 0;
  std::uint64_t former = ~std::uint64_t{0};
  for (Lanes left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t address = addresses[lane];
    if (!is_aligned && address % std::uint64_t(bytes()) != 0) {
      fail_at(lane, address, "misaligned");
    }
    if (address != former && !is_within(address)) fail_at(lane, address, "out of bounds");
    former = address;
    places[lane] = access.space == Space::kGlobal ? reinterpret_cast<std::byte*>(address)
                                                  : base(lane) + address;
  }
}

void Touch::fail_at(int lane, std::uint64_t address, const char* what) const {
  const Block& block = warp.block();
  fail("thread {}: {} of {} bytes of {} memory, {}: {}", warp.number() * kLanes + lane,
       access.is_store ? "a store" : "a load", bytes(), name_of(access.space), what,
       access.space == Space::kGlobal ? block.launch().memory.whereabouts(address)
                                      : fmt::format("byte {} of {}", address, size()));
}

void Touch::expect_written(int lane, std::uint64_t address) const {
  const std::vector<std::uint8_t>& written = warp.block().written();
  for (int byte = 0; byte < bytes(); ++byte) {
    if (!written[address + std::uint64_t(byte)]) {
      fail_at(lane, address, "read before anything was written there");
    }
  }
}

Record Touch::stamp() const {
  Record now;
  now.is_there = 1;
  now.epoch = warp.block().clock().epoch(warp.number());
  now.block = std::uint64_t(warp.block().number());
  return now;
}

Cell& Touch::cell(std::uint64_t address) const {
  Block& block = warp.block();
  return access.space == Space::kShared ? block.shared_cells().at(address)
                                        : block.global_cells().at(address);
}

void Touch::note_reads(const std::uint64_t (&addresses)[kLanes]) const {
  if (access.space != Space::kShared && access.space != Space::kGlobal) return;
  const Clock& clock = warp.block().clock();
  Record now = stamp();
  for (Lanes left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (access.space == Space::kShared) expect_written(lane, addresses[lane]);
    now.thread = std::uint64_t(warp.number() * kLanes + lane);
    for (int byte = 0; byte < bytes(); byte += 4) {
      const std::uint64_t at = addresses[lane] + std::uint64_t(byte);
      now.bytes = bytes_in_cell(at, bytes() - byte);
      Cell& touched = cell(at);
      if (const Record* const then = touched.race_of_read(clock, now)) fail_race(*then, now, at);
      touched.note_read(now);
    }
  }
}

void Touch::note_write(int lane, std::uint64_t address, const std::byte* place,
                       const std::byte* value) const {
  if (access.space != Space::kShared && access.space != Space::kGlobal) return;
  if (access.space == Space::kShared) {
    std::fill_n(warp.block().written().begin() + std::ptrdiff_t(address), bytes(), 1);
  }
  const Clock& clock = warp.block().clock();
  Record now = stamp();
  now.thread = std::uint64_t(warp.number() * kLanes + lane);
  for (int byte = 0; byte < bytes(); byte += 4) {
    const std::uint64_t at = address + std::uint64_t(byte);
    now.bytes = bytes_in_cell(at, bytes() - byte);
    Cell& touched = cell(at);
    const Record* const then = touched.race_of_write(clock, now);
    if (then && std::memcmp(place, value, std::size_t(bytes())) != 0) fail_race(*then, now, at);
    touched.note_write(now);
  }
}

void Touch::fail_race(const Record& then, const Record& now, std::uint64_t address) const {
  fail(
      "a race in {} memory, {}: thread {} of block {} {} what thread {} of block {} touched "
      "without a barrier between",
      name_of(access.space),
      access.space == Space::kGlobal ? warp.block().launch().memory.whereabouts(address)
                                     : fmt::format("byte {}", address),
      int(now.thread), int(now.block), access.is_store ? "writes" : "reads", int(then.thread),
      int(then.block));
}

}  // namespace keel::ptx
