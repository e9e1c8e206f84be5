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

// A hash that lets a map of strings be asked with a view.
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
  std::int64_t max_words = 0;  // the most words kept, pad and unk not counted; 0: no limit
};

// Number 0 is padding and number 1 every unknown word. From 2 on stand the kept words, the most
// frequent first, words of equal counts by their bytes ascending: the same numbers in every
// process. Padding has a number and no word: a text that says "<pad>" or "<unk>" gets kUnk.
class Vocabulary {
 public:
  static constexpr std::int32_t kPad = 0, kUnk = 1;

  // Throws Error{kUsage} for a count below 1, an empty word, a word with a blank or an end of line
  // in it, bad options, and more than 2^31 - 1 words.
  Vocabulary(const WordCounts& counts, const VocabularyOptions& options);

  // Reads what save() wrote: a line `word count` for each number in order, `<pad> 0` and `<unk> N`
  // the first two, N being how often words occurred that have no number. Throws Error{kIo}, or
  // Error{kBadInput} with file and line for anything else, a wrong order included.
  static Vocabulary load(const std::filesystem::path& path);
  void save(const std::filesystem::path& path) const;
  // The same, as text; `where` names it in errors.
  static Vocabulary parse(std::string_view text, const std::string& where);
  std::string text() const;

  // How many numbers there are, pad and unk included.
  std::int32_t size() const { return static_cast<std::int32_t>(words_.size()); }
  // kUnk for a word that has no number.
  std::int32_t id(std::string_view word) const;
  // Of 0 <= id < size(); "<pad>" and "<unk>" are the first two.
  const std::string& word(std::int32_t id) const;
  std::int64_t count(std::int32_t id) const;

  // 64-bit FNV-1a of the text that save() writes: two vocabularies that agree give every word the
  // same number.
  std::uint64_t checksum() const;

 private:
  Vocabulary() = default;
  void add(std::string word, std::int64_t count);

  std::vector<std::string> words_;
  std::vector<std::int64_t> counts_;
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids_;
};

}  // namespace keel::text
