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

OpCase cross_entropy_case(Tensor logits, Tensor labels, const CrossEntropyAttrs& attrs) {
  OpCase c;
  c.inputs.push_back(std::move(logits));
  c.inputs.push_back(std::move(labels));
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const ops::Loss loss = ops::cross_entropy(g, v[0], v[1], attrs);
    return std::vector{loss.mean, loss.sum};
  };
  return c;
}

TEST_CASE("backend loss: labels out of range, nothing that counts, masked classes") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<std::int32_t>& labels :
       {std::vector<std::int32_t>{0, 3, 1}, {0, -2, 1}, {-1, -1, -1}, {2, -1, 0}, {0, 2, 1}}) {
    for (const double smoothing : {0.0, 0.25}) {
      const Tensor logits =
          Tensor::of<double>({3, 3}, {1, 2, 3, -infinity, 0, 1e30f, -200, 200, 0.5});
      check_agrees(cross_entropy_case(logits.clone(), Tensor::of<std::int32_t>({3}, labels),
                                      {.label_smoothing = smoothing}));
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

}  // namespace
}  // namespace keel::test
