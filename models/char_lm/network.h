// The layers of Transformer-XL (Dai et al. 2019).
#pragma once

#include "frontend/nn/scaled_norm.h"
#include "frontend/nn/transformer.h"

namespace keel::models {

struct XlOptions {
  std::int64_t symbols = 205, layers = 12, width = 512, heads = 8, feed_forward = 2048;
  std::int64_t memory = 512;  // positions before a segment that its queries may see
  std::int64_t window = 0;    // keys that a query sees, its own included; 0: all
  std::int64_t clamp = 0;     // distances beyond it count as this one; 0: none do
  double dropout = 0.1;
  double init_deviation = 0.02;                                      // of embeddings, u and w
  nn::FanInit init = [](std::int64_t) { return nn::normal(0.02); };  // of the layers' weights
  nn::ScaledNorm norm = nn::ScaledNorm::parse("layernorm");
  nn::NormPlace place = nn::NormPlace::kPost;
};

// The distances' fixed embeddings (distances, width): row k is [sin(k w_i), cos(k w_i)] with
// w_i = 10000^(-2 i / width), i < width / 2.
Value distance_embeddings(nn::Net& net, std::int64_t distances, std::int64_t width);

// A segment's logits (lanes, length, symbols) come from its hidden states and the table.
struct XlHidden {
  Value states;  // (lanes, length, width), of the last layer
  Value table;   // (symbols, width)
};
// Each lane's segment `input` i32 (lanes, length) continues the one before, except where `begins`,
// u8 (lanes), is 1. The carries "filled" and "layer<i>/memory" hold the number of positions that
// are remembered and the inputs of every layer there; no gradient flows into them.
XlHidden xl_hidden(nn::Net& net, const XlOptions& options, Value input, Value begins);
// The logits of hidden states (rows, width): products with the table, plus a bias.
Value xl_logits(nn::Net& net, Value rows, Value table);

}  // namespace keel::models
