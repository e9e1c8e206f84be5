// Text as lines, and lines as words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace keel::text {

// The limit in bytes of a line, and of a record of several lines. Readers of text refuse more, with
// file and line, so that no file costs more memory than a small multiple of this limit.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 24;

struct Line {
  std::string_view text;    // without its end
  std::int64_t number = 0;  // from 1
};

// Reads the lines of a text one by one. A line ends in LF, or in any number of CRs and LF, so that
// text written with one LF reads back unchanged. The last end is optional, and no line follows it.
// An empty line is a line. No other character ends one, so that two files with matching lines keep
// matching. Holds a view of `content`.
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
