#include "models/word_lm/model.h"

#include <charconv>
#include <cmath>

#include "frontend/nn/layers.h"
#include "frontend/nn/positions.h"
#include "models/word_lm/builtin.h"
#include "src/core/choice.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/layout.h"
#include "src/ops/softmax.h"

namespace keel::models {
namespace {

constexpr double kDeviation = 0.02;  // of all weights
constexpr std::int64_t kLongestMultilinear = 512;
constexpr std::int64_t kSegmentsTogether = 16;  // of a text that is evaluated

// Where words read those after them, no number is a perplexity.
std::string metric_name(WordMask mask) { return mask == WordMask::kCausal ? "ppl" : "ppl_of_leak"; }

}  // namespace

std::vector<std::int64_t> WordLmOptions::cutoff_numbers() const {
  std::vector<std::int64_t> numbers;
  const char* at = cutoffs.data();
  const char* const end = at + cutoffs.size();
  while (at != end) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    const bool ends_well = next == end || (*next == ',' && next + 1 != end);
    check(error == std::errc() && ends_well && number > (numbers.empty() ? 0 : numbers.back()),
          ErrorKind::kUsage, "cutoffs: expected ascending numbers with commas, got '{}'", cutoffs);
    numbers.push_back(number);
    at = next == end ? end : next + 1;
  }
  return numbers;
}

void WordLmOptions::validate() const {
  const nn::ScaledNorm normed = nn::ScaledNorm::parse(norm, scaling);
  // Its statistics are those of a whole segment, later words included.
  check(normed.norm().name() != "instancenorm", ErrorKind::kUsage,
        "norm: expected one that does not take statistics over a segment, got '{}'", norm);
  nn::check_widths(width, heads);
  check(attention == WordAttention::kSoftmax || length <= kLongestMultilinear, ErrorKind::kUsage,
        "length: expected at most {} with multilinear attention, which has weights for every pair "
        "of places, got {}",
        kLongestMultilinear, length);
  check(attention == WordAttention::kSoftmax || !nn::changes_attention(place), ErrorKind::kUsage,
        "attention: expected softmax with place = {}, which changes attention itself, got {}",
        choice_text(place), choice_text(attention));
  cutoff_numbers();
}

WordLmNetwork::WordLmNetwork(const WordLmOptions& options, text::Vocabulary vocabulary)
    : NetworkOf(options), vocabulary_(std::move(vocabulary)) {
  const std::vector<std::int64_t> cutoffs = options_.cutoff_numbers();
  check(cutoffs.empty() || cutoffs.back() < count_of_numbers(vocabulary_), ErrorKind::kUsage,
        "model.cutoffs: expected numbers below the {} words, got {}", count_of_numbers(vocabulary_),
        options_.cutoffs);
}

nn::TransformerOptions WordLmNetwork::transformer() const {
  nn::TransformerOptions options{.heads = options_.heads,
                                 .feed_forward = options_.feed_forward,
                                 .dropout = options_.dropout,
                                 .relu_dropout = options_.dropout,
                                 .place = options_.place,
                                 .depth = {.layers = options_.layers}};
  options.norm = nn::ScaledNorm::parse(options_.norm, options_.scaling);
  options.init = [](std::int64_t) { return nn::normal(kDeviation); };
  return options;
}

nn::MultilinearOptions WordLmNetwork::multilinear() const {
  return {.rank = options_.rank,
          .cores = options_.cores,
          .positions = options_.length,
          .causal = options_.mask == WordMask::kCausal,
          .init = [](std::int64_t) { return nn::normal(kDeviation); }};
}

Value WordLmNetwork::hidden(nn::Net& net, Value table, Value words) const {
  Graph& g = net.graph;
  nn::TransformerOptions options = transformer();
  const nn::MultilinearOptions products = multilinear();
  const bool is_multilinear = options_.attention == WordAttention::kMultilinear;
  Value x = ops::scale(g, ops::embedding(g, table, words), std::sqrt(double(options_.width)));
  if (!is_multilinear) {
    x = ops::add(g, x, nn::sinusoidal_positions(net, g.shape(words)[1], options_.width));
  }
  x = nn::dropout(net, x, options_.dropout);
  std::optional<nn::MultilinearBiases> biases;
  if (is_multilinear) biases.emplace(net, "attention_biases", products);
  for (std::int64_t i = 1; i <= options_.layers; ++i) {
    options.depth.layer = i;
    const auto scope = g.scope(fmt::format("layer{}", i));
    const auto look = [&](Value v) {
      if (is_multilinear) return nn::multilinear_attention(net, "attention", v, products, *biases);
      nn::AttentionMemory itself = nn::project_memory(net, "attention", v, options);
      itself.causal = products.causal;
      return nn::attend(net, "attention", v, itself, options);
    };
    const auto feed = [&](Value v) { return nn::feed_forward(net, "feed_forward", v, options); };
    x = nn::residual(net, x, options, {"attention", {}, look, true});
    x = nn::residual(net, x, options, {"feed_forward", {}, feed});
  }
  const bool ends_normed = nn::has_final_norm(options.place) && options_.final_norm;
  return ends_normed ? options.norm(net, "norm", x) : x;
}

