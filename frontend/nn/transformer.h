// The parts of Transformers (Vaswani et al. 2017): attention and feed-forward sublayers, each in a
// residual branch with a norm before it (pre-norm) or behind the sum (post-norm).
//
// Sequences are x (batch, length, width). A mask u8 (batch, length) is 0 for padding: attention
// gives its keys the probability 0, and norms over the batch leave its rows out.
#pragma once

#include <string>

#include "frontend/nn/fan_init.h"
#include "frontend/nn/norm.h"

namespace keel::nn {

enum class NormPlace {
  kPre,   // x + sublayer(norm(x))
  kPost,  // norm(x + sublayer(x))
};

struct TransformerOptions {
  std::int64_t heads = 4, feed_forward = 512;
  double dropout = 0, attention_dropout = 0, relu_dropout = 0;
  NormPlace place = NormPlace::kPre;
  Norm norm = Norm::parse("layernorm");
  FanInit init = xavier();  // of the weights of all projections; biases start at zero
};

struct AttentionInputs {
  Value query;             // (batch, queries, width)
  Value memory = {};       // (batch, keys, width) that keys and values come from; absent: query
  Value memory_mask = {};  // u8 (batch, keys) or absent
  bool causal = false;     // a query sees no later key
};
// Projections "<name>/q", "<name>/k", "<name>/v" to width, attention of all heads, and the
// projection "<name>/out". Throws Error{kUsage} unless heads divides the width.
Value multi_head_attention(Net& net, const std::string& name, const AttentionInputs& in,
                           const TransformerOptions& options);

// dropout(relu(x W1 + b1)) W2 + b2, the layers "<name>/1" and "<name>/2".
Value feed_forward(Net& net, const std::string& name, Value x, const TransformerOptions& options);

// Self-attention and feed-forward, each with dropout in a residual branch. The norms are
// "<name>/attention/norm" and "<name>/feed_forward/norm".
Value encoder_layer(Net& net, const std::string& name, Value x, Value mask,
                    const TransformerOptions& options);

// The mean of x (batch, length, width) over the tokens that the mask has; 0 for a row without any.
Value masked_mean(Net& net, Value x, Value mask);

}  // namespace keel::nn
