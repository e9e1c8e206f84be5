// Softmax, its logarithm and their gradients against the reference backend.
#include "src/ops/softmax.h"

#include <algorithm>
#include <limits>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

using Op = Value (*)(Graph&, Value);

OpCase case_of(const Shape& shape, Op op, double deviation) {
  OpCase c;
  c.inputs.push_back(random_normal(shape, 1, 0, deviation).to(DType::kF32).to(DType::kF64));
  c.build = [op](Graph& g, const std::vector<Value>& v) { return std::vector{op(g, v[0])}; };
  return c;
}

// f(first) + ... + f(first + width - 1)
template <class F>
double row_sum(std::int64_t first, std::int64_t width, const F& f) {
  double sum = 0;
  for (std::int64_t i = first; i < first + width; ++i) sum += f(i);
  return sum;
}

// Bounds, element by element, in units of eps. With d_i = max - x_i, exp(x_i - max) is off by d_i
// (the rounding of the difference) and 2 * 1.7 (exp itself); so the sum, in relative terms, by the
// p-weighted mean of d and as much again. That mean is the entropy of p and log(max p) together, so
// at most log(width).
struct Bounds {
  Bounds(const Tensor& x, std::int64_t width)
      : distance(std::size_t(x.elements())), of_sum(std::log(double(width)) + 3.4) {
    const auto values = x.as<double>();
    for (std::size_t i = 0; i < distance.size(); i += std::size_t(width)) {
      const auto row = values.subspan(i, std::size_t(width));
      const double max = *std::max_element(row.begin(), row.end());
      for (std::size_t k = 0; k < row.size(); ++k) distance[i + k] = max - row[k];
    }
  }
  // The relative error of p_i: the exponential, the sum, its inverse and the product.
  double of_p(std::int64_t i) const { return distance[std::size_t(i)] + 3.4 + of_sum + 2; }

  std::vector<double> distance;
  double of_sum;
};

void check_softmax(const Shape& shape, double deviation) {
  const std::int64_t width = shape.back();
  const OpCase c = case_of(shape, ops::softmax, deviation);
  const Results got = run_tested(c), expected = run_reference(c);
  const Tensor& y = expected.at("y0");
  const Tensor dy = random_normal(shape, 900).to(DType::kF32);
  const Bounds bounds(c.inputs[0], width);
  const double tiny = 0x1p-149;
  check_within(got.at("y0"), y, [&](auto i) { return kEps * y.at(i) * bounds.of_p(i) + tiny; });
  // dx = y (dy - dot): y is off by of_p, dot by the same and a product's rounding under the sum.
  for (std::int64_t row = 0; row < y.elements(); row += width) {
    const double dot = row_sum(
        row, width, [&](auto k) { return std::abs(dy.at(k)) * y.at(k) * (bounds.of_p(k) + 2); });
    check_row(got.at("d0"), expected.at("d0"), {row, width}, [&](auto i) {
      return kEps * y.at(i) * ((std::abs(dy.at(i)) + dot) * (bounds.of_p(i) + 3) + dot) + 4 * tiny;
    });
  }
}

void check_log_softmax(const Shape& shape, double deviation) {
  const std::int64_t width = shape.back();
  const OpCase c = case_of(shape, ops::log_softmax, deviation);
  const Results got = run_tested(c), expected = run_reference(c);
  const Tensor& y = expected.at("y0");
  const Tensor dy = random_normal(shape, 900).to(DType::kF32);
  const Bounds bounds(c.inputs[0], width);
  // The difference, the sum inside log, the rounding of log, the last difference.
  const auto of_y = [&](std::int64_t i) {
    return kEps * (bounds.distance[std::size_t(i)] + bounds.of_sum + std::log(double(width)) +
                   std::abs(y.at(i)));
  };
  check_within(got.at("y0"), y, of_y);
  for (std::int64_t row = 0; row < y.elements(); row += width) {
    const double total = std::abs(row_sum(row, width, [&](auto k) { return dy.at(k); }));
    check_row(got.at("d0"), expected.at("d0"), {row, width}, [&](auto i) {
      const double p = std::exp(y.at(i));
      return kEps * std::abs(dy.at(i)) + p * total * (of_y(i) + 6 * kEps);
    });
  }
}

TEST_CASE("backend softmax: accurate at every width" * doctest::test_suite("slow")) {
  for_each_target([] {
    for (const std::int64_t width : kSizes) {
      CAPTURE(width);
      const std::int64_t rows = width > 1000 ? 2 : 5;
      for (const double deviation : {1.0, 30.0}) {
        if (width > 5000 && deviation > 1) continue;
        check_softmax({rows, width}, deviation);
        check_log_softmax({rows, width}, deviation);
      }
    }
  });
}

TEST_CASE("backend softmax: masked, huge and non-finite logits") {
  const double infinity = std::numeric_limits<double>::infinity();
  OpCase c;
  c.inputs.push_back(Tensor::of<double>(
      {6, 5}, {0,        -infinity, 1, -infinity, 2, 3e38f, 3e38f, -3e38f, 0, 0, NAN, 0, 0, 0, 0,
               infinity, 0,         0, 0,         0, -1e4,  0,     1e4,    1, 2, 7,   7, 7, 7, 7}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::softmax(g, v[0]), ops::log_softmax(g, v[0])};
  };
  for_each_target([&] {
    const Results got = run_tested(c), expected = run_reference(c);
    for (const char* name : {"y0", "y1"}) {
      CAPTURE(name);
      const Tensor& y = expected.at(name);
      check_within(got.at(name), y, [&](auto i) { return 8 * kEps * (1 + std::abs(y.at(i))); });
    }
  });
}

TEST_CASE("backend softmax: a row's bits depend on nothing but the row") {
  for (const std::int64_t width : {7, 1000, 20000}) {
    const OpCase many = case_of({9, width}, ops::softmax, 1);
    check_thread_counts(many);
    OpCase last;
    last.inputs.push_back(Tensor(DType::kF64, {1, width}));
    std::copy_n(many.inputs[0].as<double>().end() - width, width,
                last.inputs[0].as<double>().begin());
    last.gradients = false;
    last.build = many.build;
    const Tensor all = run_tested(many).at("y0").clone(), one = run_tested(last).at("y0").clone();
    CHECK(std::memcmp(all.data() + 8 * one.bytes(), one.data(), std::size_t(one.bytes())) == 0);
  }
}

}  // namespace
}  // namespace keel::test
