#include "models/dependency_parser/conll_rows.h"

#include "frontend/text/lines.h"

namespace keel::models {
namespace {

// Whether digits stand on both sides of a '-' or '.': a range of tokens, or an empty node.
bool is_passed_over(std::string_view id) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t between = id.find_first_not_of(kDigits);
  if (between == 0 || between == id.npos || between + 1 == id.size()) return false;
  const bool separates = id[between] == '-' || id[between] == '.';
  return separates && id.find_first_not_of(kDigits, between + 1) == id.npos;
}

}  // namespace

Columns::Columns(std::string_view row) {
  for (std::size_t tab = 0; tab != row.npos; ++count) {
    tab = row.find('\t');
    if (count < kMostColumns) at[count] = row.substr(0, tab);
    if (tab != row.npos) row.remove_prefix(tab + 1);
  }
}

const RowLayout& layout_of(std::string_view text) {
  bool may_be_three = false;
  text::Lines lines(text);
  while (const auto line = lines.next()) {
    if (is_blank_line(line->text)) continue;
    const bool is_three = Columns(line->text).count == kThreeColumns.columns;
    if (!line->text.starts_with('#')) return is_three ? kThreeColumns : kTenColumns;
    may_be_three |= is_three;
  }
  return may_be_three ? kThreeColumns : kTenColumns;
}

bool is_blank_line(std::string_view line) {
  return line.find_first_not_of(" \t\v\f\r") == line.npos;
}

bool is_token(std::string_view line, const RowLayout& layout) {
  if (is_blank_line(line)) return false;
  if (!layout.has_ids()) return true;
  return !line.starts_with('#') && !is_passed_over(line.substr(0, line.find('\t')));
}

bool is_empty_node(std::string_view line, const RowLayout& layout) {
  const std::string_view id = line.substr(0, line.find('\t'));
  return layout.has_ids() && is_passed_over(id) && id.find('.') != id.npos;
}

}  // namespace keel::models
