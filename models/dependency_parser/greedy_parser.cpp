#include "models/dependency_parser/greedy_parser.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "models/dependency_parser/inputs.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

std::vector<std::int64_t> longest_first(const std::vector<NumberedSentence>& sentences) {
  std::vector<std::int64_t> order(sentences.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::int64_t i) {
    return sentences[static_cast<std::size_t>(i)].size();
  });
  return order;
}

// The legal class with the largest logit.
std::int32_t best_of(std::span<const float> logits, std::span<const std::uint8_t> legal) {
  std::size_t best = logits.size();
  for (std::size_t k = 0; k < logits.size(); ++k) {
    if (!legal[k]) continue;
    check(!std::isnan(logits[k]), ErrorKind::kDiverged,
          "[dependency_parser] expected logits, got one that is not a number");
    if (best == logits.size() || logits[k] > logits[best]) best = k;
  }
  return static_cast<std::int32_t>(best);
}

bool is_upos(std::string_view coarse_tag) {
  constexpr std::array<std::string_view, 17> kUpos = {
      "ADJ",  "ADP",  "ADV",   "AUX",   "CCONJ", "DET", "INTJ", "NOUN", "NUM",
      "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"};
  return std::ranges::find(kUpos, coarse_tag) != kUpos.end();
}

std::string_view coarse_tag_of(const Sentence& sentence, std::size_t token) {
  return sentence.coarse_tags.empty() ? "" : sentence.coarse_tags[token - 1];
}

bool is_punctuation_at(const Sentence& sentence, std::size_t token) {
  return is_punctuation(coarse_tag_of(sentence, token), sentence.tags[token - 1]);
}

}  // namespace

bool is_punctuation(std::string_view coarse_tag, std::string_view tag) {
  constexpr std::array<std::string_view, 6> kTags = {"``", "''", ",", ".", ":", "PUNCT"};
  if (is_upos(coarse_tag)) return coarse_tag == "PUNCT";
  return std::ranges::find(kTags, tag) != kTags.end();
}

GreedyParser::GreedyParser(std::shared_ptr<const NumberedTreebank> treebank, std::int64_t batch)
    : treebank_(std::move(treebank)),
      order_(longest_first(treebank_->sentences)),
      parses_(order_.size()),
      slots_(std::min(order_.size(), static_cast<std::size_t>(batch))) {
  for (Slot& slot : slots_) begin_next(slot);
}

void GreedyParser::begin_next(Slot& slot) {
  slot.sentence = -1;
  if (begun_ == order_.size()) return;
  slot.sentence = order_[begun_++];
  slot.configuration.start(treebank_->sentences[static_cast<std::size_t>(slot.sentence)].size());
  go_on(slot);
}

// To where the network has to choose, be it in another sentence.
void GreedyParser::go_on(Slot& slot) {
  Configuration& configuration = slot.configuration;
  while (configuration.legal() == Legal::kShift) configuration.apply({});
  if (!configuration.has_ended()) return;
  const auto heads = configuration.heads(), labels = configuration.labels();
  parses_[static_cast<std::size_t>(slot.sentence)] = {{heads.begin(), heads.end()},
                                                      {labels.begin(), labels.end()}};
  begin_next(slot);
}

const task::Batch* GreedyParser::next() {
  if (std::ranges::all_of(slots_, [](const Slot& slot) { return slot.sentence < 0; })) {
    return nullptr;
  }
  const Symbols& symbols = *treebank_->symbols;
  clear_configurations(batch_, std::ssize(slots_), symbols);
  for (std::size_t place = 0; place < slots_.size(); ++place) {
    const auto& [sentence, configuration] = slots_[place];
    if (sentence < 0) continue;
    write_row(
        batch_, place,
        {feature_nodes(configuration), configuration.legal(),
         treebank_->sentences[static_cast<std::size_t>(sentence)].rows, configuration.labels()},
        symbols);
    batch_.rows[place] = sentence;
  }
  return &batch_;
}

void GreedyParser::take(const std::map<std::string, Tensor>& predictions) {
  const TransitionClasses& classes = treebank_->symbols->classes();
  const std::span<const float> logits = predictions.at("logits").as<float>();
  const auto width = static_cast<std::size_t>(classes.size());
  for (std::size_t place = 0; place < slots_.size(); ++place) {
    Slot& slot = slots_[place];
    if (slot.sentence < 0) continue;
    const std::int32_t best =
        best_of(logits.subspan(place * width, width), classes.legal(slot.configuration.legal()));
    slot.configuration.apply(classes.transition(best));
    go_on(slot);
  }
}

std::vector<std::string> GreedyParser::answers() const {
  const Treebank& treebank = treebank_->treebank;
  std::vector<std::string> answers;
  std::vector<std::string_view> labels;
  for (std::size_t i = 0; i < parses_.size(); ++i) {
    const std::span<const std::int32_t> numbers(parses_[i].labels), heads(parses_[i].heads);
    labels.clear();
    for (const std::int32_t number : numbers.subspan(1, numbers.size() - 2)) {
      labels.push_back(treebank_->symbols->labels().name(number));
    }
    answers.push_back(with_arcs(treebank.sentences[i], heads.subspan(1), labels));
  }
  return answers;
}

std::map<std::string, task::Ratio> GreedyParser::ratios() const {
  task::Ratio uas, las, uas_punct, las_punct;
  const auto count = [](task::Ratio& ratio, bool is_right) {
    ratio.sum += is_right;
    ratio.count += 1;
  };
  for (std::size_t i = 0; i < parses_.size(); ++i) {
    const NumberedSentence& gold = treebank_->sentences[i];
    for (std::size_t token = 1; token + 1 < gold.heads.size(); ++token) {
      const bool head = parses_[i].heads[token] == gold.heads[token];
      const bool both = head && parses_[i].labels[token] == gold.labels[token];
      count(uas_punct, head);
      count(las_punct, both);
      if (is_punctuation_at(treebank_->treebank.sentences[i], token)) continue;
      count(uas, head);
      count(las, both);
    }
  }
  return {{"uas", uas}, {"las", las}, {"uas_punct", uas_punct}, {"las_punct", las_punct}};
}

std::vector<std::pair<std::string, std::string>> GreedyParser::details() const {
  std::int64_t words = 0, punctuation = 0, by_upos = 0;
  for (const Sentence& sentence : treebank_->treebank.sentences) {
    for (std::size_t token = 1; token <= sentence.forms.size(); ++token) {
      ++words;
      if (!is_punctuation_at(sentence, token)) continue;
      ++punctuation;
      by_upos += is_upos(coarse_tag_of(sentence, token));
    }
  }
  std::string why = "the tags `` '' , . : and PUNCT";
  if (by_upos == punctuation && by_upos > 0) why = "UPOS PUNCT";
  if (0 < by_upos && by_upos < punctuation)
    why = fmt::format("UPOS PUNCT ({}) or {}", by_upos, why);
  return {{"punctuation",
           fmt::format("uas and las leave out {} of {} words, by {}", punctuation, words, why)}};
}

}  // namespace keel::models
