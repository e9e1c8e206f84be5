// Cross entropy of products with a table against the judge, within what rounding may add.
#include "src/ops/linear_cross_entropy.h"

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/each_bf16.h"

namespace keel::test {
namespace {

struct LinearSizes {
  std::int64_t rows, width, words;
  LinearLossAttrs attrs = {};
  bool has_bias = true;
  bool is_narrow = false;  // factors are bf16
};

// Makes the op of inputs that make() gives: normal numbers of a shape.
template <class Make>
ops::LinearLoss linear_loss_of(Graph& g, const LinearSizes& s, Value labels, const Make& make) {
  ops::LinearLossOperands of{
      .x = make({s.rows, s.width}), .table = make({s.words, s.width}), .labels = labels};
  const std::int64_t clusters = std::ssize(s.attrs.cutoffs);
  if (s.has_bias) of.bias = make({s.words});
  if (clusters > 0) of.clusters = make({clusters, s.width});
  if (clusters > 0 && s.has_bias) of.cluster_bias = make({clusters});
  if (s.is_narrow) {
    for (Value* factor : {&of.x, &of.table, &of.clusters}) {
      if (factor->valid()) *factor = ops::cast(g, *factor, DType::kBF16);
    }
  }
  return ops::linear_cross_entropy(g, of, s.attrs);
}

void check_linear(const LinearSizes& s) {
  const std::string sizes = fmt::format("{} {} {} ", s.rows, s.width, s.words);
  CAPTURE(sizes);
  CAPTURE(Attrs(s.attrs).text());
  check_sampled([&](CaseBuilder& d) {
    const Value labels = d.below({s.rows}, s.words);
    const ops::LinearLoss loss =
        linear_loss_of(d.graph, s, labels, [&](const Shape& shape) { return d.normal(shape); });
    d.differentiate({loss.sum});
    d.mark({loss.nll, loss.sum.at(LinearLossOutput::kLse)});
  });
}

TEST_CASE("backend linear_cross_entropy: rows, widths and classes of every size") {
  for_each_target([] {
    for (const LinearSizes& s : {LinearSizes{1, 1, 1},
                                 {3, 5, 7},
                                 {47, 16, 31},
                                 {49, 17, 193},
                                 {241, 8, 33},
                                 {5, 70, 385},
                                 {33, 33, 192, {.label_smoothing = 0.1}},
                                 {20, 9, 65, {.label_smoothing = 1}, false}}) {
      check_linear(s);
    }
  });
}

TEST_CASE("backend linear_cross_entropy: adaptive") {
  for (const LinearSizes& s : {LinearSizes{17, 5, 40, {.cutoffs = {10}}},
                               {60, 9, 230, {.cutoffs = {4, 200, 229}, .label_smoothing = 0.1}},
                               {9, 4, 9300, {.cutoffs = {4500}}, false},
                               {70, 6, 50, {.cutoffs = {1, 2, 3}, .ignore_index = 30}}}) {
    check_linear(s);
  }
}

bool runs_narrow_loss() {
  Graph g;
  const Value x = g.input("x", {DType::kBF16, {2, 2}}), labels = g.input("l", {DType::kI32, {2}});
  ops::linear_cross_entropy(g, {.x = x, .table = x, .labels = labels});
  return make_backend(default_backend(), {1})->prepare({g, g.node(g.size() - 1)}).refusal.empty();
}

TEST_CASE("backend linear_cross_entropy: factors of bf16") {
  const EachBf16 each;
  if (!runs_narrow_loss()) return;
  for (LinearSizes s : {LinearSizes{1, 1, 1},
                        {3, 5, 7},
                        {65, 17, 193, {.label_smoothing = 0.1}},
                        {515, 34, 40, {}, false},
                        {5, 70, 385},
                        {4, 3, 4200},
                        {60, 9, 230, {.cutoffs = {4, 200, 229}, .label_smoothing = 0.1}},
                        {9, 64, 300, {.cutoffs = {200}}, false}}) {
    s.is_narrow = true;
    check_linear(s);
  }
}

OpCase linear_case(const LinearSizes& s, std::int64_t words_used) {
  OpCase c;
  Tensor labels(DType::kI32, {s.rows});
  for (std::int64_t r = 0; r < s.rows; ++r) {
    labels.as<std::int32_t>()[std::size_t(r)] = std::int32_t(r * 7 % words_used);
  }
  c.inputs.push_back(std::move(labels));
  const std::int64_t clusters = std::ssize(s.attrs.cutoffs);
  for (const Shape& shape : {Shape{s.rows, s.width}, Shape{s.words, s.width}, Shape{s.words}}) {
    c.inputs.push_back(random_f32(shape, std::uint32_t(c.inputs.size())));
  }
  if (clusters > 0) c.inputs.push_back(random_f32({clusters, s.width}, 7));
  if (clusters > 0) c.inputs.push_back(random_f32({clusters}, 8));
  c.build = [s](Graph& g, const std::vector<Value>& v) {
    std::size_t next = 1;
    return std::vector{linear_loss_of(g, s, v[0], [&](const Shape&) { return v[next++]; }).sum};
  };
  return c;
}

TEST_CASE("backend linear_cross_entropy: the same bits for every number of threads") {
  check_thread_counts(linear_case({500, 40, 700, {.label_smoothing = 0.1}}, 700));
  check_thread_counts(linear_case({150, 24, 500, {.cutoffs = {200, 300}}}, 500));
  const EachBf16 each;
  if (!runs_narrow_loss()) return;
  check_thread_counts(linear_case({500, 40, 700, {.label_smoothing = 0.1}, true, true}, 700));
  check_thread_counts(linear_case({150, 24, 500, {.cutoffs = {200, 300}}, true, true}, 500));
}

TEST_CASE("backend linear_cross_entropy: a cluster that no row is in, and no rows at all") {
  const Results got = run_tested(linear_case({20, 6, 90, {.cutoffs = {30, 60}}}, 60));
  const Tensor &dtable = got.at("d2"), &dbias = got.at("d3");
  for (std::int64_t word = 0; word < 90; ++word) {
    CHECK((dbias.at(word) == 0) == (word >= 60));
    CHECK((dtable.at(word * 6) == 0) == (word >= 60));
  }
  const Results none = run_tested(linear_case({0, 6, 90}, 60));
  CHECK(none.at("y0").at(0) == 0);
  for (std::int64_t e = 0; e < none.at("d2").elements(); ++e) CHECK(none.at("d2").at(e) == 0);
}

TEST_CASE("backend linear_cross_entropy: labels out of range, rows that do not count") {
  for (const std::int32_t label : {-1, -2, 12}) {
    OpCase c = linear_case({6, 4, 12}, 12);
    c.inputs[0].as<std::int32_t>()[3] = label;
    const Results got = run_tested(c), expected = run_reference(c);
    CHECK(std::isnan(got.at("y0").at(0)) == (label != -1));
    CHECK(std::isnan(expected.at("y0").at(0)) == (label != -1));
    check_within(got.at("d1"), expected.at("d1"), [](auto) { return 1e-5; });
  }
}

TEST_CASE("backend linear_cross_entropy: all logits never exist at once, forwards or backwards") {
  const LinearSizes sizes{4000, 64, 60000};
  Graph g;
  const Value labels = g.input("labels", {DType::kI32, {sizes.rows}});
  int count = 0;
  const ops::LinearLoss loss = linear_loss_of(g, sizes, labels, [&](const Shape& shape) {
    return g.input(fmt::format("in{}", count++), {DType::kF32, shape});
  });
  gradient(g, loss.sum, std::vector{g.find_leaf("in0"), g.find_leaf("in1")});
  const auto backend = make_backend(default_backend());
  const std::int64_t logits = sizes.rows * sizes.words * std::int64_t(sizeof(float));
  int met = 0;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.op != &kLinearCrossEntropy && node.op != &kLinearCrossEntropyBackward) continue;
    ++met;
    CHECK(backend->prepare({g, node}).workspace < logits / 10);
  }
  CHECK(met == 2);
}

