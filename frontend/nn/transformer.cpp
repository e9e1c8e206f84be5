#include "frontend/nn/transformer.h"

#include <cmath>

#include "frontend/nn/layers.h"
#include "src/ops/attention.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/reduce.h"

namespace keel::nn {
namespace {

// The initializer whose values are `factor` times those of init.
FanInit scaled_init(const FanInit& init, double factor) {
  if (factor == 1) return init;
  return [init, factor](std::int64_t fan_in, std::int64_t fan_out) -> Initializer {
    return [fill = init(fan_in, fan_out), factor](Tensor& value, const Philox& random) {
      fill(value, random);
      Tensor wide = value.to(DType::kF64);
      for (double& v : wide.as<double>()) v *= factor;
      value = wide.to(value.dtype());
    };
  };
}

double weight_factor(const TransformerOptions& options) {
  return placement_factors(options.place, options.depth).weights;
}

// One of the projections "q", "k" and "v".
Value projection(Net& net, const std::string& name, const Sequence& of,
                 const TransformerOptions& options, double factor = 1) {
  const FanInit init = options.projection_init.value_or(options.init);
  const Value y =
      linear(net, name, of.x, net.graph.shape(of.x).back(),
             {.weight_init = scaled_init(init, factor), .bias_init = options.projection_bias_init});
  const bool has_norm = options.place == NormPlace::kHybrid || options.place == NormPlace::kSimple;
  return has_norm ? options.norm(net, name + "/norm", y, of.mask) : y;
}

// Applies SimpleNorm's norm, if the placement has it, to the result y of a linear map other than a
// projection.
Value after_map(Net& net, const std::string& name, const Sequence& y,
                const TransformerOptions& options) {
  if (options.place != NormPlace::kSimple) return y.x;
  return options.norm(net, name + "/norm", y.x, y.mask);
}

Value branch_scale(Net& net, const std::string& branch) {
  const auto scope = net.graph.scope(branch);
  return net.parameter("scale", {1}, zeros());
}

// n(n(x) + a (n(y) - n(x))), n being ops::unit_rows.
Value ngpt_step(Net& net, const std::string& branch, Value x, Value y) {
  Graph& g = net.graph;
  const auto scope = g.scope(branch);
  const std::int64_t width = g.shape(x).back();
  const Value a =
      ops::abs(g, learned_scale(net, "alpha", {width},
                                {.first = 0.05, .stored = 1 / std::sqrt(double(width))}));
  const Value from = ops::unit_rows(g, x), to = ops::unit_rows(g, y);
  return ops::unit_rows(g, ops::add(g, from, ops::mul(g, a, ops::sub(g, to, from))));
}

// x (batch, length, width) as so many rows; itself where it has them.
Value in_rows(Graph& g, Value x, std::int64_t rows) {
  const Shape shape = g.shape(x);
  if (shape[0] == rows) return x;
  return ops::reshape(g, x, {rows, shape[0] * shape[1] / rows, shape[2]});
}

}  // namespace

Value learned_scale(Net& net, const std::string& name, const Shape& shape,
                    const ScaleStart& start) {
  const Value stored = net.parameter(name, shape, constant(start.stored));
  return ops::scale(net.graph, stored, start.first / start.stored);
}

Value residual(Net& net, Value x, const TransformerOptions& options, const Branch& branch) {
  Graph& g = net.graph;
  const PlacementFactors factors = placement_factors(options.place, options.depth);
  const auto& f = branch.sublayer;
  const auto norm = [&](Value v, const char* name = "norm") {
    return options.norm(net, branch.name + "/" + name, v, branch.mask);
  };
  const auto sum = [&](Value kept, Value y) {
    y = dropout(net, y, options.dropout);
    if (factors.residual != 1) kept = ops::scale(g, kept, factors.residual);
    return ops::add(g, kept, y);
  };
  switch (options.place) {
    case NormPlace::kPre:
    case NormPlace::kSub:
      return sum(x, f(norm(x)));
    case NormPlace::kPost:
    case NormPlace::kDeepNorm:
      return norm(sum(x, f(x)));
    case NormPlace::kPeri:
      return sum(x, norm(f(norm(x)), "out_norm"));
    case NormPlace::kHybrid:
      if (!branch.attends) x = norm(x);
      return sum(x, f(x));
    case NormPlace::kOlmo:
      return sum(x, norm(f(x)));
    case NormPlace::kLns:
      return sum(x, f(ops::scale(g, norm(x), factors.norm)));
    case NormPlace::kReZero: {
      const Value y = f(x);
      return sum(x, ops::mul(g, y, branch_scale(net, branch.name)));
    }
    case NormPlace::kScaledPost:
      return norm(sum(x, f(norm(x))), "out_norm");
    case NormPlace::kSimple:
      return sum(x, f(x));
    case NormPlace::kNgpt:
      return ngpt_step(net, branch.name, x, dropout(net, f(x), options.dropout));
  }
  fail(ErrorKind::kInternal, "{}: expected a placement, got {}", branch.name, int(options.place));
}

void check_widths(std::int64_t width, std::int64_t heads) {
  check(width % 2 == 0, ErrorKind::kUsage, "width: expected an even number, 4 to 65536, got {}",
        width);
  check(width % heads == 0, ErrorKind::kUsage, "heads: expected a divisor of the width, got {}",
        heads);
}

AttentionMemory project_memory(Net& net, const std::string& name, const Sequence& x,
                               const TransformerOptions& options) {
  const auto scope = net.graph.scope(name);
  return {.keys = projection(net, "k", x, options),
          .values = projection(net, "v", x, options, weight_factor(options)),
          .mask = x.mask};
}

Value attend(Net& net, const std::string& name, const Sequence& query,
             const AttentionMemory& memory, const TransformerOptions& options) {
  const Shape queries = net.graph.shape(query.x);
  const std::int64_t width = queries.back();
  check(width % options.heads == 0, ErrorKind::kUsage,
        "{}: expected heads that divide the width {}, got {}", name, width, options.heads);
  const auto scope = net.graph.scope(name);
  const std::int64_t rows = net.graph.shape(memory.keys)[0];
  const Value q = projection(net, "q", query, options);
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
  Value y = ops::attention(net.graph, operands,
                           {.heads = options.heads,
                            .causal = memory.causal,
                            .p = drops ? options.attention_dropout : 0,
                            .seed = std::int64_t(net.seed)});
  y = in_rows(net.graph, y, queries[0]);
  if (options.place == NormPlace::kSub) y = options.norm(net, "inner_norm", y, query.mask);
  const FanInit init = options.out_init.value_or(options.init);
  y = linear(net, "out", y, width, {.weight_init = scaled_init(init, weight_factor(options))});
  return after_map(net, "out", {y, query.mask}, options);
}

Value feed_forward(Net& net, const std::string& name, const Sequence& x,
                   const TransformerOptions& options) {
  const auto scope = net.graph.scope(name);
  const std::int64_t width = net.graph.shape(x.x).back();
  const LayerOptions layer{.weight_init = scaled_init(options.init, weight_factor(options))};
  Value h = linear(net, "1", x.x, options.feed_forward, layer);
  h = after_map(net, "1", {h, x.mask}, options);
  h = dropout(net, ops::relu(net.graph, h), options.relu_dropout);
  if (options.place == NormPlace::kSub) h = options.norm(net, "inner_norm", h, x.mask);
  return after_map(net, "2", {linear(net, "2", h, width, layer), x.mask}, options);
}

Value encoder_layer(Net& net, const std::string& name, Value x, Value mask,
                    const TransformerOptions& options) {
  const auto scope = net.graph.scope(name);
  const auto look = [&](Value v) {
    const AttentionMemory itself = project_memory(net, "attention", {v, mask}, options);
    return attend(net, "attention", {v, mask}, itself, options);
  };
  const auto feed = [&](Value v) { return feed_forward(net, "feed_forward", {v, mask}, options); };
  const Value h = residual(net, x, options, {"attention", mask, look, true});
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
    const AttentionMemory itself = join(project_memory(net, "attention", {v, in.mask}, options));
    return attend(net, "attention", {v, in.mask}, itself, options);
  };
  const auto look_up = [&](Value v) {
    return attend(net, "memory_attention", {v, in.mask}, in.memory, options);
  };
  const auto feed = [&](Value v) {
    return feed_forward(net, "feed_forward", {v, in.mask}, options);
  };
  Value h = residual(net, in.x, options, {"attention", in.mask, look, true});
  h = residual(net, h, options, {"memory_attention", in.mask, look_up, true});
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
