#include "frontend/nn/transformer.h"

#include "frontend/nn/layers.h"
#include "src/ops/attention.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"

namespace keel::nn {
namespace {

LayerOptions projection(const TransformerOptions& options) {
  return {.weight_init = options.projection_init.value_or(options.init),
          .bias_init = options.projection_bias_init};
}

// x (batch, length, width) as so many rows; itself where it has them.
Value in_rows(Graph& g, Value x, std::int64_t rows) {
  const Shape shape = g.shape(x);
  if (shape[0] == rows) return x;
  return ops::reshape(g, x, {rows, shape[0] * shape[1] / rows, shape[2]});
}

}  // namespace

Value residual(Net& net, Value x, const TransformerOptions& options, const Branch& branch) {
  const bool pre = options.place == NormPlace::kPre;
  const auto normalized = [&](Value v) {
    return options.norm(net, branch.name + "/norm", v, branch.mask);
  };
  const Value y = dropout(net, branch.sublayer(pre ? normalized(x) : x), options.dropout);
  const Value sum = ops::add(net.graph, x, y);
  return pre ? sum : normalized(sum);
}

void check_widths(std::int64_t width, std::int64_t heads) {
  check(width % 2 == 0, ErrorKind::kUsage, "width: expected an even number, 4 to 65536, got {}",
        width);
  check(width % heads == 0, ErrorKind::kUsage, "heads: expected a divisor of the width, got {}",
        heads);
}

AttentionMemory project_memory(Net& net, const std::string& name, Value x,
                               const TransformerOptions& options) {
  const auto scope = net.graph.scope(name);
  const std::int64_t width = net.graph.shape(x).back();
  const LayerOptions layer = projection(options);
  return {linear(net, "k", x, width, layer), linear(net, "v", x, width, layer)};
}

Value attend(Net& net, const std::string& name, Value query, const AttentionMemory& memory,
             const TransformerOptions& options) {
  const std::int64_t width = net.graph.shape(query).back();
  check(width % options.heads == 0, ErrorKind::kUsage,
        "{}: expected heads that divide the width {}, got {}", name, width, options.heads);
  const auto scope = net.graph.scope(name);
  const Shape queries = net.graph.shape(query);
  const std::int64_t rows = net.graph.shape(memory.keys)[0];
  const Value q = linear(net, "q", query, width, projection(options));
  ops::AttentionOperands operands{.q = in_rows(net.graph, q, rows),
                                  .k = memory.keys,
                                  .v = memory.values,
                                  .key_mask = memory.mask};
  const bool drops = net.mode == Mode::kTrain && options.attention_dropout > 0;
  if (drops) {
    const RandomKey key = net.random_key("attention");
    operands.step = key.step;
    operands.first_row = key.first_row;
  }
  const Value y = ops::attention(net.graph, operands,
                                 {.heads = options.heads,
                                  .causal = memory.causal,
                                  .p = drops ? options.attention_dropout : 0,
                                  .seed = std::int64_t(net.seed)});
  return linear(net, "out", in_rows(net.graph, y, queries[0]), width,
                {.weight_init = options.out_init.value_or(options.init)});
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
  const auto look = [&](Value v) {
    AttentionMemory itself = project_memory(net, "attention", v, options);
    itself.mask = mask;
    return attend(net, "attention", v, itself, options);
  };
  const auto feed = [&](Value v) { return feed_forward(net, "feed_forward", v, options); };
  const Value h = residual(net, x, options, {"attention", mask, look});
  return residual(net, h, options, {"feed_forward", mask, feed});
}

Value decoder_layer(Net& net, const std::string& name, const DecoderInputs& in,
                    const TransformerOptions& options) {
  const JoinKeys all_at_hand = [&](const AttentionMemory& now) -> AttentionMemory {
    return {now.keys, now.values, in.mask, true};
  };
  return decoder_step(net, name, in, all_at_hand, options);
}

Value decoder_step(Net& net, const std::string& name, const DecoderInputs& in, const JoinKeys& join,
                   const TransformerOptions& options) {
  const auto scope = net.graph.scope(name);
  const auto look = [&](Value v) {
    const AttentionMemory itself = join(project_memory(net, "attention", v, options));
    return attend(net, "attention", v, itself, options);
  };
  const auto look_up = [&](Value v) {
    return attend(net, "memory_attention", v, in.memory, options);
  };
  const auto feed = [&](Value v) { return feed_forward(net, "feed_forward", v, options); };
  Value h = residual(net, in.x, options, {"attention", in.mask, look});
  h = residual(net, h, options, {"memory_attention", in.mask, look_up});
  return residual(net, h, options, {"feed_forward", in.mask, feed});
}

Value masked_mean(Net& net, Value x, Value mask) {
  Graph& g = net.graph;
  const Shape shape = g.shape(x);
  const Value kept = ops::cast(g, ops::reshape(g, mask, {shape[0], shape[1], 1}), g.type(x).dtype);
  const Value count = ops::maximum(g, ops::sum(g, kept, {1}), g.constant(1, g.type(x).dtype));
  return ops::div(g, ops::sum(g, ops::mul(g, x, kept), {1}), count);
}

}  // namespace keel::nn
