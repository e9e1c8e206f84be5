// The residual network of the miniatures, as a model whose data are drawn from the seed.
#pragma once

#include "frontend/nn/norm.h"
#include "frontend/task/classification.h"
#include "frontend/task/task.h"
#include "studies/mini_data.h"

namespace keel::study {

struct ResidualOptions {
  std::string data = "vectors";  // or sentences; see mini_data.h
  double spread = 0;             // of sentences: their scales are exp(spread * N(0, 1))
  RowOrder order = RowOrder::kEpochs;
  std::int64_t train_rows = 4000, test_rows = 2000;
  std::int64_t features = 32, width = 64, hidden = 128, blocks = 12, classes = 10;
  // Weights start as N(0, variance / fan_in).
  double hidden_variance = 1, logit_variance = 1;
  std::string norm = "layernorm";
  bool layer_scale = false;  // "layerscaling" before every norm
  bool post = false;         // a norm after each sum instead of inside each branch

  static constexpr auto fields() {
    using T = ResidualOptions;
    return std::tuple{
        option("data", &T::data, "what is drawn", described("vectors or sentences")),
        option("spread", &T::spread, "the deviation of the logarithm of a sentence's scale"),
        option("order", &T::order, "the order in which rows make batches"),
        option("train_rows", &T::train_rows, "rows to train on", at_least(1)),
        option("test_rows", &T::test_rows, "rows to test on", at_least(1)),
        option("features", &T::features, "numbers of a row", at_least(1)),
        option("width", &T::width, "units of the residual stream", at_least(1)),
        option("hidden", &T::hidden, "units within a block", at_least(1)),
        option("blocks", &T::blocks, "blocks", at_least(0)),
        option("classes", &T::classes, "classes", at_least(1)),
        option("hidden_variance", &T::hidden_variance, "of first weights, times their fan-in"),
        option("logit_variance", &T::logit_variance, "the same of the last layer"),
        option("norm", &T::norm, "the norm of every block and before the last layer", norm_name()),
        option("layer_scale", &T::layer_scale, "whether layerscaling comes before every norm"),
        option("post", &T::post, "whether norms come after sums rather than within branches")};
  }
  void validate() const;
};

// h = x W;  in every block  h += relu(N(h) A) B,  or post  h = N(h + relu(h A) B);
// logits = N(h) W', or post h W'.   x (batch, features)  h (batch, width)  relu (batch, hidden)
// No layer has a bias.
//
// In training, each running statistic s that the first norm keeps adds an output "distance/<s>":
// |batch statistic - s|_2 / width, before s takes in the batch (Shen et al. 2020, figure 2). The
// statistics are "running_mean", "running_var" and "psi2". A probe adds "stem": h = x W.
class ResidualNetwork final : public task::NetworkOf<ResidualOptions> {
 public:
  using NetworkOf::NetworkOf;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;

 private:
  Value branch(nn::Net& net, const std::string& block, Value h) const;
  Value normalize(nn::Net& net, const std::string& site, Value x) const;
};

class Residual final : public task::TaskWithOptions<ResidualOptions> {
 public:
  std::string_view name() const override { return "residual"; }
  std::string_view summary() const override { return "a residual network on drawn data"; }
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<const ResidualNetwork>(options_);
  }
};

}  // namespace keel::study
