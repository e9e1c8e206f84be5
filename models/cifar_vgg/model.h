// VGG-A for small pictures, with a norm or without, after Santurkar et al. 2018.
#pragma once

#include "frontend/data/picture_rows.h"
#include "frontend/nn/norm.h"
#include "frontend/task/classification.h"
#include "frontend/task/task.h"

namespace keel::models {

struct CifarVggOptions {
  std::int64_t divisor = 1;
  std::string norm = "batchnorm";
  bool augment = false;

  static constexpr auto fields() {
    using T = CifarVggOptions;
    return std::tuple{
        option("divisor", &T::divisor, "divides the channels and units of all layers",
               described("a divisor of 64", between(1, 64))),
        option("norm", &T::norm, "the norm after every convolution", norm_name()),
        option("augment", &T::augment,
               "whether training sees pictures moved by up to 4 pixels and, half of them, "
               "flipped")};
  }
  void validate() const;
};

// With d for `divisor`:
//     conv 64/d, pool, conv 128/d, pool, conv 256/d twice, pool, conv 512/d twice, pool, likewise
//     fc 512/d -> 512/d -> 512/d -> classes
// Convolutions are 3 x 3 with a frame of zeros, each with its norm and relu; relu follows the first
// two fc; pool is max-pool 2 x 2.
class CifarVggNetwork final : public task::NetworkOf<CifarVggOptions> {
 public:
  CifarVggNetwork(const CifarVggOptions& options, std::vector<std::string> classes)
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
  std::vector<std::string> classes_;
};

class CifarVgg final : public task::TaskWithOptions<CifarVggOptions> {
 public:
  std::string_view name() const override { return "cifar_vgg"; }
  std::string_view summary() const override {
    return "CIFAR-10 or your own pictures, VGG-A (Santurkar et al. 2018)";
  }
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }
  // Throws as load_pictures (models/pictures.h).
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override;
};

}  // namespace keel::models
