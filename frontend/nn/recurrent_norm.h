// Batch normalization inside a recurrent network (Cooijmans et al. 2016): every time step has
// statistics of its own, over the rows of the batch; gain and bias are those of all steps.
#pragma once

#include <string>
#include <vector>

#include "frontend/nn/net.h"
#include "src/ops/norm/norm.h"

namespace keel::nn {

struct RecurrentNormOptions {
  double eps = 1e-5, keep = 0.99, gain_init = 0.1;
  bool gain = true, bias = true;  // no bias where the one of the cell serves
  std::int64_t steps = 100;       // how many steps have population statistics

  static constexpr auto fields() {
    using T = RecurrentNormOptions;
    return std::tuple{field("eps", &T::eps),     field("keep", &T::keep),
                      field("gain", &T::gain),   field("bias", &T::bias),
                      field("steps", &T::steps), field("gain_init", &T::gain_init)};
  }
};

// One site of a network that is being built, such as the input of the gates: called once for every
// step. Parameters are "<name>/gain" and "<name>/bias"; states, for step k < steps, the averages
// "<name>/t<k>/mean" and "<name>/t<k>/var", and "<name>/t<k>/seen" (), how often it was trained.
class RecurrentNorm {
 public:
  // Throws Error{kUsage} unless options.steps >= 1. An empty name: that of the scope alone.
  RecurrentNorm(Net& net, const std::string& name, const RecurrentNormOptions& options);

  // y = gain * (x - mean) / sqrt(var + eps) + bias for x (rows, features), or images, at step t >=
  // 0; mask u8 (rows) or absent: rows with 0 take no part (ops::batch_norm).
  // In training the statistics are the batch's, and those of the step move towards them by 1 -
  // keep; in evaluation they are the population's: of step t, or of the last one before it that was
  // ever trained. Steps from `steps` on are trained on the batch alone and leave no statistics.
  Value operator()(Value x, std::int64_t t, Value mask = {});

 private:
  struct Statistics {
    Value mean, var;
  };
  void add_parameters(Value x);
  Value has_rows(Value mask);
  // Step `population_.size()`, and how an evaluation sees it.
  void add_step();

  Net& net_;
  std::string path_;
  RecurrentNormOptions options_;
  Shape features_;
  ops::NormAffine affine_;
  std::vector<Statistics> running_, population_;
  std::vector<Value> seen_;
};

}  // namespace keel::nn
