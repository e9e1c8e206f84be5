// The parts of Transformers (Vaswani et al. 2017): attention and feed-forward sublayers, each in a
// residual branch with a norm before it (pre-norm) or behind the sum (post-norm).
//
// Sequences are x (batch, length, width). A mask u8 (batch, length) is 0 for padding: attention
// gives its keys the probability 0, and norms over the batch leave its rows out.
#pragma once

#include <functional>
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
  FanInit init = xavier();  // of all weights but those below
  // Of the weights and biases of the projections "q", "k" and "v"; other biases start at zero.
  FanInit projection_init = init;
  FanInit projection_bias_init = [](std::int64_t) { return zeros(); };
};

// Keys and values as attention reads them, (batch, keys, width).
struct KeysValues {
  Value keys, values;
};

// What a query may see.
struct Sight {
  Value mask = {};      // u8 (batch, keys), 0 for a key that nobody sees; absent: all are seen
  bool causal = false;  // a query sees no later key
};

// The projections "<name>/k" and "<name>/v" of memory (batch, keys, width).
KeysValues project_memory(Net& net, const std::string& name, Value memory,
                          const TransformerOptions& options);

// The projection "<name>/q" of query (batch, queries, width), attention of all heads, and the
// projection "<name>/out". Throws Error{kUsage} unless heads divides the width.
Value attend(Net& net, const std::string& name, Value query, const KeysValues& memory,
             const Sight& sight, const TransformerOptions& options);

// Both, of x to itself.
Value self_attention(Net& net, const std::string& name, Value x, const Sight& sight,
                     const TransformerOptions& options);

// dropout(relu(x W1 + b1)) W2 + b2, the layers "<name>/1" and "<name>/2".
Value feed_forward(Net& net, const std::string& name, Value x, const TransformerOptions& options);

// Self-attention and feed-forward, each with dropout in a residual branch. The norms are
// "<name>/attention/norm" and "<name>/feed_forward/norm".
Value encoder_layer(Net& net, const std::string& name, Value x, Value mask,
                    const TransformerOptions& options);

// What a decoder layer attends to besides itself: the encoder's output, projected by
// project_memory(net, "<layer>/memory_attention", ...), and its mask.
struct DecoderMemory {
  KeysValues projected;
  Value mask = {};
};

// Gives the keys and values of a layer's attention to itself, from those of the positions at hand:
// a search, which decodes position by position, adds those of the steps before.
using JoinKeys = std::function<KeysValues(const KeysValues&)>;

// Attention to itself, attention to the memory and feed-forward, each with dropout in a residual
// branch. The norms are "<name>/attention/norm", "<name>/memory_attention/norm", of the query
// alone, and "<name>/feed_forward/norm".
//   x (batch, length, width), all positions of a target; mask leaves its padding out of norms
Value decoder_layer(Net& net, const std::string& name, Value x, Value mask,
                    const DecoderMemory& memory, const TransformerOptions& options);
// The same layer for x (batch, 1, width), one position: join gives the keys and values of all
// positions so far, (batch, n, width), of which a query sees those that `seen` (batch, n) has.
Value decoder_step(Net& net, const std::string& name, Value x, Value seen, const JoinKeys& join,
                   const DecoderMemory& memory, const TransformerOptions& options);

// The mean of x (batch, length, width) over the tokens that the mask has; 0 for a row without any.
Value masked_mean(Net& net, Value x, Value mask);

}  // namespace keel::nn
