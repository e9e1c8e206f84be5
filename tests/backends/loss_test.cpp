// Losses against the reference backend.
#include "src/ops/loss.h"

#include <limits>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

Tensor labels_of(std::int64_t rows, std::int64_t classes, std::int64_t ignore_index) {
  Tensor labels(DType::kI32, {rows});
  const Philox random(3, 5);
  std::uint64_t i = 0;
  for (std::int32_t& label : labels.as<std::int32_t>()) {
    label = std::int32_t(random.below(i, std::uint32_t(classes)));
    if (i++ % 5 == 3) label = std::int32_t(ignore_index);
  }
  return labels;
}

OpCase cross_entropy_case(const Shape& shape, double deviation, const CrossEntropyAttrs& attrs) {
  OpCase c;
  c.inputs.push_back(random_normal(shape, 1, 0, deviation).to(DType::kF32).to(DType::kF64));
  c.inputs.push_back(labels_of(shape[0], shape[1], attrs.ignore_index));
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const ops::Loss loss = ops::cross_entropy(g, v[0], v[1], attrs);
    return std::vector{loss.mean, loss.sum, loss.mean.at(2), loss.mean.at(3)};
  };
  // log_sum_exp and the count are outputs that get no gradient; the gradient runs apart.
  c.gradients = false;
  return c;
}

OpCase gradient_case(OpCase c, const CrossEntropyAttrs& attrs) {
  c.gradients = true;
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const ops::Loss loss = ops::cross_entropy(g, v[0], v[1], attrs);
    return std::vector{loss.mean, loss.sum};
  };
  return c;
}

// Whether logit i is at its row's label.
bool is_label(const OpCase& c, std::int64_t i) {
  const std::int64_t classes = c.inputs[0].shape()[1];
  return c.inputs[1].at(i / classes) == double(i % classes);
}

// exp(x - max) is off by max - x eps and 2 * 1.7 eps; their sum, in relative terms, by the
// p-weighted mean of that, at most log(classes) + 3.4. The rest of a row is computed in double.
void check_cross_entropy(const Shape& shape, double deviation, const CrossEntropyAttrs& attrs) {
  OpCase c = cross_entropy_case(shape, deviation, attrs);
  Results got = run_tested(c), expected = run_reference(c);
  const double of_row = kEps * (std::log(double(shape[1])) + 3.4);
  const double rows = double(shape[0]);
  const auto relative = [&](const char* name) { return kEps * std::abs(expected.at(name).at(0)); };
  check_within(got.at("y0"), expected.at("y0"), [&](auto) { return of_row + relative("y0"); });
  check_within(got.at("y1"), expected.at("y1"),
               [&](auto) { return rows * of_row + relative("y1"); });
  const Tensor lse = expected.at("y2").clone();
  check_within(got.at("y2"), lse, [&](auto i) { return of_row + kEps * std::abs(lse.at(i)); });
  CHECK(got.at("y3").at(0) == expected.at("y3").at(0));
  const double weights[] = {random_normal({}, 900).at(0), random_normal({}, 901).at(0)};
  const double term = std::abs(weights[0]) / expected.at("y3").at(0) + std::abs(weights[1]);
  c = gradient_case(std::move(c), attrs);
  got = run_tested(c);
  expected = run_reference(c);
  // p = exp(x - lse): lse is off by of_row and its rounding, the difference is rounded, then exp;
  // p - s / K - (1 - s) onehot and the factor cost four roundings of numbers up to 1.
  check_within(got.at("d0"), expected.at("d0"), [&](auto i) {
    const double x = c.inputs[0].at(i), l = lse.at(i / shape[1]), p = std::exp(x - l);
    const double of_p = of_row + kEps * (2 * std::abs(l) + std::abs(x) + 3.4);
    return term * (p * of_p + kEps * (p + attrs.label_smoothing / double(shape[1]))) +
           kEps * 6 * std::max(std::abs(expected.at("d0").at(i)), is_label(c, i) ? term : 0);
  });
}

TEST_CASE("backend loss: cross entropy is accurate at every number of classes") {
  for_each_target([] {
    for (const std::int64_t classes : kSizes) {
      CAPTURE(classes);
      const std::int64_t rows = classes > 5000 ? 3 : 37;
      check_cross_entropy({rows, classes}, 1, {});
      check_cross_entropy({rows, classes}, 20, {.label_smoothing = 0.1, .ignore_index = 0});
    }
    check_cross_entropy({5000, 10}, 3, {.label_smoothing = 0.3});
  });
}

