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

#include "backends/backends.h"
#include "frontend/compare/bounds/bounds.h"
#include "frontend/compare/cases/case_builder.h"
#include "tests/support/agreement.h"
#include "tests/support/graph_runner.h"

namespace keel::test {

// Standard normal numbers that float32 holds exactly, so that all backends see the same ones.
inline Tensor random_f32(const Shape& shape, std::uint32_t stream) {
  return random_normal(shape, stream).to(DType::kF32).to(DType::kF64);
}

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

inline void check_same_bytes(const Results& got, const Results& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    const Tensor& other = got.at(name);
    REQUIRE(other.type() == value.type());
    CHECK(std::memcmp(other.data(), value.data(), std::size_t(value.bytes())) == 0);
  }
}

// CHECKs that run(threads) gives the same bytes for any number of threads. One backend may be alive
// at a time: of several, the one with the fewest threads limits all. 13 are more than primitives of
// oneDNN are created for.
template <class Run>
void check_thread_counts(const Run& run) {
  const Results expected = run(1);
  for (const int threads : {2, 3, 7, 13}) {
    CAPTURE(threads);
    check_same_bytes(run(threads), expected);
  }
}
inline void check_thread_counts(const OpCase& op_case) {
  check_thread_counts([&](int threads) { return run_tested(op_case, threads); });
}

// CHECKs that the backend under test is within the bounds of a comparison with the reference.
inline void check_agrees(Subject& subject) {
  const auto judge = make_backend("reference"), tested = make_backend(default_backend(), {2});
  compare::check_agrees(compare::compare(*judge, {tested.get()}, subject, {}));
}

// Checks the graph of a builder in this way.
inline void check_agrees(CaseBuilder& d, const LayerForm& form = {.unfused = true}) {
  check_agrees(*d.finish({"op", "sampled"}, form));
}
// Checks what build(CaseBuilder&) adds to a graph.
template <class Build>
void check_sampled(const Build& build) {
  CaseBuilder d;
  build(d);
  check_agrees(d);
}

// Checks a case in this way.
inline void check_agrees(const OpCase& op_case) {
  auto made = std::make_shared<CaseGraph>(graph_of(op_case, DType::kF32));
  const auto feeds = [made](std::int64_t) {
    Feeds copies;
    for (const auto& [name, value] : made->feeds) copies[name] = value.clone();
    return copies;
  };
  Graph graph = compared_graph(made->graph, !op_case.optimize);
  GraphSubject subject({"op", "given"}, std::move(graph), feeds);
  check_agrees(subject);
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
