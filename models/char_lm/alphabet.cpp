#include "models/char_lm/alphabet.h"

#include <algorithm>
#include <numeric>

#include "src/core/choice.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr char kLineFeed = '\n';

bool is_dropped(char byte, Reading reading) {
  return reading == Reading::kTxl && byte == kLineFeed;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

[[noreturn]] void refuse_alphabet(std::string_view text) {
  fail(ErrorKind::kBadInput,
       "alphabet: expected 'bytes' or 'txl', a blank and bytes in hexadecimal digits, each once, "
       "got '{}'",
       text.substr(0, 80));
}

}  // namespace

ByteAlphabet::ByteAlphabet(Reading reading, std::string bytes)
    : reading_(reading), bytes_(std::move(bytes)) {
  numbers_.fill(-1);
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    numbers_[static_cast<unsigned char>(bytes_[i])] = std::int32_t(i);
  }
}

ByteAlphabet ByteAlphabet::of(std::string_view text, Reading reading, std::string_view place) {
  std::array<std::int64_t, 256> counts{};
  std::string seen;  // in the order of their first occurrence
  for (const char byte : text) {
    if (is_dropped(byte, reading)) continue;
    if (counts[static_cast<unsigned char>(byte)]++ == 0) seen += byte;
  }
  check(!seen.empty(), ErrorKind::kBadInput, "{}: expected a text, got no byte", place);
  std::ranges::stable_sort(seen, std::ranges::greater(),
                           [&](char byte) { return counts[static_cast<unsigned char>(byte)]; });
  return {reading, std::move(seen)};
}

std::vector<std::int32_t> ByteAlphabet::numbers(std::string_view text,
                                                std::string_view place) const {
  std::vector<std::int32_t> numbers;
  numbers.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_dropped(text[at], reading_)) continue;
    const auto byte = static_cast<unsigned char>(text[at]);
    check(numbers_[byte] >= 0, ErrorKind::kBadInput,
          "{}: expected one of the {} bytes of the model's alphabet, got {:02x} at byte {}", place,
          size(), byte, at + 1);
    numbers.push_back(numbers_[byte]);
  }
  return numbers;
}

std::string ByteAlphabet::text() const {
  std::string text(choice_words(reading_)[std::size_t(reading_)]);
  text += ' ';
  for (const char byte : bytes_) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

ByteAlphabet ByteAlphabet::parse(std::string_view text) {
  const std::size_t blank = text.find(' ');
  const auto words = choice_words(Reading{});
  const auto word = std::ranges::find(words, text.substr(0, blank));
  if (blank == text.npos || word == words.end()) refuse_alphabet(text);
  const std::string_view digits = text.substr(blank + 1);
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const int high = hex_digit(digits[i]), low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) refuse_alphabet(text);
    const char byte = static_cast<char>(high * 16 + low);
    if (bytes.find(byte) != bytes.npos) refuse_alphabet(text);
    bytes += byte;
  }
  if (bytes.empty() || digits.size() % 2 != 0) refuse_alphabet(text);
  return {static_cast<Reading>(word - words.begin()), std::move(bytes)};
}

}  // namespace keel::models
