// Placements of norms: their names and factors, and which norms a layer has.
#include "frontend/nn/placement.h"

#include <algorithm>

#include "src/core/choice.h"
#include "tests/frontend/nn/placements.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

using Texts = std::vector<std::string>;

TEST_CASE("placement: every one is read by its name, and an unknown one is told the list") {
  const Texts names{"pre", "post",     "peri",   "sub",         "hybrid", "olmo",
                    "lns", "deepnorm", "rezero", "scaled_post", "simple", "ngpt"};
  Texts listed;
  for_each_place([&](NormPlace place) {
    listed.emplace_back(choice_text(place));
    CHECK(parse_choice<NormPlace>(listed.back()) == place);
  });
  CHECK(listed == names);
  CHECK(parse_choice<NormPlace>("olmo") == NormPlace::kOlmo);
  CHECK(parse_choice<NormPlace>("rezero") == NormPlace::kReZero);
  test::check_refused([] { parse_choice<NormPlace>("middle"); },
                      "expected pre, post, peri, sub, hybrid, olmo, lns, deepnorm, rezero, "
                      "scaled_post, simple or ngpt, got 'middle'");
}

TEST_CASE("placement: the factors of depth, and refusals where it is not known") {
  using doctest::Approx;
  const PlacementFactors lns = placement_factors(NormPlace::kLns, {.layer = 4});
  CHECK(lns.norm == 0.5);
  CHECK(lns.residual == 1);
  CHECK(placement_factors(NormPlace::kScaledPost, {.layers = 6}).residual == 12);
  CHECK(placement_factors(NormPlace::kScaledPost, {.layers = 6, .branches = 3}).residual == 18);
  const auto deep = [](const StackDepth& depth) {
    return placement_factors(NormPlace::kDeepNorm, depth);
  };
  CHECK(deep({.layers = 18}).residual == Approx(2.449490).epsilon(1e-6));  // 36^(1/4)
  CHECK(deep({.layers = 18}).weights == Approx(0.2886751).epsilon(1e-6));  // 144^(-1/4)
  const StackDepth decoder{.layers = 6, .branches = 3}, encoder{.layers = 6, .decoder_layers = 6};
  CHECK(deep(decoder).residual == Approx(2.059767).epsilon(1e-6));  // 18^(1/4)
  CHECK(deep(decoder).weights == Approx(0.3432945).epsilon(1e-6));  // 72^(-1/4)
  CHECK(deep(encoder).residual == Approx(0.81 * 1.7505409).epsilon(1e-6));
  CHECK(deep(encoder).weights == Approx(0.87 / 1.7505409).epsilon(1e-6));
  const auto refused = [](NormPlace place, std::string_view beginning) {
    test::check_refused([&] { placement_factors(place, {}); }, beginning);
  };
  refused(NormPlace::kLns, "place lns: expected the number of the layer");
  refused(NormPlace::kDeepNorm, "place deepnorm: expected the number of layers");
  refused(NormPlace::kScaledPost, "place scaled_post: expected the number of layers");
}

// The names, without that of the layer, of the parameters that end with `last`.
Texts ending_with(const Graph& g, const std::string& last) {
  Texts names;
  for (const Value leaf : g.leaves(NodeKind::kParameter)) {
    const std::string& name = g.node(leaf).name;
    if (!name.ends_with(last)) continue;
    names.push_back(name.substr(6, name.size() - 6 - last.size()));
  }
  std::ranges::sort(names);
  return names;
}

