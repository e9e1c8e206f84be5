#include "models/skip_thoughts/model.h"

#include <set>
#include <utility>

#include "frontend/nn/layers.h"
#include "frontend/text/lines.h"
#include "frontend/text/unicode.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "src/ops/reduce.h"

namespace keel::models {
namespace {

using text::Dictionary;

constexpr double kInitBound = 0.1;  // of all weights but square ones, which are orthogonal

nn::CellOptions cell_options(const SkipThoughtsOptions& of) {
  nn::CellOptions options{.norms = nn::cell_norms(nn::Norm::parse(of.norm), of.norm_of)};
  options.input_init = [](std::int64_t) { return nn::uniform(kInitBound); };
  return options;
}

// How many labels are words to be said.
Value count_words(Graph& g, Value labels, DType dtype) {
  const Value none = g.constant(0.0, dtype), label = ops::cast(g, labels, dtype);
  return ops::sum(g, ops::select(g, ops::less(g, label, none), none, g.constant(1.0, dtype)));
}

std::set<std::string, std::less<>> unknown_words(const SentenceWords& sentences) {
  std::set<std::string, std::less<>> unknown;
  for (std::size_t i = 0; i < sentences.texts.size(); ++i) {
    const std::vector<std::string_view> words = text::words_of(sentences.texts[i]);
    for (std::size_t t = 0; t < words.size(); ++t) {
      if (sentences.numbers[i][t] == Dictionary::kUnk) unknown.emplace(words[t]);
    }
  }
  return unknown;
}

}  // namespace

void SkipThoughtsOptions::validate() const { nn::Norm::parse(norm); }

nn::Embedding SkipThoughtsNetwork::words(nn::Net& net) const {
  return {net,
          "words",
          dictionary_.size(),
          options_.word_width,
          {.init = nn::uniform(kInitBound), .padding_id = Dictionary::kPad}};
}

nn::Gru SkipThoughtsNetwork::gru(nn::Net& net, const std::string& name, std::int64_t in) const {
  return {net, name, in, options_.width, cell_options(options_)};
}

Value SkipThoughtsNetwork::conditioned(Graph& g, Value said, Value h) const {
  if (options_.condition == ThoughtCondition::kFirst) return said;
  const Shape shape = g.shape(said);
  const Value every = ops::broadcast_to(g, h, {shape[0], shape[1], options_.width});
  return ops::concat(g, {said, every}, 2);
}

task::Outputs SkipThoughtsNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const nn::Embedding words = this->words(net);
  const Value h = gru(net, "encoder", options_.word_width)(words(in["words"]), in["mask"]).last;
  std::vector<Value> states, labels;
  for (const std::string side : {"before", "after"}) {
    const Value said = conditioned(g, words(in[side + "_in"]), h);
    const nn::Gru decoder = gru(net, side, g.shape(said).back());
    states.push_back(decoder(said, in[side + "_mask"], h).h);
    labels.push_back(in[side + "_out"]);
  }
  const Value all = ops::concat(g, states, 0), wanted = ops::concat(g, labels, 0);
  const std::int64_t places = g.shape(wanted).elements();
  const Value logits = nn::linear(
      net, "logits", ops::reshape(g, all, {places, options_.width}), g.shape(words.table())[0],
      {.weight_init = [](std::int64_t) { return nn::uniform(kInitBound); }});
  const Value loss =
      ops::cross_entropy(g, logits, ops::reshape(g, wanted, {places}), {.ignore_index = kNoWord})
          .sum;
  task::Outputs outputs{
      .loss_sum = loss, .metrics = {{.name = "nll", .sum = loss}}, .predictions = {{"vector", h}}};
  if (options_.summed_loss) {
    outputs.loss_sum = ops::mul(g, loss, count_words(g, wanted, g.type(loss).dtype));
  }
  return outputs;
}

std::vector<task::MetricInfo> SkipThoughts::metrics() const {
  return {{.name = "nll", .unit = "nats a word", .of = task::mean_of}};
}

std::vector<NamedValue> SkipThoughtsNetwork::build_search(nn::Net& net, std::string_view network,
                                                          const task::Sizes&,
                                                          const task::Inputs& in) const {
  const nn::Embedding words = this->words(net);
  if (network == kWordsNetwork) return {{"words", words(in["ids"])}};
  const Value said = ops::add(net.graph, words(in["words"]), in["other"]);
  return {{"vector", gru(net, "encoder", options_.word_width)(said, in["mask"]).last}};
}

std::unique_ptr<task::Decoder> SkipThoughtsNetwork::decoder(std::span<const std::string> lines,
                                                            std::int64_t) const {
  SentenceWords sentences;
  sentences.word_width = options_.word_width;
  for (const std::string& line : lines) {
    sentences.texts.push_back(options_.lower_case ? text::lower_case_unicode(line) : line);
    sentences.numbers.push_back(dictionary_.encode(sentences.texts.back()));
  }
  if (!options_.vectors.empty()) {
    sentences.other.emplace(options_.vectors, dictionary_, unknown_words(sentences));
  }
  return std::make_unique<VectorDecoder>(std::move(sentences));
}

// Words that have vectors of their own are known.
task::WordCount SkipThoughtsNetwork::word_count(std::span<const std::string> lines) const {
  task::WordCount count;
  if (!options_.vectors.empty()) return count;
  for (const std::string& line : lines) {
    std::vector<std::int32_t> numbers =
        dictionary_.encode(options_.lower_case ? text::lower_case_unicode(line) : line);
    numbers.pop_back();  // the end
    count.add(numbers, Dictionary::kUnk);
  }
  return count;
}

std::shared_ptr<const SkipThoughtsNetwork> SkipThoughts::restored(
    const task::Assets& assets) const {
  return std::make_shared<const SkipThoughtsNetwork>(
      options_, Dictionary::parse(task::find_asset(assets, "dictionary"), "dictionary"));
}

task::Prepared SkipThoughts::prepare(const task::DataRequest& request,
                                     const task::Assets* known) const {
  OrderedText text = read_thoughts(request, options_.lower_case);
  const auto network = known ? restored(*known)
                             : std::make_shared<const SkipThoughtsNetwork>(
                                   options_, thought_dictionary(text, options_.symbols));
  const auto number = [network, most = options_.most_words](task::Split,
                                                            const std::vector<Passage>& passages,
                                                            data::SplitNotes notes) {
    return triple_rows(passages, network->dictionary(), most, std::move(notes));
  };
  return {network, data::splits_of(std::move(text), number)};
}

}  // namespace keel::models
