#include "models/handwriting/model.h"

#include <algorithm>

#include "models/handwriting/writer.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/mixture_density.h"
#include "src/ops/reduce.h"
#include "src/ops/softmax.h"

namespace keel::models {
namespace {

// The mean of the mixtures' means: sum over j of pi_j mu_j, (points, 1), at one of its two parts.
Value expected_offset(Graph& g, Value y, MixturePart::Place part) {
  const std::int64_t m = mixture_sizes(g.shape(y)).components;
  const auto numbers = [&](MixturePart::Place place) {
    return ops::slice_axis(g, y, 1, 1 + place * m, m);
  };
  const Value pi = ops::softmax(g, numbers(MixturePart::kPi));
  return ops::sum(g, ops::mul(g, pi, numbers(part)), {1}, true);
}

// The squared distances of points (points, 3) from where they are expected, summed over those of
// the mask (points).
Value squared_errors(Graph& g, Value y, Value points, Value mask) {
  const Value expected = ops::concat(
      g, {expected_offset(g, y, MixturePart::kMean1), expected_offset(g, y, MixturePart::kMean2)},
      1);
  const Value missed = ops::sub(g, ops::slice_axis(g, points, 1, 0, 2), expected);
  return ops::sum(g, ops::mul(g, ops::sum(g, ops::square(g, missed), {1}), mask));
}

// Numbers of the data in the type in which the network computes.
Value in_type(nn::Net& net, Value x) {
  return net.graph.type(x).dtype == net.dtype ? x : ops::cast(net.graph, x, net.dtype);
}

}  // namespace

void HandwritingOptions::validate() const { nn::Norm::parse(norm); }

HandwritingSizes HandwritingNetwork::network_sizes() const {
  return {options_.layers, options_.width, options_.bumps, options_.components,
          facts_.alphabet.size()};
}

StrokeOptions HandwritingNetwork::stroke_options() const {
  return {
      .longest = options_.points, .multiple = options_.multiple, .state = network_sizes().state()};
}

std::vector<task::Input> HandwritingNetwork::inputs(const task::Sizes& sizes) const {
  return stroke_inputs(sizes, network_sizes().state());
}

task::Sizes HandwritingNetwork::sizes(std::int64_t batch) const {
  constexpr std::int64_t kSymbols = 8;  // the longest text of the built-in lines
  return {batch, options_.points, kSymbols};
}

task::Outputs HandwritingNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const HandwritingNetOptions options{
      .sizes = network_sizes(),
      .norms = nn::lstm_norms(nn::Norm::parse(options_.norm), options_.norm_of),
      .init_deviation = options_.init_deviation,
      .width_bias = options_.width_bias,
      .step_bias = options_.step_bias,
      .clip_cells = options_.clip_cells,
      .clip_output = options_.clip_output};
  const HandwritingOutputs out = handwriting_network(
      net, options,
      {in_type(net, in["points"]), in["mask"], in["text"], in_type(net, in["state"])});
  const std::int64_t places = g.shape(out.y)[0];
  const Value mask = ops::reshape(g, in["mask"], {places});
  const Value targets = ops::reshape(g, in_type(net, in["targets"]), {places, 3});
  const ops::Mixture mixture = ops::mixture_density(g, out.y, targets, mask);
  const Value real = ops::cast(g, mask, net.dtype);
  const Value nll = ops::sum(g, mixture.nll), points = ops::sum(g, real);
  const double components = 3 * double(options_.components);
  task::Outputs outputs{
      .loss_sum = nll,
      .metrics = {{.name = "nll", .sum = nll},
                  {.name = "nll_point", .sum = nll, .count = points},
                  {.name = "sse", .sum = squared_errors(g, out.y, targets, real), .count = points},
                  {.name = "held",
                   .sum = ops::sum(g, mixture.held),
                   .count = ops::scale(g, points, components)}}};
  // A sample is written in batches of one point.
  if (g.shape(in["points"])[0] == 1) {
    outputs.predictions = {
        {"density", out.y}, {"components", out.components}, {"state", out.state}};
  }
  return outputs;
}

std::vector<task::MetricInfo> Handwriting::metrics() const {
  return {{.name = "nll", .unit = "nats", .of = task::mean_of},
          {.name = "nll_point", .unit = "nats", .of = task::mean_of},
          {.name = "sse", .unit = "", .of = task::mean_of},
          {.name = "held", .unit = "%", .of = task::percent_of, .has_direction = false}};
}

std::unique_ptr<task::Decoder> HandwritingNetwork::decoder(std::span<const std::string> lines,
                                                           std::int64_t) const {
  return std::make_unique<HandWriter>(std::vector<std::string>(lines.begin(), lines.end()), facts_,
                                      network_sizes(),
                                      WriterOptions{.bias = options_.bias,
                                                    .longest = options_.sample_points,
                                                    .seed = std::uint64_t(options_.sample_seed)});
}

std::shared_ptr<const HandwritingNetwork> Handwriting::restored(const task::Assets& assets) const {
  return std::make_shared<const HandwritingNetwork>(options_, HandwritingFacts::parse(assets));
}

task::Prepared Handwriting::prepare(const task::DataRequest& request,
                                    const task::Assets* known) const {
  std::shared_ptr<const HandwritingNetwork> network = known ? restored(*known) : nullptr;
  HandwritingCorpus corpus = read_handwriting(request, network ? &network->facts() : nullptr);
  if (!network) {
    network = std::make_shared<const HandwritingNetwork>(options_, HandwritingFacts::of(corpus));
  }
  const std::string& alphabet = network->facts().alphabet.text();
  check(alphabet == corpus.alphabet.text(), ErrorKind::kBadInput,
        "[handwriting] {}: expected data of the alphabet '{}', got '{}'", corpus.origin, alphabet,
        corpus.alphabet.text());
  const auto number = [network](task::Split, const WrittenLines& lines, data::SplitNotes notes) {
    return std::make_shared<StrokeRows>(
        std::move(notes), stroke_rows(lines, network->facts().scale), network->stroke_options());
  };
  return {network, data::splits_of(std::move(corpus), number)};
}

}  // namespace keel::models
