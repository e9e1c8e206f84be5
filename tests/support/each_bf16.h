// Lets a test case run once for each way in which onednn computes products of bf16 factors.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "backends/backends.h"

namespace keel::test {

// At the start of a test case: what follows runs as the environment says, and once more emulated,
// which every processor can.
class EachBf16 {
 public:
  EachBf16() {
    if (const char* before = std::getenv("KEEL_BF16")) before_ = before;
    SUBCASE("as the environment says") {}
    if (default_backend() != "onednn") return;
    SUBCASE("emulated") { setenv("KEEL_BF16", "emulated", 1); }
  }
  ~EachBf16() { before_ ? setenv("KEEL_BF16", before_->c_str(), 1) : unsetenv("KEEL_BF16"); }
  EachBf16(const EachBf16&) = delete;
  EachBf16& operator=(const EachBf16&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace keel::test