TEST_CASE("placement: the norms of an encoder layer by name") {
  const Texts one{"attention/norm", "feed_forward/norm"},
      around{"attention/norm", "attention/out_norm", "feed_forward/norm", "feed_forward/out_norm"},
      inside{"attention/inner_norm", "attention/norm", "feed_forward/inner_norm",
             "feed_forward/norm"},
      projections{"attention/k/norm", "attention/q/norm", "attention/v/norm", "feed_forward/norm"},
      maps{"attention/k/norm", "attention/out/norm",  "attention/q/norm",
           "attention/v/norm", "feed_forward/1/norm", "feed_forward/2/norm"};
  const std::vector<Texts> expected{one, one, around, inside, projections, one,
                                    one, one, {},     around, maps,        {}};
  for_each_place([&](NormPlace place) {
    Graph g;
    Net net{.graph = g};
    const Value x = g.input("x", {DType::kF32, {2, 5, 4}}),
                mask = g.input("mask", {DType::kU8, {2, 5}});
    CHECK(g.shape(encoder_layer(net, "layer", x, mask, placed(place))) == Shape{2, 5, 4});
    CHECK(ending_with(g, "/gain") == expected[std::size_t(place)]);
    const bool is_rezero = place == NormPlace::kReZero;
    CHECK(ending_with(g, "/scale") == (is_rezero ? Texts{"attention", "feed_forward"} : Texts{}));
    const bool is_ngpt = place == NormPlace::kNgpt;
    CHECK(ending_with(g, "/alpha") == (is_ngpt ? Texts{"attention", "feed_forward"} : Texts{}));
    if (place != NormPlace::kSub) return;
    CHECK(g.shape(g.find_leaf("layer/feed_forward/inner_norm/gain")) == Shape{3});
  });
}

TEST_CASE("placement: the number of norms of a decoder layer") {
  const std::vector<std::size_t> expected{3, 3, 6, 6, 7, 3, 3, 3, 0, 6, 10, 0};
  for_each_place([&](NormPlace place) {
    Graph g;
    Net net{.graph = g};
    const Value x = g.input("x", {DType::kF32, {2, 5, 4}}),
                encoded = g.input("memory", {DType::kF32, {2, 3, 4}});
    TransformerOptions options = placed(place);
    options.depth.branches = 3;
    const AttentionMemory memory = project_memory(net, "layer/memory_attention", encoded, options);
    const Value y = decoder_layer(net, "layer", {.x = x, .memory = memory}, options);
    CHECK(g.shape(y) == Shape{2, 5, 4});
    CHECK(ending_with(g, "/gain").size() == expected[std::size_t(place)]);
  });
}

TEST_CASE("placement: pre and post have the ops and the parameters that they always had") {
  const auto check = [](NormPlace place, const std::string& ops, const Texts& layers) {
    Graph g;
    Net net{.graph = g};
    const Value x = g.input("x", {DType::kF32, {2, 5, 4}});
    // Without depth, which these placements do not need.
    encoder_layer(net, "layer", x, {}, {.heads = 2, .feed_forward = 3, .place = place});
    std::string got;
    for (int i = 0; i < g.size(); ++i) {
      const Node& node = g.node(i);
      if (node.kind == NodeKind::kOp && node.op->name != "reshape") {
        got += (got.empty() ? "" : " ") + std::string(node.op->name);
      }
    }
    CHECK(got == ops);
    Texts expected, names;
    for (const std::string& layer : layers) {
      const bool is_norm = layer.ends_with("norm");
      expected.push_back("layer/" + layer + (is_norm ? "/gain" : "/weight"));
      expected.push_back("layer/" + layer + "/bias");
    }
    for (const Value leaf : g.leaves(NodeKind::kParameter)) names.push_back(g.node(leaf).name);
    CHECK(names == expected);
  };
  check(NormPlace::kPre,
        "layer_norm matmul matmul matmul attention matmul add layer_norm matmul relu matmul add",
        {"attention/norm", "attention/k", "attention/v", "attention/q", "attention/out",
         "feed_forward/norm", "feed_forward/1", "feed_forward/2"});
  check(NormPlace::kPost,
        "matmul matmul matmul attention matmul add layer_norm matmul relu matmul add layer_norm",
        {"attention/k", "attention/v", "attention/q", "attention/out", "attention/norm",
         "feed_forward/1", "feed_forward/2", "feed_forward/norm"});
}

}  // namespace
}  // namespace keel::nn
