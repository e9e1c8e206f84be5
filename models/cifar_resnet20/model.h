// Residual networks for small pictures (He et al. 2016, section 4.2), as Shen et al. 2020, figures
// 2 and 3, hold them against a Transformer.
#pragma once

#include "frontend/data/picture_rows.h"
#include "frontend/nn/layers.h"
#include "frontend/task/classification.h"
#include "frontend/task/task.h"

namespace keel::models {

struct CifarResnet20Options {
  std::int64_t depth = 20, width = 16;
  std::string norm = "batchnorm";
  bool augment = true;

  static constexpr auto fields() {
    using T = CifarResnet20Options;
    return std::tuple{
        option("depth", &T::depth, "layers with weights: 8, 14, 20, 32, 44, 56 or 110, say",
               described("6 n + 2, 8 to 1202", between(8, 1202))),
        option("width", &T::width,
               "channels of the first stage; the second and third have 2 and 4 "
               "times as many",
               described("an even number, 2 to 4096", between(2, 4096))),
        option("norm", &T::norm, "the norm after every convolution", norm_name()),
        option(
            "augment", &T::augment,
            "whether training sees pictures moved by up to 4 pixels and, half of them, flipped")};
  }
  void validate() const;
};

//     h = relu(norm(conv 3x3 (x)))                       `width` channels
//     three stages of (depth - 2) / 6 residual blocks    width, 2 width, 4 width channels; the
//                                                first block of the last two has stride 2
//     logits = mean of h over the pixels * W + b
class CifarResnet20Network final : public task::NetworkOf<CifarResnet20Options> {
 public:
  CifarResnet20Network(const CifarResnet20Options& options, std::vector<std::string> classes)
      : NetworkOf(options), classes_(std::move(classes)) {}

  task::Assets assets() const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return data::picture_inputs(sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  std::vector<std::string> class_names() const override { return classes_; }
  task::Answers answers() const override { return task::Answers::kPictures; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> files,
                                         std::int64_t first) const override;

 private:
  Value stage(nn::Net& net, int number, Value h, const nn::LayerOptions& conv) const;

  std::vector<std::string> classes_;
};

class CifarResnet20 final : public task::TaskWithOptions<CifarResnet20Options> {
 public:
  std::string_view name() const override { return "cifar_resnet20"; }
  std::string_view summary() const override {
    return "CIFAR-10 or your own pictures, ResNet-20 and other depths (He et al. 2016; Shen et al. "
           "2020, figures 2 and 3)";
  }
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }
  // Throws as load_pictures (models/pictures.h).
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override;
};

}  // namespace keel::models
