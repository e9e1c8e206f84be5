// A small language model of the kind of Llama (Touvron et al. 2023) and Qwen3.
#pragma once

#include "frontend/nn/transformer.h"

namespace keel::models {

struct LlamaOptions {
  std::int64_t symbols = 205, layers = 4, width = 96;
  std::int64_t kv_heads = 4;  // of keys and values, a divisor of layer.heads, those of queries
  bool qk_norm = false;
  bool embedding_scalar =
      false;                // the embeddings times "embedding/scalar" (1), at first sqrt(width)
  std::int64_t memory = 0;  // positions before a segment that its queries may see
  double init_deviation = 0.02;  // of embeddings
  // The feed-forward units, dropout, the norm of the branches and its place, the first weights.
  nn::TransformerOptions layer = {};
};

// With d the width of a head, and norms before the branches (layer.place; of the placements that
// change more than branches this network has those of SimpleNorm and nGPT):
//     x = E[symbol], or scalar E[symbol]
//     in each layer  x = x + out(attention(norm(x))),  x = x + swiglu(norm(x))
//     states = norm(x), after the last layer; without that norm where norms stand after the sums
//     q = rotary(n(x Q)), k = rotary(n(x K)), v = x V;  attention = softmax(q k^T / sqrt(d)) v
// A position sees itself and those before it in its segment and in the memory. n is the norm of
// every head with qk_norm, and nothing otherwise. Positions are counted from the first that is in
// reach, since only their differences matter. No layer has a bias but what a norm brings along.
//
// nGPT (Loshchilov et al. 2024, with the constants of the authors' program), N the width:
//     q, k of a head are s q / |q| and s k / |k| after the rotation, and softmax(sqrt(d) q k^T);
//     gate and up of the feed-forward layer are multiplied by u sqrt(N), and the logits by z;
//     s ("attention/qk_scale"), u ("gate_scale", "up_scale") and z ("softmax_scale") are learned,
//     a number for each feature, and 1 at first; s and z are stored divided by sqrt(N);
//     the vectors of N numbers of every weight have length 1, at first and after every update.
//
// input i32 (lanes, length) continues the segment before, except where `begins`, u8 (lanes), is 1.
// The result is (lanes, length, width). With a memory, the carries "filled" and
// "layer<i>/attention/keys" and "/values" hold what was computed there; no gradient flows into
// them. Throws Error{kUsage} for heads that do not fit the width or each other.
Value llama_states(nn::Net& net, const LlamaOptions& options, Value input, Value begins);
// The logits of states (rows, width): products with the weight "softmax/weight" (width, symbols).
Value llama_logits(nn::Net& net, const LlamaOptions& options, Value rows);

}  // namespace keel::models
