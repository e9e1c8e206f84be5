// Finds races: two threads touch the same bytes, at least one writes them, and no barrier lies
// between. Writing what is there already is none.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tests/ptx/clock.h"

namespace keel::ptx {

// The last accesses of four bytes: the last write, and the last reads of two warps.
struct Cell {
  Record write, read, other_read;

  // Notes an access; returns the earlier one with which it races.
  std::optional<Record> note_read(const Clock& clock, const Record& now);
  std::optional<Record> note_write(const Clock& clock, const Record& now, bool changes);
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
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::size_t kMostPages = 8192;  // that are kept from launch to launch
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