TEST_CASE("backend linear_cross_entropy: a row that does not count may hold anything") {
  OpCase c = linear_case({6, 4, 12}, 12);
  c.inputs[0].as<std::int32_t>()[3] = -1;
  for (std::int64_t f = 0; f < 4; ++f) c.inputs[1].as<double>()[std::size_t(12 + f)] = NAN;
  const Results got = run_tested(c), expected = run_reference(c);
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(std::isfinite(value.at(0)));
    check_within(got.at(name), value, [](auto) { return 1e-5; });
  }
}

// A case whose first words are impossible, by a bias of -inf.
OpCase masked_case(std::int64_t words, std::int64_t impossible) {
  OpCase c = linear_case({5, 6, words}, words);
  for (std::int32_t& label : c.inputs[0].as<std::int32_t>()) {
    label = std::int32_t(std::min(impossible + label, words - 1));
  }
  for (std::int64_t word = 0; word < impossible; ++word) {
    c.inputs[3].as<double>()[std::size_t(word)] = -INFINITY;
  }
  return c;
}

TEST_CASE("backend linear_cross_entropy: whole tiles of impossible words") {
  for (const auto& [words, impossible] :
       {std::pair<std::int64_t, std::int64_t>{400, 192}, {400, 390}, {9000, 4096}, {9000, 8990}}) {
    CAPTURE(words);
    CAPTURE(impossible);
    const OpCase c = masked_case(words, impossible);
    const Results got = run_tested(c), expected = run_reference(c);
    CHECK(std::isfinite(expected.at("y0").at(0)));
    for (const auto& [name, value] : expected) {
      check_within(got.at(name), value, [](auto) { return 1e-5; });
    }
  }
}

