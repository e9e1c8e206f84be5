// The backends of this build that run products of bf16 factors on this processor.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "backends/backends.h"
#include "frontend/compare/walk/node_reference.h"
#include "src/ops/matmul.h"

namespace keel::compare {

inline bool runs_bf16_products(Backend& backend) {
  Graph g;
  const Value a = g.input("a", {DType::kBF16, {2, 2}});
  ops::matmul(g, a, a);
  return backend.prepare({g, g.node(g.size() - 1)}).refusal.empty();
}

struct NarrowBackends {
  std::unique_ptr<Backend> reference = make_backend("reference");
  std::vector<std::unique_ptr<Backend>> owned;
  std::vector<Backend*> all;

  NarrowBackends() {
    for (const BackendEntry& entry : known_backends()) {
      const bool computes = entry.name != "reference" && entry.name != "null";
      if (!entry.missing.empty() || !computes) continue;
      auto backend = make_backend(entry.name);
      const bool is_slow = backend->description().find("emulator") != std::string::npos;
      if (is_slow || !runs_bf16_products(*backend)) continue;
      all.push_back(owned.emplace_back(std::move(backend)).get());
    }
  }
};

}  // namespace keel::compare
