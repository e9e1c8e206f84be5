// Helpers of the tests of comparisons.
#pragma once

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "frontend/compare/cases/layer_subjects.h"
#include "frontend/compare/verdicts/comparison.h"
#include "frontend/compare/walk/model_subject.h"
#include "tests/support/agreement.h"
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

}  // namespace keel::compare
