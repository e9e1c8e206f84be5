// The bounds of kernels of any program: honest float32 kernels keep them, whatever the order of
// their sums, and faults that the older rules let pass do not.
#include <algorithm>
#include <cmath>
#include <random>

#include "frontend/compare/bounds/bounds.h"
#include "frontend/compare/bounds/running_error.h"
#include "frontend/compare/bounds/scale_fit.h"
#include "frontend/compare/walk/node_reference.h"
#include "src/ops/attention.h"
#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/matmul.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/reduce.h"
#include "tests/frontend/compare/helpers.h"

namespace keel::compare {
namespace {

using Numbers = std::vector<float>;

Numbers sampled(std::size_t count, double mean, double deviation, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(mean, deviation);
  Numbers values(count);
  for (float& v : values) v = float(normal(random));
  return values;
}

Tensor tensor(const Shape& shape, const Numbers& values) {
  Tensor t(DType::kF32, shape);
  std::ranges::copy(values, t.as<float>().begin());
  return t;
}

SumTerms terms_of(const Numbers& values) {
  SumTerms terms;
  for (float v : values) terms.add(v);
  return terms;
}

// One accumulator, as the plainest kernel has it.
float added_up(const Numbers& values) {
  float sum = 0;
  for (float v : values) sum += v;
  return sum;
}

TEST_CASE("any kernel: one accumulator keeps the bound of a sum, where terms repeat, too") {
  for (const std::size_t k : {100UL, 10000UL, 1000000UL}) {
    CAPTURE(k);
    Numbers constant(k, 0.1f), squares = sampled(k, 0, 1), lognormal = sampled(k, 0, 1);
    for (float& v : squares) v *= v;
    for (float& v : lognormal) v = std::exp(v);
    for (const Numbers& values :
         {constant, squares, lognormal, sampled(k, 0, 1), sampled(k, 3, 1)}) {
      const SumTerms terms = terms_of(values);
      const double error = std::abs(added_up(values) - terms.total);
      CHECK(error <= 0.6 * any_sum_error(terms).largest);
    }
  }
  // keel's own rule is no rule for such kernels: this is why there are two.
  const Numbers constant(1000000, 0.1f);
  const SumTerms terms = terms_of(constant);
  CHECK(std::abs(added_up(constant) - terms.total) > 2 * sum_error(1000000) * terms.sizes);
}

TEST_CASE("any kernel: on long sums of either sign a fault of a thousandth is suspect") {
  for (const std::size_t k : {16384UL, 262144UL}) {
    const SumTerms terms = terms_of(sampled(k, 0, 1));
    const double size = std::sqrt(double(k));  // of such a sum
    CHECK(any_sum_error(terms).usual < 1e-3 * size);
    CHECK(any_sum_error(terms).largest > 5e-3 * size);
  }
}

// A graph of one op. Its inputs are the graph's first nodes.
struct OneNode {
  Graph graph;
  std::vector<Tensor> inputs;
  int node = 0;

