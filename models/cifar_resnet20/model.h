// Residual networks for small pictures (He et al. 2016, section 4.2), as Shen et al. 2020, figures
// 2 and 3, compare them with a Transformer.
#pragma once

#include "frontend/nn/layers.h"
#include "models/picture_task.h"

namespace keel::models {

struct CifarResnet20Options {
  std::int64_t depth = 20, width = 16;
  std::string norm = "batchnorm";
  bool augment = true;

  static constexpr auto fields() {
    using T = CifarResnet20Options;
    return std::tuple{
        option("depth", &T::depth, "layers with weights, such as 8, 14, 20, 32, 44, 56 or 110",
               described("6 n + 2, 8 to 1202", between(8, 1202))),
        option("width", &T::width,
               "channels of the first stage; the second has twice as many, the third four times",
               described("an even number, 2 to 4096", between(2, 4096))),
        option("norm", &T::norm, "norm after every convolution", norm_name()),
        option("augment", &T::augment, kAugmentMeaning)};
  }
  void validate() const;
};

//     h = relu(norm(conv 3x3 (x)))                       `width` channels
//     three stages of (depth - 2) / 6 residual blocks    width, 2 width, 4 width channels; the
//                                                first block of the last two has stride 2
//     logits = mean of h over the pixels * W + b
class CifarResnet20Network final : public PictureNetwork<CifarResnet20Options> {
 public:
  using PictureNetwork::PictureNetwork;

  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;

 private:
  Value stage(nn::Net& net, int number, Value h, const nn::LayerOptions& conv) const;
};

class CifarResnet20 final : public PictureTask<CifarResnet20Network, CifarResnet20Options> {
 public:
  std::string_view name() const override { return "cifar_resnet20"; }
  std::string_view summary() const override {
    return "CIFAR-10 or your own pictures, ResNet-20 and other depths (He et al. 2016; Shen et al. "
           "2020, figures 2 and 3)";
  }
};

}  // namespace keel::models
