// Checks that every test of a SIMD kernel needs: each instruction set in turn, any thread count,
// and errors element by element.
#pragma once

#include "backends/backend_config.h"
#ifdef KEEL_ONEDNN
#include <hwy/targets.h>

#include "backends/onednn/simd/target.h"
#endif

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/backends/bounds.h"

namespace keel::test {

// The sizes at which a row or a tensor ends at, before or after a register, a tile or a block; some
// for each number of threads that CUDA's kernels give a row.
inline constexpr std::int64_t kSizes[] = {1,   2,   3,   15,  16,   17,   31,   32,   33,
                                          127, 200, 257, 769, 1025, 2500, 4099, 9001, 65537};

// Runs body once with each instruction set that was compiled and that this machine has; just once
// where the backend under test is not one of instruction sets, or KEEL_ISA keeps it to one.
template <class Body>
void for_each_target(const Body& body) {
  if (default_backend() != "onednn" || std::getenv("KEEL_ISA") != nullptr) return body();
#ifdef KEEL_ONEDNN
  const std::int64_t all = hwy::SupportedTargets() & onednn::simd_targets();
  if ((all & (all - 1)) == 0) return body();  // one: it is not even chosen at run time
  for (std::int64_t left = all; left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    const std::string name = hwy::TargetName(target);
    CAPTURE(name);
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
#endif
}

struct Range {
  std::int64_t first, count;
};

// CHECKs |got - expected| <= bound(i) for the elements of a range; NaN must meet NaN, and an
// infinity itself or a number that float32 rounds to it.
template <class Bound>
void check_row(const Tensor& got, const Tensor& expected, Range range, const Bound& bound) {
  for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
    const double a = got.at(i), b = expected.at(i);
    const bool agrees = std::isnan(b)   ? std::isnan(a)
                        : std::isinf(a) ? a == double(float(b))
                                        : std::abs(a - b) <= bound(i);
    if (agrees) continue;
    CAPTURE(i);
    CAPTURE(bound(i));
    CHECK(a == b);
    return;
  }
}

template <class Bound>
void check_within(const Tensor& got, const Tensor& expected, const Bound& bound) {
  REQUIRE(got.shape() == expected.shape());
  check_row(got, expected, {0, got.elements()}, bound);
}

inline Results run_tested(const OpCase& op_case, int threads = 2) {
  return run_case(*make_backend(default_backend(), {threads}), op_case, DType::kF32);
}

// On numbers that float32 holds, unlike the function of tests/support/checks.h.
inline Results run_reference(const OpCase& op_case, DType dtype = DType::kF32) {
  return run_case(*make_backend("reference"), op_case, dtype);
}

// CHECKs that results have the same bytes with 1, 2, 3 and 7 threads.
inline void check_thread_counts(const OpCase& op_case) {
  const Results expected = run_tested(op_case, 1);
  for (int threads : {2, 3, 7}) {
    CAPTURE(threads);
    const Results got = run_tested(op_case, threads);
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      const Tensor& other = got.at(name);
      REQUIRE(other.type() == value.type());
      CHECK(std::memcmp(other.data(), value.data(), std::size_t(value.bytes())) == 0);
    }
  }
}

// An op on normal numbers of these shapes.
inline OpCase random_case(const std::vector<Shape>& shapes, const Build& build) {
  OpCase c;
  for (const Shape& shape : shapes) {
    c.inputs.push_back(random_f32(shape, std::uint32_t(c.inputs.size())));
  }
  c.build = build;
  return c;
}

}  // namespace keel::test
