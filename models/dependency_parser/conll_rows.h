// Lines of a treebank: what they are, and where their columns stand.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace keel::models {

inline constexpr std::size_t kMostColumns = 10, kAbsent = kMostColumns;

// Of the rows of a text: how many columns there are, and which is which.
struct RowLayout {
  std::size_t columns, form, tag, head;
  std::size_t id = kAbsent, coarse_tag = kAbsent, label = kAbsent;

  bool has_ids() const { return id != kAbsent; }
};
inline constexpr RowLayout kTenColumns{
    .columns = 10, .form = 1, .tag = 4, .head = 6, .id = 0, .coarse_tag = 3, .label = 7};
inline constexpr RowLayout kThreeColumns{.columns = 3, .form = 0, .tag = 1, .head = 2};

// The layout of a text: that of its first line which can be no comment. A row of three columns may
// begin with "#", which is a form, too: where all lines do, these decide.
const RowLayout& layout_of(std::string_view text);

// Whether a line has no more than spaces.
bool is_blank_line(std::string_view line);
// Whether a line is the row of a token, and no comment, no range of tokens and no empty node
// either.
bool is_token(std::string_view line, const RowLayout& layout);

// The columns of a row, of which there may be more than there is room for.
struct Columns {
  std::array<std::string_view, kMostColumns + 1> at;  // that of kAbsent is not to be looked at
  std::size_t count = 0;

  explicit Columns(std::string_view row);
};

}  // namespace keel::models
