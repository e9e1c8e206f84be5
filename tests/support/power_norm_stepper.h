// A PowerNorm that runs step after step, as in training.
#pragma once

#include <memory>
#include <string>

#include "src/ops/norm/power_norm.h"
#include "tests/support/graph_runner.h"

namespace keel::test {

inline constexpr PowerNormMode kPowerNormModes[]{PowerNormMode::kRelease, PowerNormMode::kPaper};

// Forward and backward; dy is the gradient of y, and x is (rows, channels) or an image. gain starts
// at 1, bias at 0, psi2 at 1, nu and step at 0. `mask` u8 (rows) or null.
class PowerNormStepper {
 public:
  struct Options {
    const Tensor* mask = nullptr;
    int threads = 0;
    bool is_apart = false;  // the scaling is an op of its own
  };
  PowerNormStepper(const std::string& backend, const Shape& x, const PowerNormAttrs& attrs,
                   const Tensor* mask = nullptr)
      : PowerNormStepper(backend, x, attrs, Options{mask}) {}
  PowerNormStepper(const std::string& backend, const Shape& x, PowerNormAttrs attrs,
                   const Options& options);

  // One run. Results, as stored by the backend: "y", "rstd", "dx", "dgain", "dbias", in training
  // "Gamma", "contraction" and "nu_max", with groups "row_rstd", and the state after it: "psi2",
  // "nu", "step".
  Results step(const Tensor& x, const Tensor& dy);
  // Sets gain, bias or a state.
  void write(const std::string& name, const Tensor& value) { variables_.write(name, value); }

 private:
  std::unique_ptr<Backend> backend_;
  Variables variables_;
  Graph graph_;
  std::unique_ptr<Program> program_;
};

// The largest |got - expected| / max(|expected|, scale); both are of one size.
double largest_error(const Tensor& got, const Tensor& expected, double scale);

}  // namespace keel::test
