// Comparisons with the float64 reference backend, within what float32 sums may be off.
#pragma once

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "frontend/compare/bounds/bounds.h"
#include "tests/support/graph_runner.h"

namespace keel::test {

// Standard normal numbers that float32 holds exactly, so that both backends see the same ones.
inline Tensor random_f32(const Shape& shape, std::uint32_t stream) {
  return random_normal(shape, stream).to(DType::kF32).to(DType::kF64);
}

// Runs a case on the backend under test, the default one, and on the reference backend, and CHECKs
// each result named in `bounds` against its bound.
inline void check_against_reference(const OpCase& op_case,
                                    const std::map<std::string, double>& bounds) {
  const Results got = run_case(*make_backend(default_backend(), {2}), op_case, DType::kF32);
  const Results expected = run_case(*make_backend("reference"), op_case, DType::kF32);
  for (const auto& [name, bound] : bounds) {
    CAPTURE(name);
    REQUIRE(got.contains(name));
    CHECK(largest_error(got.at(name), expected.at(name)) <= bound);
  }
}

}  // namespace keel::test
