// Ops of searches: exactly what the contract says.
#include "src/ops/search.h"

#include <cmath>

#include "src/runtime/program.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

OpCase top_k_case(Tensor x, std::int64_t k) {
  OpCase c;
  c.inputs.push_back(std::move(x));
  c.gradients = false;
  c.build = [k](Graph& g, const std::vector<Value>& v) {
    const ops::Ranked ranked = ops::top_k(g, v[0], k);
    return std::vector{ranked.values, ranked.indices};
  };
  return c;
}

OpCase put_case(const Shape& memory, std::int32_t t) {
  OpCase c;
  c.inputs.push_back(random_f32(memory, 1));
  c.inputs.push_back(random_f32({memory[0], 1, memory[2]}, 2));
  c.inputs.push_back(Tensor::of<std::int32_t>({}, {t}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::scatter(g, v[0], v[1], v[2])};
  };
  return c;
}

void check_exact(const OpCase& c) {
  const Results got = run_tested(c), expected = run_reference(c);
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    check_within(got.at(name), value, [](auto) { return 0.0; });
  }
}

TEST_CASE("backend search: top_k of all elements, and of no rows") {
  check_exact(top_k_case(random_f32({5, 33}, 1), 33));
  check_exact(top_k_case(Tensor(DType::kF32, {0, 7}), 2));
}

TEST_CASE("backend search: top_k of equal elements, infinities and NaN") {
  Tensor x(DType::kF32, {6, 300});
  float* const p = x.as<float>().data();
  for (int i = 0; i < 300; ++i) {
    p[300 + i] = float(i % 7);
    p[600 + i] = float(-i / 3);
    p[900 + i] = i % 100 == 99 ? NAN : float(i);
    p[1200 + i] = -INFINITY;
    p[1500 + i] = i == 200 ? INFINITY : -INFINITY;
  }
  for (const std::int64_t k : {1, 4, 150, 300}) check_exact(top_k_case(x.clone(), k));
}

TEST_CASE("backend search: scatter at every place, and at none") {
  for (const std::int32_t t : {-1, 0, 3, 6, 7}) {
    check_exact(put_case({5, 7, 3}, t));
    check_exact(put_case({64, 7, 129}, t));
  }
  check_exact(put_case({0, 7, 3}, 0));
}

TEST_CASE("backend search: what steps put into a state stays there, and is written in place") {
  const auto backend = make_backend(default_backend(), {2});
  Variables variables(*backend, 1);
  Graph g;
  const Value memory = g.state("memory", {DType::kF32, {3, 4, 5}}, nullptr);
  const Value x = g.input("x", {DType::kF32, {3, 1, 5}}), t = g.input("t", {DType::kI32, {}});
  g.mark_update(memory, ops::scatter(g, memory, x, t));
  Program program(*backend, variables, g);
  CHECK(program.kernels() == 1);
  for (const std::int32_t step : {2, 0, 2}) {
    program.feed("x", random_f32({3, 1, 5}, std::uint32_t(10 + step)));
    program.feed("t", Tensor::of<std::int32_t>({}, {step}));
    program.run();
  }
  const Tensor got = variables.read("memory");
  const Tensor first = random_f32({3, 1, 5}, 10), last = random_f32({3, 1, 5}, 12);
  for (std::int64_t r = 0; r < 3; ++r) {
    for (std::int64_t i = 0; i < 20; ++i) {
      const double expected = i / 5 == 0   ? first.at(r * 5 + i % 5)
                              : i / 5 == 2 ? last.at(r * 5 + i % 5)
                                           : 0;
      CHECK(got.at(r * 20 + i) == expected);
    }
  }
  // At a place that is not there nothing is put, and the first element says so.
  program.feed("t", Tensor::of<std::int32_t>({}, {4}));
  program.run();
  const Tensor outside = variables.read("memory");
  CHECK(std::isnan(outside.at(0)));
  for (std::int64_t e = 1; e < outside.elements(); ++e) CHECK(outside.at(e) == got.at(e));
}

}  // namespace
}  // namespace keel::test
