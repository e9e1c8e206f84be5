// A deep linear network on Gaussian data: Santurkar et al. 2018 show on it that batch norm helps
// even where there is no activation.
#pragma once

#include "frontend/nn/norm.h"
#include "frontend/task/task.h"

namespace keel::models {

struct DeepLinearOptions {
  std::int64_t layers = 25, width = 10, samples = 1000;
  std::string norm = "batchnorm";

  static constexpr auto fields() {
    using T = DeepLinearOptions;
    return std::tuple{
        option("layers", &T::layers, "linear layers", between(1, 1000)),
        option("width", &T::width, "width of every layer, of inputs and of targets",
               between(2, 10000)),
        option("samples", &T::samples,
               "number of training rows; validation and test have a fifth as many each",
               between(5, 10000000)),
        option("norm", &T::norm, "norm of every layer but the last", norm_name())};
  }
  void validate() const;
};

//     h = norm(h W_i + b_i), i = 1, ..., layers - 1;   y = h W + b
// The loss of a row is the mean of (y - t)^2 over the units. Layers with a learned bias in their
// norm have none themselves.
class DeepLinearNetwork final : public task::NetworkOf<DeepLinearOptions> {
 public:
  using NetworkOf::NetworkOf;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
};

class DeepLinear final : public task::TaskWithOptions<DeepLinearOptions> {
 public:
  std::string_view name() const override { return "deep_linear"; }
  std::string_view summary() const override {
    return "a linear map of Gaussian data, learned by 25 linear layers (Santurkar et al. 2018)";
  }
  std::vector<task::MetricInfo> metrics() const override;
  std::vector<task::OptionValues> data_forms(const std::string&) const override { return {}; }
  // Inputs x ~ N(0, I) and targets t = A x with A ~ N(0, 1 / width), made from the seed. Throws
  // Error{kUsage} for a folder of data.
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<const DeepLinearNetwork>(options_);
  }
};

}  // namespace keel::models
