// Words and their numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace keel::text {

// A hash for maps of strings that are looked up with a string_view.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

// How often each word occurs.
using WordCounts = std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>>;

struct VocabularyOptions {
  std::int64_t min_count = 1;  // words that occur less often become kUnk
  std::int64_t max_words = 0;  // the largest number of words without pad and unk; 0: no limit
};

// Number 0 is padding and number 1 every unknown word. The kept words have the numbers from 2 on,
// the most frequent first, words of equal counts by their bytes ascending: the same numbers in
// every process. Padding has a number and no word: a text that says "<pad>" or "<unk>" gets kUnk.
class Vocabulary {
 public:
  static constexpr std::int32_t kPad = 0, kUnk = 1;

  // Throws Error{kUsage} for a count below 1, an empty word, a word with a blank or an end of line,
  // invalid options, and more than 2^31 - 1 words.
  Vocabulary(const WordCounts& counts, const VocabularyOptions& options);

  // Reads a file of save(): a line `word count` for each number in order, beginning with `<pad> 0`
  // and `<unk> N`, where N is how often words without a number occurred. Throws Error{kIo}, or
  // Error{kBadInput} with file and line for anything else, a wrong order included.
  static Vocabulary load(const std::filesystem::path& path);
  void save(const std::filesystem::path& path) const;
  // The same, as text; `where` names it in errors.
  static Vocabulary parse(std::string_view text, const std::string& where);
  std::string text() const;

  // How many numbers there are, including pad and unk.
  std::int32_t size() const { return static_cast<std::int32_t>(words_.size()); }
  // kUnk for a word that has no number.
  std::int32_t id(std::string_view word) const;
  // For 0 <= id < size(); "<pad>" and "<unk>" are the first two.
  const std::string& word(std::int32_t id) const;
  std::int64_t count(std::int32_t id) const;

  // 64-bit FNV-1a of the text that save() writes: vocabularies with equal checksums give every word
  // the same number.
  std::uint64_t checksum() const;

 private:
  Vocabulary() = default;
  void add(std::string word, std::int64_t count);

  std::vector<std::string> words_;
  std::vector<std::int64_t> counts_;
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids_;
};

}  // namespace keel::text
