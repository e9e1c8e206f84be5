// Text as lines, and lines as words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace keel::text {

// The most bytes of a line that is read, and of a record that takes several lines. What reads text
// refuses more with file and line, so that no file costs more memory than a small multiple of it.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 24;

struct Line {
  std::string_view text;    // without its end
  std::int64_t number = 0;  // from 1
};

// Goes through the lines of a text. A line ends in LF or CR LF, of however many CRs, so that what
// is written with one LF reads as it was; the last one may have no end, and after the last end
// there is no line more. An empty line is a line. No other character ends one,
// so that two files that go together keep going together. Holds a view of `content`.
class Lines {
 public:
  explicit Lines(std::string_view content) : rest_(content) {}
  // The next line, or nothing.
  std::optional<Line> next();

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

// Whether a character separates words: the ASCII space and the tab, and no other, since a no-break
// space is part of a word in the data sets that have it.
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Calls `take` with each word of a line. Words are not empty, and an empty line has none.
template <class Take>
void each_word(std::string_view line, const Take& take) {
  for (const auto *at = line.begin(), *const end = line.end(); at != end;) {
    const auto* const first = std::find_if_not(at, end, is_blank);
    at = std::find_if(first, end, is_blank);
    if (first != at) take(std::string_view(first, at));
  }
}

// The same words, in their order.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace keel::text
