// MNIST with a small convolutional network (Xu et al. 2019, tables 1 to 4).
#pragma once

#include "frontend/data/table_rows.h"
#include "frontend/nn/norm.h"
#include "frontend/task/classification.h"
#include "frontend/task/task.h"

namespace keel::models {

struct MnistCnnOptions {
  // A: conv conv fc fc, norm on the 500 hidden units, as the program of Xu et al. 2019.
  // B: conv conv fc, norm on the 10 logits, the three layers of their text.
  // C: as A, with a norm also on both convolution outputs.
  // D: as A, with a norm only on both convolution outputs, for norms of images.
  std::string architecture = "A";
  std::string norm = "layernorm";
  bool standardize = true;  // pixels (x / 255 - 0.1307) / 0.3081, else x / 255

  static constexpr auto fields() {
    using T = MnistCnnOptions;
    return std::tuple{
        option("architecture", &T::architecture,
               "A: two convolutions and two dense layers, norm on the 500 hidden units; B: one "
               "dense layer, norm on the logits; C: like A, with norms on the convolutions too; D: "
               "like A, with norms only on the convolutions",
               described("A, B, C or D")),
        option("norm", &T::norm, "norm at the places that the architecture names", norm_name()),
        option("standardize", &T::standardize,
               "scaling of pixels to (x / 255 - 0.1307) / 0.3081 instead of x / 255")};
  }
  void validate() const;
};

class MnistCnnNetwork final : public task::NetworkOf<MnistCnnOptions> {
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

class MnistCnn final : public task::TaskWithOptions<MnistCnnOptions> {
 public:
  std::string_view name() const override { return "mnist_cnn"; }
  std::string_view summary() const override {
    return "MNIST, convolutional network with 20 and 50 channels (Xu et al. 2019)";
  }
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<const MnistCnnNetwork>(options_);
  }
};

}  // namespace keel::models
