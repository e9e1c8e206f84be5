#include "tests/support/thoroughness.h"

#include <cstdlib>

#include "backends/backends.h"

namespace keel::test {

namespace {

// Images cost most: few of a block's threads have work.
std::vector<NormCase> bearable(std::vector<NormCase> cases) {
  if (!is_emulated()) return cases;
  std::vector<NormCase> few;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const NormCase& c = cases[i];
    const bool are_images = c.layout == NormLayout::kImages || c.layout == NormLayout::kThumbnails;
    const std::size_t every = are_images ? 20 : 7;
    if (c.groups * c.n <= 50000 && c.groups <= 1000 && i % every == 0) few.push_back(c);
  }
  return few;
}

}  // namespace

bool is_thorough() { return std::getenv("KEEL_THOROUGH") != nullptr; }

bool is_emulated() {
  static const bool emulated =
      make_backend(default_backend())->description().find("emulator") != std::string::npos;
  return emulated;
}

int repeats(int n) { return is_emulated() ? 1 : n; }

std::vector<NormCase> tested_cases(NormLayout layout, int every) {
  return bearable(generated_cases(layout, every));
}

std::vector<NormCase> tested_large_cases(NormLayout layout) {
  return bearable(large_cases(layout));
}

}  // namespace keel::test