TEST_CASE("backend loss: labels out of range, nothing that counts, masked classes") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<std::int32_t>& labels :
       {std::vector<std::int32_t>{0, 3, 1}, {0, -2, 1}, {-1, -1, -1}, {2, -1, 0}, {0, 2, 1}}) {
    for (const double smoothing : {0.0, 0.25}) {
      OpCase c;
      c.inputs.push_back(
          Tensor::of<double>({3, 3}, {1, 2, 3, -infinity, 0, 1e30f, -200, 200, 0.5}));
      c.inputs.push_back(Tensor::of<std::int32_t>({3}, labels));
      const CrossEntropyAttrs attrs{.label_smoothing = smoothing};
      c = gradient_case(std::move(c), attrs);
      const Results got = run_tested(c), expected = run_reference(c);
      for (const auto& [name, y] : expected) {
        CAPTURE(name);
        check_within(got.at(name), y, [&](auto i) { return 16 * kEps * (1 + std::abs(y.at(i))); });
      }
    }
  }
}

TEST_CASE("backend loss: wrong classifications are counted") {
  for_each_target([] {
    for (const std::int64_t classes : kSizes) {
      OpCase c;
      c.inputs.push_back(random_f32({std::max<std::int64_t>(3, 20000 / classes), classes}, 1));
      // Few different values, so that the largest is met more than once.
      for (double& x : c.inputs[0].as<double>()) x = std::round(x);
      c.inputs.push_back(labels_of(c.inputs[0].shape()[0], std::min<std::int64_t>(classes, 4), -1));
      c.gradients = false;
      c.build = [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::classification_errors(g, v[0], v[1])};
      };
      CHECK(run_tested(c).at("y0").at(0) == run_reference(c).at("y0").at(0));
    }
  });
}

TEST_CASE("backend loss: a row with a NaN in any place is wrong") {
  for_each_target([] {
    for (const std::int64_t classes : {2, 7, 16, 33}) {
      OpCase c;
      c.inputs.push_back(random_f32({classes, classes}, 1));
      std::vector<std::int32_t> labels;
      for (std::int64_t row = 0; row < classes; ++row) {
        // Without the NaN every row would be right; the NaN stands in another column of each.
        c.inputs[0].as<double>()[std::size_t(row * classes + (row + 1) % classes)] = 9;
        c.inputs[0].as<double>()[std::size_t(row * classes + row)] = NAN;
        labels.push_back(std::int32_t((row + 1) % classes));
      }
      c.inputs.push_back(Tensor::of<std::int32_t>({classes}, labels));
      c.gradients = false;
      c.build = [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::classification_errors(g, v[0], v[1])};
      };
      CHECK(run_tested(c).at("y0").at(0) == double(classes));
      CHECK(run_reference(c).at("y0").at(0) == double(classes));
    }
  });
}

OpCase bce_case(std::int64_t n, double deviation) {
  OpCase c;
  c.inputs.push_back(random_normal({n}, 1, 0, deviation).to(DType::kF32).to(DType::kF64));
  c.inputs.push_back(random_f32({n}, 2));
  // Targets of 0 and 1, some in between.
  for (double& t : c.inputs[1].as<double>()) t = std::abs(t) < 0.2 ? 0.25 : t > 0 ? 1 : 0;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const ops::Loss loss = ops::bce_with_logits(g, v[0], v[1]);
    return std::vector{loss.mean, loss.sum};
  };
  return c;
}

TEST_CASE("backend loss: binary cross entropy is accurate at every size") {
  for_each_target([] {
    for (const std::int64_t n : kSizes) {
      CAPTURE(n);
      for (const double deviation : {1.0, 40.0}) {
        const OpCase c = bce_case(n, deviation);
        const Results got = run_tested(c), expected = run_reference(c);
        // A term: |x| t rounded, the difference, the tail log(1 + exp(-|x|)) <= 0.7, their sum.
        double of_sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          of_sum += kEps * (3 * std::abs(c.inputs[0].at(i)) + 6 * 0.7);
        }
        const auto relative = [&](const char* name) {
          return kEps * std::abs(expected.at(name).at(0));
        };
        check_within(got.at("y0"), expected.at("y0"),
                     [&](auto) { return of_sum / double(n) + relative("y0"); });
        check_within(got.at("y1"), expected.at("y1"),
                     [&](auto) { return of_sum + relative("y1"); });
        const double term = std::abs(random_normal({}, 900).at(0)) / double(n) +
                            std::abs(random_normal({}, 901).at(0));
        // sigmoid is off by 2 * 2.5 eps of at most 1; the difference, the factor, the product.
        check_within(got.at("d0"), expected.at("d0"), [&](auto) { return 8 * kEps * term; });
      }
    }
  });
}

TEST_CASE("backend loss: results do not depend on the thread count") {
  check_thread_counts(gradient_case(cross_entropy_case({4099, 33}, 1, {}), {}));
  check_thread_counts(gradient_case(cross_entropy_case({5, 65537}, 1, {}), {}));
  check_thread_counts(bce_case(200000, 1));
}

}  // namespace
}  // namespace keel::test
