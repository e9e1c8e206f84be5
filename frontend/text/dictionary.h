// The symbols of a translation and their numbers, as in fairseq.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/text/vocabulary.h"

namespace keel::text {

struct DictionaryOptions {
  std::int64_t min_count = 1;    // symbols that occur less often become kUnk
  std::int64_t max_symbols = 0;  // the largest number of symbols; 0: no limit
  std::int32_t multiple = 8;     // fillers are added until size() is a multiple of it
};

// Numbers 0 to 3 are the beginning, padding, the end, and every unknown symbol. The symbols have
// the numbers from 4 on, the most frequent first, those of equal counts by their bytes ascending.
// The last numbers are the fillers `madeupword0000`, ..., which no text has. A text that says
// "<s>", "<pad>", "</s>" or "<unk>" means kUnk.
class Dictionary {
 public:
  static constexpr std::int32_t kBegin = 0, kPad = 1, kEnd = 2, kUnk = 3, kSpecials = 4;

  // Throws Error{kUsage} for invalid options, an empty symbol, a symbol with a blank, and a count
  // below 1.
  Dictionary(const WordCounts& counts, const DictionaryOptions& options);

  // Reads `symbol count` lines from number 4 on, in any order of counts. Throws as read_text, and
  // Error{kBadInput} with file and line for a line without a symbol or a count, a count that is no
  // number of 0 or more, and a symbol that is already there, as the four specials are.
  static Dictionary load(const std::filesystem::path& path);
  static Dictionary parse(std::string_view content, const std::string& file);
  std::string text() const;
  void save(const std::filesystem::path& path) const;

  // How many numbers there are, including specials and fillers.
  std::int32_t size() const { return static_cast<std::int32_t>(symbols_.size()); }
  // The number of the first filler; all later ones are fillers.
  std::int32_t first_filler() const { return first_filler_; }
  std::int32_t id(std::string_view symbol) const;
  // For 0 <= id < size().
  const std::string& symbol(std::int32_t id) const;
  std::int64_t count(std::int32_t id) const;

  // The numbers of a line's words (words_of), followed by kEnd.
  std::vector<std::int32_t> encode(std::string_view line) const;
  // The symbols up to the first kEnd, with spaces between, without kBegin, kPad and fillers.
  std::string decode(std::span<const std::int32_t> ids) const;

  // 64-bit FNV-1a of text().
  std::uint64_t checksum() const;

 private:
  Dictionary();
  void add(std::string symbol, std::int64_t count);
  void find_fillers();

  std::vector<std::string> symbols_;
  std::vector<std::int64_t> counts_;
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids_;
  std::int32_t first_filler_ = kSpecials;
};

}  // namespace keel::text
