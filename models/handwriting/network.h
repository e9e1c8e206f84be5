// The network of handwriting synthesis (Graves 2013, section 5): LSTM layers over the points of a
// line. Each layer also reads the point and a window over the text.
#pragma once

#include "frontend/nn/recurrent.h"

namespace keel::models {

struct HandwritingSizes {
  std::int64_t layers = 3, width = 400;
  std::int64_t bumps = 10;       // of the window
  std::int64_t components = 20;  // of the mixture
  std::int64_t symbols = 57;

  // The state after a point: h and c of every layer, kappa and w of the window.
  std::int64_t state() const { return 2 * layers * width + bumps + symbols; }
  std::int64_t density() const { return 1 + 6 * components; }
};

struct HandwritingNetOptions {
  HandwritingSizes sizes;
  nn::CellNorms norms;
  double init_deviation = 0.075;              // of weights, which are normal; biases are 0
  double width_bias = -1, step_bias = -3;     // except the first ones of beta^ and kappa^
  double clip_cells = 10, clip_output = 100;  // of the gradients at h and at y; 0: none
};

// Sequences are time-major.
struct HandwritingInputs {
  Value points;  // (points, rows, 3)
  Value mask;    // u8 (points, rows)
  Value text;    // i32 (rows, symbols of the text)
  Value state;   // (rows, sizes.state())
};

struct HandwritingOutputs {
  Value y;           // (points rows, sizes.density()): the input of mixture_density
  Value components;  // (rows, 3 bumps): the window's move at the last point
  Value state;       // (rows, sizes.state()) after the last point, of rows without padding
};

// With x_t a point, [x w h] a concatenation, and c the text's symbols:
//   h1_t = LSTM1([x_t w_t-1])     a^, b^, k^ = h1_t W_p + b_p     w_t, kappa_t: attention_window
//   hi_t = LSTMi([x_t h(i-1)_t w_t]), i > 1                       y_t = [h1_t h2_t ...] W_y + b_y
// Layers after the first compute their products with all inputs at once. Graves' cells have
// peepholes; these cells are those of Ba et al. 2016, which have none.
HandwritingOutputs handwriting_network(nn::Net& net, const HandwritingNetOptions& options,
                                       const HandwritingInputs& in);

}  // namespace keel::models
