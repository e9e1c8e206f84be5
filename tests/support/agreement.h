// CHECKs that a comparison agrees, and says where it does not.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "frontend/compare/verdicts/comparison.h"

namespace keel::compare {

// Says which nodes are further off than they may be, for a test that fails.
inline std::string text_of(const Comparison& c) {
  std::string text = c.subject;
  for (const NodeSummary& s : c.nodes) {
    if (s.diverged == 0) continue;
    const Element& w = s.worst.errors.worst;
    text += fmt::format("\n  {} {} {}: {:.3g} of the bound; output {}, element {}: {} for {}",
                        s.worst.path, s.worst.op, s.worst.backend, s.worst.errors.of_bound, w.port,
                        w.index, w.got, w.expected);
  }
  return text;
}

inline void check_agrees(const Comparison& c) {
  INFO(text_of(c));
  CHECK(c.agrees());
  CHECK(!c.nodes.empty());
}

}  // namespace keel::compare