TEST_CASE("backend linear_cross_entropy: the loss is NaN where every word is impossible") {
  for (const std::int64_t words : {400, 9000}) {
    OpCase c = masked_case(words, words);
    c.gradients = false;
    CHECK(std::isnan(run_tested(c).at("y0").at(0)));
    CHECK(std::isnan(run_reference(c).at("y0").at(0)));
  }
}

// Runs a case whose loss is joined with its backward, where the backend prefers that.
Results run_joined(OpCase c) {
  c.optimize = true;
  return run_tested(c);
}

// The gradients of biases are sums in double whose order differs: rounding them may show that.
void check_joined(const LinearSizes& s, std::int64_t words_used) {
  const OpCase c = linear_case(s, words_used);
  const Results pair = run_tested(c), joined = run_joined(linear_case(s, words_used));
  const std::int64_t clusters = std::ssize(s.attrs.cutoffs);
  for (const auto& [name, expected] : pair) {
    CAPTURE(name);
    const bool is_bias = name == "d3" || (name == "d5" && clusters > 0);
    check_within(joined.at(name), expected,
                 [&](std::int64_t e) { return is_bias ? 1e-7 * std::abs(expected.at(e)) : 0.0; });
  }
}

TEST_CASE("backend linear_cross_entropy: with its backward in one step, the same numbers") {
  for_each_target([] {
    check_joined({1, 1, 1}, 1);
    check_joined({241, 8, 33}, 33);
    check_joined({33, 33, 385, {.label_smoothing = 0.1}}, 385);
    check_joined({60, 9, 230, {.cutoffs = {4, 200, 229}, .label_smoothing = 0.1}}, 230);
    check_joined({20, 6, 90, {.cutoffs = {30, 60}}}, 60);
  });
}

// 240 rows have more than 16 MiB of logits, so that there are three groups of rows.
TEST_CASE("backend linear_cross_entropy: a step in more than one group of rows") {
  check_joined({500, 3, 34000, {.label_smoothing = 0.1}}, 34000);
  OpCase c = linear_case({500, 3, 34000}, 34000);
  c.optimize = true;
  check_thread_counts(c);
}

