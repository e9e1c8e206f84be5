// VGG-A for small pictures, with a norm or without, after Santurkar et al. 2018.
#pragma once

#include "frontend/nn/norm.h"
#include "models/picture_task.h"

namespace keel::models {

struct CifarVggOptions {
  std::int64_t divisor = 1;
  std::string norm = "batchnorm";
  bool augment = false;

  static constexpr auto fields() {
    using T = CifarVggOptions;
    return std::tuple{
        option("divisor", &T::divisor, "divisor of the channels and units of all layers",
               described("a divisor of 64", between(1, 64))),
        option("norm", &T::norm, "norm after every convolution", norm_name()),
        option("augment", &T::augment, kAugmentMeaning)};
  }
  void validate() const;
};

// With d for `divisor`:
//     conv 64/d, pool, conv 128/d, pool, conv 256/d twice, pool, conv 512/d twice, pool, likewise
//     fc 512/d -> 512/d -> 512/d -> classes
// Convolutions are 3 x 3 with a frame of zeros, each with its norm and relu; relu follows the first
// two fc; pool is max-pool 2 x 2.
class CifarVggNetwork final : public PictureNetwork<CifarVggOptions> {
 public:
  using PictureNetwork::PictureNetwork;

  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
};

class CifarVgg final : public PictureTask<CifarVggNetwork, CifarVggOptions> {
 public:
  std::string_view name() const override { return "cifar_vgg"; }
  std::string_view summary() const override {
    return "CIFAR-10 or your own pictures, VGG-A (Santurkar et al. 2018)";
  }
};

}  // namespace keel::models