WordSoftmax WordLmNetwork::softmax(nn::Net& net) const {
  return {
      net, {count_of_numbers(vocabulary_), options_.width}, options_.cutoff_numbers(), kDeviation};
}

task::Outputs WordLmNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  net.gain_deviation = options_.gain_deviation;
  const WordSoftmax words = softmax(net);
  const Value h = hidden(net, words.table, in["input"]);
  const std::int64_t places = g.shape(in["target"]).elements();
  const ops::LinearLoss loss = words.loss(g, ops::reshape(g, h, {places, options_.width}),
                                          ops::reshape(g, in["target"], {places}),
                                          net.training() ? options_.label_smoothing : 0);
  return {.loss_sum = loss.sum, .metrics = {{.name = metric_name(options_.mask), .sum = loss.nll}}};
}

std::vector<NamedValue> WordLmNetwork::build_search(nn::Net& net, std::string_view network,
                                                    const task::Sizes& sizes,
                                                    const task::Inputs& in) const {
  Graph& g = net.graph;
  const WordSoftmax words = softmax(net);
  const std::int64_t places = sizes[0] * sizes[1];
  const Value h = ops::reshape(g, hidden(net, words.table, in["input"]), {places, options_.width});
  if (network == kWordScores) {
    const Value log_p = ops::log_softmax(g, words.logits(g, h));
    const std::int64_t all = places * g.shape(log_p)[1];
    return {{"log_p", ops::embedding(g, ops::reshape(g, log_p, {all, 1}), in["at"])}};
  }
  const Value last = ops::embedding(g, h, in["last"]);
  return {{"logits", words.logits(g, last)}};
}

std::vector<task::MetricInfo> WordLm::metrics() const {
  return {{.name = metric_name(options_.mask), .unit = "", .of = task::perplexity_of}};
}

std::vector<task::OptionValues> WordLm::data_forms(const std::string& folder) const {
  std::vector<task::OptionValues> forms;
  for (const WordFiles form : forms_in(folder)) {
    forms.push_back({{"corpus", std::string(choice_text(form))}});
  }
  return forms;
}

std::shared_ptr<const WordLmNetwork> WordLm::restored(const task::Assets& assets) const {
  return std::make_shared<const WordLmNetwork>(
      options_, text::Vocabulary::parse(task::find_asset(assets, "vocabulary"), "vocabulary"));
}

task::Prepared WordLm::prepare(const task::DataRequest& request, const task::Assets* known) const {
  const auto corpus = std::make_shared<const WordCorpus>(
      request.source == "builtin" ? make_topic_bigram()
                                  : read_word_files(request.source, options_.corpus, request.only));
  const std::int64_t lines = request.train_rows;
  const auto network = known ? restored(*known)
                             : std::make_shared<const WordLmNetwork>(
                                   options_, text::Vocabulary(count_words(corpus->parts[0], lines),
                                                              {.min_count = options_.min_count,
                                                               .max_words = options_.max_words}));
  const auto number = [corpus, network, lines](task::Split split) -> data::TokenText {
    const LineSource& part = corpus->parts[std::size_t(split)];
    const bool trains = split == task::Split::kTrain;
    return {fmt::format("{} {}, {}", corpus->name, data::name_of(split), part.name),
            number_words(part, trains ? lines : 0, network->vocabulary())};
  };
  const data::LaneSettings settings{.length = options_.length,
                                    .last = data::ShortSegment::kDrop,
                                    .evaluation_lanes = 1,
                                    .evaluation_length = options_.length,
                                    .evaluation_together = kSegmentsTogether};
  return {network, std::make_shared<data::LaneSplits>(settings, number)};
}

}  // namespace keel::models
