// The inputs of the tests of optimizer updates.
#pragma once

#include "tests/backends/kernel_checks.h"

namespace keel::test {

inline constexpr std::int32_t kStep = 6;  // the number of the update, which adam reads
inline constexpr double kLr = 0.01;

// p, g, m and v (v >= 0), lr, step, scale.
inline std::vector<Tensor> update_inputs(std::int64_t n, double scale) {
  std::vector<Tensor> inputs;
  for (std::uint32_t i = 0; i < 4; ++i) inputs.push_back(random_f32({n}, i));
  for (double& v : inputs[3].as<double>()) v = std::abs(v);
  inputs.push_back(Tensor::of<double>({}, {float(kLr)}));
  inputs.push_back(Tensor::of<std::int32_t>({}, {kStep}));
  inputs.push_back(Tensor::of<double>({}, {scale}));
  return inputs;
}

}  // namespace keel::test
