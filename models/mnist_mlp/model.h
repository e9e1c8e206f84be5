// Permutation-invariant MNIST: an MLP with a norm on its hidden pre-activations (Ba, Kiros, Hinton
// 2016, section 6.6 and figure 6).
#pragma once

#include "frontend/nn/relu_layer.h"
#include "frontend/task/classification.h"
#include "frontend/task/task.h"

namespace keel::models {

struct MnistMlpOptions {
  std::int64_t hidden = 1000, layers = 2;
  std::string norm = "layernorm";
  nn::NormPlacement placement = nn::NormPlacement::kBefore;
  // Options that apply when the norm is batchnorm and does not set them itself.
  std::string batchnorm_options = "keep=0.99";

  static constexpr auto fields() {
    using T = MnistMlpOptions;
    return std::tuple{
        option("hidden", &T::hidden, "units of a hidden layer", between(1, 1000000)),
        option("layers", &T::layers, "hidden layers", between(1, 100)),
        option("norm", &T::norm, "norm of every hidden layer", norm_name()),
        option("placement", &T::placement, "place of the norm: before or after the activation"),
        option("batchnorm_options", &T::batchnorm_options,
               "options of batchnorm, unless the norm gives them itself",
               described("KEY=VALUE,..., or empty"))};
  }
  void validate() const;
};

class MnistMlpNetwork : public task::NetworkOf<MnistMlpOptions> {
 public:
  using NetworkOf::NetworkOf;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  std::vector<std::string> class_names() const override { return task::numbered_classes(10); }
  task::Answers answers() const override { return task::Answers::kPictures; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> files,
                                         std::int64_t first) const override;
};

class MnistMlp : public task::TaskWithOptions<MnistMlpOptions> {
 public:
  std::string_view name() const override { return "mnist_mlp"; }
  std::string_view summary() const override {
    return "permutation-invariant MNIST, MLP 784-1000-1000-10 (Ba et al. 2016, figure 6)";
  }
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<const MnistMlpNetwork>(options_);
  }
};

}  // namespace keel::models
