// Small recurrent layers over sequences of several lengths, which tests of cells share.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "frontend/nn/recurrent.h"
#include "tests/frontend/nn/helpers.h"

namespace keel::nn {

inline constexpr std::int64_t kSteps = 4, kRows = 6, kIn = 2, kWidth = 3;
inline const Shape kInput{kSteps, kRows, kIn};

// How many steps the rows have. Norms over the batch see three rows or more at every step: of two
// they make 1 and -1, whatever these are.
inline constexpr std::array kLengths{4, 2, 1, 4, 3, 4};
inline bool has_step(std::int64_t row, std::int64_t t) { return t < kLengths[std::size_t(row)]; }

inline Tensor mask_values() {
  std::vector<std::uint8_t> values;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    for (std::int64_t row = 0; row < kRows; ++row) values.push_back(has_step(row, t));
  }
  return Tensor::of<std::uint8_t>({kSteps, kRows}, values);
}

// All parameters away from the values at which they start, so that none can be left out unseen.
inline void scatter(LayerRun& run) {
  std::uint64_t seed = 100;
  for (const std::string& name : run.parameters) {
    run.variables.write(name, test::random_normal(run.read(name).shape(), ++seed, 0.1, 0.7));
  }
}

inline CellOptions options(const std::string& norm) {
  return {.norms = cell_norms(Norm::parse(norm)), .forget_bias = 0.5};
}

template <class Cell>
Layer layer_of(const CellOptions& options, bool masked, std::int64_t width) {
  return [=](Net& net, Value x) {
    const Cell layer(net, "layer", kIn, width, options);
    return layer(x, masked ? net.graph.constant(mask_values()) : Value{}).h;
  };
}

inline Layer rnn(const CellOptions& options, bool masked = false, std::int64_t width = kWidth) {
  return layer_of<Rnn>(options, masked, width);
}

inline Layer lstm(const CellOptions& options, bool masked = false, std::int64_t width = kWidth) {
  return layer_of<Lstm>(options, masked, width);
}

inline Layer gru(const CellOptions& options, bool masked = false, std::int64_t width = kWidth) {
  return layer_of<Gru>(options, masked, width);
}

}  // namespace keel::nn
