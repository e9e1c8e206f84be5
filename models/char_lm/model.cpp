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
  validate_memory(normed.is_batch_type());
  validate_heads();
  validate_place();
  check(!file.empty(), ErrorKind::kUsage, "file: expected a file's name, got none");
}

void CharLmOptions::validate_memory(bool has_batch_norm) const {
  const bool is_xl = architecture == CharLmArchitecture::kTransformerXl;
  check(!is_xl || place != nn::NormPlace::kPre || memory == 0 || !has_batch_norm, ErrorKind::kUsage,
        "norm: with place = pre and a memory expected a norm of single positions, got '{}', whose "
        "statistics would count the positions of the memory again",
        norm);
  check(!same_length || evaluation_memory > 0, ErrorKind::kUsage,
        "same_length: expected a memory in evaluation (evaluation_memory), got none");
  check(is_xl || !same_length, ErrorKind::kUsage,
        "same_length: expected false with architecture = llama, got true");
  check(is_xl || clamp == 0, ErrorKind::kUsage,
        "clamp: expected 0 with architecture = llama, got {}", clamp);
}

void CharLmOptions::validate_heads() const {
  nn::check_widths(width, heads);
  const std::int64_t head_width = width / heads;
  check(head_width <= kWidestHead, ErrorKind::kUsage,
        "heads: expected heads of at most {} features, got {}", kWidestHead, head_width);
  if (architecture == CharLmArchitecture::kTransformerXl) {
    check(kv_heads == 0, ErrorKind::kUsage,
          "kv_heads: expected 0 with architecture = transformer_xl, got {}", kv_heads);
    check(!qk_norm && !embedding_scalar, ErrorKind::kUsage,
          "{}: expected false with architecture = transformer_xl, got true",
          qk_norm ? "qk_norm" : "embedding_scalar");
    return;
  }
  check(head_width % 2 == 0, ErrorKind::kUsage,
        "heads: expected heads of an even number of features, got {}", head_width);
  check(kv_heads == 0 || heads % kv_heads == 0, ErrorKind::kUsage,
        "kv_heads: expected 0 or a divisor of the {} heads, got {}", heads, kv_heads);
}

void CharLmOptions::validate_place() const {
  using enum nn::NormPlace;
  if (architecture == CharLmArchitecture::kTransformerXl) {
    check(place == kPre || place == kPost, ErrorKind::kUsage,
          "place: expected pre or post with architecture = transformer_xl, got {}",
          choice_text(place));
    return;
  }
  check(place == kSimple || !nn::changes_attention(place), ErrorKind::kUsage,
        "place: expected one that leaves attention as it is with architecture = llama, got {}",
        choice_text(place));
  check(place != kNgpt || (!qk_norm && !embedding_scalar), ErrorKind::kUsage,
        "{}: expected false with place = ngpt, which has lengths of its own, got true",
        qk_norm ? "qk_norm" : "embedding_scalar");
}

std::int64_t CharLmNetwork::memory(const nn::Net& net) const {
  return net.mode == nn::Mode::kEvaluate ? options_.evaluation_memory : options_.memory;
}

nn::FanInit CharLmNetwork::layer_init() const {
  if (options_.init == CharLmInit::kKaiming) return nn::fan_in_uniform;
  return [deviation = options_.init_deviation](std::int64_t) { return nn::normal(deviation); };
}

XlOptions CharLmNetwork::xl_options(const nn::Net& net) const {
  const bool evaluates = net.mode == nn::Mode::kEvaluate;
  return {.symbols = alphabet_.size(),
          .layers = options_.layers,
          .width = options_.width,
          .heads = options_.heads,
          .feed_forward = options_.feed_forward,
          .memory = memory(net),
          .window = evaluates && options_.same_length ? options_.evaluation_memory : 0,
          .clamp = evaluates ? options_.clamp : 0,
          .dropout = options_.dropout,
          .init_deviation = options_.init_deviation,
          .init = layer_init(),
          .norm = nn::ScaledNorm::parse(options_.norm, options_.scaling),
          .place = options_.place};
}

LlamaOptions CharLmNetwork::llama_options(const nn::Net& net) const {
  return {.symbols = alphabet_.size(),
          .layers = options_.layers,
          .width = options_.width,
          .kv_heads = options_.kv_heads > 0 ? options_.kv_heads : options_.heads,
          .qk_norm = options_.qk_norm,
          .embedding_scalar = options_.embedding_scalar,
          .memory = memory(net),
          .init_deviation = options_.init_deviation,
          .layer = {.heads = options_.heads,
                    .feed_forward = options_.feed_forward,
                    .dropout = options_.dropout,
                    .relu_dropout = options_.dropout,
                    .place = options_.place,
                    .norm = nn::ScaledNorm::parse(options_.norm, options_.scaling),
                    .init = layer_init()}};
}

Value CharLmNetwork::logits(nn::Net& net, const task::Inputs& in, std::int64_t count) const {
  Graph& g = net.graph;
  const auto last_rows = [&](Value states) {
    const Shape shape = g.shape(states);
    if (count < shape[1]) states = ops::slice_axis(g, states, 1, shape[1] - count, count);
    return ops::reshape(g, states, {shape[0] * count, shape[2]});
  };
  if (options_.architecture == CharLmArchitecture::kLlama) {
    const LlamaOptions options = llama_options(net);
    const Value states = llama_states(net, options, in["input"], in["begins"]);
    return llama_logits(net, options, last_rows(states));
  }
  const XlHidden hidden = xl_hidden(net, xl_options(net), in["input"], in["begins"]);
  return xl_logits(net, last_rows(hidden.states), hidden.table);
}

task::Outputs CharLmNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  net.gain_deviation = options_.gain_deviation;
  const Shape shape = g.shape(in["input"]);
  const Value logits = this->logits(net, in, shape[1]);
  const Value targets = ops::reshape(g, in["target"], {shape[0] * shape[1]});
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
  return {{"logits", logits(net, in, 1)}};
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
