// A small counterpart of the permutation-invariant MNIST network of Ba, Kiros, Hinton 2016, section
// 6.6, on the mixture of mini_data.h.
#pragma once

#include "frontend/nn/relu_layer.h"
#include "frontend/task/classification.h"
#include "frontend/task/task.h"
#include "studies/mini_data.h"

namespace keel::study {

struct MlpOptions {
  std::int64_t train_rows = 6000, test_rows = 2000;
  std::int64_t features = 64, hidden = 128, layers = 2, classes = 10;
  std::string norm = "layernorm";
  nn::NormPlacement placement = nn::NormPlacement::kBefore;
  RowOrder order = RowOrder::kEpochs;

  static constexpr auto fields() {
    using T = MlpOptions;
    return std::tuple{option("train_rows", &T::train_rows, "rows to train on", at_least(1)),
                      option("test_rows", &T::test_rows, "rows to test on", at_least(1)),
                      option("features", &T::features, "numbers of a row", at_least(1)),
                      option("hidden", &T::hidden, "units of a hidden layer", at_least(1)),
                      option("layers", &T::layers, "hidden layers", at_least(0)),
                      option("classes", &T::classes, "classes", at_least(1)),
                      option("norm", &T::norm, "the norm of every hidden layer", norm_name()),
                      option("placement", &T::placement, "of that norm, beside the activation"),
                      option("order", &T::order, "the order in which rows make batches")};
  }
  void validate() const { nn::PlacedNorm{nn::Norm::parse(norm), placement}.validate(); }
};

// h = relu(norm(h W)), or norm(relu(h W + b)), in the layers "fc1", "fc2", ...; logits = h W' + b'.
// A layer before whose ReLU no norm with a bias stands has its own. Weights start as
// N(0, 1 / fan_in).
class MlpNetwork final : public task::NetworkOf<MlpOptions> {
 public:
  using NetworkOf::NetworkOf;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
};

class Mlp final : public task::TaskWithOptions<MlpOptions> {
 public:
  std::string_view name() const override { return "mlp"; }
  std::string_view summary() const override { return "a small MLP on drawn data"; }
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<const MlpNetwork>(options_);
  }
};

}  // namespace keel::study
