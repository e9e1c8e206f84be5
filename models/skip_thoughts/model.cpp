#include "models/skip_thoughts/model.h"

#include <set>
#include <utility>

#include "frontend/nn/layers.h"
#include "frontend/text/lines.h"
#include "frontend/text/unicode.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"

namespace keel::models {
namespace {

using text::Dictionary;

class ThoughtSplits : public task::Splits {
 public:
  explicit ThoughtSplits(ThoughtData data) : data_(std::move(data)) {}
  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const override {
    return data_.stream(split, options);
  }

 private:
  ThoughtData data_;
};

constexpr double kInitBound = 0.1;  // of all weights but square ones, which are orthogonal

nn::CellOptions cell_options(const std::string& norm) {
  nn::CellOptions options{.norms = nn::cell_norms(nn::Norm::parse(norm))};
  options.input_init = [](std::int64_t) { return nn::uniform(kInitBound); };
  return options;
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

ThoughtDataOptions SkipThoughts::data_options(const task::DataRequest& request) const {
  return {.source = request.source,
          .symbols = options_.symbols,
          .most_words = options_.most_words,
          .train_rows = request.train_rows,
          .lower_case = options_.lower_case,
          .dictionary = dictionary_};
}

void SkipThoughts::prepare(const task::DataRequest& request) {
  if (!dictionary_) dictionary_ = ThoughtData::load(data_options(request)).dictionary();
}

task::Assets SkipThoughts::assets() const {
  if (!dictionary_) return {};
  return {{"dictionary", dictionary_->text()}};
}

void SkipThoughts::set_assets(const task::Assets& assets) {
  const auto found = assets.find("dictionary");
  check(found != assets.end(), ErrorKind::kBadInput, "expected a dictionary, got none");
  dictionary_ = std::make_shared<const Dictionary>(Dictionary::parse(found->second, "dictionary"));
}

std::unique_ptr<task::Splits> SkipThoughts::load(const task::DataRequest& request) const {
  return std::make_unique<ThoughtSplits>(ThoughtData::load(data_options(request)));
}

nn::Embedding SkipThoughts::words(nn::Net& net) const {
  return {net,
          "words",
          dictionary_ ? dictionary_->size() : 8,
          options_.word_width,
          {.init = nn::uniform(kInitBound), .padding_id = Dictionary::kPad}};
}

nn::Gru SkipThoughts::gru(nn::Net& net, const std::string& name) const {
  return {net, name, options_.word_width, options_.width, cell_options(options_.norm)};
}

task::Outputs SkipThoughts::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const nn::Embedding words = this->words(net);
  const Value h = gru(net, "encoder")(words(in["words"]), in["mask"]).last;
  std::vector<Value> states, labels;
  for (const std::string side : {"before", "after"}) {
    const Value said = words(in[side + "_in"]);
    states.push_back(gru(net, side)(said, in[side + "_mask"], h).h);
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
  return {
      .loss_sum = loss, .metrics = {{.name = "nll", .sum = loss}}, .predictions = {{"vector", h}}};
}

std::vector<task::MetricInfo> SkipThoughts::metrics() const {
  return {{.name = "nll", .unit = "nats a word", .of = task::mean_of}};
}

std::vector<NamedValue> SkipThoughts::build_search(nn::Net& net, std::string_view network,
                                                   const task::Sizes&,
                                                   const task::Inputs& in) const {
  const nn::Embedding words = this->words(net);
  if (network == kWordsNetwork) return {{"words", words(in["ids"])}};
  const Value said = ops::add(net.graph, words(in["words"]), in["other"]);
  return {{"vector", gru(net, "encoder")(said, in["mask"]).last}};
}

std::unique_ptr<task::Decoder> SkipThoughts::decoder(std::span<const std::string> lines) const {
  SentenceWords sentences;
  sentences.word_width = options_.word_width;
  for (const std::string& line : lines) {
    sentences.texts.push_back(options_.lower_case ? text::lower_case_unicode(line) : line);
    sentences.numbers.push_back(dictionary_->encode(sentences.texts.back()));
  }
  if (!options_.vectors.empty()) {
    sentences.other.emplace(options_.vectors, *dictionary_, unknown_words(sentences));
  }
  return std::make_unique<VectorDecoder>(std::move(sentences));
}

}  // namespace keel::models
