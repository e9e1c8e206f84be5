#include "models/skip_thoughts/word_vectors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "frontend/text/line_reader.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "models/skip_thoughts/binary_vectors.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::int64_t kMostNumbers = 65536;

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Heading {
  std::int64_t words, width;
};
// Two whole numbers and nothing else.
std::optional<Heading> heading_of(const Words& words) {
  if (words.size() != 2) return std::nullopt;
  const auto count = number_in<std::int64_t>(words[0]), width = number_in<std::int64_t>(words[1]);
  if (!count || !width) return std::nullopt;
  return Heading{*count, *width};
}

std::vector<float> numbers_of(const Words& words, const std::string& where) {
  std::vector<float> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto number = number_in<float>(words[i]);
    check(number && std::isfinite(*number), ErrorKind::kBadInput,
          "[vectors] {}: expected a finite number, got '{}'", where, text::clipped(words[i], 40));
    numbers.push_back(*number);
  }
  return numbers;
}

// NAME.bin, or that with .gz or .xz after it.
bool is_binary(std::filesystem::path path) {
  if (path.extension() == ".gz" || path.extension() == ".xz") path.replace_extension();
  return path.extension() == ".bin";
}

class VectorReader {
 public:
  explicit VectorReader(const std::filesystem::path& path) : lines_(path) {}

  WordVectors read(const std::function<bool(std::string_view)>& wanted) {
    while (const std::optional<text::Line> line = lines_.next()) {
      const Words words = text::words_of(line->text);
      if (line->number == 1 && take_heading(words)) continue;
      add(words, text::place(lines_.name(), line->number), wanted);
    }
    check(words_ > 0, ErrorKind::kBadInput, "[vectors] {}: expected words and numbers, got none",
          lines_.name());
    check(!promised_ || *promised_ == words_, ErrorKind::kBadInput,
          "[vectors] {}: expected {} words, as its first line says, got {}", lines_.name(),
          promised_.value_or(0), words_);
    return std::move(vectors_);
  }

 private:
  bool take_heading(const Words& words) {
    const std::optional<Heading> heading = heading_of(words);
    if (!heading) return false;
    check(heading->words >= 1 && heading->width >= 1 && heading->width <= kMostNumbers,
          ErrorKind::kBadInput,
          "[vectors] {}: expected 1 or more words of 1 to {} numbers, got {} of {}",
          text::place(lines_.name(), 1), kMostNumbers, heading->words, heading->width);
    promised_ = heading->words;
    vectors_.width = heading->width;
    return true;
  }

  void add(const Words& words, const std::string& where,
           const std::function<bool(std::string_view)>& wanted) {
    const std::int64_t count = std::ssize(words) - 1;
    if (vectors_.width == 0 && count <= kMostNumbers)
      vectors_.width = std::max<std::int64_t>(count, 1);
    check(count == vectors_.width, ErrorKind::kBadInput,
          "[vectors] {}: expected a word and {} numbers, got {} words", where, vectors_.width,
          words.size());
    ++words_;
    std::vector<float> numbers = numbers_of(words, where);
    if (wanted(words[0])) vectors_.of.emplace(words[0], std::move(numbers));
  }

  text::LineReader lines_;
  WordVectors vectors_;
  std::optional<std::int64_t> promised_;  // by the heading
  std::int64_t words_ = 0;
};

}  // namespace

WordVectors read_word_vectors(const std::filesystem::path& path,
                              const std::function<bool(std::string_view)>& wanted) {
  if (is_binary(path)) return read_binary_vectors(path, wanted);
  return VectorReader(path).read(wanted);
}

}  // namespace keel::models
