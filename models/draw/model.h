// DRAW on binarized MNIST (Gregor et al. 2015; with layer normalization Ba et al. 2016, section
// 6.4).
#pragma once

#include "frontend/nn/norm.h"
#include "frontend/task/task.h"
#include "models/draw/data.h"
#include "models/draw/network.h"

namespace keel::models {

struct DrawOptions {
  std::string norm = "layernorm";  // of both cells' c, before the output's tanh
  std::int64_t glimpses = 64, width = 256, latent = 100, read = 2, write = 5;
  FilterGrid grid = FilterGrid::kPaper;
  Binarize binarize = Binarize::kThreshold;
  double init_deviation = 0.01;
  std::int64_t sample_seed = 1;   // of the random numbers of evaluation and samples
  std::int64_t test_samples = 1;  // draws of the latents of a test image, whose bound is their mean

  static constexpr auto fields() {
    using T = DrawOptions;
    return std::tuple{
        option("norm", &T::norm, "norm of both cells' c, before the tanh of their output",
               norm_name()),
        option("glimpses", &T::glimpses, "number of steps in which an image is read and drawn",
               between(1, 65536)),
        option("width", &T::width, "width of the encoder and of the decoder", between(1, 65536)),
        option("latent", &T::latent, "latent variables of each step", between(1, 65536)),
        option("read", &T::read, "side of the patch that is read", between(2, 1024)),
        option("write", &T::write, "side of the patch that is written", between(2, 1024)),
        option("grid", &T::grid,
               "positions of the filters of a patch: as in the paper, or as in its release"),
        option("binarize", &T::binarize, "conversion of grey pixels to black or white"),
        option("init_deviation", &T::init_deviation, "standard deviation of the initial weights",
               more_than(0)),
        option("sample_seed", &T::sample_seed,
               "seed of the latent variables in evaluation and samples", at_least(0)),
        option("test_samples", &T::test_samples,
               "samples of the latent variables for each test image, whose bounds are averaged",
               between(1, 1000))};
  }
  void validate() const;
};

// The loss of an image is the variational bound on -log of its probability, in nats: the binary
// cross entropy of its pixels plus the divergence of the posterior from the prior, with one z
// drawn. Evaluation draws by the image's number, so that a bound does not depend on batches.
class DrawNetwork final : public task::NetworkOf<DrawOptions> {
 public:
  using NetworkOf::NetworkOf;
  // Sizes are {images}, or {images, 0} for images that are drawn from the prior.
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  // A line is a number of samples; the answer is a PNG with a row a sample, a column a glimpse.
  task::Answers answers() const override { return task::Answers::kAllLines; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override;

 private:
  DrawNetOptions network(nn::Net& net, Value numbers) const;
};

class Draw final : public task::TaskWithOptions<DrawOptions> {
 public:
  std::string_view name() const override { return "draw"; }
  std::string_view summary() const override {
    return "DRAW on binarized MNIST (Gregor et al. 2015, Ba et al. 2016)";
  }
  std::vector<task::OptionValues> data_forms(const std::string&) const override {
    return {{{"binarize", "fixed"}}, {{"binarize", "threshold"}}};
  }
  // "bound", which chooses the best weights, and its parts "reconstruction" and "kl".
  std::vector<task::MetricInfo> metrics() const override;
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<const DrawNetwork>(options_);
  }
};

}  // namespace keel::models
