// The symbols of a byte model: which bytes have a number.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel::models {

// Two readings of "character". Their numbers of symbols differ, and so do bits per character.
enum class Reading {
  kBytes,  // every byte is a symbol
  kTxl,    // as the Transformer-XL release reads bytes: line feeds are dropped
};
constexpr auto choice_words(Reading) { return std::to_array<std::string_view>({"bytes", "txl"}); }

// Numbers from 0 on, by descending count in the training text; among equal counts the byte that
// was seen first comes first.
class ByteAlphabet {
 public:
  // The bytes of a text. Throws Error{kBadInput} that begins with `place` for a text without any.
  static ByteAlphabet of(std::string_view text, Reading reading, std::string_view place);

  std::int64_t size() const { return std::int64_t(bytes_.size()); }
  Reading reading() const { return reading_; }
  // The numbers of a text; line feeds are dropped where the reading drops them. Throws
  // Error{kBadInput} that begins with `place` for a byte without a number, with its offset.
  std::vector<std::int32_t> numbers(std::string_view text, std::string_view place) const;
  std::string byte(std::int32_t number) const {
    return std::string(1, bytes_[std::size_t(number)]);
  }

  // For a checkpoint: the reading, and the bytes as hexadecimal digits in the order of their
  // numbers, "bytes 206561".
  std::string text() const;
  // Throws Error{kBadInput} for another text.
  static ByteAlphabet parse(std::string_view text);

 private:
  ByteAlphabet(Reading reading, std::string bytes);

  Reading reading_;
  std::string bytes_;                      // by number
  std::array<std::int32_t, 256> numbers_;  // -1: none
};

}  // namespace keel::models
