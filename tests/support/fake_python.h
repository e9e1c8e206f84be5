// Stands in for the Python that `--peer` runs: a program of the test's own, named by the
// variable KEEL_PYTHON for as long as this lives.
#pragma once

#include <optional>
#include <string>

#include "tests/support/temp_dir.h"

namespace keel::test {

// A peer without PyTorch and JAX that knows only detachnorm. Its times are 1 us and 3 us a repeat,
// twice that in mode plain. It has no mode compiled, and its version contains its arguments.
extern const char* const kDetachNormPeer;

class FakePython {
 public:
  // A program with this text ("#!/bin/sh\n..."). It is given "-c", the script, device and threads.
  explicit FakePython(const std::string& program);
  ~FakePython();
  FakePython(const FakePython&) = delete;
  FakePython& operator=(const FakePython&) = delete;

 private:
  TempDir folder_;
  std::optional<std::string> before_;
};

}  // namespace keel::test
