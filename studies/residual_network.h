// The residual network of the miniatures, as a model whose data is drawn from the seed.
#pragma once

#include "frontend/nn/norm.h"
#include "frontend/task/classification.h"

namespace keel::study {

struct ResidualOptions {
  std::string data = "vectors";  // or sentences; see mini_data.h
  double spread = 0;             // of sentences: their scales are exp(spread * N(0, 1))
  std::int64_t train_rows = 4000, test_rows = 2000;
  std::int64_t features = 32, width = 64, hidden = 128, blocks = 12, classes = 10;
  // Weights start as N(0, variance / fan_in).
  double hidden_variance = 1, logit_variance = 1;
  std::string norm = "layernorm";
  bool layer_scale = false;  // "layerscaling" in front of every norm
  bool post = false;         // a norm after each sum instead of inside each branch

  static constexpr auto fields() {
    using T = ResidualOptions;
    return std::tuple{field("data", &T::data),
                      field("spread", &T::spread),
                      field("train_rows", &T::train_rows),
                      field("test_rows", &T::test_rows),
                      field("features", &T::features),
                      field("width", &T::width),
                      field("hidden", &T::hidden),
                      field("blocks", &T::blocks),
                      field("classes", &T::classes),
                      field("hidden_variance", &T::hidden_variance),
                      field("logit_variance", &T::logit_variance),
                      field("norm", &T::norm),
                      field("layer_scale", &T::layer_scale),
                      field("post", &T::post)};
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
class ResidualNetwork : public task::ModelWithOptions<ResidualOptions> {
 public:
  std::string_view name() const override { return "residual"; }
  std::string_view summary() const override { return "a residual network on drawn data"; }
  std::unique_ptr<task::Splits> load(const task::DataRequest& request) const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }

 private:
  Value branch(nn::Net& net, const std::string& block, Value h) const;
  Value normalize(nn::Net& net, const std::string& site, Value x) const;
};

}  // namespace keel::study