  Value input(const char* name, Tensor value) {
    inputs.push_back(std::move(value));
    return graph.input(name, inputs.back().type());
  }
  NodeResult compared(Kernels kernels) const {
    const auto reference = make_backend("reference");
    std::vector<const Tensor*> all;
    for (Value v : graph.node(node).inputs) {
      all.push_back(v.valid() ? &inputs[std::size_t(v.node)] : nullptr);
    }
    return reference_node(*reference, graph, node, all, {.kernels = kernels});
  }
};

OneNode layer_norm_of(const Numbers& x, std::int64_t width) {
  OneNode one;
  const Value value = one.input("x", tensor({std::int64_t(x.size()) / width, width}, x));
  one.node = ops::layer_norm(one.graph, value, {}).node;
  return one;
}

// Mean and variance in two plain passes with one accumulator each.
Numbers plain_layer_norm(const Numbers& x, std::size_t width) {
  Numbers y(x.size());
  for (std::size_t first = 0; first < x.size(); first += width) {
    float mean = 0, square = 0;
    for (std::size_t i = first; i < first + width; ++i) mean += x[i];
    mean /= float(width);
    for (std::size_t i = first; i < first + width; ++i) square += (x[i] - mean) * (x[i] - mean);
    const float rstd = 1 / std::sqrt(square / float(width) + 1e-5f);
    for (std::size_t i = first; i < first + width; ++i) y[i] = (x[i] - mean) * rstd;
  }
  return y;
}

Errors errors_of(const Numbers& got, const NodeResult& compared) {
  Measure measure;
  const Tensor values = tensor(compared.outputs[0].shape(), got);
  measure.add(0, values, compared.outputs[0], &compared.bounds[0]);
  if (!compared.bounds.usual.empty()) {
    measure.add_strict(values, compared.outputs[0], compared.bounds.usual[0],
                       compared.bounds.deviation[0]);
  }
  return measure.result();
}

TEST_CASE("any kernel: a plain layer norm keeps its bound at a mean of 10,000 deviations") {
  const Numbers x = sampled(4 * 512, 1e4, 1);
  const OneNode one = layer_norm_of(x, 512);
  const Numbers y = plain_layer_norm(x, 512);
  CHECK(errors_of(y, one.compared(Kernels::kAny)).within());
  CHECK(!errors_of(y, one.compared(Kernels::kKeel)).within());  // keel's promise is another thing
}

TEST_CASE("any kernel: a fault of 1 % in a layer norm shows, on a row of tiny variance, too") {
  for (const double deviation : {1.0, 1e-7}) {
    CAPTURE(deviation);
    const Numbers x = sampled(4 * 512, 0, deviation);
    const NodeResult compared = layer_norm_of(x, 512).compared(Kernels::kAny);
    Numbers y = plain_layer_norm(x, 512);
    CHECK(errors_of(y, compared).within());
    CHECK(errors_of(y, compared).sensitivity < kSensitivityLimit);
    for (float& v : y) v *= 1.01f;
    CHECK(!errors_of(y, compared).within());
  }
}

TEST_CASE("any kernel: a norm of which rounding leaves nothing is not compared") {
  const Numbers x = sampled(512, 1e7, 1e-3);
  const Errors errors =
      errors_of(plain_layer_norm(x, 512), layer_norm_of(x, 512).compared(Kernels::kAny));
  CHECK(errors.uncompared > 0);
}

template <class F>
std::pair<Errors, Errors> unary_errors(Value (*op)(Graph&, Value), const Numbers& x, const F& f) {
  OneNode one;
  one.node = op(one.graph, one.input("x", tensor({std::int64_t(x.size())}, x))).node;
  Numbers y;
  for (float v : x) y.push_back(f(v));
  return {errors_of(y, one.compared(Kernels::kAny)), errors_of(y, one.compared(Kernels::kKeel))};
}

TEST_CASE("any kernel: gelu as x (1 + erf) / 2 and exp as an exponential of 2 keep their bounds") {
  const Numbers x = sampled(2000, 0, 3);
  const auto [gelu, strict_gelu] = unary_errors(
      ops::gelu, x, [](float v) { return v * 0.5f * (1 + std::erf(v * 0.70710678f)); });
  CHECK(gelu.within());
  CHECK(strict_gelu.of_bound > 1000);
  const Numbers wide = sampled(2000, 0, 20);
  const auto [exp, strict_exp] =
      unary_errors(ops::exp, wide, [](float v) { return std::exp2(v * 1.44269504f); });
  CHECK(exp.within());
  CHECK(!strict_exp.within());
}

TEST_CASE("any kernel: a row of an embedding's gradient is held to its own count") {
  OneNode one;
  // Row 0 gets 4,095 equal gradients, row 1 one.
  Tensor ids(DType::kI32, Shape{4096});
  ids.as<std::int32_t>()[7] = 1;
  const Value places = one.input("ids", std::move(ids));
  const Value dy = one.input("dy", tensor({4096, 1}, Numbers(4096, 0.1f)));
  one.node =
      one.graph.add(kEmbeddingBackward, {places, dy}, EmbeddingBackwardAttrs{.vocabulary = 2}).node;
  const NodeResult compared = one.compared(Kernels::kAny);
  const Numbers got{added_up(Numbers(4095, 0.1f)), 0.1f};
  CHECK(errors_of(got, compared).within());
  CHECK(compared.bounds[0].at(1) < 4 * kEps * 0.1);
  CHECK(compared.bounds[0].at(0) > 100 * compared.bounds[0].at(1));
}

// A window of `size` places over `channels`, of numbers of size one, half of them negative, but for
// one pixel of size `large` in the corner.
NodeResult conv_judged(std::int64_t size, std::int64_t channels, float large) {
  OneNode one;
  Numbers x(std::size_t(channels * 49), 1.0f);
  for (std::size_t i = 0; i < x.size(); i += 2) x[i] = -1;
  x[0] = large;
  const Value image = one.input("x", tensor({1, channels, 7, 7}, x));
  const Numbers ones(std::size_t(channels * size * size), 1.0f);
  one.node =
      ops::conv2d(one.graph, image, one.input("w", tensor({1, channels, size, size}, ones))).node;
  return one.compared(Kernels::kAny);
}

TEST_CASE("any kernel: tiles are held to 10 T of what is largest in a tile, direct sums to T") {
  // The terms have the size one, and a bias counts as one more.
  const double terms = 9 * 64, t = kEps * (8 * std::sqrt(terms + 1) + 2);
  const NodeResult tiles = conv_judged(3, 64, 1);
  CHECK(tiles.bounds[0].at(0) == doctest::Approx(10 * t * terms).epsilon(1e-6));
  CHECK(tiles.bounds.usual[0].at(0) < t * terms / 8);  // stays that of the direct sum
  // All nine pixels of the window in the middle are within five places of the large one.
  const NodeResult mixed = conv_judged(3, 64, 1e4f);
  CHECK(mixed.bounds[0].at(12) == doctest::Approx(10 * t * (terms + 9 * 9999)).epsilon(1e-6));
  // A window of one place is never computed in tiles.
  const double direct = kEps * (8 * std::sqrt(64 + 1) + 2) * 64;
  CHECK(conv_judged(1, 64, 1).bounds[0].at(24) == doctest::Approx(direct).epsilon(1e-6));
}

TEST_CASE("any kernel: a common factor shows that no element shows by itself" *
          doctest::test_suite("slow")) {
  constexpr std::int64_t kSize = 128, kTerms = 16384;
  OneNode one;
  const Value a = one.input("a", tensor({kSize, kTerms}, sampled(kSize * kTerms, 0, 1)));
  const Value b = one.input("b", tensor({kTerms, kSize}, sampled(kSize * kTerms, 0, 1, 2)));
  one.node = ops::matmul(one.graph, a, b).node;
  const NodeResult compared = one.compared(Kernels::kAny);
  Numbers right, scaled;
  for (double v : compared.outputs[0].as<double>()) {
    right.push_back(float(v));
    scaled.push_back(float(v * (1 + 1e-5)));
  }
  CHECK(errors_of(right, compared).scale < 1);
  CHECK(errors_of(scaled, compared).within());
  CHECK(errors_of(scaled, compared).of_usual < 1);
  CHECK(errors_of(scaled, compared).scale > 1);
}

TEST_CASE("any kernel: a common factor counts in two roundings and eight deviations of the fit") {
  // With n values y, each with a deviation of w, the fit has a deviation of w / (y sqrt(n)).
  constexpr std::int64_t kCount = 64;
  const auto fit = [](double factor, double deviation) {
    Tensor got(DType::kF64, {kCount}), expected(DType::kF64, {kCount}), w(DType::kF64, {kCount});
    std::ranges::fill(expected.as<double>(), 3.0);
    std::ranges::fill(got.as<double>(), 3 * (1 + factor));
    std::ranges::fill(w.as<double>(), deviation);
    return scale_fit(got, expected, w);
  };
  CHECK(fit(1e-3, 1e-3) == doctest::Approx(1e-3 / (2 * kEps + 8 * 1e-3 / (3 * 8))).epsilon(1e-9));
  CHECK(fit(-1e-3, 1e-3) == doctest::Approx(fit(1e-3, 1e-3)).epsilon(1e-9));
  CHECK(fit(6 * kEps, 0) == doctest::Approx(3).epsilon(1e-6));
}

TEST_CASE("any kernel: far below a row's largest score attention is not blind") {
  OneNode one;
  constexpr std::int64_t kKeys = 64, kWidth = 16;
  const Value q = one.input("q", tensor({1, 8, kWidth}, sampled(8 * kWidth, 0, 1)));
  Numbers keys = sampled(kKeys * kWidth, 0, 1, 2);
  for (std::size_t i = 0; i < kWidth; ++i) keys[i] *= 1e4f;  // scores far off, as a mask makes them
  const Value k = one.input("k", tensor({1, kKeys, kWidth}, keys));
  const Value v = one.input("v", tensor({1, kKeys, kWidth}, sampled(kKeys * kWidth, 0, 1, 3)));
  one.node = ops::attention(one.graph, {.q = q, .k = k, .v = v}, {}).node;
  const NodeResult compared = one.compared(Kernels::kAny);
  Numbers y;
  for (double value : compared.outputs[0].as<double>()) y.push_back(float(value));
  CHECK(errors_of(y, compared).sensitivity < kSensitivityLimit);
}

TEST_CASE("measure: an infinite bound compares nothing, and a NaN under it does not pass") {
  const auto one = [](double got, double expected, double bound) {
    Measure measure;
    const Tensor allowed = Tensor::of<double>({1}, {bound});
    measure.add(0, Tensor::of<float>({1}, {float(got)}), Tensor::of<double>({1}, {expected}),
                &allowed);
    return measure.result();
  };
  for (const double got : {double(NAN), double(INFINITY), 2.0}) {
    CHECK(one(got, 1, INFINITY).uncompared == 1);
    CHECK(one(got, 1, NAN).uncompared == 1);
    CHECK(one(got, 1, 0.5).uncompared == 0);
    CHECK(!one(got, 1, 0.5).within());
  }
  CHECK(one(1, 1, INFINITY).uncompared == 0);
  // Just above the largest float what is one unit below it is as right as infinity.
  const double largest = std::numeric_limits<float>::max();
  CHECK(one(largest * (1 - 1e-7), largest * (1 + 1e-7), largest * 4e-7).within());
  CHECK(one(INFINITY, largest * (1 - 1e-7), largest * 4e-7).within());
  CHECK(!one(INFINITY, largest * (1 - 1e-6), largest * 4e-7).within());
  CHECK(!one(largest / 2, largest * (1 + 1e-7), largest * 4e-7).within());
}

TEST_CASE("compare: where no node is blind a fault of 1 % of the values shows") {
  const TestBackends backends;
  for (const std::string& op : subject_ops()) {
    if (!has_own_subject(op)) continue;
    for (const auto& subject : op_subjects(op)) {
      CompareOptions options;
      options.sink = [&](const NodeReport& report, const NodeTensors& tensors) {
        if (report.verdict() != Verdict::kOk || report.op == "update") return;
        CAPTURE(report.path);
        for (std::size_t j = 0; j < tensors.bounds.size(); ++j) {
          const Tensor& expected = tensors.expected[j];
          if (!is_floating(expected.dtype()) || expected.elements() == 0) continue;
          double squares = 0;
          for (std::int64_t e = 0; e < expected.elements(); ++e) {
            squares += expected.at(e) * expected.at(e);
          }
          if (squares == 0) continue;
          Tensor spoiled = expected.clone();
          const double fault = 0.0101 * std::sqrt(squares / double(expected.elements()));
          for (double& v : spoiled.as<double>()) v += fault;
          Measure measure;
          measure.add(0, spoiled, expected, &tensors.bounds[j]);
          CHECK(!measure.result().within());
        }
      };
      backends.compare(*subject, options);
    }
  }
}

}  // namespace
}  // namespace keel::compare
