#include "models/char_lm/llama.h"

#include <cmath>

#include "frontend/nn/embedding.h"
#include "frontend/nn/gated_feed_forward.h"
#include "frontend/nn/heads.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/rotary.h"
#include "models/char_lm/memory.h"
#include "src/ops/attention.h"
#include "src/ops/elementwise.h"

namespace keel::models {
namespace {

bool is_ngpt(const LlamaOptions& options) { return options.layer.place == nn::NormPlace::kNgpt; }

// The start of most learned scales of nGPT.
nn::ScaleStart ngpt_start(const LlamaOptions& options) {
  return {.first = 1, .stored = 1 / std::sqrt(double(options.width))};
}

class LlamaBuilder {
 public:
  LlamaBuilder(nn::Net& net, const LlamaOptions& options, const SegmentMemory& memory,
               std::int64_t length)
      : net_(net),
        g_(net.graph),
        options_(options),
        memory_(memory),
        seen_(memory.seen()),
        rotated_queries_(net, length, head_width(), {.first = options.memory}),
        rotated_keys_(net, options.memory + length, head_width()) {}

  Value build(Value input) const {
    const nn::TransformerOptions& layer = options_.layer;
    const nn::Embedding table(
        net_, "embedding", options_.symbols, options_.width,
        {.init = nn::normal(options_.init_deviation), .unit = unit(UnitVectors::kRows)});
    Value x = nn::dropout(net_, scaled(table(input)), layer.dropout);
    for (std::int64_t i = 1; i <= options_.layers; ++i) {
      const auto scope = g_.scope(fmt::format("layer{}", i));
      nn::TransformerOptions placed = layer;
      placed.depth = {.layer = i, .layers = options_.layers};
      x = nn::residual(net_, x, placed, {"attention", {}, [&](Value v) { return attend(v); }});
      x = nn::residual(net_, x, placed, {"feed_forward", {}, [&](Value v) { return feed(v); }});
    }
    if (nn::has_final_norm(layer.place)) x = layer.norm(net_, "norm", x);
    return nn::dropout(net_, x, layer.dropout);
  }

 private:
  std::int64_t head_width() const { return options_.width / options_.layer.heads; }

  Value scaled(Value embedded) const {
    if (!options_.embedding_scalar) return embedded;
    const float first = std::sqrt(float(options_.width));
    return ops::mul(g_, embedded, net_.parameter("embedding/scalar", {1}, nn::constant(first)));
  }

  // nGPT keeps the vectors of its weights that are as long as the network is wide at length 1.
  UnitVectors unit(UnitVectors of) const { return is_ngpt(options_) ? of : UnitVectors::kNone; }
  // A norm after a linear map, where SimpleNorm has it.
  Value after_map(const std::string& name, Value y) const {
    if (options_.layer.place != nn::NormPlace::kSimple) return y;
    return options_.layer.norm(net_, name + "/norm", y);
  }

  Value project(const std::string& name, Value x, std::int64_t units,
                UnitVectors of = UnitVectors::kColumns) const {
    const Value y =
        nn::linear(net_, name, x, units,
                   {.bias = false, .weight_init = options_.layer.init, .unit = unit(of)});
    return after_map(name, y);
  }
  // A projection to so many heads, each with its norm.
  Value normed_heads(const std::string& name, Value x, std::int64_t heads) const {
    const Value y = project(name, x, heads * head_width());
    if (!options_.qk_norm) return y;
    return nn::norm_heads(net_, name + "_norm", y, heads, nn::Norm::parse("rmsnorm{eps=1e-6}"));
  }

  Value attend(Value x) const {
    const auto scope = g_.scope("attention");
    const std::int64_t heads = options_.layer.heads, kv_heads = options_.kv_heads;
    const Value q = normed_heads("q", x, heads);
    const Value k = memory_.remembered("keys", normed_heads("k", x, kv_heads));
    const Value v = memory_.remembered("values", project("v", x, kv_heads * head_width()));
    const auto for_queries = [&](Value y) {
      return nn::repeat_heads(net_, y, kv_heads, heads / kv_heads);
    };
    ops::AttentionOperands of{.q = rotated_queries_(q),
                              .k = for_queries(rotated_keys_(k)),
                              .v = for_queries(v),
                              .key_mask = seen_};
    AttentionAttrs attrs{.heads = heads, .causal = true};
    if (is_ngpt(options_)) {
      const Value factors =
          nn::learned_scale(net_, "qk_scale", {options_.width}, ngpt_start(options_));
      of.q = ops::mul(g_, nn::unit_heads(net_, of.q, heads), factors);
      of.k = ops::mul(g_, nn::unit_heads(net_, of.k, heads), factors);
      attrs.scale = std::sqrt(double(head_width()));
    }
    return project("out", ops::attention(g_, of, attrs), options_.width, UnitVectors::kRows);
  }

  // The hidden units of nGPT before the gate, as large as those of other networks.
  Value scaled_units(const std::string& map, Value y) const {
    if (!is_ngpt(options_) || map == "down") return y;
    const Value scale =
        nn::learned_scale(net_, map + "_scale", {g_.shape(y).back()},
                          {.first = std::sqrt(double(options_.width)), .stored = 1});
    return ops::mul(g_, y, scale);
  }

  Value feed(Value x) const {
    const nn::TransformerOptions& layer = options_.layer;
    return nn::gated_feed_forward(
        net_, "feed_forward", x,
        {.units = layer.feed_forward,
         .dropout = layer.relu_dropout,
         .init = layer.init,
         .after_map = [&](const std::string& map,
                          Value y) { return scaled_units(map, after_map(map, y)); },
         .has_unit_weights = is_ngpt(options_)});
  }

  nn::Net& net_;
  Graph& g_;
  const LlamaOptions& options_;
  const SegmentMemory& memory_;
  Value seen_;
  nn::Rotary rotated_queries_, rotated_keys_;
};

}  // namespace

Value llama_states(nn::Net& net, const LlamaOptions& options, Value input, Value begins) {
  nn::check_widths(options.width, options.layer.heads);
  check(options.kv_heads >= 1 && options.layer.heads % options.kv_heads == 0, ErrorKind::kUsage,
        "kv_heads: expected a divisor of the {} heads, got {}", options.layer.heads,
        options.kv_heads);
  const std::int64_t length = net.graph.shape(input)[1];
  const SegmentMemory memory(net, begins, length, options.memory);
  return LlamaBuilder(net, options, memory, length).build(input);
}

Value llama_logits(nn::Net& net, const LlamaOptions& options, Value rows) {
  const bool ngpt = is_ngpt(options);
  const Value logits = nn::linear(net, "softmax", rows, options.symbols,
                                  {.bias = false,
                                   .weight_init = options.layer.init,
                                   .unit = ngpt ? UnitVectors::kColumns : UnitVectors::kNone});
  if (!ngpt) return logits;
  return ops::mul(net.graph, logits,
                  nn::learned_scale(net, "softmax_scale", {options.symbols}, ngpt_start(options)));
}

}  // namespace keel::models
