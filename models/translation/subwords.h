// A language's sentences as numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/bpe.h"
#include "frontend/text/dictionary.h"

namespace keel::models {

struct SubwordOptions {
  std::int64_t merges = 0;        // of byte-pair encoding; 0: symbols are whole words
  bool fit_merges = false;        // as many merges as make most_symbols symbols, in place of these
  std::int64_t min_count = 1;     // symbols that occur less often are unknown
  std::int64_t most_symbols = 0;  // of the others the most frequent ones; 0: all
};

// Learned from training sentences, from both languages together if they share it.
class Subwords {
 public:
  // With fit_merges the dictionary has just most_symbols symbols, or fewer where no pair of symbols
  // occurs twice any more. Throws Error{kUsage} for options, as for fewer symbols than the text has
  // characters, and Error{kBadInput} for a word that ends in "@@".
  static Subwords learn(std::span<const std::vector<std::string>* const> sides,
                        const SubwordOptions& options);
  // Reads text() and codes() back; `codes` is empty if there are no merges. Throws Error{kBadInput}
  // with the line.
  static Subwords parse(std::string_view codes, std::string_view dictionary);
  std::string codes() const { return codes_ ? codes_->text() : ""; }

  const text::Dictionary& dictionary() const { return dictionary_; }
  // The numbers of a sentence's symbols, Dictionary::kEnd after them.
  std::vector<std::int32_t> encode(std::string_view sentence, std::string_view where) const;
  // Words, up to the first kEnd.
  std::string decode(std::span<const std::int32_t> ids) const;

 private:
  Subwords(std::optional<text::BpeCodes> codes, text::Dictionary dictionary);
  std::optional<text::BpeCodes> codes_;
  std::shared_ptr<text::Bpe> bpe_;  // keeps the words it has cut
  text::Dictionary dictionary_;
};

}  // namespace keel::models
