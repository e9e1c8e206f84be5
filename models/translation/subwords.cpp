#include "models/translation/subwords.h"

#include <algorithm>
#include <utility>

#include "frontend/text/bpe_learner.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

// The symbols of the words' sub-words, with their counts.
text::WordCounts symbols_of(const text::WordCounts& words, const text::BpeCodes& codes) {
  text::Bpe bpe(codes);
  text::WordCounts symbols;
  for (const auto& [word, count] : words) {
    text::WordCounts parts;
    text::count_words(bpe.apply(word, "training sentences"), parts);
    for (const auto& [part, times] : parts) symbols[part] += times * count;
  }
  return symbols;
}

// The first merges that make just so many symbols of the words, or all where these make fewer. A
// merge adds one symbol at the most: where one more would be too many, the number is exact.
text::BpeCodes fitting_codes(const text::WordCounts& words, std::int64_t symbols) {
  const auto first = [](text::BpeCodes codes, std::int64_t merges) {
    codes.merges.resize(std::size_t(merges));
    return codes;
  };
  const auto made = [&](const text::BpeCodes& codes) {
    return std::ssize(symbols_of(words, codes));
  };
  text::BpeCodes all = text::learn_bpe(words, {.merges = symbols});
  while (made(all) <= symbols) {
    const std::int64_t learned = std::ssize(all.merges);
    all = text::learn_bpe(words, {.merges = 2 * std::max(learned, symbols)});
    if (std::ssize(all.merges) == learned) return all;
  }
  std::int64_t fit = 0, too_many = std::ssize(all.merges);
  const std::int64_t characters = made(first(all, 0));
  check(characters <= symbols, ErrorKind::kUsage,
        "fit_merges: expected room for the {} characters that the text has, got {} symbols",
        characters, symbols);
  while (too_many - fit > 1) {
    const std::int64_t middle = fit + (too_many - fit) / 2;
    (made(first(all, middle)) <= symbols ? fit : too_many) = middle;
  }
  return first(all, fit);
}

}  // namespace

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
  if (options.fit_merges) {
    codes = fitting_codes(words, options.most_symbols);
  } else if (options.merges > 0) {
    codes = text::learn_bpe(words, {.merges = options.merges});
  }
  const text::WordCounts symbols = codes ? symbols_of(words, *codes) : std::move(words);
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
