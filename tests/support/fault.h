// Makes the system calls of file writing fail, write too little, or end the process.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace keel::test {

struct Fault {
  int at = -1;                   // the call that fails, counted from 0; -1: none
  int error = EIO;               // what that call reports
  bool lasting = false;          // later calls of the kinds that need space fail as well
  bool crash = false;            // the process ends in that call, as by kill -9; writes half-way
  std::size_t chunk = SIZE_MAX;  // the most bytes of one write; 0 is a write of nothing
};

// Stands between keel::train::file_calls() and the system while it lives. One at a time.
class FaultGuard {
 public:
  explicit FaultGuard(const Fault& fault);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  int calls() const;  // made so far
};

}  // namespace keel::test
