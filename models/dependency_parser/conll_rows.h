// Lines of a treebank: their kinds and their columns.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace keel::models {

inline constexpr std::size_t kMostColumns = 10, kAbsent = kMostColumns;

// The number of columns in the rows of a text, and the meaning of each.
struct RowLayout {
  std::size_t columns, form, tag, head;
  std::size_t id = kAbsent, coarse_tag = kAbsent, label = kAbsent;
  std::size_t other_arcs = kAbsent;  // DEPS of CoNLL-U, PHEAD of CoNLL-X

  bool has_ids() const { return id != kAbsent; }
};
inline constexpr RowLayout kTenColumns{.columns = 10,
                                       .form = 1,
                                       .tag = 4,
                                       .head = 6,
                                       .id = 0,
                                       .coarse_tag = 3,
                                       .label = 7,
                                       .other_arcs = 8};
inline constexpr RowLayout kThreeColumns{.columns = 3, .form = 0, .tag = 1, .head = 2};

// The layout of a text is that of its first line that cannot be a comment. A row of three columns
// may begin with "#" as its form; if all lines begin so, these rows decide.
const RowLayout& layout_of(std::string_view text);

// Whether a line is empty or consists of spaces and tabs.
bool is_blank_line(std::string_view line);
// Whether a line is the row of a token, and not a comment, a range of tokens or an empty
// node.
bool is_token(std::string_view line, const RowLayout& layout);
// Whether a line is the row of an empty node, such as 5.1, of CoNLL-U's enhanced graph.
bool is_empty_node(std::string_view line, const RowLayout& layout);

// The columns of a row. A row may have more columns than fit.
struct Columns {
  std::array<std::string_view, kMostColumns + 1> at;  // never read that of kAbsent
  std::size_t count = 0;

  explicit Columns(std::string_view row);
};

}  // namespace keel::models
