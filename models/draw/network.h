// DRAW (Gregor et al. 2015) draws an image on a canvas glimpse by glimpse. It decodes each glimpse
// from a latent variable; in training an encoder makes this from what it reads of the image.
#pragma once

#include "frontend/nn/recurrent.h"
#include "src/ops/filter_bank.h"

namespace keel::models {

struct DrawSizes {
  std::int64_t rows = 28, columns = 28;  // pixels
  std::int64_t glimpses = 64, width = 256, latent = 100;
  std::int64_t read = 2, write = 5;  // filters a side
};

struct DrawNetOptions {
  DrawSizes sizes;
  FilterGrid grid = FilterGrid::kPaper;
  nn::CellNorms norms;
  double init_deviation = 0.01;  // of weights, which are normal; biases are 0
  std::int64_t seed = 0;         // of what is drawn by `key`
  RandomKey key;
};

struct DrawOutputs {
  Value canvas;                 // (n, rows, columns), logits, after the last glimpse
  std::vector<Value> canvases;  // after each
  Value kl;                     // (), nats, summed over all; absent without an image
};

// With c and all states 0 at first, glimpse t of an image x (n, rows, columns) is
//   x^ = x - sigmoid(c)
//   r = gamma [FY x FX^T, FY x^ FX^T]            filters of a linear layer of h_dec
//   h_enc = LSTM_enc([r h_dec])    mu = h_enc W + b, s = h_enc W' + b'    z = mu + exp(s) u
//   h_dec = LSTM_dec(z)            c <- c + FY'^T w FX' / gamma'          filters and w of h_dec
// with u standard normal, and kl the sum of (mu^2 + exp(2 s) - 2 s - 1) / 2.
DrawOutputs draw_image(nn::Net& net, const DrawNetOptions& options, Value x);
// n images drawn only from the prior, z = u.
DrawOutputs draw_samples(nn::Net& net, const DrawNetOptions& options, std::int64_t n);

// The glimpse of x (n, rows, columns) at attention p (n, 5): gamma FY x FX^T, (n, N^2).
Value read_glimpse(nn::Net& net, Value p, Value x, const FilterBankAttrs& attrs);

}  // namespace keel::models
