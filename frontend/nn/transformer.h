// The parts of Transformers (Vaswani et al. 2017): attention and feed-forward sublayers, each in a
// residual branch with norms where the placement has them (placement.h).
//
// Sequences are x (batch, length, width). A mask u8 (batch, length) is 0 for padding: attention
// gives its keys the probability 0, and norms over the batch leave its rows out.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "frontend/nn/fan_init.h"
#include "frontend/nn/placement.h"
#include "frontend/nn/scaled_norm.h"

namespace keel::nn {

// Throws Error{kUsage}, which begins with "width" or "heads", unless the width is even and the
// heads (1 or more) divide it.
void check_widths(std::int64_t width, std::int64_t heads);

struct TransformerOptions {
  std::int64_t heads = 4, feed_forward = 512;
  double dropout = 0, attention_dropout = 0, relu_dropout = 0;
  NormPlace place = NormPlace::kPre;
  StackDepth depth = {};
  ScaledNorm norm = Norm::parse("layernorm");
  FanInit init = xavier();  // of all weights without an initializer of their own
  std::optional<FanInit> projection_init = std::nullopt;  // of the projections "q", "k" and "v"
  std::optional<FanInit> out_init = std::nullopt;         // of the projections "out"
  // The initializer of the biases of "q", "k" and "v"; other biases start at zero.
  FanInit projection_bias_init = [](std::int64_t) { return zeros(); };
};

// A sequence x (batch, length, width), and its mask, which is absent if it has no padding.
struct Sequence {
  Sequence(Value x, Value mask = {}) : x(x), mask(mask) {}  // NOLINT: implicit, without padding

  Value x, mask;
};

// A residual branch of a layer: its norms are called "<name>/norm" and "<name>/out_norm" and leave
// out what the mask, u8 (batch, length), has as 0.
struct Branch {
  std::string name;
  Value mask;
  std::function<Value(Value)> sublayer;
  bool attends = false;  // whether the sublayer is attention
};
// x and what the branch makes of it, after dropout, joined as options.place says.
Value residual(Net& net, Value x, const TransformerOptions& options, const Branch& branch);

// A learned scale as nGPT has it: the parameter `name`, which is `stored` at first, times the
// constant that makes it `first`. A smaller `stored` makes it learn faster under Adam.
struct ScaleStart {
  double first = 1, stored = 1;
};
Value learned_scale(Net& net, const std::string& name, const Shape& shape, const ScaleStart& start);

// The keys and values that a query attends to.
struct AttentionMemory {
  Value keys, values;   // (batch, keys, width)
  Value mask = {};      // u8 (batch, keys), 0 for a hidden key; absent: all are seen
  bool causal = false;  // a query sees no later key
};

// The projections "<name>/k" and "<name>/v" of x (batch, keys, width), with the mask of x.
AttentionMemory project_memory(Net& net, const std::string& name, const Sequence& x,
                               const TransformerOptions& options);

// Projects query (batch, queries, width) by "<name>/q", applies attention of all heads, and
// projects by "<name>/out". A memory of batch / n rows that is not causal serves n consecutive rows
// of the query, such as the hypotheses of one sentence. Throws Error{kUsage} unless heads divides
// the width.
Value attend(Net& net, const std::string& name, const Sequence& query,
             const AttentionMemory& memory, const TransformerOptions& options);

// dropout(relu(x W1 + b1)) W2 + b2, with the layers "<name>/1" and "<name>/2".
Value feed_forward(Net& net, const std::string& name, const Sequence& x,
                   const TransformerOptions& options);

// Self-attention and feed-forward, each with dropout in a residual branch. The branches are
// "<name>/attention" and "<name>/feed_forward".
Value encoder_layer(Net& net, const std::string& name, Value x, Value mask,
                    const TransformerOptions& options);

struct DecoderInputs {
  Value x;                 // (batch, length, width), positions of a target
  Value mask = {};         // u8 (batch, length), 0 for its padding; absent: it has none
  AttentionMemory memory;  // the encoder's output by project_memory(net, "<name>/memory_attention")
};

// Causal attention to itself, attention to the memory and feed-forward, each with dropout in a
// residual branch. The branches are "<name>/attention", "<name>/memory_attention" (whose norm
// before the branch is only of the query) and "<name>/feed_forward".
Value decoder_layer(Net& net, const std::string& name, const DecoderInputs& in,
                    const TransformerOptions& options);

// Takes the keys and values of the current positions, and gives those of the current and all
// earlier positions, which self-attention attends to.
using JoinKeys = std::function<AttentionMemory(const AttentionMemory&)>;
// The same layer for some positions of a target, after a search has run it for the earlier ones.
Value decoder_step(Net& net, const std::string& name, const DecoderInputs& in, const JoinKeys& join,
                   const TransformerOptions& options);

// The mean of x (batch, length, width) over the tokens of the mask; 0 for a row without any.
Value masked_mean(Net& net, Value x, Value mask);

}  // namespace keel::nn
