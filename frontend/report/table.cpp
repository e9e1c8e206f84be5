#include "frontend/report/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace keel::report {
namespace {

// Spreadsheets take a cell that begins so for a formula, unless it is a number.
bool is_formula(const std::string& text) {
  if (text.size() < 2 || std::string_view("=+-@\t\r").find(text[0]) == std::string_view::npos) {
    return false;
  }
  const char *begin = text.data() + (text[0] == '+' ? 1 : 0), *end = text.data() + text.size();
  double number = 0;
  const auto [stop, problem] = std::from_chars(begin, end, number);
  return problem != std::errc{} || stop != end;
}

std::string csv_field(std::string text) {
  if (is_formula(text)) text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

}  // namespace

std::string csv_text(const Rows& rows) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& cell : row) fields.push_back(csv_field(cell));
    text += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return text;
}

std::string markdown_text(const Rows& rows) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    text += "|";
    for (const std::string& cell : row) text += fmt::format(" {} |", markdown_cell(cell));
    text += "\n";
    if (&row != &rows.front()) continue;
    for (std::size_t i = 0; i < row.size(); ++i) text += "|---";
    text += "|\n";
  }
  return text;
}

std::string exact_text(std::optional<double> value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace keel::report
