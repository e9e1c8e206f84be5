#include "models/char_lm/model.h"

#include "frontend/decode/continuation.h"
#include "src/ops/attention.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"

namespace keel::models {
namespace {

constexpr std::string_view kNext = "next";

}  // namespace

void CharLmOptions::validate() const {
  nn::Norm::parse(norm);
  nn::check_widths(width, heads);
  check(width / heads <= kWidestHead, ErrorKind::kUsage,
        "heads: expected heads of at most {} features, got {}", kWidestHead, width / heads);
  check(!same_length || evaluation_memory > 0, ErrorKind::kUsage,
        "same_length: expected a memory in evaluation (evaluation_memory), got none");
  check(!file.empty(), ErrorKind::kUsage, "file: expected a file's name, got none");
}

XlOptions CharLmNetwork::xl_options(const nn::Net& net) const {
  const bool evaluates = net.mode == nn::Mode::kEvaluate;
  return {.symbols = alphabet_.size(),
          .layers = options_.layers,
          .width = options_.width,
          .heads = options_.heads,
          .feed_forward = options_.feed_forward,
          .memory = evaluates ? options_.evaluation_memory : options_.memory,
          .window = evaluates && options_.same_length ? options_.evaluation_memory : 0,
          .clamp = evaluates ? options_.clamp : 0,
          .dropout = options_.dropout,
          .init_deviation = options_.init_deviation,
          .norm = nn::Norm::parse(options_.norm),
          .place = options_.pre_norm ? nn::NormPlace::kPre : nn::NormPlace::kPost};
}

task::Outputs CharLmNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const XlHidden hidden = xl_hidden(net, xl_options(net), in["input"], in["begins"]);
  const Shape shape = g.shape(hidden.states);
  const std::int64_t rows = shape[0] * shape[1];
  const Value logits =
      xl_logits(net, ops::reshape(g, hidden.states, {rows, shape[2]}), hidden.table);
  const Value targets = ops::reshape(g, in["target"], {rows});
  const Value sum = ops::cross_entropy(g, logits, targets).sum;
  return {.loss_sum = sum, .metrics = {{.name = "bpc", .sum = sum}}};
}

std::vector<task::Input> CharLmNetwork::search_inputs(std::string_view network,
                                                      const task::Sizes& sizes) const {
  if (network != kNext) return Network::search_inputs(network, sizes);
  return decode::continuation_inputs(sizes);
}

std::vector<NamedValue> CharLmNetwork::build_search(nn::Net& net, std::string_view network,
                                                    const task::Sizes& sizes,
                                                    const task::Inputs& in) const {
  if (network != kNext) return Network::build_search(net, network, sizes, in);
  Graph& g = net.graph;
  const XlHidden hidden = xl_hidden(net, xl_options(net), in["input"], in["begins"]);
  const Value last = ops::slice_axis(g, hidden.states, 1, sizes[1] - 1, 1);
  const Value rows = ops::reshape(g, last, {sizes[0], options_.width});
  return {{"logits", xl_logits(net, rows, hidden.table)}};
}

std::unique_ptr<task::Decoder> CharLmNetwork::continuation(const task::Continuation& asked) const {
  return std::make_unique<decode::TextWriter>(
      decode::ContinuationModel{
          .network = std::string(kNext),
          .prompt = alphabet_.numbers(asked.prompt, "[char_lm] --prompt"),
          .text_of = [alphabet = alphabet_](std::int32_t symbol) { return alphabet.byte(symbol); },
          .longest = options_.evaluation_segment},
      asked);
}

std::shared_ptr<const CharLmNetwork> CharLm::restored(const task::Assets& assets) const {
  return std::make_shared<const CharLmNetwork>(
      options_, ByteAlphabet::parse(task::find_asset(assets, "alphabet")));
}

task::Prepared CharLm::prepare(const task::DataRequest& request, const task::Assets* known) const {
  const auto corpus = std::make_shared<const ByteCorpus>(request, options_.file, options_.parts);
  const auto network =
      known ? restored(*known)
            : std::make_shared<const CharLmNetwork>(
                  options_, ByteAlphabet::of(corpus->bytes(task::Split::kTrain), options_.alphabet,
                                             "[char_lm] " + corpus->place(task::Split::kTrain)));
  const data::LaneSettings lanes{options_.segment, options_.short_segment,
                                 options_.evaluation_lanes, options_.evaluation_segment};
  const auto make = [corpus, network, lanes](task::Split split) {
    const bool trains = split == task::Split::kTrain;
    return corpus->numbered(split, network->alphabet(),
                            1 + (trains ? lanes.length : lanes.evaluation_length));
  };
  return {network, std::make_shared<const data::LaneSplits>(lanes, make)};
}

}  // namespace keel::models
