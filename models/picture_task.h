// Every task that classifies pictures in three colours derives from the classes here.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/task/classification.h"
#include "frontend/task/task.h"
#include "models/pictures.h"

namespace keel::models {

inline constexpr const char* kAugmentMeaning =
    "augmentation in training: pictures shifted by up to 4 pixels, half of them flipped";

// A network for pictures of these classes; its options are Options.
template <class Options>
class PictureNetwork : public task::NetworkOf<Options> {
 public:
  PictureNetwork(const Options& options, std::vector<std::string> classes)
      : task::NetworkOf<Options>(options), classes_(std::move(classes)) {}

  task::Assets assets() const override { return class_assets(classes_); }
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return data::picture_inputs(sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  std::vector<std::string> class_names() const override { return classes_; }
  task::Answers answers() const override { return task::Answers::kPictures; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> files,
                                         std::int64_t) const override {
    return picture_decoder(files, classes_);
  }

 protected:
  std::vector<std::string> classes_;
};

// The task of such a network; its options have a member `augment`.
template <class Network, class Options>
class PictureTask : public task::TaskWithOptions<Options> {
 public:
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }
  // Throws as load_pictures.
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override {
    return prepare_pictures(
        request, known, this->options_.augment,
        [this](std::vector<std::string> names) { return made(std::move(names)); });
  }
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return made(classes_of(assets));
  }

 private:
  std::shared_ptr<const task::Network> made(std::vector<std::string> classes) const {
    return std::make_shared<const Network>(this->options_, std::move(classes));
  }
};

}  // namespace keel::models
