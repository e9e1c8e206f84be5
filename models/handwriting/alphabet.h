// The characters that a text to be written may have, and their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel::models {

class Alphabet {
 public:
  // The characters of a string of ASCII have the numbers 0, 1, ...; with `has_other` all other
  // characters share one number more, the last.
  explicit Alphabet(std::string characters, bool has_other = false);
  // 57 as Graves (2013, section 5.3): letters, the space, full stop, comma and apostrophe, and one
  // for whatever else. He does not name them all.
  static Alphabet of_letters();

  std::int64_t size() const { return std::int64_t(characters_.size()) + (has_other_ ? 1 : 0); }
  // The numbers of a text in UTF-8. Throws Error{kBadInput} that begins with `place` for bytes that
  // are not UTF-8, control characters, and without an "other" for unknown characters.
  std::vector<std::int32_t> numbers(std::string_view utf8, std::string_view place) const;

  // The form of a checkpoint. parse() throws Error{kBadInput} for what text() cannot give.
  std::string text() const;
  static Alphabet parse(std::string_view text);

 private:
  std::string characters_;
  bool has_other_;
};

}  // namespace keel::models
