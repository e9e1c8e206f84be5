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
  const nn::Norm normed = nn::ScaledNorm::parse(norm, scaling).norm();
  // Its statistics are those of a whole segment, later symbols included.
  check(normed.name() != "instancenorm", ErrorKind::kUsage,
        "norm: expected one that does not take statistics over a segment, got '{}'", norm);
  check(!pre_norm || memory == 0 || !normed.is_batch_type(), ErrorKind::kUsage,
        "norm: with pre_norm and a memory expected a norm of single positions, got '{}', whose "
        "statistics would count the positions of the memory again",
        norm);
  nn::check_widths(width, heads);
  check(width / heads <= kWidestHead, ErrorKind::kUsage,
        "heads: expected heads of at most {} features, got {}", kWidestHead, width / heads);
  check(!same_length || evaluation_memory > 0, ErrorKind::kUsage,
        "same_length: expected a memory in evaluation (evaluation_memory), got none");
  check(!file.empty(), ErrorKind::kUsage, "file: expected a file's name, got none");
}

XlOptions CharLmNetwork::xl_options(const nn::Net& net) const {
  const auto normal = [deviation = options_.init_deviation](std::int64_t) {
    return nn::normal(deviation);
  };
  const bool is_kaiming = options_.init == CharLmInit::kKaiming;
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
          .init = is_kaiming ? nn::FanInit(nn::fan_in_uniform) : nn::FanInit(normal),
          .norm = nn::ScaledNorm::parse(options_.norm, options_.scaling),
          .place = options_.pre_norm ? nn::NormPlace::kPre : nn::NormPlace::kPost};
}

task::Outputs CharLmNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  net.gain_deviation = options_.gain_deviation;
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
  check(options_.evaluation_memory > 0, ErrorKind::kUsage,
        "predict --prompt: expected a model with a memory (model.evaluation_memory), got none");
  return std::make_unique<decode::TextWriter>(
      decode::ContinuationModel{
          .network = std::string(kNext),
          .prompt = alphabet_.numbers(asked.prompt, "[char_lm] --prompt"),
          .text_of = [alphabet = alphabet_](std::int32_t symbol) { return alphabet.byte(symbol); },
          .longest = options_.evaluation_segment},
      asked);
}

std::shared_ptr<const CharLmNetwork> CharLm::restored(const task::Assets& assets) const {
  const ByteAlphabet alphabet = ByteAlphabet::parse(task::find_asset(assets, "alphabet"));
  check(alphabet.reading() == options_.alphabet, ErrorKind::kUsage,
        "[char_lm] model.alphabet: expected {}, as in training, got {}",
        choice_text(alphabet.reading()), choice_text(options_.alphabet));
  return std::make_shared<const CharLmNetwork>(options_, alphabet);
}

std::shared_ptr<const CharLmNetwork> CharLm::made(const ByteCorpus& corpus) const {
  check(options_.parts != TextParts::kWhole, ErrorKind::kUsage,
        "[char_lm] model.parts: expected 90-5-5 for a training, whose test would otherwise be its "
        "own text, got whole");
  const ByteAlphabet alphabet =
      ByteAlphabet::of(corpus.whole_part(task::Split::kTrain), options_.alphabet,
                       "[char_lm] " + corpus.place(task::Split::kTrain));
  for (const task::Split split : {task::Split::kValid, task::Split::kTest}) {
    alphabet.numbers(corpus.bytes(split), "[char_lm] " + corpus.place(split));
  }
  return std::make_shared<const CharLmNetwork>(options_, alphabet);
}

task::Prepared CharLm::prepare(const task::DataRequest& request, const task::Assets* known) const {
  const auto corpus = std::make_shared<const ByteCorpus>(request, options_.file, options_.parts);
  const auto network = known ? restored(*known) : made(*corpus);
  const data::LaneSettings lanes{options_.segment, options_.short_segment,
                                 options_.evaluation_lanes, options_.evaluation_segment};
  const auto make = [corpus, network, lanes](task::Split split) {
    const bool trains = split == task::Split::kTrain;
    return corpus->numbered(split, network->alphabet(), 1 + (trains ? lanes.length : 1));
  };
  return {network, std::make_shared<const data::LaneSplits>(lanes, make)};
}

}  // namespace keel::models
