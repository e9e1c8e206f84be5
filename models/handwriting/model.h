// Handwriting synthesis: it predicts the points of a line of handwriting one by one from the line's
// text (Graves 2013, section 5; with layer normalization Ba et al. 2016, section 6.5).
#pragma once

#include <optional>

#include "frontend/nn/norm.h"
#include "frontend/task/task.h"
#include "models/handwriting/data.h"
#include "models/handwriting/network.h"

namespace keel::models {

struct HandwritingOptions {
  std::string norm = "layernorm";  // of the cells: of the products with input and state, and of c
  nn::NormOf norm_of = nn::NormOf::kProducts;
  std::int64_t layers = 3, width = 400;
  std::int64_t bumps = 10, components = 20;
  std::int64_t points = 500;    // predicted points of a line; the rest is cut off
  std::int64_t multiple = 100;  // batches have numbers of points that are multiples of it
  double init_deviation = 0.075;
  double width_bias = -1, step_bias = -3;
  // Limits on the elements of the gradient of the mean loss, where it comes to an LSTM's h and to
  // y; 0: none.
  double clip_cells = 10, clip_output = 100;
  double bias = 0;                 // of samples: how much likelier than drawn their points are
  std::int64_t sample_seed = 1;    // of samples
  std::int64_t sample_points = 0;  // the most points of a sample; 0: 120 a character, and 100

  static constexpr auto fields() {
    using T = HandwritingOptions;
    return std::tuple{
        option("norm", &T::norm,
               "norm of the cells: at the products with input and state, and at c", norm_name()),
        option("norm_of", &T::norm_of, nn::kNormOfHelp),
        option("layers", &T::layers, "LSTM layers", between(1, 65536)),
        option("width", &T::width, "width of an LSTM layer", between(1, 65536)),
        option("bumps", &T::bumps, "components of the attention window over the text",
               between(1, 65536)),
        option("components", &T::components,
               "components of the mixture from which the next point is sampled", between(1, 65536)),
        option("points", &T::points,
               "number of points of a line that are predicted; the rest is cut off",
               between(1, 65536)),
        option("multiple", &T::multiple,
               "multiple to which the number of points of a batch is padded", between(1, 65536)),
        option("init_deviation", &T::init_deviation, "standard deviation of the initial weights",
               more_than(0)),
        option("width_bias", &T::width_bias,
               "initial bias of the logarithm of the window's sharpness"),
        option("step_bias", &T::step_bias, "initial bias of the logarithm of the window's step"),
        option("clip_cells", &T::clip_cells,
               "limit on the elements of the gradient that reaches an LSTM's output; 0: none",
               at_least(0)),
        option("clip_output", &T::clip_output,
               "limit on the elements of the gradient that reaches the mixture; 0: none",
               at_least(0)),
        option("bias", &T::bias,
               "bias of samples towards likely points (Graves 2013, section 5.4); 0: none",
               at_least(0)),
        option("sample_seed", &T::sample_seed, "seed of samples", at_least(0)),
        option("sample_points", &T::sample_points,
               "most points of a sample; 0: 100, and 120 more for each character",
               between(0, 1000000))};
  }
  void validate() const;
};

// The loss of a line is the sum of -log of the density of its points and of the pen's lifts.
class HandwritingNetwork final : public task::NetworkOf<HandwritingOptions> {
 public:
  HandwritingNetwork(const HandwritingOptions& options, HandwritingFacts facts)
      : NetworkOf(options), facts_(std::move(facts)) {}

  const HandwritingFacts& facts() const { return facts_; }
  StrokeOptions stroke_options() const;

  task::Assets assets() const override { return facts_.assets(); }
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  task::Sizes sizes(std::int64_t batch) const override;
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  // Writes each line as handwriting, an SVG.
  task::Answers answers() const override { return task::Answers::kAllLines; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override;

 private:
  HandwritingSizes network_sizes() const;

  HandwritingFacts facts_;
};

class Handwriting final : public task::TaskWithOptions<HandwritingOptions> {
 public:
  std::string_view name() const override { return "handwriting"; }
  std::string_view summary() const override {
    return "handwriting synthesis on IAM-OnDB (Graves 2013, Ba et al. 2016)";
  }
  // "nll", nats a line, which chooses the best weights; "nll_point", nats a point; "sse", the
  // squared distance of a point from its expected place, normalized as the data are; "held", the
  // share of deviations and correlations at the limits of mixture_density.
  std::vector<task::MetricInfo> metrics() const override;
  // The scale of a checkpoint is used for all data. Throws as read_iam, and Error{kBadInput} for
  // data of another alphabet than the checkpoint's.
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return restored(assets);
  }

 private:
  std::shared_ptr<const HandwritingNetwork> restored(const task::Assets& assets) const;
};

}  // namespace keel::models
