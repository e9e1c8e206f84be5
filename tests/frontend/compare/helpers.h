// Helpers of the tests of comparisons.
#pragma once

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "frontend/compare/cases/layer_subjects.h"
#include "frontend/compare/verdicts/comparison.h"
#include "frontend/compare/walk/model_subject.h"
#include "tests/support/small_run.h"

namespace keel::compare {

enum class Emulated { kSkipped, kTakenIn };

// The reference, and every backend of this build that computes. An emulated one, a thousand times
// slower than what it stands for, is left out of all but the smallest subjects.
struct TestBackends {
  std::unique_ptr<Backend> reference = make_backend("reference");
  std::vector<std::unique_ptr<Backend>> owned;
  std::vector<Backend*> all;

  explicit TestBackends(Emulated emulated = Emulated::kSkipped) {
    for (const BackendEntry& entry : known_backends()) {
      if (!entry.missing.empty() || entry.name == "reference" || entry.name == "null") continue;
      auto backend = make_backend(entry.name);
      const bool is_slow = backend->description().find("emulator") != std::string::npos;
      if (is_slow && emulated == Emulated::kSkipped) continue;
      all.push_back(owned.emplace_back(std::move(backend)).get());
    }
    // A build of nothing but the reference holds it against itself.
    if (all.empty()) all.push_back(owned.emplace_back(make_backend("reference")).get());
  }

  Comparison compare(Subject& subject, const CompareOptions& options = {}) const {
    return compare::compare(*reference, all, subject, options);
  }
  Comparison with_fault(Subject& subject, const std::string& fault,
                        CompareOptions options = {}) const {
    options.walk.faults.push_back(Fault::parse(fault));
    return compare(subject, options);
  }
};

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
