#include "frontend/text/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "frontend/io/atomic_file.h"
#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

constexpr std::int64_t kMaxFileBytes = 1 << 28;
constexpr std::string_view kPadWord = "<pad>", kUnkWord = "<unk>";

using WordCount = std::pair<std::string, std::int64_t>;

bool reserved(std::string_view word) { return word == kPadWord || word == kUnkWord; }

bool is_word(std::string_view word) {
  return !word.empty() && word.find_first_of(" \t\n") == std::string_view::npos;
}

// The order of numbers. Views compare as unsigned bytes.
bool before(const WordCount& a, const WordCount& b) {
  if (a.second != b.second) return a.second > b.second;
  return std::string_view(a.first) < std::string_view(b.first);
}

// `word count`, with one blank between them.
WordCount parse_line(const Line& line, const std::string& file) {
  const std::size_t blank = std::min(line.text.find(' '), line.text.size());
  const std::string_view word = line.text.substr(0, blank);
  const std::string_view digits = line.text.substr(std::min(blank + 1, line.text.size()));
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  check(is_word(word) && error == std::errc() && end == digits.data() + digits.size() && count >= 0,
        ErrorKind::kBadInput, "[vocabulary] {}: expected a word and its count, got '{}'",
        place(file, line.number), clipped(line.text, 60));
  return {std::string(word), count};
}

}  // namespace

Vocabulary::Vocabulary(const WordCounts& counts, const VocabularyOptions& options) {
  check(options.min_count >= 1, ErrorKind::kUsage,
        "[vocabulary] min_count: expected 1 or more, got {}", options.min_count);
  check(options.max_words >= 0, ErrorKind::kUsage,
        "[vocabulary] max_words: expected 0 or more, got {}", options.max_words);
  check(counts.size() < (std::size_t{1} << 31) - 2, ErrorKind::kUsage,
        "[vocabulary] expected fewer than 2^31 - 2 words, got {}", counts.size());
  std::vector<WordCount> kept;
  std::int64_t unknown = 0;
  for (const auto& [word, count] : counts) {
    check(is_word(word) && count >= 1, ErrorKind::kUsage,
          "[vocabulary] expected words without blanks that occur, got {:?} {} times", word, count);
    const bool keep = count >= options.min_count && !reserved(word);
    if (keep) kept.emplace_back(word, count);
    if (!keep) unknown += count;
  }
  std::ranges::sort(kept, before);
  const auto limit = static_cast<std::size_t>(options.max_words);
  while (limit > 0 && kept.size() > limit) {
    unknown += kept.back().second;
    kept.pop_back();
  }
  add(std::string(kPadWord), 0);
  add(std::string(kUnkWord), unknown);
  for (auto& [word, count] : kept) add(std::move(word), count);
}

void Vocabulary::add(std::string word, std::int64_t count) {
  if (!reserved(word)) ids_.emplace(word, size());
  words_.push_back(std::move(word));
  counts_.push_back(count);
}

std::int32_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? kUnk : found->second;
}

const std::string& Vocabulary::word(std::int32_t id) const {
  check(id >= 0 && id < size(), ErrorKind::kUsage, "[vocabulary] id: expected 0 to {}, got {}",
        size() - 1, id);
  return words_[static_cast<std::size_t>(id)];
}

std::int64_t Vocabulary::count(std::int32_t id) const {
  word(id);  // checks the number
  return counts_[static_cast<std::size_t>(id)];
}

std::string Vocabulary::text() const {
  std::string text;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{} {}\n", words_[i], counts_[i]);
  }
  return text;
}

std::uint64_t Vocabulary::checksum() const {
  std::uint64_t hash = 14695981039346656037u;
  for (char c : text()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

void Vocabulary::save(const std::filesystem::path& path) const {
  io::write_file_atomically(path, text());
}

Vocabulary Vocabulary::load(const std::filesystem::path& path) {
  return parse(read_text(path, kMaxFileBytes), path.string());
}

Vocabulary Vocabulary::parse(std::string_view content, const std::string& file) {
  Vocabulary result;
  Lines lines(content);
  WordCount last;
  while (const std::optional<Line> line = lines.next()) {
    WordCount next = parse_line(*line, file);
    const auto expect = [&](bool holds, std::string_view expected) {
      check(holds, ErrorKind::kBadInput, "[vocabulary] {}: expected {}, got '{}'",
            place(file, line->number), expected, clipped(line->text, 60));
    };
    if (line->number == 1) {
      expect(next == WordCount(kPadWord, 0), "'<pad> 0'");
    } else if (line->number == 2) {
      expect(next.first == kUnkWord, "'<unk>' and a count");
    } else {
      expect(!reserved(next.first) && !result.ids_.contains(next.first), "a new word");
      expect(next.second >= 1, "a count of 1 or more");
      expect(line->number == 3 || before(last, next), "words by falling counts, then by bytes");
    }
    last = next;
    result.add(std::move(next.first), next.second);
  }
  check(result.size() >= 2, ErrorKind::kBadInput,
        "[vocabulary] {}: expected '<pad> 0' and '<unk>' in the first two lines, got {} lines",
        file, result.size());
  return result;
}

}  // namespace keel::text
