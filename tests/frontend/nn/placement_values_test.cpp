// Placements of norms: values by hand, first weights, gradients, the first step of a training, and
// padding.
#include <algorithm>

#include "backends/backends.h"
#include "tests/frontend/nn/placements.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

using Row = std::vector<double>;

Row normed_row(const Row& x) {
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / double(x.size());
  for (const double v : x) variance += (v - mean) * (v - mean) / double(x.size());
  Row y;
  for (const double v : x) y.push_back((v - mean) / std::sqrt(variance + 1e-5));
  return y;
}
Row squared_row(Row x) {
  for (double& v : x) v *= v;
  return x;
}
// a x + b y
Row sum_of(const Row& x, const Row& y, double a = 1, double b = 1) {
  Row sum;
  for (std::size_t i = 0; i < x.size(); ++i) sum.push_back(a * x[i] + b * y[i]);
  return sum;
}
Row unit_row(const Row& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return sum_of(x, x, 1 / std::sqrt(squares), 0);
}

// The branch by its formula, with F(x) = x^2, in layer 2 of 3.
Row by_hand(NormPlace place, const Row& x, bool attends) {
  const auto n = normed_row;
  const auto f = squared_row;
  switch (place) {
    case NormPlace::kPre:
    case NormPlace::kSub:
      return sum_of(x, f(n(x)));
    case NormPlace::kPost:
      return n(sum_of(x, f(x)));
    case NormPlace::kPeri:
      return sum_of(x, n(f(n(x))));
    case NormPlace::kHybrid:
      return attends ? sum_of(x, f(x)) : sum_of(n(x), f(n(x)));
    case NormPlace::kOlmo:
      return sum_of(x, n(f(x)));
    case NormPlace::kLns: {
      Row half = f(n(x));
      for (double& v : half) v /= 2;  // F of the norm by the root of 2
      return sum_of(x, half);
    }
    case NormPlace::kDeepNorm:
      return n(sum_of(x, f(x), std::pow(6, 0.25)));
    case NormPlace::kReZero:
      return x;
    case NormPlace::kScaledPost:
      return n(sum_of(x, f(n(x)), 6));
    case NormPlace::kSimple:
      return sum_of(x, f(x));
    case NormPlace::kNgpt:
      return unit_row(sum_of(unit_row(x), unit_row(f(x)), 0.95, 0.05));
  }
  return {};
}

TEST_CASE("placement: a branch is its formula") {
  const Row x{1, -2, 3, 0.5};
  for_each_place([&](NormPlace place) {
    for (const bool attends : {true, false}) {
      CAPTURE(attends);
      Graph g;
      Net net{.graph = g, .dtype = DType::kF64};
      const Value in = g.input("x", {DType::kF64, {1, 1, 4}});
      const auto square = [&](Value v) { return ops::square(g, v); };
      g.mark_output("y", residual(net, in, placed(place), {"branch", {}, square, attends}));
      Feeds feeds;
      feeds["x"] = Tensor::of<double>({1, 1, 4}, std::span<const double>(x));
      const Tensor y = std::move(run_graph(*make_backend("reference"), g, feeds).at("y"));
      const Row expected = by_hand(place, x, attends);
      test::check_close(y, Tensor::of<double>({1, 1, 4}, std::span<const double>(expected)), 1e-12);
    }
  });
}

TEST_CASE("placement: a layer of rezero is x itself at first") {
  LayerRun run(placed_encoder(NormPlace::kReZero), {2, 3, 4});
  run.program->run();
  test::check_close(run.program->fetch("y", true), test::random_normal({2, 3, 4}, 5, 2, 3), 0);
  CHECK(largest(run.program->fetch("d layer/attention/scale", true)) > 0);
  CHECK(largest(run.program->fetch("d layer/attention/out/weight", true)) == 0);
}

TEST_CASE("placement: deepnorm scales the first weights of a branch, but not those of q and k") {
  LayerRun deep(placed_encoder(NormPlace::kDeepNorm), {2, 3, 4}),
      post(placed_encoder(NormPlace::kPost), {2, 3, 4});
  const auto check = [&](const std::string& layer, double factor) {
    CAPTURE(layer);
    const std::string name = "layer/" + layer + "/weight";
    const Tensor got = deep.read(name), usual = post.read(name);
    REQUIRE(got.elements() == usual.elements());
    for (std::int64_t e = 0; e < got.elements(); ++e) {
      CHECK(got.at(e) == doctest::Approx(factor * usual.at(e)).epsilon(1e-6));
    }
  };
  const double beta = std::pow(24, -0.25);
  for (const char* layer : {"attention/q", "attention/k"}) check(layer, 1);
  for (const char* layer : {"attention/v", "attention/out", "feed_forward/1", "feed_forward/2"}) {
    check(layer, beta);
  }
}

