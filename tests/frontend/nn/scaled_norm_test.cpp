// A scaling of rows in front of norms, and the layer of multi-linear attention.
#include "frontend/nn/scaled_norm.h"

#include <doctest/doctest.h>

#include "frontend/compare/bounds.h"
#include "frontend/nn/multilinear.h"
#include "frontend/nn/transformer.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

Tensor output_of(const Layer& layer) {
  LayerRun run(layer, {2, 3, 8});
  run.program->feed("x", test::random_normal({2, 3, 8}, 1).to(DType::kF32));
  run.program->run();
  return run.program->fetch("y");
}

TEST_CASE("scaled norm: the scaling comes before the norm, and adds nothing to learn") {
  const Layer scaled = [](Net& net, Value x) {
    return ScaledNorm::parse("batchnorm", "layerscaling")(net, "norm", x);
  };
  const Layer by_hand = [](Net& net, Value x) {
    return Norm::parse("batchnorm")(net, "norm", Norm::parse("layerscaling")(net, "front", x));
  };
  test::check_close(output_of(scaled), output_of(by_hand));
  CHECK(LayerRun(scaled, {2, 3, 8}).parameters == LayerRun(by_hand, {2, 3, 8}).parameters);
  const Layer plain = [](Net& net, Value x) {
    return ScaledNorm::parse("batchnorm")(net, "norm", x);
  };
  CHECK(test::largest_error(output_of(plain), output_of(scaled)) > 0.01);
}

TEST_CASE("scaled norm: groups are scaled each by itself") {
  const Layer halves = [](Net& net, Value x) {
    return ScaledNorm::parse("none", "groupscaling{groups=2}")(net, "norm", x);
  };
  const Tensor y = output_of(halves);
  for (std::int64_t row = 0; row < 6; ++row) {
    for (const std::int64_t half : {0, 4}) {
      double squares = 0;
      for (std::int64_t c = 0; c < 4; ++c)
        squares += y.at(8 * row + half + c) * y.at(8 * row + half + c);
      CHECK(squares / 4 == doctest::Approx(1).epsilon(1e-3));
    }
  }
}

TEST_CASE("scaled norm: only a scaling may stand in front") {
  test::check_refused([] { ScaledNorm::parse("batchnorm", "layernorm"); },
                      "scaling: expected layerscaling or groupscaling, got 'layernorm'");
  test::check_refused([] { ScaledNorm::parse("batchnorm", "layerscalin"); }, "");
}

TEST_CASE("scaled norm: every norm of a layer is scaled") {
  const auto layer = [](const char* scaling) -> Layer {
    return [scaling](Net& net, Value x) {
      TransformerOptions options{.heads = 2, .feed_forward = 5};
      options.norm = ScaledNorm::parse("batchnorm", scaling);
      return encoder_layer(net, "layer", x, {}, options);
    };
  };
  const auto scalings = [&](const char* scaling) {
    LayerRun run(layer(scaling), {2, 3, 8});
    std::int64_t count = 0;
    for (int i = 0; i < run.graph.size(); ++i) {
      const Node& node = run.graph.node(i);
      count += node.kind == NodeKind::kOp && node.op->name == "group_scaling" ? 1 : 0;
    }
    return count;
  };
  CHECK(scalings("layerscaling") == 2);
  CHECK(scalings("") == 0);
}

TEST_CASE("multilinear layer: cores that are alike are one core") {
  const auto layer = [](std::int64_t cores) -> Layer {
    return [cores](Net& net, Value x) {
      const MultilinearOptions options{.rank = 3, .cores = cores, .positions = 3};
      const MultilinearBiases biases(net, "biases", options);
      return multilinear_attention(net, "attention", x, options, biases);
    };
  };
  test::check_close(output_of(layer(1)), output_of(layer(4)), 1e-12);
  const LayerRun run(layer(2), {2, 3, 8});
  CHECK(run.parameters.size() == 2 + 6);
  const LayerRun longer(layer(1), {2, 2, 8});  // fewer positions than the weights have
  test::check_refused(
      [&] {
        LayerRun(layer(1), {2, 4, 8});
      },
      "attention: expected at most 3 positions, got 4");
}

}  // namespace
}  // namespace keel::nn
