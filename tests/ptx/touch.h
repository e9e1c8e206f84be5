// One access of memory by the lanes of a warp: where it goes, whether it may, and with whom it
// races.
#pragma once

#include "tests/ptx/races.h"
#include "tests/ptx/warp.h"

namespace keel::ptx {

struct Touch {
  Warp& warp;
  const Access& access;
  Lanes lanes;

  int bytes() const { return access.bytes * access.count; }  // of a lane
  // Where in the host's memory each lane's address lies. Throws Fault for one that is misaligned
  // or out of bounds.
  void locate(const std::uint64_t (&addresses)[kLanes], std::byte* (&places)[kLanes]) const;
  // Throws Fault for a race, and for shared memory that was never written.
  void note_reads(const std::uint64_t (&addresses)[kLanes]) const;
  // Throws Fault for a race, unless what is written is in memory already.
  void note_write(int lane, std::uint64_t address, const std::byte* place,
                  const std::byte* value) const;
  // A record of this access without its thread and bytes.
  Record stamp() const;

 private:
  void expect_written(int lane, std::uint64_t address) const;
  Cell& cell(std::uint64_t address) const;
  std::byte* base(int lane) const;
  std::int64_t size() const;
  bool is_within(std::uint64_t address) const;
  [[noreturn]] void fail_at(int lane, std::uint64_t address, const char* what) const;
  [[noreturn]] void fail_race(const Record& then, const Record& now, std::uint64_t address) const;
};

}  // namespace keel::ptx
