#include "models/translation/subwords.h"

#include <utility>

#include "frontend/text/bpe_learner.h"

namespace keel::models {

Subwords::Subwords(std::optional<text::BpeCodes> codes, text::Dictionary dictionary)
    : codes_(std::move(codes)),
      bpe_(codes_ ? std::make_shared<text::Bpe>(*codes_) : nullptr),
      dictionary_(std::move(dictionary)) {}

Subwords Subwords::learn(std::span<const std::vector<std::string>* const> sides,
                         const SubwordOptions& options) {
  text::WordCounts words;
  for (const std::vector<std::string>* side : sides) {
    for (const std::string& sentence : *side) text::count_words(sentence, words);
  }
  std::optional<text::BpeCodes> codes;
  text::WordCounts symbols;
  if (options.merges > 0) {
    codes = text::learn_bpe(words, {.merges = options.merges});
    text::Bpe bpe(*codes);
    for (const auto& [word, count] : words) {
      text::WordCounts parts;
      text::count_words(bpe.apply(word, "training sentences"), parts);
      for (const auto& [part, times] : parts) symbols[part] += times * count;
    }
  } else {
    symbols = std::move(words);
  }
  return {std::move(codes), text::Dictionary(symbols, {.min_count = options.min_count,
                                                       .max_symbols = options.most_symbols})};
}

Subwords Subwords::parse(std::string_view codes, std::string_view dictionary) {
  std::optional<text::BpeCodes> parsed;
  if (!codes.empty()) parsed = text::BpeCodes::parse(codes, "merges");
  return {std::move(parsed), text::Dictionary::parse(dictionary, "dictionary")};
}

std::vector<std::int32_t> Subwords::encode(std::string_view sentence,
                                           std::string_view where) const {
  return dictionary_.encode(bpe_ ? bpe_->apply(sentence, where) : std::string(sentence));
}

std::string Subwords::decode(std::span<const std::int32_t> ids) const {
  const std::string symbols = dictionary_.decode(ids);
  return bpe_ ? text::bpe_undone(symbols) : symbols;
}

}  // namespace keel::models