TEST_CASE("backend linear_cross_entropy: impossible words and wrong labels in a step") {
  const OpCase masked = masked_case(400, 390);
  const Results expected = run_reference(masked), got = run_joined(masked_case(400, 390));
  CHECK(std::isfinite(expected.at("y0").at(0)));
  for (const auto& [name, value] : expected) {
    check_within(got.at(name), value, [](auto) { return 1e-5; });
  }
  OpCase wrong = linear_case({6, 4, 12}, 12);
  wrong.inputs[0].as<std::int32_t>()[3] = 12;
  CHECK(std::isnan(run_joined(std::move(wrong)).at("y0").at(0)));
}

TEST_CASE("backend linear_cross_entropy: onednn joins up to some 60,000 words") {
  const auto backend = make_backend(default_backend());
  for (const std::int64_t words : {10, 60000, 80000}) {
    Graph g;
    const Value labels = g.input("labels", {DType::kI32, {256}});
    int count = 0;
    const ops::LinearLoss loss = linear_loss_of(g, {256, 4, words}, labels, [&](const Shape& s) {
      return g.input(fmt::format("in{}", count++), {DType::kF32, s});
    });
    g.mark_output("dx", gradient(g, loss.sum, std::vector{g.find_leaf("in0")})[0]);
    const Graph optimized = optimized_for(*backend, g);
    int steps = 0;
    for (int i = 0; i < optimized.size(); ++i) {
      steps += optimized.node(i).op == &kLinearCrossEntropyStep;
    }
    CHECK(steps == (default_backend() == "onednn" && words < 70000));
  }
}

TEST_CASE("backend linear_cross_entropy: a step keeps 64 MiB of logits at most") {
  for (const std::int64_t words : {20000, 268000}) {
    Graph g;
    const Value x = g.input("x", {DType::kF32, {4096, 8}});
    const Value table = g.input("table", {DType::kF32, {words, 8}}), none;
    const Value labels = g.input("labels", {DType::kI32, {4096}});
    const Value dsum = g.input("dsum", {DType::kF32, {}});
    const Value step = g.add(kLinearCrossEntropyStep, {x, table, none, none, none, labels, dsum},
                             LinearLossAttrs{});
    const Prepared p = make_backend(default_backend())->prepare({g, g.node(step)});
    CHECK(p.workspace < (64 + 8) << 20);
  }
}

TEST_CASE("backend linear_cross_entropy: CUDA takes at most 16 cut-offs") {
  const auto backend = make_backend(default_backend());
  for (const std::int64_t cutoffs : {16, 17}) {
    LinearSizes sizes{4, 3, 40};
    for (std::int64_t i = 1; i <= cutoffs; ++i) sizes.attrs.cutoffs.push_back(i);
    Graph g;
    const Value labels = g.input("labels", {DType::kI32, {sizes.rows}});
    int count = 0;
    const ops::LinearLoss loss = linear_loss_of(g, sizes, labels, [&](const Shape& shape) {
      return g.input(fmt::format("in{}", count++), {DType::kF32, shape});
    });
    gradient(g, loss.sum, std::vector{g.find_leaf("in0")});
    for (int i = 0; i < g.size(); ++i) {
      const Node& node = g.node(i);
      if (node.op != &kLinearCrossEntropy && node.op != &kLinearCrossEntropyBackward) continue;
      const bool is_refused = default_backend() == "cuda" && cutoffs > 16;
      CHECK(backend->prepare({g, node}).refusal == (is_refused ? "takes at most 16 cut-offs" : ""));
    }
  }
}

TEST_CASE("backend linear_cross_entropy: logits of 1e4 do not overflow") {
  OpCase c = linear_case({9, 3, 500}, 500);
  for (double& x : c.inputs[1].as<double>()) x = double(float(x * 1e4));
  const Results got = run_tested(c), expected = run_reference(c);
  CHECK(std::isfinite(got.at("y0").at(0)));
  CHECK(got.at("y0").at(0) == doctest::Approx(expected.at("y0").at(0)).epsilon(1e-5));
}

}  // namespace
}  // namespace keel::test