// Gives the scales of rezero other values than the zeros at which they begin, and feed-forward
// layers a result other than zeros for rows whose units are all 0, which has no direction for ngpt.
void open_branches(LayerRun& run) {
  for (const std::string& name : run.parameters) {
    if (name.ends_with("/scale")) run.variables.write(name, test::f64({1}, {0.7}));
    if (name.ends_with("feed_forward/2/bias")) {
      run.variables.write(name, test::random_normal({4}, 11));
    }
  }
}

TEST_CASE("placement: gradients of a layer by central differences" * doctest::test_suite("slow")) {
  for_each_place([](NormPlace place) {
    LayerRun run(placed_encoder(place), {2, 3, 4});
    run.program->feed("x", test::random_normal({2, 3, 4}, 5));
    open_branches(run);
    // What all keys have in common changes no probability.
    const bool has_norm = place == NormPlace::kHybrid || place == NormPlace::kSimple;
    const char* common = has_norm ? "attention/k/norm/bias" : "attention/k/bias";
    CHECK(std::erase_if(run.parameters,
                        [&](const std::string& name) { return name.ends_with(common); }) == 1);
    check_central_differences(run, 2e-6);
  });
}

double loss_of(LayerRun& run) {
  run.program->run();
  const Tensor y = run.program->fetch("y", true),
               weights = test::random_normal(y.shape(), 9).to(DType::kF32);
  double sum = 0;
  for (std::int64_t e = 0; e < y.elements(); ++e) sum += y.at(e) * weights.at(e);
  return sum;
}

TEST_CASE("placement: a step against the gradient lowers the loss") {
  for_each_place([](NormPlace place) {
    LayerRun run(placed_encoder(place), {2, 3, 4});
    const double before = loss_of(run);
    for (const std::string& name : run.parameters) {
      Tensor value = run.read(name).clone();
      const Tensor d = run.program->fetch("d " + name, true);
      for (std::int64_t e = 0; e < d.elements(); ++e) {
        value.as<double>()[std::size_t(e)] -= 1e-5 * d.at(e);
      }
      run.variables.write(name, value);
    }
    CHECK(loss_of(run) < before);
  });
}

// y (2, 3, 4) of three positions of x (2, length, 4); the others are padding.
Tensor first_positions(NormPlace place, const char* norm, std::int64_t length) {
  Graph g;
  Net net{.graph = g, .dtype = DType::kF64};
  const Value x = g.input("x", {DType::kF64, {2, length, 4}}),
              mask = g.input("mask", {DType::kU8, {2, length}});
  g.mark_output("y", encoder_layer(net, "layer", x, mask, placed(place, norm)));
  const Tensor kept = test::random_normal({2, 3, 4}, 5);
  Tensor padded = test::random_normal({2, length, 4}, 6, 9), seen(DType::kU8, {2, length});
  for (std::int64_t e = 0; e < kept.elements(); ++e) {
    const std::int64_t position = e / 4 % 3, row = e / 12;
    padded.as<double>()[std::size_t((row * length + position) * 4 + e % 4)] = kept.at(e);
    seen.as<std::uint8_t>()[std::size_t(row * length + position)] = 1;
  }
  Feeds feeds;
  feeds["x"] = std::move(padded);
  feeds["mask"] = std::move(seen);
  const Tensor all = std::move(run_graph(*make_backend("reference"), g, feeds).at("y"));
  Tensor y(DType::kF64, kept.shape());
  for (std::int64_t e = 0; e < y.elements(); ++e) {
    y.as<double>()[std::size_t(e)] = all.at((e / 12 * length + e / 4 % 3) * 4 + e % 4);
  }
  return y;
}

TEST_CASE("placement: padding stays out of the statistics of every norm of a layer") {
  for_each_place([](NormPlace place) {
    for (const char* norm : {"batchnorm", "pn_v", "powernorm", "mabn", "instancenorm"}) {
      CAPTURE(std::string(norm));
      test::check_close(first_positions(place, norm, 5), first_positions(place, norm, 3), 1e-11);
    }
  });
}

bool is_finite(const Tensor& value) {
  for (std::int64_t e = 0; e < value.elements(); ++e) {
    if (!std::isfinite(value.at(e))) return false;
  }
  return true;
}

TEST_CASE("placement: every norm of outputs stands at every place" * doctest::test_suite("slow")) {
  for (const NormFacts& facts : norm_facts()) {
    CAPTURE(facts.name);
    const std::string norm = facts.any_width();
    if (!Norm::parse(norm).weight_form().is_plain()) continue;
    for_each_place([&](NormPlace place) {
      LayerRun run(placed_encoder(place, norm.c_str()), {2, 3, 4});
      run.program->run();
      CHECK(is_finite(run.program->fetch("y", true)));
      for (const std::string& name : run.parameters) {
        CHECK(is_finite(run.program->fetch("d " + name, true)));
      }
    });
  }
}

}  // namespace
}  // namespace keel::nn
