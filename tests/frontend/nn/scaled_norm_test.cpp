// A scaling of rows in front of norms, and the layer of multi-linear attention.
#include "frontend/nn/scaled_norm.h"

#include <doctest/doctest.h>

#include "frontend/nn/multilinear.h"
#include "frontend/nn/transformer.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

Tensor output_of(const Layer& layer, const Tensor& x) {
  LayerRun run(layer, x.shape());
  run.program->feed("x", x);
  run.program->run();
  return run.program->fetch("y").clone();
}
Tensor output_of(const Layer& layer) {
  return output_of(layer, test::random_normal({2, 3, 8}, 1).to(DType::kF32));
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
  CHECK(output_of(plain).at(0) != doctest::Approx(output_of(scaled).at(0)));
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

TEST_CASE("scaled norm: a norm that scales rows itself is not scaled twice") {
  const auto scalings = [](const char* norm) {
    LayerRun run(
        [norm](Net& net, Value x) {
          return ScaledNorm::parse(norm, "layerscaling")(net, "norm", x);
        },
        {2, 3, 8});
    int count = 0;
    for (int i = 0; i < run.graph.size(); ++i) {
      const Node& node = run.graph.node(i);
      count += node.kind == NodeKind::kOp && node.op->name == "group_scaling" ? 1 : 0;
    }
    return count;
  };
  CHECK(scalings("powernorm{heads=2}") == 0);
  CHECK(scalings("powernorm{heads=0}") == 1);
  CHECK(scalings("layernorm") == 1);
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

Layer multilinear_of(std::int64_t cores) {
  return [cores](Net& net, Value x) {
    const MultilinearOptions options{.rank = 3, .cores = cores, .positions = 3};
    const MultilinearBiases biases(net, "biases", options);
    return multilinear_attention(net, "attention", x, options, biases);
  };
}

TEST_CASE("multilinear layer: cores that are alike are one core") {
  test::check_close(output_of(multilinear_of(1)), output_of(multilinear_of(4)), 1e-12);
  const LayerRun run(multilinear_of(2), {2, 3, 8});
  CHECK(run.parameters.size() == 2 + 6);
}

TEST_CASE("multilinear layer: fewer positions are the first of more, and no more are taken") {
  const Tensor x = test::random_normal({2, 3, 8}, 1).to(DType::kF32);
  Tensor first(DType::kF32, {2, 2, 8});
  for (std::int64_t e = 0; e < first.elements(); ++e) {
    first.as<float>()[std::size_t(e)] = float(x.at(e / 16 * 24 + e % 16));
  }
  const Tensor all = output_of(multilinear_of(1), x), some = output_of(multilinear_of(1), first);
  for (std::int64_t e = 0; e < some.elements(); ++e) {
    CHECK(some.at(e) == doctest::Approx(all.at(e / 16 * 24 + e % 16)));
  }
  test::check_refused(
      [&] {
        LayerRun(multilinear_of(1), {2, 4, 8});
      },
      "attention: expected at most 3 positions, got 4");
}

}  // namespace
}  // namespace keel::nn
