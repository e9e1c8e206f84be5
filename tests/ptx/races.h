// Finds races: two threads touch the same bytes, at least one writes them, and no barrier lies
// between. Writing what is there already is none.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tests/ptx/clock.h"

namespace keel::ptx {

// The last accesses of four bytes: the last write, and the last two reads of other warps or of
// other bytes. So two threads that each read and then write a half of their own do not race. A
// third read takes the place of the oldest, whose races are not found any more.
struct Cell {
  Record write, read, other_read;

  // The earlier access with which this read races, null if there is none.
  const Record* race_of_read(const Clock& clock, const Record& now) const {
    return races(clock, write, now) ? &write : nullptr;
  }
  const Record* race_of_write(const Clock& clock, const Record& now) const {
    for (const Record* then : {&write, &read, &other_read}) {
      if (races(clock, *then, now)) return then;
    }
    return nullptr;
  }
  void note_read(const Record& now) {
    if (read.is_there && !(is_same_warp(read, now) && (read.bytes & now.bytes))) {
      other_read = read;
      read = now;
      return;
    }
    const Record former = read;
    read = now;
    if (former.is_there && former.epoch == now.epoch) {
      read.is_of_many = former.is_of_many || former.thread != now.thread;
      read.bytes = former.bytes | now.bytes;
    }
  }
  void note_write(const Record& now) {
    write = now;
    read = other_read = {};
  }

 private:
  static bool races(const Clock& clock, const Record& then, const Record& now) {
    return then.is_there && (then.bytes & now.bytes) && !clock.is_ordered(then, now);
  }
  static bool is_same_warp(const Record& a, const Record& b) {
    return a.block == b.block && a.thread / 32 == b.thread / 32;
  }
};

// The cells of a block's shared memory.
class SharedCells {
 public:
  explicit SharedCells(std::int64_t bytes) : cells_(std::size_t(bytes + 3) / 4) {}
  Cell& at(std::uint64_t byte) { return cells_[byte / 4]; }

 private:
  std::vector<Cell> cells_;
};

// The cells of global memory that one launch has touched.
class GlobalCells {
 public:
  // Another launch begins: nothing is touched yet.
  void restart();
  Cell& at(std::uint64_t address) {
    const std::uint64_t page = address / kPage;
    if (page != latest_page_ || latest_->launch != launch_) enter(page);
    return latest_->cells[address % kPage / 4];
  }

 private:
  static constexpr std::uint64_t kPage = 1024;
  static constexpr std::size_t kMostPages = 16384;  // that are kept from launch to launch
  struct Page {
    std::uint64_t launch = 0;
    std::array<Cell, kPage / 4> cells;
  };
  void enter(std::uint64_t page);

  std::uint64_t launch_ = 1, latest_page_ = 0;
  Page* latest_ = nullptr;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
};

}  // namespace keel::ptx
