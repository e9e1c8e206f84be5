#include "models/handwriting/alphabet.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::string_view kOther = "\xEF\xBF\xBD";  // U+FFFD stands for it in a checkpoint

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
// Whether a byte goes on with a character of UTF-8 that began before.
bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The character that begins at `at`.
std::string_view character(std::string_view utf8, std::size_t at) {
  std::size_t end = at + 1;
  while (end < utf8.size() && goes_on(utf8[end])) ++end;
  return utf8.substr(at, end - at);
}

}  // namespace

Alphabet::Alphabet(std::string characters, bool has_other)
    : characters_(std::move(characters)), has_other_(has_other) {
  std::string sorted = characters_;
  std::ranges::sort(sorted);
  const bool is_fine = std::ranges::adjacent_find(sorted) == sorted.end() &&
                       std::ranges::none_of(sorted, [](char c) { return is_control(c) || c < 0; });
  check(is_fine && size() >= 1, ErrorKind::kBadInput,
        "alphabet: expected ASCII characters, each once, got '{}'", characters_);
}

Alphabet Alphabet::of_letters() {
  return Alphabet("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz .,'", true);
}

std::vector<std::int32_t> Alphabet::numbers(std::string_view utf8, std::string_view place) const {
  const std::optional<std::size_t> invalid = text::first_invalid_utf8(utf8);
  check(!invalid, ErrorKind::kBadInput, "{}: expected UTF-8, got {:02x} at byte {}", place,
        invalid ? static_cast<unsigned char>(utf8[*invalid]) : 0, invalid.value_or(0) + 1);
  std::vector<std::int32_t> numbers;
  for (std::size_t at = 0; at < utf8.size(); ++at) {
    if (goes_on(utf8[at])) continue;
    check(!is_control(utf8[at]), ErrorKind::kBadInput,
          "{}: expected a text without control characters, got {:02x} at byte {}", place,
          static_cast<unsigned char>(utf8[at]), at + 1);
    const std::size_t found = characters_.find(utf8[at]);
    check(found != std::string::npos || has_other_, ErrorKind::kBadInput,
          "{}: expected characters of '{}', got '{}'", place, characters_, character(utf8, at));
    numbers.push_back(std::int32_t(std::min(found, characters_.size())));
  }
  return numbers;
}

std::string Alphabet::text() const {
  return has_other_ ? characters_ + std::string(kOther) : characters_;
}

Alphabet Alphabet::parse(std::string_view text) {
  const bool has_other = text.ends_with(kOther);
  if (has_other) text.remove_suffix(kOther.size());
  return Alphabet(std::string(text), has_other);
}

}  // namespace keel::models
