#include "frontend/nn/transformer.h"

#include <functional>

#include "frontend/nn/layers.h"
#include "src/ops/attention.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"

namespace keel::nn {
namespace {

// A residual branch of a layer: what its norm is called and leaves out, and what it does.
struct Branch {
  std::string name;
  Value mask;
  std::function<Value(Value)> sublayer;
};

// x and what the branch makes of it, joined as options.place says.
Value residual(Net& net, Value x, const TransformerOptions& options, const Branch& branch) {
  const bool pre = options.place == NormPlace::kPre;
  const auto normalized = [&](Value v) {
    return options.norm(net, branch.name + "/norm", v, branch.mask);
  };
  const Value y = dropout(net, branch.sublayer(pre ? normalized(x) : x), options.dropout);
  const Value sum = ops::add(net.graph, x, y);
  return pre ? sum : normalized(sum);
}

}  // namespace

Value multi_head_attention(Net& net, const std::string& name, const AttentionInputs& in,
                           const TransformerOptions& options) {
  const std::int64_t width = net.graph.shape(in.query).back();
  check(width % options.heads == 0, ErrorKind::kUsage,
        "{}: expected heads that divide the width {}, got {}", name, width, options.heads);
  const auto scope = net.graph.scope(name);
  const LayerOptions layer{.weight_init = options.init};
  const Value memory = in.memory.valid() ? in.memory : in.query;
  ops::AttentionOperands operands{.q = linear(net, "q", in.query, width, layer),
                                  .k = linear(net, "k", memory, width, layer),
                                  .v = linear(net, "v", memory, width, layer),
                                  .key_mask = in.memory_mask};
  const bool drops = net.mode == Mode::kTrain && options.attention_dropout > 0;
  if (drops) {
    const RandomKey key = net.random_key("attention");
    operands.tick = key.tick;
    operands.first_row = key.first_row;
  }
  const Value y = ops::attention(net.graph, operands,
                                 {.heads = options.heads,
                                  .causal = in.causal,
                                  .p = drops ? options.attention_dropout : 0,
                                  .seed = std::int64_t(net.seed)});
  return linear(net, "out", y, width, layer);
}

Value feed_forward(Net& net, const std::string& name, Value x, const TransformerOptions& options) {
  const auto scope = net.graph.scope(name);
  const std::int64_t width = net.graph.shape(x).back();
  const LayerOptions layer{.weight_init = options.init};
  Value h = linear(net, "1", x, options.feed_forward, layer);
  h = dropout(net, ops::relu(net.graph, h), options.relu_dropout);
  return linear(net, "2", h, width, layer);
}

Value encoder_layer(Net& net, const std::string& name, Value x, Value mask,
                    const TransformerOptions& options) {
  const auto scope = net.graph.scope(name);
  const auto attend = [&](Value v) {
    return multi_head_attention(net, "attention", {.query = v, .memory_mask = mask}, options);
  };
  const auto feed = [&](Value v) { return feed_forward(net, "feed_forward", v, options); };
  const Value h = residual(net, x, options, {"attention", mask, attend});
  return residual(net, h, options, {"feed_forward", mask, feed});
}

Value masked_mean(Net& net, Value x, Value mask) {
  Graph& g = net.graph;
  const Shape shape = g.shape(x);
  const Value kept = ops::cast(g, ops::reshape(g, mask, {shape[0], shape[1], 1}), g.type(x).dtype);
  const Value count = ops::maximum(g, ops::sum(g, kept, {1}), g.constant(1, g.type(x).dtype));
  return ops::div(g, ops::sum(g, ops::mul(g, x, kept), {1}), count);
}

}  // namespace keel::nn
