#include "tests/ptx/races.h"

namespace keel::ptx {
namespace {

bool races(const Clock& clock, const Record& then, const Record& now) {
  return then.is_there && (then.bytes & now.bytes) && !clock.is_ordered(then, now);
}

bool is_same_warp(const Record& a, const Record& b) {
  return a.block == b.block && a.thread / 32 == b.thread / 32;
}

}  // namespace

std::optional<Record> Cell::note_read(const Clock& clock, const Record& now) {
  if (races(clock, write, now)) return write;
  if (!read.is_there) {
    read = now;
  } else if (!is_same_warp(read, now)) {
    other_read = read;
    read = now;
  } else {
    const bool is_same_time = read.epoch == now.epoch;
    const Record former = read;
    read = now;
    if (is_same_time) {
      read.is_of_many = former.is_of_many || former.thread != now.thread;
      read.bytes = former.bytes | now.bytes;
    }
  }
  return std::nullopt;
}

std::optional<Record> Cell::note_write(const Clock& clock, const Record& now, bool changes) {
  if (changes) {
    for (const Record& then : {write, read, other_read}) {
      if (races(clock, then, now)) return then;
    }
  }
  write = now;
  read = other_read = {};
  return std::nullopt;
}

void GlobalCells::restart() {
  ++launch_;
  if (pages_.size() <= kMostPages) return;
  pages_.clear();
  latest_ = nullptr;
  latest_page_ = 0;  // where no memory lies
}

void GlobalCells::enter(std::uint64_t page) {
  std::unique_ptr<Page>& found = pages_[page];
  if (!found) found = std::make_unique<Page>();
  if (found->launch != launch_) {
    found->cells.fill({});
    found->launch = launch_;
  }
  latest_page_ = page;
  latest_ = found.get();
}

}  // namespace keel::ptx
