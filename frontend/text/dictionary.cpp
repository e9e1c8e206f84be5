#include "frontend/text/dictionary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "frontend/io/atomic_file.h"
#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

constexpr std::int64_t kMaxDictionaryBytes = 1 << 28;
constexpr std::array<std::string_view, 4> kSpecialNames = {"<s>", "<pad>", "</s>", "<unk>"};

bool is_special(std::string_view symbol) {
  return std::ranges::find(kSpecialNames, symbol) != kSpecialNames.end();
}

std::string filler(std::size_t number) { return fmt::format("madeupword{:04}", number); }

// "symbol count"; the count stands after the last space.
std::pair<std::string, std::int64_t> parse_entry(const Line& line, const std::string& file) {
  const auto expect = [&](bool holds, std::string_view expected) {
    check(holds, ErrorKind::kBadInput, "[dictionary] {}: expected {}, got '{}'",
          place(file, line.number), expected, clipped(line.text, 60));
  };
  const std::size_t space = line.text.rfind(' ');
  expect(space != std::string_view::npos && space > 0, "a symbol, a space and its count");
  const std::string_view symbol = line.text.substr(0, space), digits = line.text.substr(space + 1);
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  expect(error == std::errc() && end == digits.data() + digits.size() && count >= 0,
         "a count of 0 or more after the symbol");
  expect(words_of(symbol).size() == 1 && words_of(symbol)[0] == symbol, "a symbol without blanks");
  return {std::string(symbol), count};
}

}  // namespace

Dictionary::Dictionary() {
  for (std::string_view name : kSpecialNames) {
    symbols_.emplace_back(name);
    counts_.push_back(0);
  }
}

Dictionary::Dictionary(const WordCounts& counts, const DictionaryOptions& options) : Dictionary() {
  check(options.min_count >= 1, ErrorKind::kUsage,
        "[dictionary] min_count: expected 1 or more, got {}", options.min_count);
  check(options.max_symbols >= 0, ErrorKind::kUsage,
        "[dictionary] max_symbols: expected 0 or more, got {}", options.max_symbols);
  check(options.multiple >= 1 && options.multiple <= 4096, ErrorKind::kUsage,
        "[dictionary] multiple: expected 1 to 4096, got {}", options.multiple);
  std::vector<std::pair<std::string, std::int64_t>> kept;
  for (const auto& [symbol, count] : counts) {
    const std::vector<std::string_view> words = words_of(symbol);
    check(words.size() == 1 && words[0] == symbol && count >= 1, ErrorKind::kUsage,
          "[dictionary] expected symbols without blanks that occur, got {:?} {} times", symbol,
          count);
    if (count >= options.min_count && !is_special(symbol)) kept.emplace_back(symbol, count);
  }
  std::ranges::sort(kept, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  const auto limit = static_cast<std::size_t>(options.max_symbols);
  if (limit > 0 && kept.size() > limit) kept.resize(limit);
  for (auto& [symbol, count] : kept) add(std::move(symbol), count);
  for (std::size_t number = 0; size() % options.multiple != 0; ++number) add(filler(number), 0);
  find_fillers();
}

void Dictionary::add(std::string symbol, std::int64_t count) {
  ids_.emplace(symbol, size());
  symbols_.push_back(std::move(symbol));
  counts_.push_back(count);
}

// They stand last and are numbered from 0 on.
void Dictionary::find_fillers() {
  first_filler_ = size();
  const auto synthetic = [&](std::int32_t id) {
    return symbol(id).starts_with("madeupword") && count(id) == 0;
  };
  while (first_filler_ > kSpecials && synthetic(first_filler_ - 1)) --first_filler_;
}

Dictionary Dictionary::load(const std::filesystem::path& path) {
  return parse(read_text(path, kMaxDictionaryBytes), path.string());
}

Dictionary Dictionary::parse(std::string_view content, const std::string& file) {
  Dictionary result;
  Lines lines(content);
  while (const std::optional<Line> line = lines.next()) {
    auto [symbol, count] = parse_entry(*line, file);
    check(!is_special(symbol) && !result.ids_.contains(symbol), ErrorKind::kBadInput,
          "[dictionary] {}: expected a new symbol, got '{}'", place(file, line->number),
          clipped(line->text, 60));
    result.add(std::move(symbol), count);
  }
  result.find_fillers();
  return result;
}

std::string Dictionary::text() const {
  std::string text;
  for (std::int32_t id = kSpecials; id < size(); ++id) {
    text += fmt::format("{} {}\n", symbol(id), count(id));
  }
  return text;
}

void Dictionary::save(const std::filesystem::path& path) const {
  io::write_file_atomically(path, text());
}

std::int32_t Dictionary::id(std::string_view symbol) const {
  const auto found = ids_.find(symbol);
  return found == ids_.end() ? kUnk : found->second;
}

const std::string& Dictionary::symbol(std::int32_t id) const {
  check(id >= 0 && id < size(), ErrorKind::kUsage, "[dictionary] id: expected 0 to {}, got {}",
        size() - 1, id);
  return symbols_[static_cast<std::size_t>(id)];
}

std::int64_t Dictionary::count(std::int32_t id) const {
  symbol(id);  // checks the number
  return counts_[static_cast<std::size_t>(id)];
}

std::vector<std::int32_t> Dictionary::encode(std::string_view line) const {
  std::vector<std::int32_t> ids;
  each_word(line, [&](std::string_view word) { ids.push_back(id(word)); });
  ids.push_back(kEnd);
  return ids;
}

std::string Dictionary::decode(std::span<const std::int32_t> ids) const {
  std::string line;
  for (std::int32_t id : ids) {
    if (id == kEnd) break;
    if (id == kBegin || id == kPad || id >= first_filler_) continue;
    if (!line.empty()) line += ' ';
    line += symbol(id);
  }
  return line;
}

std::uint64_t Dictionary::checksum() const {
  std::uint64_t hash = 14695981039346656037u;
  for (char c : text()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace keel::text
