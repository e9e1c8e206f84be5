// Equal bits of a norm for any thread count, order and split of rows, and in place.
#include <doctest/doctest.h>

#include <cstring>

#include "backends/backends.h"
#include "src/ops/norm/norm.h"
#include "tests/support/norm_checks.h"
#include "tests/support/thoroughness.h"

namespace keel::test {
namespace {

// Rows `rows` of x and dy.
NormData take_rows(const NormData& data, const std::vector<std::int64_t>& rows) {
  const std::int64_t n = data.x.shape().back();
  const Shape shape{std::int64_t(rows.size()), n};
  NormData taken{Tensor(DType::kF64, shape), Tensor(DType::kF64, shape), {}, {}, {}, data.eps};
  if (data.gain) taken.gain = data.gain->clone();
  if (data.bias) taken.bias = data.bias->clone();
  for (const auto& [name, value] : data.more) taken.more[name] = value.clone();
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const std::int64_t from = rows[std::size_t(i / n)] * n + i % n;
    taken.x.as<double>()[std::size_t(i)] = data.x.at(from);
    taken.dy.as<double>()[std::size_t(i)] = data.dy.at(from);
  }
  return taken;
}

void check_rows_alone(const NormSpec& spec, const NormCase& c,
                      const std::vector<std::int64_t>& rows) {
  const NormData data = data_of(spec, c);
  const NormResult all = run_fast(spec, data), taken = run_fast(spec, take_rows(data, rows));
  const auto check = [&](const Tensor& some, const Tensor& whole) {
    if (whole.elements() % c.groups != 0 || whole.elements() == 0) return;
    const std::size_t bytes = std::size_t(whole.bytes() / c.groups);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(i);
      const std::byte* row = whole.data() + std::size_t(rows[i]) * bytes;
      CHECK(std::memcmp(some.data() + i * bytes, row, bytes) == 0);
    }
  };
  for (std::size_t j = 0; j < all.outputs.size(); ++j) check(taken.outputs[j], all.outputs[j]);
  check(taken.gradients[AffineGradient::kDx], all.gradients[AffineGradient::kDx]);
}

}  // namespace

void check_threads(const NormSpec& spec) {
  std::vector<NormCase> cases = tested_large_cases(spec.layout);
  cases.push_back({.groups = 8, .n = 400});
  for (const NormCase& listed : cases) {
    const NormCase c = case_of(spec, listed);
    CAPTURE(c.text());
    const NormData data = data_of(spec, c);
    const NormResult expected = run_fast(spec, data, 1);
    for (int threads : {2, 3, 7}) {
      CAPTURE(threads);
      CHECK(same_bits(run_fast(spec, data, threads), expected));
    }
  }
}

void check_rows(const NormSpec& spec) {
  for (std::int64_t n : {2, 17, 128, 600, 1000, 2500}) {
    const NormCase c = case_of(spec, {.groups = 43, .n = n, .mean = 10});
    CAPTURE(c.text());
    std::vector<std::int64_t> order(std::size_t(c.groups));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = std::int64_t(i * 29 % order.size());
    check_rows_alone(spec, c, order);
    check_rows_alone(spec, c, {5, 6, 7, 8, 9, 10, 11});
    check_rows_alone(spec, c, {42});
  }
}

void check_in_place(const NormSpec& spec) {
  const NormCase c = case_of(spec, {.groups = 150, .n = 301});
  const NormData data = data_of(spec, c);
  CHECK(same_bits(run_reference(spec, data, true), run_reference(spec, data)));
  if (!has_fast_backend()) return;
  const auto backend = make_backend(default_backend(), {3});
  const NormResult expected = run_norm(*backend, spec.build, data);
  int different = 0;
  for (int i = 0; i < repeats(200); ++i) {
    different += !same_bits(run_norm(*backend, spec.build, data, true), expected);
  }
  CHECK(different == 0);
}

}  // namespace keel::test
